"""The module's functions, with NumPy's names and meaning, so that code written for NumPy also runs on NDArrays.

The differences are NDArray's own: float32 unless told otherwise, no implicit broadcasting of arrays, full reductions of
shape (1,), comparisons that give float32.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, describe, named
from . import dtypes, indexing, interop
from .devices import as_device
from .dtypes import Scalar, dtype_name
from .indexing import Axes
from .ndarray import NDArray

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "argmax",
    "argmin",
    "array",
    "as_strided",
    "asarray",
    "ascontiguousarray",
    "bool_",
    "broadcast_to",
    "clip",
    "compact",
    "concatenate",
    "copy",
    "cos",
    "divide",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "float32",
    "float64",
    "floor_divide",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "int32",
    "int64",
    "less",
    "less_equal",
    "linspace",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "negative",
    "not_equal",
    "ones",
    "ones_like",
    "permute",
    "power",
    "prod",
    "remainder",
    "repeat",
    "reshape",
    "scatter_add",
    "shape",
    "sign",
    "sin",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "tanh",
    "tile",
    "transpose",
    "true_divide",
    "uint8",
    "var",
    "where",
    "zeros",
    "zeros_like",
]

# >>> hw4
__all__ += ["flip", "pad"]
# <<< hw4
# >>> hw4_extra
__all__ += ["split", "stack"]
# <<< hw4_extra

float32, float64, int32, int64, uint8, bool_ = "float32", "float64", "int32", "int64", "uint8", "bool"

# ---- making arrays -------------------------------------------------------------------------------------------------


def array(a: Any, dtype: Any = None, device: Any = None) -> NDArray:
    """A new array with the values of a.

    dtype None is float32, and integers that float32 cannot hold exactly are refused; an NDArray keeps its dtype.
    """
    return NDArray(a, device=device, dtype=dtype)


def asarray(a: Any, dtype: Any = None, device: Any = None) -> NDArray:
    """The array itself if a is an NDArray as wanted, else a new one."""
    if not isinstance(a, NDArray):
        return array(a, dtype, device)
    moved = a if device is None else a.to(device)
    return moved if dtype is None else moved.astype(dtype, copy=False)


def from_numpy(a: np.ndarray, device: Any = None) -> NDArray:
    """An array of the same dtype that shares the memory of a, where it can: each then sees the other's writes.

    It can if a is C-contiguous, writable, of one of the six dtypes, and the device is on the host; else it copies.
    """
    if not isinstance(a, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: got {describe(a)}, wanted a NumPy array")
    device, dtype = as_device(device), dtype_name(a.dtype, "from_numpy")
    wrap = device.wrappers.get(dtype)
    plain = a.flags.c_contiguous and a.flags.writeable and a.flags.aligned and a.dtype.isnative
    if wrap is None or not plain or a.size == 0:
        return interop.upload(a, device, NDArray.make)
    return NDArray.make(a.shape, device=device, handle=wrap(a), dtype=dtype)


def from_dlpack(x: Any) -> NDArray:
    """An array of another library's CPU tensor, by the DLPack protocol; shares its memory where from_numpy can."""
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"from_dlpack: got {describe(x)}, wanted an array that speaks DLPack")
    try:
        return from_numpy(np.from_dlpack(x))
    except BufferError as error:
        raise DTypeError(f"from_dlpack: got {describe(x)}: {error}") from None


def empty(shape: int | Sequence[int], dtype: Any = None, device: Any = None) -> NDArray:
    """An array whose values are left to chance."""
    return NDArray.make(indexing.as_shape(shape, "empty"), device=as_device(device), dtype=dtype_name(dtype, "empty"))


def full(shape: int | Sequence[int], fill_value: Scalar, dtype: Any = None, device: Any = None) -> NDArray:
    """An array that holds one value everywhere."""
    out = empty(shape, dtype, device)
    out.fill(fill_value)
    return out


def zeros(shape: int | Sequence[int], dtype: Any = None, device: Any = None) -> NDArray:
    """An array of zeros."""
    return full(shape, 0, dtype, device)


