"""What NumPy's and Python's users expect of an array besides what the course builds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentTypeError, ShapeError
from . import dtypes, indexing, interop
from .indexing import Axes

if TYPE_CHECKING:
    from .ndarray import NDArray


class NumPyNames:
    """Methods of NDArray with NumPy's names and meaning; `self` is an NDArray in all of them."""

    __slots__ = ()

    # ---- shapes ----------------------------------------------------------------------------------------------------

    @property
    def T(self: Any) -> NDArray:
        """The array with its axes in reverse order; a view."""
        return self.permute(range(self.ndim)[::-1])

    @property
    def nbytes(self: Any) -> int:
        """The number of bytes that the elements take."""
        return self.size * dtypes.numpy_dtype(self._dtype).itemsize

    def transpose(self: Any, axes: Sequence[int] | None = None) -> NDArray:
        """The axes in the given order, or reversed; a view."""
        return self.T if axes is None else self.permute(axes)

    def swapaxes(self: Any, axis1: int, axis2: int) -> NDArray:
        """Two axes exchanged; a view."""
        one, two = (indexing.as_axis(axis, self.ndim, "swapaxes") for axis in (axis1, axis2))
        order = list(range(self.ndim))
        order[one], order[two] = two, one
        return self.permute(order)

    def expand_dims(self: Any, axis: int | Sequence[int]) -> NDArray:
        """New axes of length one, at these positions of the result; a view."""
        added = tuple(axis) if isinstance(axis, Iterable) else (axis,)
        ndim = self.ndim + len(added)
        axes = indexing.as_axes(added, ndim, "expand_dims")
        extents = iter(self._shape)
        return self.reshape(tuple(1 if i in axes else next(extents) for i in range(ndim)))

    def squeeze(self: Any, axis: Axes = None) -> NDArray:
        """Without the axes of length one, or without the given ones of them; a view."""
        ones = tuple(i for i, extent in enumerate(self._shape) if extent == 1)
        axes = ones if axis is None else indexing.as_axes(axis, self.ndim, "squeeze")
        if not set(axes) <= set(ones):
            raise ShapeError(f"squeeze: axes {axes} of shape {self._shape} are not all of length one")
        return self.reshape(indexing.without(self._shape, axes))

    # ---- element by element ----------------------------------------------------------------------------------------

    def __pos__(self: Any) -> NDArray:
        return self.copy()

    def __floordiv__(self: Any, other: Any) -> NDArray:
        return interop.on_host(np.floor_divide, self, other)

    def __rfloordiv__(self: Any, other: Any) -> NDArray:
        return self._reflected(other, type(self).__floordiv__)

    def __mod__(self: Any, other: Any) -> NDArray:
        return interop.on_host(np.remainder, self, other)

    def __rmod__(self: Any, other: Any) -> NDArray:
        return self._reflected(other, type(self).__mod__)

    def minimum(self: Any, other: Any) -> NDArray:
        """The smaller of each pair of elements, or of each element and a number; nan wins."""
        return self._or_complain(self.ewise_or_scalar(other, "ewise_minimum", "scalar_minimum"), other, "minimum")

    def sqrt(self: Any) -> NDArray:
        """The square root of each element."""
        return self._unary("ewise_sqrt", dtypes.to_float(self._dtype))

    def sin(self: Any) -> NDArray:
        """The sine of each element, in radians."""
        return self._unary("ewise_sin", dtypes.to_float(self._dtype))

    def cos(self: Any) -> NDArray:
        """The cosine of each element, in radians."""
        return self._unary("ewise_cos", dtypes.to_float(self._dtype))

    def abs(self: Any) -> NDArray:
        """The absolute value of each element."""
        return self.copy() if self._dtype == "bool" else self._unary("ewise_abs", self._dtype)

    __abs__ = abs

    def sign(self: Any) -> NDArray:
        """-1, 0 or 1, as each element is negative, zero or positive."""
        self._check_no_bool(self, "sign")
        return self._unary("ewise_sign", self._dtype)

    # ---- reductions ------------------------------------------------------------------------------------------------

    def prod(self: Any, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """The product over all axes, one, or several."""
        return self._cast(dtypes.to_sum(self._dtype))._reduce("prod", axis, keepdims, empty=1)

    def min(self: Any, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """The smallest element over all axes, one, or several; nan if there is one."""
        return self._reduce("min", axis, keepdims)

    def argmax(self: Any, axis: int | None = None, keepdims: bool = False) -> NDArray:
        """Where the first largest element is, along an axis or, without one, in the flattened array; int64."""
        return self._reduce("argmax", axis, keepdims, dtype="int64")

    def argmin(self: Any, axis: int | None = None, keepdims: bool = False) -> NDArray:
        """Where the first smallest element is, along an axis or, without one, in the flattened array; int64."""
        return self._reduce("argmin", axis, keepdims, dtype="int64")

    def mean(self: Any, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """The mean over all axes, one, or several; nan of nothing."""
        total = self.sum(axis, keepdims)
        return total / (self.size // max(total.size, 1))

    def var(self: Any, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> NDArray:
        """The mean squared deviation from the mean over all axes, one, or several, with divisor count - ddof."""
        ddof = indexing.as_number(ddof, "var")
        centre = self.mean(axis=indexing.as_axes(axis, self.ndim, "var"), keepdims=True)
        deviation = self._cast(centre._dtype) - centre.broadcast_to(self._shape)
        total = (deviation * deviation).sum(axis, keepdims)
        return total / (self.size // max(total.size, 1) - ddof)

    def std(self: Any, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> NDArray:
        """The square root of the variance."""
        return self.var(axis, keepdims, ddof).sqrt()

    def any(self: Any, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Whether any element is not zero; bool."""
        return self._cast("bool")._reduce("max", axis, keepdims, empty=False)

    def all(self: Any, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """Whether no element is zero; bool."""
        return self._cast("bool")._reduce("min", axis, keepdims, empty=True)

    # ---- one element, rows, and other libraries --------------------------------------------------------------------

    def item(self: Any) -> bool | int | float:
        """The value of the only element, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"item: an array of shape {self._shape} has {self.size} elements, wanted one")
        return self.numpy().item()

    def tolist(self: Any) -> Any:
        """The values as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __bool__(self: Any) -> bool:
        return bool(self.item())

    def __int__(self: Any) -> int:
        return int(self.item())

    def __float__(self: Any) -> float:
        return float(self.item())

    def __len__(self: Any) -> int:
        if not self._shape:
            raise ArgumentTypeError("len: an array of rank 0 has no length")
        return self._shape[0]

    def __iter__(self: Any) -> Iterator[NDArray]:
        return (self[i].reshape(self._shape[1:]) for i in range(len(self)))

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return interop.to_array(self, dtype, copy)

    def __dlpack__(self: Any, **options: Any) -> Any:
        return interop.host_view(self).__dlpack__(**options)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        return interop.host_view(self).__dlpack_device__()

    def __reduce__(self: Any) -> tuple:
        return type(self), (self.numpy().copy(), self._device, self._dtype)

    def cpu(self: Any) -> NDArray:
        """The array on the native CPU device."""
        return self.to("cpu")
