"""Arithmetic on shapes, axes, strides and indices.  Plain integers: nothing here touches memory or can overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from operator import index as as_int
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, ShapeError, describe

Shape = tuple[int, ...]
Axes = None | int | Sequence[int]  # all axes, one, or several


class ShapeIndexError(ShapeError, IndexError):
    """An index has more entries than the array has axes."""


def as_sizes(shape: int | Sequence[int], op: str) -> Shape:
    """A shape, or a single size, as a tuple of integers; -1 may be among them."""
    try:
        return tuple(map(as_int, _several(shape)))
    except TypeError:
        raise ArgumentTypeError(f"{op}: got {describe(shape)} as a shape, wanted integers") from None


def _several(value: Any) -> Any:
    """Integers in an order as they are, one alone as a tuple; bytes and sets hold integers, too, but are a mistake."""
    if isinstance(value, (tuple, list)):
        return value
    in_order = hasattr(value, "__iter__") and not isinstance(value, (bytes, bytearray, memoryview, Set, Mapping))
    return value if in_order else (value,)


def as_number(value: Any, op: str) -> int:
    """A whole number, as Python's integer."""
    if not hasattr(value, "__index__") or isinstance(value, np.ndarray):
        raise ArgumentTypeError(f"{op}: got {describe(value)}, wanted an integer")
    return as_int(value)


def as_shape(shape: int | Sequence[int], op: str) -> Shape:
    """A shape, or a single size, as a tuple of integers, none of them negative."""
    sizes = as_sizes(shape, op)
    if sizes and min(sizes) < 0:
        raise ShapeError(f"{op}: shape {sizes} has a negative size")
    return sizes


def infer_shape(shape: int | Sequence[int], size: int, op: str = "reshape") -> Shape:
    """The shape for `size` elements, with at most one -1 in it replaced by what is left over."""
    wanted = as_sizes(shape, op)
    if math.prod(wanted) == size and (not wanted or min(wanted) >= 0):
        return wanted
    known = math.prod(extent for extent in wanted if extent != -1)
    if wanted.count(-1) == 1 and known > 0 and size % known == 0:
        return tuple(size // known if extent == -1 else extent for extent in wanted)
    if known != size or any(extent < 0 for extent in wanted):
        raise ShapeError(f"{op}: cannot give {size} elements the shape {wanted}")
    return wanted


@lru_cache(maxsize=4096)
def compact_strides(shape: Shape) -> Shape:
    """Strides, in elements, of row-major order: the last axis is contiguous."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


# ---- axes ----------------------------------------------------------------------------------------------------------


def as_axis(axis: int, ndim: int, op: str) -> int:
    """The axis counted from the front.  ShapeError if there is no such axis."""
    try:
        number = as_int(axis)
    except TypeError:
        raise ArgumentTypeError(f"{op}: got {describe(axis)} as an axis, wanted an integer") from None
    if not -ndim <= number < ndim:
        raise ShapeError(f"{op}: axis {number} of an array with {ndim} axes")
    return number % ndim


def as_axes(axes: int | Sequence[int] | None, ndim: int, op: str) -> Shape:
    """Axes counted from the front, in the given order; None is all of them.  ShapeError if one comes twice."""
    if axes is None:
        return tuple(range(ndim))
    chosen = tuple([as_axis(axis, ndim, op) for axis in _several(axes)])
    if len(set(chosen)) != len(chosen):
        raise ShapeError(f"{op}: axes {axes} name an axis twice")
    return chosen


def without(shape: Shape, axes: Shape, keepdims: bool = False) -> Shape:
    """The shape left when the axes are reduced away, or to length one."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def broadcast_shapes(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two shapes by NumPy's rule; None if there is none."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    shorter = (1,) * (len(longer) - len(shorter)) + shorter
    if any(m != n and 1 not in (m, n) for m, n in zip(longer, shorter)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(longer, shorter))


def stretches_to(shape: Shape, new_shape: Shape) -> bool:
    """Whether broadcasting makes new_shape of shape."""
    added = len(new_shape) - len(shape)
    if added < 0:
        return False
    for extent, new_extent in zip(shape, new_shape[added:]):  # noqa: SIM110 - a generator takes twice as long
        if extent != new_extent and extent != 1:
            return False
    return True


def as_padding(widths: Sequence[Sequence[int]], ndim: int) -> tuple[tuple[int, int], ...]:
    """For each axis how many elements to add before and after it; none may be negative."""
    try:
        pairs = tuple((as_int(before), as_int(after)) for before, after in widths)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"pad: got {describe(widths)}, wanted a pair of integers for each axis") from None
    if len(pairs) != ndim or any(width < 0 for pair in pairs for width in pair):
        raise ShapeError(f"pad: got widths {pairs} for {ndim} axes, wanted a pair of sizes for each")
    return pairs


# ---- indices -------------------------------------------------------------------------------------------------------


def complete_index(index: Any, ndim: int) -> tuple:
    """The index with one entry for each axis: `...` and missing entries become whole slices; None entries stay."""
    entries = index if isinstance(index, tuple) else (index,)
    given = sum(entry is not None and entry is not Ellipsis for entry in entries)
    dots = [position for position, entry in enumerate(entries) if entry is Ellipsis]
    if given > ndim or len(dots) > 1:
        cause = "two ellipses" if len(dots) > 1 else f"{given} indices"
        raise ShapeIndexError(f"getitem: {cause} for an array with {ndim} axes")
    whole = (slice(None),) * (ndim - given)
    if dots:
        return entries[: dots[0]] + whole + entries[dots[0] + 1 :]
    return entries + whole


def explicit_slice(entry: slice, extent: int) -> slice:
    """The slice with start, stop and step as integers, as range() takes them, along an axis of that length."""
    try:
        return slice(*entry.indices(extent))
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(f"getitem: {describe(entry)} does not slice an axis: {error}") from None


def as_slice(entry: Any, extent: int, axis: int) -> slice:
    """The slice of length one that an integer index means.  IndexError if it is out of bounds."""
    if isinstance(entry, (bool, np.bool_, np.ndarray)) or not hasattr(entry, "__index__"):
        raise ArgumentTypeError(
            f"getitem: got {describe(entry)} as an index, wanted an integer, a slice or ...; take() gathers by arrays"
        )
    position = as_int(entry)
    if not -extent <= position < extent:
        raise IndexError(f"getitem: index {position} is out of bounds for axis {axis} of size {extent}")
    return slice(position % extent, position % extent + 1, 1)