def ones(shape: int | Sequence[int], dtype: Any = None, device: Any = None) -> NDArray:
    """An array of ones."""
    return full(shape, 1, dtype, device)


def empty_like(a: NDArray, dtype: Any = None) -> NDArray:
    """An array of a's shape and device whose values are left to chance; of a's dtype unless told otherwise."""
    return empty(a.shape, a.dtype if dtype is None else dtype, a.device)


def full_like(a: NDArray, fill_value: Scalar, dtype: Any = None) -> NDArray:
    """An array of a's shape and device that holds one value; of a's dtype unless told otherwise."""
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype, a.device)


def zeros_like(a: NDArray, dtype: Any = None) -> NDArray:
    """An array of zeros, of a's shape and device; of a's dtype unless told otherwise."""
    return full_like(a, 0, dtype)


def ones_like(a: NDArray, dtype: Any = None) -> NDArray:
    """An array of ones, of a's shape and device; of a's dtype unless told otherwise."""
    return full_like(a, 1, dtype)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: Any = None) -> NDArray:
    """Evenly spaced numbers from start up to, but without, stop.  arange(3) → 0, 1, 2."""
    start, stop = (0, start) if stop is None else (start, stop)
    _check_numbers("arange", start, stop, step)
    if step == 0:
        raise ArgumentError(f"arange: from {start} to {stop} in steps of 0")
    return array(np.arange(start, stop, step), dtype, device)


def linspace(start: float, stop: float, num: int = 50, dtype: Any = None, device: Any = None) -> NDArray:
    """`num` evenly spaced numbers from start to stop, both included."""
    _check_numbers("linspace", start, stop)
    return array(np.linspace(start, stop, indexing.as_number(num, "linspace")), dtype, device)


def _check_numbers(op: str, *numbers: Any) -> None:
    for number in numbers:
        if not dtypes.is_scalar(number):
            raise ArgumentTypeError(f"{op}: got {describe(number)}, wanted a number")


def eye(n: int, m: int | None = None, dtype: Any = None, device: Any = None) -> NDArray:
    """The identity matrix, n by m: ones on the diagonal."""
    rows, columns = indexing.as_shape((n, n if m is None else m), "eye")
    return array(np.eye(rows, columns), dtype, device)


# ---- shapes --------------------------------------------------------------------------------------------------------


def shape(a: NDArray) -> tuple[int, ...]:
    """The length of each axis."""
    return a.shape


def reshape(a: NDArray, shape: int | Sequence[int]) -> NDArray:
    """The elements in the same order with another shape, in which one -1 is inferred."""
    return a.reshape(shape)


def broadcast_to(a: NDArray, shape: Sequence[int]) -> NDArray:
    """Repeat along axes of length one, and along new axes in front; a view."""
    return a.broadcast_to(shape)


def permute(a: NDArray, axes: Sequence[int]) -> NDArray:
    """The axes in another order; a view."""
    return a.permute(axes)


def transpose(a: NDArray, axes: Sequence[int] | None = None) -> NDArray:
    """The axes in the given order, or reversed; a view."""
    return a.transpose(axes)


def swapaxes(a: NDArray, axis1: int, axis2: int) -> NDArray:
    """Two axes exchanged; a view."""
    return a.swapaxes(axis1, axis2)


def moveaxis(a: NDArray, source: int, destination: int) -> NDArray:
    """One axis moved to another place; a view."""
    order = list(range(a.ndim))
    axis = order.pop(indexing.as_axis(source, a.ndim, "moveaxis"))
    order.insert(indexing.as_axis(destination, a.ndim, "moveaxis"), axis)
    return a.permute(order)


def expand_dims(a: NDArray, axis: int | Sequence[int]) -> NDArray:
    """New axes of length one, at these positions of the result; a view."""
    return a.expand_dims(axis)


def squeeze(a: NDArray, axis: Axes = None) -> NDArray:
    """Without the axes of length one, or without the given ones of them; a view."""
    return a.squeeze(axis)


def compact(a: NDArray) -> NDArray:
    """The array itself if its elements fill its memory in row-major order, else a copy that does."""
    return a.compact()


