"""Which backend is chosen, in processes of their own: needle can be imported in one mode only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = [
    *("BACKEND", "DEFAULT_BACKEND", "Device", "NDArray", "array_api", "as_device", "default_device", "device"),
    *("all_devices", "cpu", "cpu_numpy", "cuda", "cuda_emu"),
    *("as_strided", "compact", "from_numpy", "scatter_add"),
]


def run(program: str, backend: str | None) -> subprocess.CompletedProcess:
    """Run a program that sees needle without what its face imports: the selection alone is in question."""
    environment = {key: value for key, value in os.environ.items() if key != "NEEDLE_BACKEND"}
    if backend is not None:
        environment["NEEDLE_BACKEND"] = backend
    bare = (
        f"import sys, types; needle = types.ModuleType('needle'); needle.__path__ = [{str(ROOT / 'python/needle')!r}]\n"
    )
    bare += "sys.modules['needle'] = needle; import numpy as np\n"
    return subprocess.run([sys.executable, "-c", bare + program], env=environment, capture_output=True, text=True)


def printed(program: str, backend: str | None) -> str:
    done = run(program, backend)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_both_backends_export_the_same_names_silently(backend: str) -> None:
    program = f"from needle import backend_selection as b; [getattr(b, n) for n in {NAMES}]; "
    assert (
        printed(program + "print(b.BACKEND, sorted(b.__all__) == sorted(" + repr(NAMES) + "))", backend)
        == f"{backend} True"
    )


@pytest.mark.parametrize("backend", [None, ""])
def test_nd_is_the_default(backend: str | None) -> None:
    assert printed("from needle import backend_selection as b; print(b.BACKEND)", backend) == "nd"


def test_another_value_is_refused_and_both_are_named() -> None:
    done = run("import needle.backend_selection", "torch")
    assert done.returncode == 1
    assert "RuntimeError: NEEDLE_BACKEND is 'torch'; wanted 'np'" in done.stderr and "'nd'" in done.stderr


def test_np_mode_needs_nothing_built() -> None:
    program = """
from needle import backend_selection as b
assert "needle.backend_ndarray" not in sys.modules
assert b.array_api is np and b.NDArray is np.ndarray
from needle import backend_ndarray as nd
print(nd.array([1, 2], device=nd.cpu_numpy()).tolist())
"""
    assert printed(program, "np") == "[1.0, 2.0]"


def test_np_mode_has_one_device_and_is_polite_about_the_others() -> None:
    program = """
from needle import backend_selection as b
from needle.errors import DeviceError
assert repr(b.cpu()) == "needle.cpu()" and b.cpu() == b.cpu() and len({b.cpu(), b.cpu()}) == 1
assert b.all_devices() == [b.cpu()] and b.default_device() == b.cpu() == b.as_device("cpu") == b.as_device(None)
assert b.cpu().enabled() and isinstance(b.cpu(), b.Device) and b.cpu_numpy().enabled()
for absent in (b.cuda(), b.cuda_emu(), b.as_device("cuda:0")):
    assert not absent.enabled() and absent != b.cpu()
    try:
        absent.zeros(3)
    except DeviceError as error:
        assert "NEEDLE_BACKEND=nd" in str(error)
    else:
        raise SystemExit("no error")
with b.device("cpu") as chosen:
    assert chosen == b.cpu()
np.random.seed(0); want = np.random.rand(2, 3); np.random.seed(0)
assert (b.cpu().rand(2, 3) == want).all() and b.cpu().randn(2).dtype == "float64"
assert (b.cpu().one_hot(3, np.array([[0, 2]])) == np.eye(3)[np.array([[0, 2]])]).all()
assert b.cpu().zeros(2, 1).shape == (2, 1) and b.cpu().ones(2).dtype == "float32"
assert b.cpu().full((2,), 3, None).tolist() == [3, 3] and b.cpu().empty((2, 2), "int64").dtype == "int64"
print("ok")
"""
    assert printed(program, "np") == "ok"


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_what_numpy_lacks_is_in_both_backends(backend: str) -> None:
    program = """
from needle import backend_selection as b
a = b.array_api.zeros((3, 2), dtype="float32")
v = b.from_numpy(np.arange(6, dtype="float32").reshape(3, 2))
added = b.scatter_add(a, np.array([1, 1, -1]), v)
assert np.asarray(added).tolist() == [[0, 0], [2, 4], [4, 5]] and not np.asarray(a).any()
turned = b.compact(b.array_api.swapaxes(v, 0, 1))
assert np.asarray(turned).tolist() == [[0, 2, 4], [1, 3, 5]]
windows = b.as_strided(b.array_api.swapaxes(v, 0, 1), (2, 2, 2), (3, 1, 1))
assert np.asarray(windows).tolist() == [[[0, 2], [2, 4]], [[1, 3], [3, 5]]]
print("ok")
"""
    assert printed(program, backend) == "ok"


def test_the_whole_of_needle_in_np_mode_needs_nothing_built() -> None:
    program = "import sys, needle; print([name for name in sys.modules if 'needle.backend_ndarray' in name])"
    environment = {**os.environ, "NEEDLE_BACKEND": "np", "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
