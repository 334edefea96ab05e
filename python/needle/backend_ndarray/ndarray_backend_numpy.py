"""The device contract in its shortest form: the storage and the kernels of a device, written with NumPy.

Every kernel works on flat storage, reads its first arguments and writes `out`.  Shapes, strides and offsets count
elements.  The built modules `ndarray_backend_cpu` and `kernels_cpu` have the same functions; they are tested against
these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError

__device_name__ = "numpy"

KERNELS: dict[str, Callable] = {}  # what the device can do, by name


class Array:
    """Flat storage of a number of elements, uninitialised."""

    def __init__(self, size: int, dtype: str = "float32") -> None:
        self.array = np.empty(size, dtype=dtype)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.array.size

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return self.array.dtype.name

    def ptr(self) -> int:
        """The address of the first element."""
        return self.array.ctypes.data


def wrap(array: np.ndarray) -> Array:
    """Storage that is the memory of a C-contiguous NumPy array, not a copy."""
    storage = Array(0)
    storage.array = array.reshape(-1)
    return storage


def kernel(function: Callable) -> Callable:
    """Enter a function in KERNELS.  Like the built kernels, it gives inf and nan without a warning."""
    quiet = np.errstate(all="ignore")(function)
    KERNELS[function.__name__] = quiet
    return quiet


def strided(a: Array, shape: tuple, strides: tuple, offset: int) -> np.ndarray:
    """A NumPy view of flat storage."""
    itemsize = a.array.itemsize
    return np.ndarray(shape, a.array.dtype, a.array, offset * itemsize, tuple(s * itemsize for s in strides))


# ---- in and out ----------------------------------------------------------------------------------------------------


@kernel
def to_numpy(a: Array, shape: tuple, strides: tuple, offset: int) -> np.ndarray:
    """The elements as a NumPy array; on this device a view, which shares the memory."""
    return strided(a, shape, strides, offset)


@kernel
def from_numpy(a: np.ndarray, out: Array) -> None:
    out.array[:] = a.reshape(-1)


@kernel
def fill(out: Array, val: float) -> None:
    out.array.fill(val)


@kernel
def cast(a: Array, out: Array) -> None:
    out.array[:] = a.array


@kernel
def compact(a: Array, out: Array, shape: tuple, strides: tuple, offset: int) -> None:
    out.array.reshape(shape)[...] = strided(a, shape, strides, offset)


@kernel
def ewise_setitem(a: Array, out: Array, shape: tuple, strides: tuple, offset: int) -> None:
    strided(out, shape, strides, offset)[...] = a.array.reshape(shape)


@kernel
def scalar_setitem(size: int, val: float, out: Array, shape: tuple, strides: tuple, offset: int) -> None:
    strided(out, shape, strides, offset)[...] = val


# ---- element by element --------------------------------------------------------------------------------------------


def _power(a: np.ndarray, b: Any, out: np.ndarray) -> None:
    if a.dtype.kind == "i" and np.any(b < 0):
        raise ArgumentError("power: integers to negative integer powers are fractions; make the base a float")
    np.power(a, b, out=out)


_BINARY: dict[str, Callable] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "power": _power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
}

_UNARY: dict[str, Callable] = {
    "log": np.log,
    "exp": np.exp,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "sign": np.sign,
}


def _define_elementwise(name: str, function: Callable) -> None:
    def ewise(a: Array, b: Array, out: Array) -> None:
        function(a.array, b.array, out=out.array)

    def scalar(a: Array, val: float, out: Array) -> None:
        # the number takes the array's type first, so that neither old nor new NumPy widens the array for its sake
        function(a.array, a.array.dtype.type(val), out=out.array)

    def unary(a: Array, out: Array) -> None:
        function(a.array, out=out.array)

    for form in (unary,) if name in _UNARY else (ewise, scalar):
        prefix = "scalar" if form is scalar else "ewise"
        form.__name__ = form.__qualname__ = f"{prefix}_{name}"
        globals()[form.__name__] = kernel(form)


for _name, _function in {**_BINARY, **_UNARY}.items():
    _define_elementwise(_name, _function)


@kernel
def where(cond: Array, a: Array, b: Array, out: Array) -> None:
    out.array[:] = np.where(cond.array, a.array, b.array)


# ---- reductions of contiguous runs, and matrices -------------------------------------------------------------------


@kernel
def reduce_sum(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).sum(axis=1, out=out.array)


@kernel
def reduce_prod(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).prod(axis=1, out=out.array)


@kernel
def reduce_max(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).max(axis=1, out=out.array)


@kernel
def reduce_min(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).min(axis=1, out=out.array)


@kernel
def reduce_argmax(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).argmax(axis=1, out=out.array)


@kernel
def reduce_argmin(a: Array, out: Array, reduce_size: int) -> None:
    a.array.reshape(-1, reduce_size).argmin(axis=1, out=out.array)


@kernel
def matmul(a: Array, b: Array, out: Array, m: int, n: int, p: int) -> None:
    np.matmul(a.array.reshape(m, n), b.array.reshape(n, p), out=out.array.reshape(m, p))


@kernel
def matmul_batched(
    a: Array, b: Array, out: Array, batch: int, m: int, n: int, p: int, a_stride: int, b_stride: int
) -> None:
    left = strided(a, (batch, m, n), (a_stride, n, 1), 0)
    right = strided(b, (batch, n, p), (b_stride, p, 1), 0)
    np.matmul(left, right, out=out.array.reshape(batch, m, p))


# ---- gather and scatter --------------------------------------------------------------------------------------------


def _check_indices(indices: np.ndarray, size: int, op: str) -> None:
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise IndexError(f"{op}: index {outside[0]} is out of bounds for an axis of size {size}")


@kernel
def take(a: Array, indices: Array, out: Array, outer: int, axis_size: int, inner: int) -> None:
    _check_indices(indices.array, axis_size, "take")
    out.array.reshape(outer, -1, inner)[...] = a.array.reshape(outer, axis_size, inner)[:, indices.array]


@kernel
def scatter_add(a: Array, indices: Array, out: Array, outer: int, axis_size: int, inner: int) -> None:
    _check_indices(indices.array, axis_size, "scatter_add")
    target, values = out.array.reshape(outer, axis_size, inner), a.array.reshape(outer, -1, inner)
    np.add.at(target, (slice(None), indices.array), values)  # type: ignore[arg-type]  # the stubs know no tuples