def as_strided(a: NDArray, shape: Sequence[int], strides: Sequence[int]) -> NDArray:
    """A view with any shape and strides, in elements, of a compact array; of a compact copy if a is not compact."""
    return a.compact().as_strided(shape, strides)


def ascontiguousarray(a: NDArray) -> NDArray:
    """NumPy's name for `compact`."""
    return a.compact()


def copy(a: NDArray) -> NDArray:
    """A compact copy."""
    return a.copy()


# ---- element by element --------------------------------------------------------------------------------------------


def _left(a: Any, b: Any, op: str) -> NDArray:
    """The first operand as an array like the second, if it is a number."""
    if isinstance(a, NDArray):
        return a
    if not isinstance(b, NDArray):
        raise ArgumentTypeError(f"{op}: got {describe(a)} and {describe(b)}, wanted an NDArray among them")
    if isinstance(a, np.ndarray) and a.ndim:
        return interop.like(a, b)
    if not dtypes.is_scalar(a):
        raise ArgumentTypeError(f"{op}: got {describe(a)}, wanted an NDArray or a number")
    return full(b.shape, a, dtypes.promote_scalar(b.dtype, a), b.device)


def _binary(name: str, operator: Callable[[NDArray, Any], Any], sentence: str) -> Callable[[Any, Any], NDArray]:
    """The function of two arrays, or an array and a number, that an operator computes."""

    def function(a: Any, b: Any) -> NDArray:
        result = operator(_left(a, b, name), b)
        if result is NotImplemented:
            raise ArgumentTypeError(f"{name}: got {describe(b)}, wanted an NDArray or a number")
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = sentence
    return function


add = _binary("add", NDArray.__add__, "a + b.")
subtract = _binary("subtract", NDArray.__sub__, "a - b.")
multiply = _binary("multiply", NDArray.__mul__, "a * b.")
divide = true_divide = _binary("divide", NDArray.__truediv__, "a / b; a float for integers.")
floor_divide = _binary("floor_divide", NDArray.__floordiv__, "a // b, rounded down.")
remainder = mod = _binary("remainder", NDArray.__mod__, "a % b, with the sign of b.")
power = _binary("power", NDArray.__pow__, "a ** b; integers to negative powers are refused.")
maximum = _binary("maximum", NDArray.maximum, "The larger of each pair of elements; nan wins.")
minimum = _binary("minimum", NDArray.minimum, "The smaller of each pair of elements; nan wins.")
equal = _binary("equal", NDArray.__eq__, "1.0 where a == b, else 0.0.")
not_equal = _binary("not_equal", NDArray.__ne__, "1.0 where a != b, else 0.0.")
greater = _binary("greater", NDArray.__gt__, "1.0 where a > b, else 0.0.")
greater_equal = _binary("greater_equal", NDArray.__ge__, "1.0 where a >= b, else 0.0.")
less = _binary("less", NDArray.__lt__, "1.0 where a < b, else 0.0.")
less_equal = _binary("less_equal", NDArray.__le__, "1.0 where a <= b, else 0.0.")


def negative(a: NDArray) -> NDArray:
    """-a."""
    return -a


def square(a: NDArray) -> NDArray:
    """a * a."""
    return a * a


def log(a: NDArray) -> NDArray:
    """The natural logarithm of each element."""
    return a.log()


def exp(a: NDArray) -> NDArray:
    """e to the power of each element."""
    return a.exp()


def tanh(a: NDArray) -> NDArray:
    """The hyperbolic tangent of each element."""
    return a.tanh()


def sqrt(a: NDArray) -> NDArray:
    """The square root of each element."""
    return a.sqrt()


def sin(a: NDArray) -> NDArray:
    """The sine of each element, in radians."""
    return a.sin()


def cos(a: NDArray) -> NDArray:
    """The cosine of each element, in radians."""
    return a.cos()


def absolute(a: NDArray) -> NDArray:
    """The absolute value of each element."""
    return a.abs()


abs = absolute


def sign(a: NDArray) -> NDArray:
    """-1, 0 or 1, as each element is negative, zero or positive."""
    return a.sign()


