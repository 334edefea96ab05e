"""Operators that move entries and change none: orders of axes, added and dropped axes, margins, joints."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from ..autograd import Tensor, TensorOp, check_tensors
from ..backend_selection import NDArray, array_api
from ..errors import ArgumentTypeError, ShapeError, describe, named
from .ops_mathematic import reshape
from .ops_tuple import several

__all__ = [
    "Concatenate",
    "Pad",
    "Permute",
    "concatenate",
    "expand_dims",
    "flatten",
    "pad",
    "permute",
    "squeeze",
    "unsqueeze",
]


class Permute(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = whole_axes("permute", axes)

    def compute(self, a: NDArray) -> NDArray:
        if sorted(axis % (a.ndim or 1) for axis in self.axes) != list(range(a.ndim)):
            raise ShapeError(f"permute: axes {self.axes} of shape {a.shape}, wanted each axis once")
        return array_api.transpose(a, self.axes)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        axes = [axis % len(self.axes) for axis in self.axes]
        return permute(out_grad, [axes.index(axis) for axis in range(len(axes))])


def permute(a: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes in another order.  (2, 3, 4), axes (2, 0, 1) → (4, 2, 3)."""
    return Permute(axes)(a)


@named
def expand_dims(a: Tensor, axis: int) -> Tensor:
    """A new axis of extent 1 at position axis of the result.  (2, 3), axis 1 → (2, 1, 3)."""
    check_tensors("expand_dims", a)
    (axis,) = whole_axes("expand_dims", axis, len(a.shape) + 1)
    return reshape(a, a.shape[:axis] + (1,) + a.shape[axis:])


@named
def unsqueeze(a: Tensor, axis: int) -> Tensor:
    """expand_dims by its other name."""
    check_tensors("unsqueeze", a)
    return expand_dims(a, axis)


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the given axes (by default, all) of extent 1.  (2, 1, 3) → (2, 3)."""
    check_tensors("squeeze", a)
    ones = [i for i, extent in enumerate(a.shape) if extent == 1]
    chosen = ones if axis is None else whole_axes("squeeze", axis, len(a.shape))
    if not set(chosen) <= set(ones):
        raise ShapeError(f"squeeze: axis {axis} of shape {a.shape}, wanted one of extent 1")
    return reshape(a, tuple(extent for i, extent in enumerate(a.shape) if i not in chosen))


@named
def flatten(a: Tensor, start: int = 0) -> Tensor:
    """All axes from start on as one.  (2, 3, 4), start 1 → (2, 12)."""
    check_tensors("flatten", a)
    shape = a.shape or (1,)
    (start,) = whole_axes("flatten", start, len(shape))
    return reshape(a, shape[:start] + (math.prod(shape[start:]),))


def whole_axes(name: str, axes: Any, ndim: int | None = None) -> tuple[int, ...]:
    """One axis or several as a tuple; for a tensor of ndim axes checked, and counted from the front."""
    try:
        numbers = tuple(operator.index(axis) for axis in (axes if hasattr(axes, "__iter__") else (axes,)))
    except TypeError:
        raise ArgumentTypeError(f"{name}: got {describe(axes)} for an axis, wanted whole numbers") from None
    if ndim is None:
        return numbers
    if any(not -ndim <= axis < ndim for axis in numbers):
        raise ShapeError(f"{name}: axis {axes} of a tensor with {ndim} axes, wanted {-ndim} to {ndim - 1}")
    return tuple(axis % ndim for axis in numbers)


class Pad(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, pairs: Sequence[tuple[int, int]], value: float = 0) -> None:
        try:
            self.pairs, self.value = tuple((int(before), int(after)) for before, after in pairs), value
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"pad: got {describe(pairs)}, wanted a pair of sizes for every axis") from None

    def compute(self, a: NDArray) -> NDArray:
        if len(self.pairs) != a.ndim or any(min(pair) < 0 for pair in self.pairs):
            raise ShapeError(f"pad: {self.pairs} for shape {a.shape}, wanted (before, after) ≥ 0 for every axis")
        return array_api.pad(a, self.pairs, constant_values=self.value)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        shape = node.inputs[0].shape
        return out_grad[tuple(slice(before, before + extent) for (before, _), extent in zip(self.pairs, shape))]


def pad(a: Tensor, pairs: Sequence[tuple[int, int]], value: float = 0) -> Tensor:
    """A margin of the number value around a: pairs holds (before, after) for every axis.

    (2, 3), pairs ((1, 0), (0, 2)) → (3, 5).
    """
    return Pad(pairs, value)(a)


class Concatenate(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axis: int = 0) -> None:
        self.axis = axis

    def compute(self, *arrays: NDArray) -> NDArray:
        return array_api.concatenate(arrays, axis=self.axis)

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, ...]:
        axis = self.axis % len(out_grad.shape)
        grads, start = [], 0
        for extent in (part.shape[axis] for part in node.inputs):
            grads.append(out_grad[(slice(None),) * axis + (slice(start, start + extent),)])
            start += extent
        return tuple(grads)


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis they have.  (2, 3) and (4, 3), axis 0 → (6, 3)."""
    return Concatenate(axis)(*several("concatenate", tensors))
