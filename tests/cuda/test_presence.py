"""What cuda() says on machines of every kind, played by scripts that stand in for nvcc and nvidia-smi on PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from needle.backend_ndarray import cuda_presence

from tests.programs import pretend

ROOT = Path(__file__).resolve().parents[2]
GPU = "GPU 0: Some Card (UUID: GPU-0)"
DRIVER_TOO_OLD = "cudaMalloc failed: CUDA driver version is insufficient for CUDA runtime version"
NO_GPU = "cudaMalloc failed: no CUDA-capable device is detected"


class Machine:
    """A PATH of our own: programs that print what they are told to, and nothing of this machine."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name, value in {"PATH": str(folder), "CUDA_HOME": str(folder / "nowhere"), "CUDACXX": ""}.items():
            monkeypatch.setenv(name, value)

    def has(self, program: str, prints: str, status: int = 0) -> Machine:
        pretend(self.folder, program, f"printf '%s\\n' '{prints}'\nexit {status}")
        return self


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


# ---- the module is not built ----------------------------------------------------------------------------------------


def test_no_nvcc(machine: Machine) -> None:
    assert "there is no nvcc; install the CUDA toolkit" in cuda_presence.not_built()


def test_nvcc_that_does_not_run(machine: Machine) -> None:
    machine.has("nvcc", "broken", status=1)
    assert f"{machine.folder}/nvcc does not run" in cuda_presence.not_built()


def test_an_old_toolkit(machine: Machine) -> None:
    machine.has("nvcc", "Cuda compilation tools, release 10.2, V10.2.89")
    assert "CUDA 10.2 is too old; install 11.0 or newer" in cuda_presence.not_built()


@pytest.mark.parametrize("status, printed", [(9, "NVIDIA-SMI has failed"), (0, "No devices found.")])
def test_nvcc_without_a_gpu(machine: Machine, status: int, printed: str) -> None:
    machine.has("nvcc", "Cuda compilation tools, release 12.4, V12.4.99").has("nvidia-smi", printed, status)
    assert "there is nvcc, but no GPU; run 'make lib CUDA=1'" in cuda_presence.not_built()


def test_nvcc_where_cuda_is_usually_installed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has("nvcc", "Cuda compilation tools, release 12.4, V12.4.99")
    home = machine.folder / "home"
    home.mkdir()
    (machine.folder / "nvcc").rename((home / "bin").mkdir() or home / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert cuda_presence.find_nvcc() == str(home / "bin" / "nvcc")


def test_all_there_but_not_built(machine: Machine) -> None:
    machine.has("nvcc", "Cuda compilation tools, release 12.4, V12.4.99").has("nvidia-smi", GPU)
    assert "not built: run 'make lib'" in cuda_presence.not_built()
    assert cuda_presence.gpus() == ["Some Card"]


# ---- the module is built --------------------------------------------------------------------------------------------


def test_a_gpu_without_a_driver(machine: Machine) -> None:
    assert "has no NVIDIA driver" in cuda_presence.not_usable(RuntimeError(DRIVER_TOO_OLD))


def test_a_driver_that_is_too_old(machine: Machine) -> None:
    machine.has("nvidia-smi", GPU)
    assert "update the driver" in cuda_presence.not_usable(RuntimeError(DRIVER_TOO_OLD))


def test_a_driver_without_a_gpu(machine: Machine) -> None:
    machine.has("nvidia-smi", "No devices found.")
    assert "finds no GPU" in cuda_presence.not_usable(RuntimeError(NO_GPU))


def test_other_errors_of_a_gpu_stay_what_they_are() -> None:
    assert cuda_presence.not_usable(RuntimeError("an illegal memory access was encountered")) == ""


def test_a_device_without_a_driver_is_disabled_and_says_so(machine: Machine) -> None:
    from needle import backend_ndarray as nd
    from needle.errors import DeviceError

    def refuse(size: int) -> None:
        raise RuntimeError(DRIVER_TOO_OLD)

    device = nd.BackendDevice("cuda", ModuleType("built"), {"float32": refuse})
    assert not device.enabled()
    with pytest.raises(DeviceError, match=r"cuda\(\): this machine has no NVIDIA driver; install it"):
        nd.zeros((2,), device=device)


# ---- processes of their own -----------------------------------------------------------------------------------------


def python(*lines: str, **environment: str) -> str:
    """What a fresh interpreter prints in which this tree's needle is `needle`."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NEEDLE_BACKEND": "nd", **environment}
    code = "\n".join(["import sys", "import needle", *lines])
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_touches_nothing_of_cuda(emulator: ModuleType) -> None:
    built = (
        "[name for name in sys.modules if name.rpartition('.')[2].startswith(('ndarray_backend_cuda', 'kernels_cuda'))]"
    )
    assert python(f"print({built})") == "[]"
    if Path("/proc/self/maps").exists():
        assert python("print('cuda' in open('/proc/self/maps').read())") == "False"


def test_cuda_is_never_the_emulator_by_itself(emulator: ModuleType) -> None:
    shown = python("c = needle.cuda()", "print(repr(c), getattr(c, '__device_name__', 'absent'))", NEEDLE_CUDA_EMU="")
    assert "emulated" not in shown


def test_cuda_is_the_emulator_on_request(emulator: ModuleType) -> None:
    shown = python(
        "c = needle.cuda()",
        "x = needle.Tensor([1.0, 2.0], device='cuda')",
        "print(c, repr(c), c.__device_name__, c.enabled(), x.device == c, (x + x).numpy().tolist())",
        "print(needle.cuda_emu(), needle.cuda_emu().__device_name__)",
        NEEDLE_CUDA_EMU="1",
    )
    assert shown.splitlines() == [
        "cuda() cuda() [emulated on the CPU] cuda (emulated) True True [2.0, 4.0]",
        "cuda_emu() cuda (emulated)",
    ]


@pytest.mark.slow
def test_the_checking_emulator_on_request(checking_emulator: ModuleType) -> None:
    shown = python("c = needle.cuda()", "print(repr(c), c.__device_name__, c.enabled())", NEEDLE_CUDA_EMU="check")
    assert shown == "cuda() [emulated on the CPU, every access checked] cuda (emulated, checked) True"


def test_a_request_that_means_nothing_is_one_line() -> None:
    said = python("try:", "    needle.cuda()", "except ValueError as error: print(error)", NEEDLE_CUDA_EMU="yes")
    assert said == "NEEDLE_CUDA_EMU is 'yes'; wanted 1 (emulate), check (and check every access) or 0"
