"""Parts of tensors by NumPy's rules of indexing, and their adjoints: where entries come twice, they add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd import Shape, Tensor, TensorOp, check_tensors, device_of
from ..backend_selection import BACKEND, NDArray, array_api, scatter_add
from ..errors import ArgumentTypeError, DTypeError, describe, named
from .ops_elementwise import own_copy
from .ops_mathematic import sum_to_shape

__all__ = ["Gather", "GetItem", "gather", "get_item", "take"]


# ---- a part by an index ----------------------------------------------------------------------------------------------


class GetItem(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, index: Any) -> None:
        self.index = plain_index(index)

    def compute(self, a: NDArray) -> NDArray:
        if BACKEND == "np":
            return a[self.index]
        if is_basic(self.index):
            return basic_view(a, self.index)
        if is_rows(self.index):
            return array_api.take(a, self.index[0], axis=0)
        return array_api.take(array_api.reshape(a, (-1,)), positions(a.shape, self.index), axis=0)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return PutItem(node.inputs[0].shape, self.index)(out_grad)


def get_item(a: Tensor, index: Any) -> Tensor:
    """a[index] by NumPy's rules: an int drops its axis; integer arrays, tensors of integers and masks gather."""
    check_tensors("get_item", a)
    return GetItem(index)(a)


class PutItem(TensorOp):
    """The adjoint of GetItem: zeros of a shape, to which the input is added at an index."""

    reads_inputs = reads_output = False

    def __init__(self, shape: Shape, index: Any) -> None:
        self.shape, self.index = shape, plain_index(index)

    def compute(self, a: NDArray) -> NDArray:
        out = device_of(a).zeros(*self.shape, dtype=a.dtype)
        if is_basic(self.index):
            write(out, self.index, a)  # no entry comes twice
            return out
        if is_rows(self.index):
            return scatter_add(out, self.index[0], a, axis=0)
        places = positions(self.shape, self.index).reshape(-1)
        summed = scatter_add(array_api.reshape(out, (-1,)), places, array_api.reshape(a, (-1,)), axis=0)
        return array_api.reshape(summed, self.shape)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return GetItem(self.index)(out_grad)


class SetItem(TensorOp):
    """A copy of the first input in which an index holds the second, stretched to its place."""

    reads_inputs = reads_output = False

    def __init__(self, index: Any) -> None:
        self.index = plain_index(index)

    def compute(self, a: NDArray, value: NDArray) -> NDArray:
        out = own_copy(a)
        write(out, self.index, value)
        return out

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        a, value = node.inputs
        nothing = Tensor(0, device=out_grad.device, dtype=out_grad.dtype, requires_grad=False)
        paid = GetItem(self.index)(out_grad)
        if not is_basic(self.index):
            paid = paid * self._survivors(a.shape, like=out_grad)
        return SetItem(self.index)(out_grad, nothing), sum_to_shape(paid, value.shape)

    def _survivors(self, shape: Shape, like: Tensor) -> Tensor:
        """1 for the values that stay, 0 for those that a later value at the same place replaced."""
        places = positions(shape, self.index)
        stays = np.isin(np.arange(places.size), last_of_each(places.reshape(-1))).reshape(places.shape)
        return Tensor(stays, device=like.device, dtype=like.dtype, requires_grad=False)


# ---- entries by their places along one axis --------------------------------------------------------------------------


class Gather(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, ids: Any, axis: int = 0) -> None:
        self.ids, self.axis = whole_numbers("gather", ids), axis

    def compute(self, a: NDArray) -> NDArray:
        return array_api.take(a, self.ids, axis=self.axis)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        shape = node.inputs[0].shape
        return ScatterAdd(self.ids, self.axis % len(shape), shape)(out_grad)


def gather(a: Tensor, ids: Any, axis: int = 0) -> Tensor:
    """The entries of a at the places ids (whole numbers, of any shape) along axis; negative ones count from the end.

    (N, D), ids (B, T), axis 0 → (B, T, D).  IndexError for a place that is not there.
    """
    check_tensors("gather", a)
    return Gather(ids, axis)(a)


@named
def take(a: Tensor, ids: Any, axis: int = 0) -> Tensor:
    """gather by NumPy's name."""
    check_tensors("take", a)
    return gather(a, ids, axis)


class ScatterAdd(TensorOp):
    """The adjoint of Gather: zeros of a shape, to which each entry of the input is added at its place along axis."""

    reads_inputs = reads_output = False

    def __init__(self, ids: Any, axis: int, shape: Shape) -> None:
        self.ids, self.axis, self.shape = whole_numbers("scatter_add", ids), axis, shape

    def compute(self, a: NDArray) -> NDArray:
        return scatter_add(device_of(a).zeros(*self.shape, dtype=a.dtype), self.ids, a, axis=self.axis)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return Gather(self.ids, self.axis)(out_grad)


