"""Devices: what they answer, what they make, and what happens without them."""

from __future__ import annotations

import copy
import pickle
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needle import backend_ndarray as nd
from needle import kernels
from needle.backend_ndarray import devices, native
from needle.errors import DeviceError

from tests import chosen_device

DEVICES = chosen_device.devices()


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_devices_are_equal_by_name_and_can_be_keys() -> None:
    assert nd.cpu() == nd.cpu() and nd.cpu() != nd.cpu_numpy()
    assert (nd.cpu() == "cpu") is False and (nd.cpu() == None) is False  # noqa: E711
    assert len({nd.cpu(), nd.cpu(), nd.cpu_numpy(), nd.cuda()}) == 3
    assert [str(d) for d in nd.all_devices()] == ["cpu()", "cuda()", "cpu_numpy()"]


def test_a_device_stays_itself_through_copies() -> None:
    for twin in (copy.deepcopy(nd.cpu()), copy.copy(nd.cpu()), pickle.loads(pickle.dumps(nd.cpu()))):
        assert twin is nd.cpu()


def test_unknown_attributes_are_the_modules() -> None:
    assert nd.cpu_numpy().__device_name__ == "numpy"
    assert not hasattr(nd.cpu_numpy(), "matmul_tiled")
    if nd.cpu().enabled():
        assert hasattr(nd.cpu(), "matmul_tiled") and nd.cpu().__tile_size__ > 0


def test_absence_answers_politely() -> None:
    absent = nd.BackendDevice("nowhere", None, absence="nowhere is not built; build it")
    assert not absent.enabled() and str(absent) == "nowhere()"
    assert not hasattr(absent, "matmul_tiled")
    for attempt in (
        lambda: nd.zeros((2,), device=absent),
        lambda: absent.randn(3),
        lambda: nd.ones((2,)).to(absent),
    ):
        with pytest.raises(DeviceError, match="nowhere is not built; build it"):
            attempt()


def test_a_device_is_enabled_only_if_it_can_allocate() -> None:
    def no_driver(size: int) -> None:
        raise RuntimeError("driver version is insufficient")

    assert not nd.BackendDevice("cuda", nd.cpu_numpy().mod, {"float32": no_driver}).enabled()


@pytest.mark.parametrize("factory", [nd.cuda, nd.cuda_emu])
def test_optional_devices_never_raise(factory: Any) -> None:
    assert factory().enabled() in (True, False)
    assert factory() != nd.cpu()


@pytest.mark.parametrize(
    "name, want", [("cpu", nd.cpu), ("cpu:0", nd.cpu), ("cpu_numpy", nd.cpu_numpy), ("cuda:0", nd.cuda)]
)
def test_devices_by_name(name: str, want: Any) -> None:
    assert nd.as_device(name) is want()


@pytest.mark.parametrize("wrong", ["gpu", "cpu:1", "", 3, ("cpu",)])
def test_other_names_are_refused(wrong: Any) -> None:
    with pytest.raises(DeviceError, match="wanted a device or one of cpu, cpu_numpy, cuda, cuda_emu"):
        nd.as_device(wrong)


def test_the_default_device_and_how_to_choose_another() -> None:
    usual = nd.cpu() if nd.cpu().enabled() else nd.cpu_numpy()
    assert nd.default_device() is usual is nd.as_device(None)
    with nd.device("cpu_numpy") as chosen:
        assert chosen is nd.default_device() is nd.cpu_numpy()
        assert nd.array([1]).device == nd.zeros(2).device == nd.cpu_numpy()
        with nd.device(usual):
            assert nd.default_device() is usual
        assert nd.default_device() is nd.cpu_numpy()
    with pytest.raises(KeyError), nd.device("cpu_numpy"):
        raise KeyError
    assert nd.default_device() is usual


def test_mixed_devices_raise_one_line_that_names_both_U066() -> None:
    if len(DEVICES) < 2:
        pytest.skip("only one device is here")
    a, b = (nd.ones((2, 2), device=device) for device in DEVICES)

    def write() -> None:
        a[...] = b

    for attempt in (
        lambda: a + b,
        lambda: a - b,
        lambda: a > b,
        lambda: a @ b,
        lambda: a.maximum(b),
        lambda: a**b,
        lambda: nd.concatenate([a, b]),
        lambda: nd.stack([a, b]),
        lambda: nd.where(a, a, b),
        lambda: nd.take(a, nd.zeros((1,), device=b.device), 0),
        lambda: nd.scatter_add(a, [0, 1], b),
        write,
    ):
        with pytest.raises(DeviceError) as caught:
            attempt()
        assert "cpu()" in str(caught.value) and "cpu_numpy()" in str(caught.value) and "\n" not in str(caught.value)


