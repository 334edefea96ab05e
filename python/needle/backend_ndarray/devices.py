"""Where arrays live: devices, and how to get one.

A device is a name, a module of kernels, and a way to make storage.  A device that is not there is an object all the
same: it answers `enabled()` with False, and using it says what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import ArgumentError, DeviceError, describe, named
from . import cuda_presence, native, ndarray_backend_numpy
from .dtypes import DTYPES, dtype_name, numpy_dtype
from .indexing import as_number, as_shape


class BackendDevice:
    """A place where arrays live and kernels run; its other attributes are those of its module `mod`."""

    array_type: Any = None  # NDArray, which ndarray.py plugs in: devices make arrays, and arrays need devices

    def __new__(cls, name: str, mod: ModuleType | None, *args: Any, **kwargs: Any) -> BackendDevice:
        return object.__new__(AbsentDevice if mod is None and cls is BackendDevice else cls)

    if TYPE_CHECKING:

        def __getattr__(self, attribute: str) -> Any: ...

    def __init__(
        self,
        name: str,
        mod: ModuleType | None,
        storage: dict[str, Callable] | None = None,
        wrappers: dict[str, Callable] | None = None,
        absence: str | Callable[[], str] = "",
        remark: str = "",
        typed: ModuleType | None = None,
    ) -> None:
        """By dtype, what makes storage of n elements, and what makes storage of a NumPy array's own memory.

        absence: why there is no module, if there is none, or what finds out.  remark: what repr() adds to the name.
        typed: the module of the library's kernels.
        """
        self.name = name
        self.mod = mod
        self.typed = typed
        self.wrappers = wrappers or {}
        self._storage = storage or ({} if mod is None else {"float32": mod.Array})
        self._absence = absence or f"{name} is not built; run 'make lib'"
        self._remark = remark
        if mod is not None:
            own = set(dir(self))
            vars(self).update((key, value) for key, value in vars(mod).items() if key not in own)

    @property
    def absence(self) -> str:
        """Why there is no module, if there is none."""
        return self._absence() if callable(self._absence) else self._absence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BackendDevice) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name + "()"

    def __repr__(self) -> str:
        return f"{self} [{self._remark}]" if self._remark else str(self)

    def __reduce__(self) -> tuple:
        return as_device, (self.name,)

    def enabled(self) -> bool:
        """Whether arrays can be made here: true only if an allocation really succeeds."""
        try:
            self.allocate(1, "float32")
        except Exception:  # whatever a driver may throw, the answer is no
            return False
        return True

    def allocate(self, size: int, dtype: str) -> Any:
        """Flat uninitialised storage of a number of elements.  DeviceError if the device is absent."""
        make = self._storage.get(dtype)
        if make is not None:
            try:
                return make(size)
            except (TypeError, ValueError, OverflowError):  # the number does not even fit into what counts bytes
                raise ArgumentError(
                    f"{self}: {size} elements of {dtype} are more than memory can be asked for"
                ) from None
            except MemoryError:
                raise MemoryError(f"{self}: no memory for {size} elements of {dtype}") from None
            except RuntimeError as error:
                if reason := cuda_presence.not_usable(error):
                    raise DeviceError(f"{self}: {reason}") from None
                raise
        if self.mod is None:
            raise DeviceError(f"{self}: {self.absence}")
        raise NotImplementedError(f"{self}: no storage for {dtype} here, only for {', '.join(self._storage)}")

    # ---- arrays made here; random numbers come from NumPy's global generator, the same stream on every device -----

    @named
    def randn(self, *shape: int, dtype: Any = "float32") -> Any:
        """Standard normal numbers.  Shape: one integer for each axis."""
        return self._array(np.random.randn(*as_shape(shape, "randn")), dtype)

    @named
    def rand(self, *shape: int, dtype: Any = "float32") -> Any:
        """Uniform numbers from [0, 1).  Shape: one integer for each axis."""
        return self._array(np.random.rand(*as_shape(shape, "rand")), dtype)

    @named
    def one_hot(self, n: int, i: Any, dtype: Any = "float32") -> Any:
        """Rows of the identity matrix of size n.  i: integers of any shape (…) → (…, n)."""
        indices, n = np.asarray(i).astype(np.int64), as_number(n, "one_hot")
        outside = indices[(indices < -n) | (indices >= n)]
        if outside.size:
            raise IndexError(f"one_hot: index {outside[0]} is out of bounds for rows of length {n}")
        rows = np.zeros((indices.size, n), dtype=numpy_dtype(dtype_name(dtype)))
        rows[np.arange(indices.size), indices.reshape(-1)] = 1
        return self._array(rows.reshape(*indices.shape, n), dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
        """An array whose values are left to chance."""
        return self.array_type.make(shape, device=self, dtype=dtype_name(dtype))

    def full(self, shape: tuple[int, ...], fill_value: float, dtype: Any = "float32") -> Any:
        """An array that holds one value everywhere."""
        array = self.empty(shape, dtype)
        array.fill(fill_value)
        return array

    def zeros(self, *shape: int, dtype: Any = "float32") -> Any:
        """An array of zeros.  Shape: one integer for each axis."""
        return self.full(shape, 0, dtype)

    def ones(self, *shape: int, dtype: Any = "float32") -> Any:
        """An array of ones.  Shape: one integer for each axis."""
        return self.full(shape, 1, dtype)

    def _array(self, values: Any, dtype: Any) -> Any:
        return self.array_type(np.asarray(values), device=self, dtype=dtype_name(dtype))


class AbsentDevice(BackendDevice):
    """A device without a module: asked for something of one, it says what to do about it."""

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or "_absence" not in self.__dict__:
            raise AttributeError(attribute)  # pickle and copy ask before there is anything to tell
        raise AttributeError(f"device {self.name} has no {attribute!r}: {self.absence}")


# ---- the devices ---------------------------------------------------------------------------------------------------


def cpu_numpy() -> BackendDevice:
    """The CPU through NumPy: the reference, and what is left when nothing is built."""
    return _numpy_device()


def cpu() -> BackendDevice:
    """The CPU through the built kernels."""
    return _native_device("cpu", "the native cpu backend is not built; run 'make lib'")


def cuda() -> BackendDevice:
    """The first NVIDIA GPU; without the built module or the driver, a device whose enabled() is False.

    With NEEDLE_CUDA_EMU=1 in the environment (or "check"), the emulator under the GPU's name: repr() tells.
    """
    emulated = cuda_presence.emulation()
    return _emulator("cuda", emulated) if emulated else _optional_device("cuda", "cuda", cuda_presence.not_built)


def cuda_emu() -> BackendDevice:
    """The CUDA kernels run by the emulator on the CPU; with NEEDLE_CUDA_EMU=check, every access checked."""
    return _emulator("cuda_emu", cuda_presence.emulation() or "emu")


def _emulator(name: str, kind: str) -> BackendDevice:
    """The emulator's fast modules ("emu"), or those that check every access ("emu_check"), as a device of a name."""
    remark = "emulated on the CPU" if kind == "emu" else "emulated on the CPU, every access checked"
    return _optional_device(name, f"cuda_{kind}", cuda_presence.emulator_not_built(kind), remark)


