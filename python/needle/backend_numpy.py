"""The devices of np mode, where arrays are plain NumPy arrays: there is one, the CPU.

The names are those of nd mode, so that code runs in both: what is not there answers politely.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .errors import DeviceError, describe


class Device:
    """A place where arrays live."""

    name = ""

    def enabled(self) -> bool:
        """Whether arrays can be made here."""
        return False

    def __repr__(self) -> str:
        return f"needle.{self.name}()"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.name == other.name


class CPUDevice(Device):
    """The CPU.  Random numbers come from NumPy's global generator."""

    name = "cpu"

    def enabled(self) -> bool:
        return True

    def zeros(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """An array of zeros.  Shape: one integer for each axis."""
        return np.zeros(shape, dtype=dtype)

    def ones(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """An array of ones.  Shape: one integer for each axis."""
        return np.ones(shape, dtype=dtype)

    def randn(self, *shape: int) -> np.ndarray:
        """Standard normal numbers, float64.  Shape: one integer for each axis."""
        return np.asarray(np.random.randn(*shape))

    def rand(self, *shape: int) -> np.ndarray:
        """Uniform numbers from [0, 1), float64.  Shape: one integer for each axis."""
        return np.asarray(np.random.rand(*shape))

    def one_hot(self, n: int, i: Any, dtype: Any = "float32") -> np.ndarray:
        """Rows of the identity matrix of size n.  i: integers of any shape (…) → (…, n)."""
        indices = np.asarray(i)
        rows = np.zeros((indices.size, n), dtype=dtype)
        rows[np.arange(indices.size), indices.reshape(-1)] = 1
        return rows.reshape(*indices.shape, n)

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32") -> np.ndarray:
        """An array whose values are left to chance."""
        return np.empty(shape, dtype=dtype)

    def full(self, shape: tuple[int, ...], fill_value: float, dtype: Any = "float32") -> np.ndarray:
        """An array that holds one value everywhere."""
        return np.full(shape, fill_value, dtype=dtype)


class AbsentDevice(Device):
    """A device that np mode does not have: enabled() is False, and using it says what to do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def refuse(self, *args: Any, **options: Any) -> Any:
        """Raise the DeviceError that says what to do instead."""
        raise DeviceError(f"{self.name}: NumPy computes on the CPU alone; choose the other backend, NEEDLE_BACKEND=nd")

    zeros = ones = randn = rand = one_hot = empty = full = refuse


def cpu() -> CPUDevice:
    """The CPU."""
    return CPUDevice()


def cpu_numpy() -> CPUDevice:
    """The CPU through NumPy, which in np mode is the CPU."""
    return CPUDevice()


def cuda() -> Device:
    """A device whose enabled() is False: there are no GPUs in np mode."""
    return AbsentDevice("cuda")


def cuda_emu() -> Device:
    """A device whose enabled() is False: there is no emulator in np mode."""
    return AbsentDevice("cuda_emu")


def all_devices() -> list[Device]:
    """The devices that code may choose among."""
    return [cpu()]


def default_device() -> Device:
    """Where arrays go when nobody says."""
    return cpu()


_FACTORIES = {"cpu": cpu, "cpu_numpy": cpu_numpy, "cuda": cuda, "cuda_emu": cuda_emu}


def as_device(device: Any) -> Device:
    """The device that is meant: a device, a name such as "cpu" or "cuda:0", or None for the default."""
    if device is None:
        return default_device()
    if isinstance(device, Device):
        return device
    name, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if name not in _FACTORIES or number not in ("", "0"):
        raise DeviceError(f"device: got {describe(device)}, wanted a device or one of {', '.join(_FACTORIES)}")
    return _FACTORIES[name]()


@contextmanager
def device(which: Any) -> Iterator[Device]:
    """Make a device the default until the block ends; in np mode there is but one to choose."""
    chosen = as_device(which)
    if isinstance(chosen, AbsentDevice):
        chosen.refuse()
    yield chosen


# ---- what NumPy lacks ----------------------------------------------------------------------------------------------


def compact(a: np.ndarray) -> np.ndarray:
    """The array itself if its elements lie in row-major order in memory, else a copy of which that is true."""
    return np.asarray(a, order="C")


def as_strided(a: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A view with any shape and strides, in elements, of a compact array; of a compact copy if a is not compact."""
    in_bytes = tuple(stride * a.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(compact(a), shape, in_bytes)


def from_numpy(a: np.ndarray, device: Any = None) -> np.ndarray:
    """The array itself: in np mode arrays are NumPy's."""
    as_device(device)
    return a


def scatter_add(a: np.ndarray, indices: Any, values: np.ndarray, axis: int = 0) -> np.ndarray:
    """A copy of a with values added at these positions along an axis; what goes to the same place adds up.

    The adjoint of `take`: a (…, n, …), indices I, values (…, *I, …) → (…, n, …).
    """
    out = np.array(a, dtype=np.result_type(a, values))
    where: Any = (slice(None),) * (axis % out.ndim) + (np.asarray(indices),)
    np.add.at(out, where, values)
    return out
