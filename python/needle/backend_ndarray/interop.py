"""Arrays and NumPy: copies, shared memory, and what is computed on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import ArgumentError, DeviceError
from . import dtypes

if TYPE_CHECKING:
    from .devices import BackendDevice
    from .ndarray import NDArray


def as_numpy(values: Any, op: str) -> np.ndarray:
    """Anything that NumPy makes an array of, as that array."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{op}: got {type(values).__name__}, of which NumPy makes no array: {error}") from None


def upload(values: np.ndarray, device: BackendDevice, make: Callable[..., NDArray]) -> NDArray:
    """A copy of a NumPy array on a device; its dtype has to be one of the six."""
    dtype = dtypes.dtype_name(values.dtype, "array")
    out = make(values.shape, device=device, dtype=dtype)
    if values.size:
        kernel = kernels.device_kernel("from_numpy", device.name, dtype)
        if kernel is None:
            raise NotImplementedError(f"from_numpy: {device} has no kernel for {dtype}")
        kernel(np.ascontiguousarray(values), out._handle)
    return out


def like(values: np.ndarray, array: NDArray) -> NDArray:
    """A NumPy operand of an operator, on the device of the other operand; it keeps its dtype."""
    return upload(values, array.device, array.make)


def host_view(array: NDArray) -> np.ndarray:
    """A NumPy array on the very memory of an array, strided as it is.  DeviceError if its memory cannot be seen."""
    storage = getattr(array._handle, "array", None)
    if storage is None:
        try:
            storage = np.frombuffer(array._handle, dtypes.numpy_dtype(array.dtype))
        except (TypeError, ValueError, BufferError):
            raise DeviceError(f"view: the memory of arrays on {array.device} cannot be shared; use .numpy()") from None
    if array.size == 0:
        return np.empty(array.shape, storage.dtype)
    itemsize = storage.itemsize
    strides = tuple(stride * itemsize for stride in array.strides)
    return np.ndarray(array.shape, storage.dtype, storage, array._offset * itemsize, strides)


def to_array(array: NDArray, dtype: Any, copy: bool | None) -> np.ndarray:
    """What NumPy's conversion protocol wants: the array's own memory unless a copy is asked for or needed."""
    try:
        values = host_view(array)
        shared = True
    except DeviceError:
        values, shared = array.numpy(), False
    if copy is False and (not shared or (dtype is not None and values.dtype != dtype)):
        raise ArgumentError(f"asarray: {array.dtype} on {array.device} needs a copy, and copy=False forbids one")
    return values.astype(values.dtype if dtype is None else dtype, copy=bool(copy) and shared)


def share_memory(a: NDArray, b: NDArray) -> bool:
    """Whether a write to one array might change the other."""
    if a._handle is b._handle:
        return True
    if not (hasattr(a._handle, "ptr") and hasattr(b._handle, "ptr")):
        return False
    start_a, start_b = a._handle.ptr(), b._handle.ptr()
    end_a = start_a + a._handle.size * dtypes.numpy_dtype(a.dtype).itemsize
    end_b = start_b + b._handle.size * dtypes.numpy_dtype(b.dtype).itemsize
    return start_a < end_b and start_b < end_a


def on_host(function: np.ufunc, a: NDArray, b: Any) -> NDArray:
    """function(a, b) for operators that no device has a kernel for: computed by NumPy, the result on a's device."""
    if isinstance(b, np.ndarray) and b.ndim:
        b = like(b, a)
    if dtypes.is_scalar(b):
        dtype = dtypes.to_number(dtypes.promote_scalar(a.dtype, b))
        right = dtypes.cast_scalar(b, dtype, function.__name__)
    elif hasattr(b, "_handle"):
        a._check_pair(b, function.__name__)
        dtype = dtypes.to_number(dtypes.promote(a.dtype, b.dtype))
        right = b.numpy()
    else:
        return NotImplemented
    kind = dtypes.numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        return like(function(a.numpy().astype(kind), np.asarray(right, kind)), a)
