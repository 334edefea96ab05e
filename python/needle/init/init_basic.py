"""Tensors from nothing: constants and random numbers.

Random numbers come from NumPy's global generator (`np.random.seed`), the same stream on every device.
"""

from __future__ import annotations

from typing import Any

from ..autograd import Tensor
from ..backend_selection import BACKEND, as_device
from ..errors import ArgumentError, named


def as_shape(shape: tuple) -> tuple[int, ...]:
    """Extents given one by one or as one tuple."""
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def _draw(generate: Any, shape: tuple, dtype: Any) -> Any:
    """Random numbers: in np mode float64 always; in nd mode float32, or float64 if more than float32 is wanted."""
    if BACKEND == "np" or dtype in ("float32", "bool"):
        return generate(*as_shape(shape))
    return generate(*as_shape(shape), dtype="float64")


@named
def rand(
    *shape: int,
    low: float = 0.0,
    high: float = 1.0,
    device: Any = None,
    dtype: str = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers between low and high.  Shape: extents one by one, or as one tuple."""
    device = as_device(device)
    array = _draw(device.rand, shape, dtype) * (high - low) + low
    return Tensor(array, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def randn(
    *shape: int,
    mean: float = 0.0,
    std: float = 1.0,
    device: Any = None,
    dtype: str = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers with the given mean and standard deviation.  Shape: extents one by one, or as one tuple."""
    device = as_device(device)
    array = _draw(device.randn, shape, dtype) * std + mean
    return Tensor(array, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def constant(
    *shape: int, c: float = 1.0, device: Any = None, dtype: str = "float32", requires_grad: bool = False
) -> Tensor:
    """The number c everywhere.  Shape: extents one by one, or as one tuple."""
    device = as_device(device)
    return Tensor.make_const(device.full(as_shape(shape), c, dtype=dtype), requires_grad=requires_grad)


@named
def ones(*shape: int, device: Any = None, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """Ones.  Shape: extents one by one, or as one tuple."""
    return constant(*shape, c=1.0, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def zeros(*shape: int, device: Any = None, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """Zeros.  Shape: extents one by one, or as one tuple."""
    return constant(*shape, c=0.0, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def randb(*shape: int, p: float = 0.5, device: Any = None, dtype: str = "bool", requires_grad: bool = False) -> Tensor:
    """True with probability p: where a uniform number is at most p.  Shape: extents one by one, or as one tuple."""
    device = as_device(device)
    return Tensor(_draw(device.rand, shape, dtype) <= p, device=device, dtype=dtype, requires_grad=requires_grad)


@named
def one_hot(n: int, i: Tensor, device: Any = None, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """A row of n numbers for every index: 1 at the index, else 0.  (B,) → (B, n).

    i holds whole numbers of any dtype.  ArgumentError for one outside 0 … n - 1.
    """
    device = i.device if device is None and isinstance(i, Tensor) else as_device(device)
    indices = (i.numpy() if isinstance(i, Tensor) else i).astype("int64")
    if indices.size and not (indices.min() >= 0 and indices.max() < n):
        raise ArgumentError(f"one_hot: indices from {indices.min()} to {indices.max()}, wanted 0 to {n - 1}")
    return Tensor.make_const(device.one_hot(n, indices, dtype=dtype), requires_grad=requires_grad)


@named
def zeros_like(array: Tensor, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in the shape, dtype and (by default) on the device of array."""
    return _like(zeros, array, device, requires_grad)


@named
def ones_like(array: Tensor, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in the shape, dtype and (by default) on the device of array."""
    return _like(ones, array, device, requires_grad)


def _like(make: Any, array: Tensor, device: Any, requires_grad: bool) -> Tensor:
    device = array.device if device is None else device
    return make(*array.shape, device=device, dtype=array.dtype, requires_grad=requires_grad)