def whole_numbers(name: str, ids: Any) -> np.ndarray:
    """ids as an int64 array of our own; floats are welcome if they are whole, since labels often come as float32."""
    numbers = np.array(as_numpy(ids))
    if numbers.dtype.kind not in "iuf" and numbers.size:
        raise DTypeError(f"{name}: ids are {describe(ids)}, wanted whole numbers")
    whole = numbers.astype(np.int64)
    if not np.array_equal(whole, numbers):
        raise DTypeError(f"{name}: ids are {describe(ids)}, not all of them whole numbers")
    return whole


# ---- what an index means ---------------------------------------------------------------------------------------------

Index = tuple[Any, ...]  # of int, slice, None, ..., and NumPy arrays of int or bool


def plain_index(index: Any) -> Index:
    """The index as a tuple of ints, slices, None, ... and NumPy arrays that nobody else can change."""
    entries = index if isinstance(index, tuple) else (index,)
    return tuple(_plain_entry(entry) for entry in entries)


def _plain_entry(entry: Any) -> Any:
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return int(entry)
    array = np.array(as_numpy(entry))
    if array.dtype.kind in "iu" and array.ndim == 0:
        return int(array)
    if array.dtype.kind in "iub":
        return array
    if array.size == 0 and isinstance(entry, list):
        return array.astype(np.int64)
    raise ArgumentTypeError(f"get_item: {describe(entry)} as an index; wanted integers or bools, try .astype('int64')")


def as_numpy(value: Any) -> Any:
    """A tensor or an array of the backend as NumPy's; everything else as it is."""
    return value.numpy() if hasattr(value, "numpy") else value


def is_basic(index: Index) -> bool:
    """Does the index name a regular grid, so that a view can show it?"""
    return not any(isinstance(entry, np.ndarray) for entry in index)


def is_rows(index: Index) -> bool:
    """Is the index one array of integers, which names whole rows?"""
    return len(index) == 1 and isinstance(index[0], np.ndarray) and index[0].dtype.kind != "b"


def basic_view(a: NDArray, index: Index) -> NDArray:
    """a[index] as a view; an int drops its axis, which NDArray's own indexing keeps."""
    view = a[index]
    whole = [slice(None)] * (a.ndim - sum(entry is not None and entry is not Ellipsis for entry in index))
    dots = next((i for i, entry in enumerate(index) if entry is Ellipsis), len(index))
    entries = [*index[:dots], *whole, *index[dots + 1 :]]
    kept = [i for i, entry in enumerate(entries) if not isinstance(entry, int)]
    return view.as_strided([view.shape[i] for i in kept], [view.strides[i] for i in kept])


def positions(shape: Shape, index: Index) -> np.ndarray:
    """Where the entries that index names lie among all entries in row-major order, as NumPy understands the index."""
    places = np.broadcast_to(0, shape)[index]
    for axis, extent in enumerate(shape):
        steps = np.arange(extent) * math.prod(shape[axis + 1 :])
        along_axis = steps.reshape((extent,) + (1,) * (len(shape) - axis - 1))
        places = places + np.broadcast_to(along_axis, shape)[index]  # indexed as a view, never built in that shape
    return places


def last_of_each(places: np.ndarray) -> np.ndarray:
    """Of each place that is named, where it is named last."""
    return len(places) - 1 - np.unique(places[::-1], return_index=True)[1]


def write(array: NDArray, index: Index, value: Any) -> None:
    """array[index] = value by NumPy's rules, in place; of values for one place the last one stays."""
    if BACKEND == "np":
        array[index] = value
    elif is_basic(index):
        target = basic_view(array, index)
        target[...] = _stretched(value, target.shape)
    else:
        places = positions(array.shape, index)
        value = array_api.reshape(_stretched(value, places.shape), (-1,)).astype(array.dtype)
        array[...] = _with_values_at(array, places.reshape(-1), value)


def _stretched(value: Any, shape: Shape) -> NDArray:
    """value in shape, as NumPy's assignment would stretch it: needless axes of extent 1 in front are dropped."""
    extra = len(value.shape) - len(shape)
    if extra > 0 and set(value.shape[:extra]) == {1}:
        value = array_api.reshape(value, value.shape[extra:])
    return array_api.broadcast_to(value, shape)


def _with_values_at(array: NDArray, places: np.ndarray, value: NDArray) -> NDArray:
    """A flat copy of array that holds value at places."""
    flat, last = array_api.reshape(array, (-1,)), last_of_each(places)
    named = np.zeros(flat.shape, bool)
    named[places] = True
    nothing = device_of(array).zeros(*flat.shape, dtype=array.dtype)
    new = scatter_add(nothing, places[last], array_api.take(value, last, axis=0), axis=0)
    return array_api.where(array_api.array(named, dtype="bool", device=array.device), new, flat)