def clip(a: NDArray, a_min: Any = None, a_max: Any = None) -> NDArray:
    """Each element, but a_min where it is smaller and a_max where it is larger; None is no bound."""
    low = a if a_min is None else a.maximum(a_min)
    high = low if a_max is None else low.minimum(a_max)
    return a.copy() if high is a else high


def where(condition: Any, x: Any, y: Any) -> NDArray:
    """x where the condition is not zero, else y.  Arrays of one shape, or numbers for x and y."""
    given = [operand for operand in (condition, x, y) if isinstance(operand, NDArray)]
    if not given or dtypes.is_scalar(condition):
        raise ArgumentTypeError(f"where: got {describe(condition)} as a condition, wanted an NDArray")
    mask = condition if isinstance(condition, NDArray) else interop.like(np.asarray(condition), given[0])
    x, y = _choices(mask, x, y)
    for operand in (x, y):
        mask._check_pair(operand, "where")
    dtype = dtypes.promote(x.dtype, y.dtype)
    out = empty(mask.shape, dtype, mask.device)
    out._kernel("where")(mask._flat("bool"), x._flat(dtype), y._flat(dtype), out._handle)
    return out


def _choices(mask: NDArray, x: Any, y: Any) -> tuple[NDArray, NDArray]:
    """x and y as arrays; a number takes the type of the other, two numbers that of their kind."""
    if dtypes.is_scalar(x) and dtypes.is_scalar(y):
        dtype = dtypes.promote_scalar(dtypes.promote_scalar("bool", x), y)
        return full(mask.shape, x, dtype, mask.device), full(mask.shape, y, dtype, mask.device)
    if dtypes.is_scalar(x):
        y = y if isinstance(y, NDArray) else interop.like(np.asarray(y), mask)
        return full(mask.shape, x, dtypes.promote_scalar(y.dtype, x), mask.device), y
    x = x if isinstance(x, NDArray) else interop.like(np.asarray(x), mask)
    if dtypes.is_scalar(y):
        return x, full(mask.shape, y, dtypes.promote_scalar(x.dtype, y), mask.device)
    return x, y if isinstance(y, NDArray) else interop.like(np.asarray(y), mask)


# ---- matrices and reductions ---------------------------------------------------------------------------------------


def matmul(a: NDArray, b: NDArray) -> NDArray:
    """Products of matrices, (…, m, n) @ (…, n, p) → (…, m, p); the axes in front broadcast."""
    return _matmul(a, b)


_matmul = _binary("matmul", NDArray.__matmul__, "")


