"""Tensors from numbers at hand, and from ranges: what a user types first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Tensor
from ..backend_selection import as_device
from ..backend_selection import from_numpy as array_from_numpy
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, describe, named
from .init_basic import as_shape, constant


@named
def tensor(data: Any, *, device: Any = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of numbers: a copy, that requires no gradient unless asked.

    Python floats become float32, ints int64, bools bool; an array or a Tensor keeps its type; dtype overrules.
    """
    if dtype is None:
        dtype = _natural_dtype(data)
    if isinstance(data, Tensor):
        device, data = device or data.device, data.numpy()
    return Tensor(data, device=device, dtype=dtype, requires_grad=requires_grad)


def _natural_dtype(data: Any) -> str:
    """The element type for data: its own, or the largest of its parts', if it has one; else by the kind of number."""
    if hasattr(data, "dtype"):
        return str(data.dtype)
    parts = [x.numpy() if isinstance(x, Tensor) else x for x in data] if isinstance(data, (list, tuple)) else data
    names = {"f": "float32", "i": "int64", "u": "int64", "b": "bool"}
    try:
        array = np.asarray(parts)
    except ValueError as error:
        raise ShapeError(f"tensor: {describe(data)}: rows of different lengths") from error
    if array.dtype.kind not in names:
        raise ArgumentTypeError(f"tensor: got {describe(data)}, wanted numbers")
    holds_arrays = isinstance(parts, list) and any(hasattr(x, "dtype") for x in parts)
    return str(array.dtype) if holds_arrays else names[array.dtype.kind]


@named
def from_numpy(array: np.ndarray, *, requires_grad: bool = False) -> Tensor:
    """A CPU tensor on the memory of a NumPy array where it is contiguous, else on a copy.

    While the memory is shared, a write into the one is seen in the other.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: got {describe(array)}, wanted a NumPy array")
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"from_numpy: got {describe(array)}, wanted numbers")
    return Tensor.make_const(array_from_numpy(np.asarray(array, order="C")), requires_grad=requires_grad)


@named
def full(
    shape: int | tuple[int, ...],
    fill_value: float,
    *,
    device: Any = None,
    dtype: str = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """The number fill_value everywhere in shape."""
    return constant(*as_shape((shape,)), c=fill_value, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def empty(*shape: int, device: Any = None, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor whose numbers are whatever the memory held: fill it before use."""
    device = as_device(device)
    return Tensor.make_const(device.empty(as_shape(shape), dtype), requires_grad=requires_grad)


@named
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    device: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step, … up to, not including, stop; arange(n) counts 0 … n - 1.

    int64 if all arguments are integers, else float32, unless dtype says otherwise.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ArgumentError(f"arange: step 0 never leads from {start} to {stop}")
    numbers = np.arange(start, stop, step)
    default = "int64" if numbers.dtype.kind == "i" else "float32"
    return Tensor(numbers, device=as_device(device), dtype=dtype or default, requires_grad=requires_grad)


@named
def linspace(
    start: float, stop: float, num: int = 50, *, device: Any = None, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """num numbers from start to stop, both included, equally far apart."""
    if num < 0:
        raise ArgumentError(f"linspace: num = {num}, wanted 0 or more")
    numbers = np.linspace(start, stop, num)
    return Tensor(numbers, device=as_device(device), dtype=dtype or "float32", requires_grad=requires_grad)


@named
def eye(
    n: int, m: int | None = None, *, device: Any = None, dtype: str = "float32", requires_grad: bool = False
) -> Tensor:
    """The identity matrix: ones on the diagonal.  n → (n, n), or (n, m)."""
    return Tensor(np.eye(n, m), device=as_device(device), dtype=dtype, requires_grad=requires_grad)


@named
def seed(number: int) -> None:
    """Start the stream of random numbers anew: NumPy's global generator, from which all of needle draws."""
    np.random.seed(number)