def test_everything_stays_on_its_device_U066(device: Any) -> None:
    a = nd.array([[1, 2], [3, 4]], device=device)
    made = [
        nd.zeros((2,), device=device),
        nd.full((2,), 3, device=device),
        nd.arange(3, device=device),
        nd.eye(2, device=device),
        nd.zeros_like(a),
        nd.ones_like(a),
        nd.empty_like(a),
        device.rand(2),
        device.randn(2),
        device.one_hot(3, [0, 2]),
        device.empty((2,), "float32"),
        device.full((2,), 1.0, None),
        a + 1,
        1 / a,
        a > 2,
        a @ a,
        a.sum(axis=0),
        a.argmax(),
        a.flip((0,)),
        a.pad(((1, 1), (0, 0))),
        a.astype("int64"),
        nd.where(a > 2, a, 0),
        nd.take(a, [0], 0),
        nd.concatenate([a, a]),
        a // 2,
        nd.array(a),
    ]
    assert all(x.device == device for x in made)


def test_moving_copies_only_between_devices() -> None:
    a = nd.arange(6, dtype="int64", device=DEVICES[0]).reshape((2, 3)).T
    assert a.to(DEVICES[0]) is a and a.to(str(DEVICES[0])[:-2]) is a
    for device in DEVICES:
        moved = a.to(device)
        assert moved.device == device and moved.dtype == "int64" and moved.tolist() == [[0, 3], [1, 4], [2, 5]]


# ---- arrays that devices make --------------------------------------------------------------------------------------


def test_random_numbers_are_numpys_global_stream_on_every_device(device: Any) -> None:
    np.random.seed(7)
    want = np.random.rand(3, 2), np.random.randn(4)
    np.random.seed(7)
    got = device.rand(3, 2), device.randn(4)
    for ours, numpys in zip(got, want):
        np.testing.assert_array_equal(ours.numpy(), numpys.astype("float32"))
        assert ours.dtype == "float32"


def test_one_hot_has_rows_of_the_identity(device: Any) -> None:
    indices = np.array([[0, 2], [1, 1]])
    want = np.eye(3, dtype="float32")[indices]
    for given in (indices, nd.array(indices, device=device), nd.array(indices, dtype="int32", device=device)):
        np.testing.assert_array_equal(device.one_hot(3, given).numpy(), want)
    assert device.one_hot(3, 1, dtype="uint8").tolist() == [0, 1, 0]
    with pytest.raises(IndexError, match="3"):
        device.one_hot(3, [3])


def test_full_and_empty_of_every_type(device: Any) -> None:
    for dtype in ("bool", "uint8", "int32", "int64", "float32", "float64", None):
        assert device.full((2, 3), 1, dtype).tolist() == [[1] * 3] * 2
        assert device.empty((0,), dtype).dtype == (dtype or "float32")
    assert device.zeros(2, 2).tolist() == [[0, 0], [0, 0]] and device.ones(1).tolist() == [1]


# ---- built modules -------------------------------------------------------------------------------------------------


def test_a_module_of_another_python_is_reported_with_both_names(tmp_path: Path) -> None:
    (tmp_path / "ndarray_backend_cpu.cpython-27-other.so").touch()
    with pytest.raises(ImportError) as caught:
        native.check_not_stale("ndarray_backend_cpu", tmp_path)
    for part in ("cpython-27-other.so", f"ndarray_backend_cpu{EXTENSION_SUFFIXES[0]}", "run 'make lib'"):
        assert part in str(caught.value)


def test_a_module_of_this_python_or_none_is_not_reported(tmp_path: Path) -> None:
    native.check_not_stale("ndarray_backend_cpu", tmp_path)
    (tmp_path / "ndarray_backend_cpu.cpython-27-other.so").touch()
    (tmp_path / f"ndarray_backend_cpu{EXTENSION_SUFFIXES[0]}").touch()
    native.check_not_stale("ndarray_backend_cpu", tmp_path)


def test_a_module_that_cannot_be_loaded_is_an_absent_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, folder: Path = native.FOLDER) -> None:
        raise ImportError(f"{name} is there, but cannot be loaded")

    monkeypatch.setattr(native, "load", broken)
    absent = devices._optional_device("cuda", "cuda", "not built")
    assert not absent.enabled()
    with pytest.raises(DeviceError, match="ndarray_backend_cuda is there, but cannot be loaded"):
        nd.zeros((1,), device=absent)


def test_the_registry_knows_both_devices() -> None:
    table = kernels.table()
    for device in DEVICES:
        for name in ("compact", "ewise_add", "take", "matmul_batched"):
            assert kernels.device_kernel(name, device.name, "float64") is not None
        assert device.name in table


def test_course_mode_runs_the_courses_own_kernels() -> None:
    if not nd.cpu().enabled():
        pytest.skip("the native cpu backend is not built")
    for name in native.COURSE_KERNELS:
        with kernels.use("course"):
            assert kernels.device_kernel(name, "cpu", "float32") is getattr(nd.cpu().mod, name)
    with kernels.use("fast"):
        assert kernels.device_kernel("matmul", "cpu", "float32") is not nd.cpu().mod.matmul