def sum(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """The sum over all axes, one, or several."""
    return a.sum(axis, keepdims)


def prod(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """The product over all axes, one, or several."""
    return a.prod(axis, keepdims)


def max(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """The largest element over all axes, one, or several; nan if there is one."""
    return a.max(axis, keepdims)


def min(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """The smallest element over all axes, one, or several; nan if there is one."""
    return a.min(axis, keepdims)


amax, amin = max, min


def mean(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """The mean over all axes, one, or several."""
    return a.mean(axis, keepdims)


def var(a: NDArray, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> NDArray:
    """The mean squared deviation from the mean over all axes, one, or several, with divisor count - ddof."""
    return a.var(axis, keepdims, ddof)


def std(a: NDArray, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> NDArray:
    """The square root of the variance."""
    return a.std(axis, keepdims, ddof)


def argmax(a: NDArray, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Where the first largest element is, along an axis or in the flattened array; int64."""
    return a.argmax(axis, keepdims)


def argmin(a: NDArray, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Where the first smallest element is, along an axis or in the flattened array; int64."""
    return a.argmin(axis, keepdims)


def any(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """Whether any element is not zero; bool."""
    return a.any(axis, keepdims)


def all(a: NDArray, axis: Axes = None, keepdims: bool = False) -> NDArray:
    """Whether no element is zero; bool."""
    return a.all(axis, keepdims)


# ---- joining and splitting -----------------------------------------------------------------------------------------


def concatenate(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """The arrays one after the other along an axis; elsewhere their shapes agree."""
    arrays = _one_device(arrays, "concatenate")
    first = arrays[0]
    axis = indexing.as_axis(axis, first.ndim, "concatenate")
    for a in arrays:
        if a.ndim != first.ndim or indexing.without(a.shape, (axis,)) != indexing.without(first.shape, (axis,)):
            raise ShapeError(f"concatenate: shapes {first.shape} and {a.shape} differ beside axis {axis}")
    extents = [a.shape[axis] for a in arrays]
    ends = np.cumsum(extents).tolist()
    out = first._new(first.shape[:axis] + (ends[-1],) + first.shape[axis + 1 :], _common_dtype(arrays))
    before = (slice(None),) * axis
    for a, extent, end in zip(arrays, extents, ends):
        out[before + (slice(end - extent, end),)] = a
    return out


def _one_device(arrays: Sequence[NDArray], op: str) -> list[NDArray]:
    if not isinstance(arrays, (list, tuple)):
        raise ArgumentTypeError(f"{op}: got {describe(arrays)}, wanted a list or tuple of NDArrays")
    listed = list(arrays)
    if not listed:
        raise ShapeError(f"{op}: got no arrays, wanted at least one")
    for a in listed:
        if not isinstance(a, NDArray):
            raise ArgumentTypeError(f"{op}: got {describe(a)}, wanted an NDArray")
        listed[0]._check_device(a, op)
    return listed


def _common_dtype(arrays: Sequence[NDArray]) -> str:
    dtype = arrays[0].dtype
    for a in arrays:
        dtype = dtypes.promote(dtype, a.dtype)
    return dtype


def tile(a: NDArray, reps: int | Sequence[int]) -> NDArray:
    """The array repeated as a whole along each axis."""
    counts = indexing.as_shape(reps, "tile")
    ndim = builtins.max(a.ndim, len(counts))
    shape = (1,) * (ndim - a.ndim) + a.shape
    counts = (1,) * (ndim - len(counts)) + counts
    apart = a.reshape(tuple(n for extent in shape for n in (1, extent)))
    copies = apart.broadcast_to(tuple(n for pair in zip(counts, shape) for n in pair))
    return copies.copy().reshape(tuple(count * extent for count, extent in zip(counts, shape)))


def repeat(a: NDArray, repeats: int, axis: int | None = None) -> NDArray:
    """Each element repeated along an axis, or in the flattened array."""
    if axis is None:
        return repeat(a.reshape(-1), repeats, 0)
    axis = indexing.as_axis(axis, a.ndim, "repeat")
    front, back, times = a.shape[: axis + 1], a.shape[axis + 1 :], indexing.as_number(repeats, "repeat")
    copies = a.expand_dims(axis + 1).broadcast_to(front + (times,) + back)
    return copies.copy().reshape(front[:-1] + (front[-1] * times,) + back)


# >>> hw4
def flip(a: NDArray, axis: Axes = None, *, axes: Axes = None) -> NDArray:
    """A copy with the order of the elements reversed along the axes; along all without any."""
    return a.flip(axes if axis is None else axis)


def pad(
    a: NDArray, pad_width: Sequence[tuple[int, int]], mode: str = "constant", constant_values: Scalar = 0
) -> NDArray:
    """A copy with a border of one value.  pad_width: for each axis how many to add before and after it."""
    if mode != "constant":
        raise ArgumentError(f"pad: got {describe(mode)} as a mode, wanted 'constant'")
    if constant_values == 0:
        return a.pad(pad_width)
    widths = indexing.as_padding(pad_width, a.ndim)
    padded, inside = a.pad(widths), full_like(a, True, dtype="bool").pad(widths)
    return where(inside, padded, full_like(padded, constant_values))


# <<< hw4
# >>> hw4_extra
def stack(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """The arrays, all of one shape, along a new axis."""
    arrays = _one_device(arrays, "stack")
    for a in arrays:
        if a.shape != arrays[0].shape:
            raise ShapeError(f"stack: shapes {arrays[0].shape} and {a.shape} differ")
    axis = indexing.as_axis(axis, arrays[0].ndim + 1, "stack")
    return concatenate([a.expand_dims(axis) for a in arrays], axis)


MOST_EMPTY_PARTS = 1 << 16  # an axis of length 0 divides by any number


def split(a: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[NDArray]:
    """Views of the parts of an array along an axis: so many equal parts, or cut at these indices."""
    axis = indexing.as_axis(axis, a.ndim, "split")
    extent = a.shape[axis]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0 or extent % count or (count > extent and count > MOST_EMPTY_PARTS):
            raise ShapeError(f"split: axis {axis} of shape {a.shape} does not divide into {count} equal parts")
        cuts = [extent // count * i for i in range(1, count)]
    else:
        cuts = list(indexing.as_sizes(indices_or_sections, "split"))
    before = (slice(None),) * axis
    return [a[before + (slice(start, stop),)] for start, stop in zip([0, *cuts], [*cuts, extent])]


# <<< hw4_extra
# ---- gather and scatter --------------------------------------------------------------------------------------------


def take(a: NDArray, indices: Any, axis: int | None = None) -> NDArray:
    """The elements at these positions along an axis, or of the flattened array.

    (…, n, …), indices of any shape I → (…, *I, …).  Negative indices count from the end; IndexError for any outside.
    """
    if axis is None:
        return take(a.reshape(-1), indices, 0)
    axis = indexing.as_axis(axis, a.ndim, "take")
    indices = _as_indices(indices, a, "take")
    front, extent, back = a.shape[:axis], a.shape[axis], a.shape[axis + 1 :]
    out = a._new(front + indices.shape + back, a.dtype)
    if out.size:
        if extent == 0:
            raise IndexError(f"take: index {_first(indices)} is out of bounds for an axis of size 0")
        sizes = math.prod(front), extent, math.prod(back)
        a._kernel("take")(a._flat(a.dtype), indices._flat("int64"), out._handle, *sizes)
    return out


def scatter_add(a: NDArray, indices: Any, values: NDArray, axis: int = 0) -> NDArray:
    """A copy of a with values added at these positions along an axis; what goes to the same place adds up.

    The adjoint of `take`: a (…, n, …), indices I, values (…, *I, …) → (…, n, …).
    """
    axis = indexing.as_axis(axis, a.ndim, "scatter_add")
    indices = _as_indices(indices, a, "scatter_add")
    front, extent, back = a.shape[:axis], a.shape[axis], a.shape[axis + 1 :]
    if not isinstance(values, NDArray):
        raise ArgumentTypeError(f"scatter_add: got {describe(values)} as values, wanted an NDArray")
    a._check_device(values, "scatter_add")
    if values.shape != front + indices.shape + back:
        raise ShapeError(f"scatter_add: values of shape {values.shape}, wanted {front + indices.shape + back}")
    out = a._cast(dtypes.promote(a.dtype, values.dtype)).copy()
    if values.size:
        if extent == 0:
            raise IndexError(f"scatter_add: index {_first(indices)} is out of bounds for an axis of size 0")
        sizes = math.prod(front), extent, math.prod(back)
        out._kernel("scatter_add")(values._flat(out.dtype), indices._flat("int64"), out._handle, *sizes)
    return out


def _as_indices(indices: Any, a: NDArray, op: str) -> NDArray:
    """Positions as int64 on a's device; floats too, if they are whole numbers, as arrays are float32 by default."""
    if isinstance(indices, NDArray):
        a._check_device(indices, op)
        whole = indices.astype("int64", copy=False)
        if indices.dtype in dtypes.FLOATS and indices.size and (whole.astype(indices.dtype) != indices).any().item():
            raise DTypeError(f"{op}: indices of dtype {indices.dtype} are not all whole numbers")
        return whole
    positions = np.asarray(indices)
    if positions.dtype.kind not in "iu" and positions.size:
        raise DTypeError(f"{op}: indices of dtype {positions.dtype}, wanted integers")
    return interop.like(positions.astype(np.int64), a)


def _first(indices: NDArray) -> int:
    return int(indices.numpy().flat[0])


# the arguments are mostly asked for a method, and what lacks it complains without saying who asked
for _name in __all__:
    if callable(globals()[_name]):
        globals()[_name] = named(globals()[_name])
