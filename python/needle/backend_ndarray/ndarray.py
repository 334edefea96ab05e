"""NDArray: a shape, strides and an offset over flat memory on a device.

The element with index (i, j, …) lies at `offset + i * strides[0] + j * strides[1] + …`, counted in elements.  All else
follows from this line: reshaping, permuting, broadcasting and slicing make a new view of the same memory and move
nothing; where numbers have to be computed, a kernel of the device runs over contiguous memory, for which `compact()`
makes a copy if it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from .. import kernels
from ..errors import ArgumentTypeError, DeviceError, DTypeError, ShapeError, describe
from . import dtypes, indexing, interop, products
from .devices import BackendDevice, as_device
from .dtypes import Scalar, promote
from .indexing import Axes
from .numpy_names import NumPyNames

# looked up here once, since arrays are made all the time
_blank = object.__new__
_allocate = BackendDevice.allocate


def same(dtype: str) -> str:
    """The rule of most operators: the result has the type in which they compute."""
    return dtype


class NDArray(NumPyNames):
    """An array of numbers: a strided view of flat memory on a device.

    Operators want NDArrays of one shape and one device, or a number; shapes are made equal with `reshape` and
    `broadcast_to`, explicitly.  An integer index keeps its axis, with length one.  What NumPy's users expect besides
    (mean, T, item, iteration, …) follows from what is here, and stands in numpy_names.py.
    """

    # arrays come and go with every operator: slots make them faster to make and to read than a dictionary each
    __slots__ = "__weakref__", "_compact", "_device", "_dtype", "_handle", "_offset", "_shape", "_strides"

    _shape: tuple[int, ...]  # how many elements along each axis
    _strides: tuple[int, ...]  # how far apart neighbours along each axis lie, in elements
    _offset: int  # where in the memory the first element lies
    _device: BackendDevice
    _handle: Any  # the memory: flat storage of the device, shared by all views of it
    _dtype: str
    _compact: bool | None  # what is_compact() answers; None until it was asked

    __array_ufunc__ = None  # `numpy_array + x` then asks x, instead of making an array of objects

    # ---- making arrays ---------------------------------------------------------------------------------------------

    def __init__(self, other: Any, device: Any = None, dtype: Any = None) -> None:
        """A copy of an NDArray, of a NumPy array, or of anything that NumPy can make an array of.

        An NDArray keeps its device and dtype unless told otherwise; all else becomes float32 on the default device.
        """
        if isinstance(other, NDArray):
            moved = other if device is None else other.to(device)
            copy = moved.astype(moved._dtype if dtype is None else dtype)
        else:
            values = dtypes.cast_numpy(interop.as_numpy(other, "array"), dtypes.dtype_name(dtype, "array"))
            copy = interop.upload(values, as_device(device), NDArray.make)
        self._shape, self._strides, self._offset = copy._shape, copy._strides, copy._offset
        self._device, self._dtype, self._compact = copy._device, copy._dtype, copy._compact
        self._handle = copy._handle

    @staticmethod
    def make(
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        device: BackendDevice | None = None,
        handle: Any = None,
        offset: int = 0,
        dtype: str | None = None,
    ) -> NDArray:
        """A view of the memory behind `handle`, or a new array with uninitialised memory if there is none.

        Strides and offset count elements; without strides the elements lie in row-major order.
        """
        array = NDArray.__new__(NDArray)
        array._shape = indexing.as_shape(shape, "make")
        compact = indexing.compact_strides(array._shape)
        array._strides = compact if strides is None else indexing.as_sizes(strides, "make")
        array._offset = indexing.as_number(offset, "make")
        array._device = as_device(device)
        array._compact = None
        array._dtype = dtypes.dtype_name(getattr(handle, "dtype", None) if dtype is None else dtype, "make")
        array._handle = handle
        if handle is None:
            array._handle = array._device.allocate(math.prod(array._shape), array._dtype)
        return array

    def _new(self, shape: tuple[int, ...], dtype: str) -> NDArray:
        """A new compact array on the same device, its memory uninitialised."""
        array = _blank(NDArray)
        array._shape, array._strides, array._offset = shape, indexing.compact_strides(shape), 0
        array._device, array._dtype, array._compact = self._device, dtype, True
        array._handle = _allocate(self._device, math.prod(shape), dtype)
        return array

    def _view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> NDArray:
        """The same memory, seen with another shape, other strides and another offset."""
        array = _blank(NDArray)
        array._shape, array._strides, array._offset = shape, strides, offset
        array._device, array._dtype, array._compact = self._device, self._dtype, None
        array._handle = self._handle
        return array

    @staticmethod
    def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
        """The strides of row-major order, in elements: (2, 3, 4) → (12, 4, 1)."""
        return indexing.compact_strides(indexing.as_shape(shape, "compact_strides"))

    # ---- what an array is ------------------------------------------------------------------------------------------

    # read all the time, so by attrgetter, which is faster than a function that returns self._shape
    shape = property(attrgetter("_shape"), doc="The length of each axis.")
    strides = property(attrgetter("_strides"), doc="How far apart neighbours along each axis lie, in elements.")
    device = property(attrgetter("_device"), doc="The device that holds the memory.")
    dtype = property(attrgetter("_dtype"), doc="The name of the element type.")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def flat(self) -> NDArray:
        """The elements along one axis, through which a compact array can be written: `x.flat[3] = 1`."""
        return self.reshape((self.size,))

    def is_compact(self) -> bool:
        """Whether the elements fill the memory exactly, in row-major order."""
        if self._compact is None:
            in_order = self._strides == indexing.compact_strides(self._shape)
            self._compact = in_order and math.prod(self._shape) == self._handle.size
        return self._compact

    def compact(self) -> NDArray:
        """The array itself if it is compact, else a compact copy."""
        return self if self.is_compact() else self.copy()

    def copy(self) -> NDArray:
        """A compact copy."""
        out = self._new(self._shape, self._dtype)
        if out.size:
            self._kernel("compact")(self._handle, out._handle, self._shape, self._strides, self._offset)
        return out

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """The values in another dtype, as a new array; floats are cut towards zero on the way to integers."""
        name = dtypes.dtype_name(dtype, "astype")
        return self.copy() if copy and name == self._dtype else self._cast(name)

    def to(self, device: Any) -> NDArray:
        """The array itself if it lives on the device, else a copy there."""
        device = as_device(device)
        return self if device == self._device else interop.upload(self.numpy(), device, NDArray.make)

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array: a copy, but on the device cpu_numpy a view of the array's memory."""
        if self.size == 0:
            return np.empty(self._shape, dtypes.numpy_dtype(self._dtype))
        # a kernel file of the course may read strides as unsigned
        source = self.compact() if min(self._strides, default=0) < 0 else self
        return self._kernel("to_numpy")(source._handle, source._shape, source._strides, source._offset)

    # ---- what kernels see, and the files beside this one that call them --------------------------------------------

    def _kernel(self, name: str, dtype: str | None = None) -> Callable:
        """The device's kernel of that name.  NotImplementedError if nobody provides one."""
        kernel = kernels.device_kernel(name, self._device.name, dtype or self._dtype)
        if kernel is None:
            raise NotImplementedError(f"{name}: {self._device} has no kernel for {dtype or self._dtype}")
        return kernel

    def _cast(self, dtype: str) -> NDArray:
        if dtype == self._dtype:
            return self
        out = self._new(self._shape, dtype)
        if out.size:
            self._kernel("cast")(self.compact()._handle, out._handle)
        return out

    def _flat(self, dtype: str) -> Any:
        """A handle that holds the elements in row-major order and in that dtype: the array's own if it can be."""
        if dtype == self._dtype and (self._compact or self.is_compact()):
            return self._handle
        return self._cast(dtype).compact()._handle

    # ---- views: new shape and strides, same memory -----------------------------------------------------------------

    def as_strided(self, shape: Sequence[int], strides: Sequence[int]) -> NDArray:
        """The same memory, seen with another shape and other strides."""
        shape, strides = indexing.as_shape(shape, "as_strided"), indexing.as_sizes(strides, "as_strided")
        if len(shape) != len(strides):
            raise ShapeError(f"as_strided: shape {shape} and strides {strides} differ in length")
        return self._view(shape, strides, self._offset)

    def reshape(self, new_shape: int | Sequence[int]) -> NDArray:
        """The elements in the same order with another shape, in which one -1 is inferred.

        A view where strides can express it, as they always can for a compact array; else a copy.
        ShapeError (a ValueError) if the number of elements does not fit.
        """
        new_shape = indexing.infer_shape(new_shape, self.size)
        ### BEGIN YOUR SOLUTION hw3/reshape
        if self.is_compact():
            return self._view(new_shape, indexing.compact_strides(new_shape), self._offset)
        new_strides = self._reshaped_strides(new_shape)
        if new_strides is None:
            return self.compact().reshape(new_shape)
        return self._view(new_shape, new_strides, self._offset)
        ### END YOUR SOLUTION hw3/reshape

    def _reshaped_strides(self, new_shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Strides by which a view of the same elements, in the same order, has new_shape; None if only a copy can."""
        if 0 in self._shape:
            return indexing.compact_strides(new_shape)
        runs: list[tuple[int, int]] = []  # axes that lie evenly spaced in one another, merged: (elements, step)
        for extent, stride in zip(self._shape, self._strides):
            if runs and runs[-1][1] == extent * stride:
                runs[-1] = runs[-1][0] * extent, stride
            elif extent != 1:
                runs.append((extent, stride))
        result, left, step = [], 1, 1
        for extent in reversed(new_shape):
            if left == 1 and extent != 1:
                left, step = runs.pop()
            if left % extent:
                return None
            result.append(step)
            left, step = left // extent, step * extent
        return tuple(reversed(result))

    def permute(self, new_axes: Sequence[int]) -> NDArray:
        """The axes in another order; a view.  (B, H, W, C).permute((0, 3, 1, 2)) → (B, C, H, W)."""
        new_axes = indexing.as_axes(new_axes, self.ndim, "permute")
        if len(new_axes) != self.ndim:
            raise ShapeError(f"permute: axes {new_axes} for an array of shape {self._shape}")
        ### BEGIN YOUR SOLUTION hw3/permute
        shape = tuple(self._shape[axis] for axis in new_axes)
        strides = tuple(self._strides[axis] for axis in new_axes)
        return self._view(shape, strides, self._offset)
        ### END YOUR SOLUTION hw3/permute

    def broadcast_to(self, new_shape: Sequence[int]) -> NDArray:
        """Repeat along axes of length one, and along new axes in front, without copying: their stride is 0."""
        new_shape = indexing.as_shape(new_shape, "broadcast_to")
        if not indexing.stretches_to(self._shape, new_shape):
            raise ShapeError(f"broadcast_to: an array of shape {self._shape} cannot become {new_shape}")
        ### BEGIN YOUR SOLUTION hw3/broadcast_to
        added = len(new_shape) - self.ndim
        old = zip(self._shape, self._strides, new_shape[added:])
        strides = tuple(stride if extent == new_extent else 0 for extent, stride, new_extent in old)
        return self._view(new_shape, (0,) * added + strides, self._offset)
        ### END YOUR SOLUTION hw3/broadcast_to

    def process_slice(self, sl: slice, dim: int) -> slice:
        """The slice along axis `dim` with start, stop and step as integers: inside the axis, counted from its front."""
        return indexing.explicit_slice(sl, self._shape[indexing.as_axis(dim, self.ndim, "process_slice")])

    def __getitem__(self, idxs: Any) -> NDArray:
        """A view of some of the elements, by integers, slices, `...` and None, as in NumPy.

        But an integer keeps its axis, with length one.  IndexError for an integer out of bounds.
        """
        idxs = indexing.complete_index(idxs, self.ndim)
        if any(entry is None for entry in idxs):
            new_axes = [position for position, entry in enumerate(idxs) if entry is None]
            return self[tuple(entry for entry in idxs if entry is not None)].expand_dims(new_axes)
        ### BEGIN YOUR SOLUTION hw3/getitem
        slices = tuple(
            self.process_slice(entry, axis) if isinstance(entry, slice) else indexing.as_slice(entry, extent, axis)
            for axis, (entry, extent) in enumerate(zip(idxs, self._shape))
        )
        shape = tuple(len(range(sl.start, sl.stop, sl.step)) for sl in slices)
        strides = tuple(stride * sl.step for stride, sl in zip(self._strides, slices))
        offset = self._offset + sum(stride * sl.start for stride, sl in zip(self._strides, slices))
        return self._view(shape, strides, offset)
        ### END YOUR SOLUTION hw3/getitem

    def __setitem__(self, idxs: Any, other: Any) -> None:
        """Write a number or an array into some of the elements, in place, cast to the array's dtype.

        An array needs as many elements as are written, in the same order, or a shape that broadcasts.
        """
        view = self[idxs]
        where = view._handle, view._shape, view._strides, view._offset
        if dtypes.is_scalar(other):
            value = dtypes.cast_scalar(other, self._dtype, "setitem")
            if view.size:
                self._kernel("scalar_setitem")(view.size, value, *where)
            return
        source = view._source(other)
        if view.size:
            self._kernel("ewise_setitem")(source._flat(self._dtype), *where)

    def _source(self, other: Any) -> NDArray:
        """The array whose elements can be written into this one, in order."""
        source = other if isinstance(other, NDArray) else interop.like(interop.as_numpy(other, "setitem"), self)
        self._check_device(source, "setitem")
        if interop.share_memory(self, source):
            source = source.copy()  # or writing would change what is still to be read
        if source.size == self.size:
            return source
        if indexing.broadcast_shapes(source._shape, self._shape) != self._shape:
            raise ShapeError(f"setitem: got an array of shape {source._shape} for {self._shape}")
        return source.broadcast_to(self._shape)

    def fill(self, value: Scalar) -> None:
        """Set every element to a number, in place."""
        if self.is_compact():
            self._kernel("fill")(self._handle, dtypes.cast_scalar(value, self._dtype, "fill"))
        else:
            self[...] = value

    # ---- arithmetic, element by element ----------------------------------------------------------------------------

    def ewise_or_scalar(self, other: Any, ewise: str, scalar: str, rule: Callable[[str], str] = same) -> NDArray:
        """Run one of two kernels: `ewise` with an array of equal shape, or `scalar` with a number.

        The operands are cast to rule(their common dtype) first.
        """
        dtype = self._dtype
        if self._compact and (rule is same or rule(dtype) == dtype):  # as it mostly is; this is run for every operator
            if type(other) is NDArray:
                kin = other._dtype == dtype and other._device is self._device
                if kin and other._compact and other._shape == self._shape:
                    return self._run(ewise, other._handle)
            elif type(other) in (float, int) and dtype in dtypes.FLOATS:
                return self._run(scalar, dtypes.cast_scalar(other, dtype, scalar[7:]))
        # >>> never
        if not self.is_compact() and (order := self._memory_order(other)):
            return self._in_order(order, NDArray.ewise_or_scalar, other, ewise, scalar, rule)
        # <<< never
        if not isinstance(other, NDArray):
            if dtypes.is_scalar(other):
                dtype = rule(dtypes.promote_scalar(self._dtype, other))
                value = dtypes.cast_scalar(other, dtype, scalar[7:])
                out = self._new(self._shape, dtype)
                self._kernel(scalar, dtype)(self._flat(dtype), value, out._handle)
                return out
            if not isinstance(other, np.ndarray):
                return NotImplemented
            other = interop.like(other, self)
        if other._shape != self._shape or other._device is not self._device:
            self._check_pair(other, ewise[6:])
        dtype = rule(promote(self._dtype, other._dtype))
        out = self._new(self._shape, dtype)
        if not self._run_on_views("view" + ewise[5:], other, out):
            self._kernel(ewise, dtype)(self._flat(dtype), other._flat(dtype), out._handle)
        return out

    def _run(self, name: str, operand: Any) -> NDArray:
        """What a kernel makes of a compact array and an operand that needs no cast, no stretching and no copy."""
        device, dtype, handle = self._device, self._dtype, self._handle
        kernel = kernels.device_kernel(name, device.name, dtype) or self._kernel(name)  # which complains
        out = _blank(NDArray)
        out._shape, out._strides, out._offset = self._shape, self._strides, 0
        out._device, out._dtype, out._compact = device, dtype, True
        out._handle = _allocate(device, handle.size, dtype)
        kernel(handle, operand, out._handle)
        return out

    def _run_on_views(self, name: str, other: NDArray, out: NDArray) -> bool:
        """Whether there was a kernel that reads the operands as they lie, so that a broadcast one needs no copy."""
        if self.is_compact() and other.is_compact():
            return False
        kernel = kernels.device_kernel(name, self._device.name, self._dtype) if self._dtype == other._dtype else None
        if kernel is not None:
            views = self._strides, self._offset, other._strides, other._offset
            kernel(self._handle, other._handle, out._handle, self._shape, *views)
        return kernel is not None

    # >>> never
    def _memory_order(self, other: Any) -> tuple[int, ...] | None:
        """The order of axes in which self's elements, and those of an array other, lie in memory without a gap."""
        if not isinstance(other, NDArray):
            if not dtypes.is_scalar(other):
                return None
        elif (other._shape, other._strides) != (self._shape, self._strides):
            return None
        order = tuple(sorted(range(self.ndim), key=lambda axis: -self._strides[axis]))
        return order if self.permute(order).is_compact() else None

    def _in_order(self, order: tuple[int, ...], op: Callable, other: Any, *settings: Any) -> NDArray:
        """What op gives, computed and stored in another order of axes, so that nothing has to be copied first."""
        result = op(self.permute(order), other.permute(order) if isinstance(other, NDArray) else other, *settings)
        return result if result is NotImplemented else result.permute([order.index(axis) for axis in range(self.ndim)])

    # <<< never
    def _check_pair(self, other: NDArray, op: str) -> None:
        if other._device is not self._device:
            self._check_device(other, op)
        if other._shape != self._shape:
            raise ShapeError(f"{op}: shapes {self._shape} and {other._shape} differ; use reshape and broadcast_to")

    def _check_device(self, other: NDArray, op: str) -> None:
        if other._device is not self._device and other._device != self._device:
            raise DeviceError(f"{op}: operands live on {self._device} and {other._device}; move one with .to(device)")

    def _check_no_bool(self, other: Any, op: str) -> None:
        if self._dtype == "bool" and dtypes.is_bool(other):
            raise DTypeError(f"{op}: not defined for truth values; compare with !=, or use .astype")

    def __add__(self, other: Any) -> NDArray:
        return self.ewise_or_scalar(other, "ewise_add", "scalar_add")

    __radd__ = __add__

    def __mul__(self, other: Any) -> NDArray:
        return self.ewise_or_scalar(other, "ewise_mul", "scalar_mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> NDArray:
        return self.ewise_or_scalar(other, "ewise_div", "scalar_div", dtypes.to_float)

    def __rtruediv__(self, other: Any) -> NDArray:
        return self._reflected(other, NDArray.__truediv__, dtypes.to_float)

    def __neg__(self) -> NDArray:
        self._check_no_bool(self, "negative")
        return self * dtypes.minus_one(self._dtype)

    def __sub__(self, other: Any) -> NDArray:
        self._check_no_bool(other, "subtract")
        if dtypes.is_scalar(other):
            return self + dtypes.negated(other, self._dtype, "subtract")
        if isinstance(other, np.ndarray):
            other = interop.like(other, self)
        if not isinstance(other, NDArray):
            return NotImplemented
        dtype = promote(self._dtype, other._dtype)
        if kernels.device_kernel("ewise_sub", self._device.name, dtype):  # the course has none
            return self.ewise_or_scalar(other, "ewise_sub", "scalar_sub")
        return self + -other._cast(dtype)

    def __rsub__(self, other: Any) -> NDArray:
        return self._reflected(other, NDArray.__sub__)

    def __pow__(self, other: Any) -> NDArray:
        """Powers: a negative base with a fractional exponent gives nan; integers to negative powers are refused."""
        return self.ewise_or_scalar(other, "ewise_power", "scalar_power", dtypes.to_number)

    def __rpow__(self, other: Any) -> NDArray:
        return self._reflected(other, NDArray.__pow__, dtypes.to_number)

    def _reflected(self, other: Any, op: Callable, rule: Callable[[str], str] = same) -> NDArray:
        """`other op self`, where other is a number or a NumPy array."""
        if isinstance(other, np.ndarray) and other.ndim:
            return op(interop.like(other, self), self)
        if not dtypes.is_scalar(other):
            return NotImplemented
        dtype = rule(dtypes.promote_scalar(self._dtype, other))
        left = self._new((1,) * self.ndim, dtype)
        left.fill(other)
        return op(left.broadcast_to(self._shape), self)

    def maximum(self, other: Any) -> NDArray:
        """The larger of each pair of elements, or of each element and a number; nan wins."""
        return self._or_complain(self.ewise_or_scalar(other, "ewise_maximum", "scalar_maximum"), other, "maximum")

    @staticmethod
    def _or_complain(result: Any, other: Any, op: str) -> NDArray:
        """The result of a method; a method has no other operand to ask, as an operator has."""
        if result is NotImplemented:
            raise ArgumentTypeError(f"{op}: got {describe(other)}, wanted an NDArray or a number")
        return result

    # ---- comparisons: 1.0 where it holds, 0.0 where it does not ----------------------------------------------------

    def _compare(self, other: Any, op: str) -> NDArray:
        # >>> never
        if not self.is_compact() and (order := self._memory_order(other)):
            return self._in_order(order, NDArray._compare, other, op)
        # <<< never
        if isinstance(other, np.ndarray) and other.ndim:
            other = interop.like(other, self)
        if isinstance(other, NDArray):
            self._check_pair(other, op)
            dtype, form = dtypes.promote_to_compare(self._dtype, other._dtype), "ewise_"
        elif dtypes.is_scalar(other):
            dtype, form = dtypes.scalar_to_compare(self._dtype, other), "scalar_"
            other = dtypes.cast_scalar(other, dtype, op)
        else:
            return NotImplemented
        kernel = kernels.device_kernel(form + op, self._device.name, dtype)
        if kernel is None:
            return self._compare_by_eq_and_ge(other, op)
        out = self._new(self._shape, "float32")
        if form == "ewise_" and self._dtype == dtype and self._run_on_views("view_" + op, other, out):
            return out
        kernel(self._flat(dtype), other._flat(dtype) if form == "ewise_" else other, out._handle)
        return out

    def _compare_by_eq_and_ge(self, other: Any, op: str) -> NDArray:
        """The comparisons for which a device of the course has no kernel, from the two that it has."""
        if op == "ne":
            return 1 - (self == other)
        if op == "le":
            return -self >= -other  # not 1 - (self > other), which would hold for nan
        return (self >= other if op == "gt" else self <= other) * (self != other)

    def __eq__(self, other: object) -> NDArray:  # type: ignore[override]
        return self._compare(other, "eq")

    def __ne__(self, other: object) -> NDArray:  # type: ignore[override]
        return self._compare(other, "ne")

    def __ge__(self, other: Any) -> NDArray:
        return self._compare(other, "ge")

    def __gt__(self, other: Any) -> NDArray:
        return self._compare(other, "gt")

    def __le__(self, other: Any) -> NDArray:
        return self._compare(other, "le")

    def __lt__(self, other: Any) -> NDArray:
        return self._compare(other, "lt")

    __hash__ = None  # type: ignore[assignment]  # == compares elements, so an array cannot be a key

    # ---- functions of each element ---------------------------------------------------------------------------------

    def _unary(self, kernel: str, dtype: str) -> NDArray:
        out = self._new(self._shape, dtype)
        self._kernel(kernel, dtype)(self._flat(dtype), out._handle)
        return out

    def log(self) -> NDArray:
        """The natural logarithm of each element."""
        return self._unary("ewise_log", dtypes.to_float(self._dtype))

    def exp(self) -> NDArray:
        """e to the power of each element."""
        return self._unary("ewise_exp", dtypes.to_float(self._dtype))

    def tanh(self) -> NDArray:
        """The hyperbolic tangent of each element."""
        return self._unary("ewise_tanh", dtypes.to_float(self._dtype))

    # ---- matrix multiplication -------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> NDArray:
        """Products of matrices: (m, n) @ (n, p) → (m, p).

        Further axes in front are batches and broadcast as in NumPy; so does an operand with a single axis.
        """
        if not isinstance(other, NDArray):
            if not isinstance(other, np.ndarray):
                return NotImplemented
            other = interop.like(other, self)
        self._check_device(other, "matmul")
        return products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> NDArray:
        return interop.like(other, self) @ self if isinstance(other, np.ndarray) else NotImplemented

    # ---- reductions ------------------------------------------------------------------------------------------------

    def reduce_view_out(self, axis: Axes, keepdims: bool = False, dtype: str | None = None) -> tuple[NDArray, NDArray]:
        """A view of the array with the reduced axes last, and the array for the result.

        Without an axis everything is reduced, to shape (1,).
        """
        axes = indexing.as_axes(axis, self.ndim, "reduce")
        kept = tuple(a for a in range(self.ndim) if a not in axes)
        shape = (1,) if axis is None and not keepdims else indexing.without(self._shape, axes, keepdims)
        view = self if kept + axes == tuple(range(self.ndim)) else self.permute(kept + axes)
        return view, self._new(shape, dtype or self._dtype)

    def _reduce(
        self, op: str, axis: Axes, keepdims: bool, empty: Scalar | None = None, dtype: str | None = None
    ) -> NDArray:
        """Reduce with the kernel reduce_`op`; `empty` is what nothing reduces to, if it reduces to anything."""
        axes = indexing.as_axes(axis, self.ndim, op)
        reduce_size = math.prod(self._shape[axis] for axis in axes)
        view, out = self.reduce_view_out(axis, keepdims, dtype)
        if reduce_size == 0:
            if empty is None:
                raise ShapeError(f"{op}: nothing to choose from in an array of shape {self._shape}, axis {axis}")
            out.fill(empty)
        elif out.size:
            self._run_reduction("reduce_" + op, view, out, self.ndim - len(axes))
        return out

    def _run_reduction(self, kernel: str, view: NDArray, out: NDArray, kept: int) -> None:
        """Reduce all but the first `kept` axes of a view, as it lies if there is a kernel for that."""
        on_view = None if view.is_compact() else kernels.device_kernel("view_" + kernel, view._device.name, view._dtype)
        if on_view is not None:
            on_view(view._handle, out._handle, view._shape, view._strides, view._offset, kept)
        else:
            self._kernel(kernel)(view._flat(self._dtype), out._handle, view.size // out.size)

    def sum(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """The sum over all axes, one, or several; an empty tuple of axes sums over none.  Integers sum in int64."""
        return self._cast(dtypes.to_sum(self._dtype))._reduce("sum", axis, keepdims, empty=0)

    def max(self, axis: Axes = None, keepdims: bool = False) -> NDArray:
        """The largest element over all axes, one, or several; nan if there is one."""
        return self._reduce("max", axis, keepdims)

    # >>> hw4
    # ---- for convolutions ------------------------------------------------------------------------------------------

    def flip(self, axes: Axes) -> NDArray:
        """A copy with the order of the elements reversed along the axes."""
        axes = indexing.as_axes(axes, self.ndim, "flip")
        ### BEGIN YOUR SOLUTION hw4/flip_array
        strides = tuple(-stride if axis in axes else stride for axis, stride in enumerate(self._strides))
        last = sum((self._shape[axis] - 1) * self._strides[axis] for axis in axes)
        return self._view(self._shape, strides, self._offset + last).copy()
        ### END YOUR SOLUTION hw4/flip_array

    def pad(self, axes: Sequence[tuple[int, int]]) -> NDArray:
        """A copy with zeros around it.  axes: for each axis how many to add before and after it."""
        axes = indexing.as_padding(axes, self.ndim)
        ### BEGIN YOUR SOLUTION hw4/pad
        shape = tuple(before + extent + after for extent, (before, after) in zip(self._shape, axes))
        out = self._new(shape, self._dtype)
        out.fill(0)
        out[tuple(slice(before, before + extent) for extent, (before, _) in zip(self._shape, axes))] = self
        return out
        ### END YOUR SOLUTION hw4/pad

    # <<< hw4
    # ---- printing --------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        body = np.array2string(self.numpy(), separator=", ", prefix="NDArray(")
        return f"NDArray({body}, device={self._device}, dtype={self._dtype})"


BackendDevice.array_type = NDArray