@cache  # there is one object for each device
def _numpy_device() -> BackendDevice:
    mod = ndarray_backend_numpy
    for name, function in mod.KERNELS.items():
        for dtype in native.dtypes_of(name):
            kernels.register(name, "cpu_numpy", dtype, function)
    storage: dict[str, Callable] = {dtype: partial(mod.Array, dtype=dtype) for dtype in DTYPES}
    return BackendDevice("cpu_numpy", mod, storage, dict.fromkeys(DTYPES, mod.wrap))


@cache
def _optional_device(name: str, modules: str, absence: str | Callable[[], str], remark: str = "") -> BackendDevice:
    try:
        return _native_device(name, absence, modules, remark)
    except ImportError as error:
        return BackendDevice(name, None, absence=str(error), remark=remark)


@cache
def _native_device(name: str, absence: str | Callable[[], str], modules: str = "", remark: str = "") -> BackendDevice:
    """The device of a name, run by ndarray_backend_<modules> and, if they are there, the typed kernels_<modules>."""
    course, typed = (native.load(f"{prefix}_{modules or name}") for prefix in ("ndarray_backend", "kernels"))
    if course is None:
        return BackendDevice(name, None, absence=absence, remark=remark)
    storage: dict[str, Callable] = {"float32": course.Array}
    wrappers: dict[str, Callable] = {"float32": course.wrap} if hasattr(course, "wrap") else {}
    native.register_course(name, course)
    if typed is not None:
        others = [dtype for dtype in DTYPES if dtype != "float32"]  # float32 lives in the course's own storage
        storage |= {dtype: partial(typed.Buffer, dtype=dtype) for dtype in others}
        wrappers |= {dtype: typed.wrap for dtype in others if hasattr(typed, "wrap")}
        native.register_typed(name, typed, course)
        if hasattr(typed, "_memory_source") and hasattr(course, "_set_memory_source") and not remark:
            course._set_memory_source(*typed._memory_source())  # an emulator tells more if every array is its own
    return BackendDevice(name, course, storage, wrappers, remark=remark, typed=typed)


cpu(), cpu_numpy()  # at import, so that the registry is complete, and a module of another Python is reported


def all_devices() -> list[BackendDevice]:
    """The devices that code may choose among; ask each whether it is enabled()."""
    return [cpu(), cuda(), cpu_numpy()]


# ---- the default, and devices by name ------------------------------------------------------------------------------

_FACTORIES = {"cpu": cpu, "cpu_numpy": cpu_numpy, "cuda": cuda, "cuda_emu": cuda_emu}
_chosen: list[BackendDevice] = []  # by `with device(...)`, the innermost last


@cache
def _usual_device() -> BackendDevice:
    return cpu() if cpu().enabled() else cpu_numpy()


def default_device() -> BackendDevice:
    """Where arrays go when nobody says: the one of the innermost `with device(...)`, else cpu(), else cpu_numpy()."""
    return _chosen[-1] if _chosen else _usual_device()


def as_device(device: Any) -> BackendDevice:
    """The device that is meant: a device, a name such as "cpu" or "cuda:0", or None for the default."""
    if device is None:
        return default_device()
    if isinstance(device, BackendDevice):
        return device
    name, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if name not in _FACTORIES or number not in ("", "0"):
        raise DeviceError(f"device: got {describe(device)}, wanted a device or one of {', '.join(_FACTORIES)}")
    return _FACTORIES[name]()


@contextmanager
def device(which: Any) -> Iterator[BackendDevice]:
    """Make a device the default until the block ends: `with device("cpu_numpy"):`."""
    _chosen.append(as_device(which))
    try:
        yield _chosen[-1]
    finally:
        _chosen.pop()
