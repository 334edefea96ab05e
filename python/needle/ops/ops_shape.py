"""Operators that move entries and change none: orders of axes, added and dropped axes, margins, joints."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd import Tensor, TensorOp
from ..backend_selection import NDArray, array_api
from ..errors import ArgumentError, ShapeError
from .ops_mathematic import reshape

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
        self.axes = tuple(axes)

    def compute(self, a: NDArray) -> NDArray:
        if sorted(axis % a.ndim for axis in self.axes) != list(range(a.ndim)):
            raise ShapeError(f"permute: axes {self.axes} of shape {a.shape}, wanted each axis once")
        return array_api.transpose(a, self.axes)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        axes = [axis % len(self.axes) for axis in self.axes]
        return permute(out_grad, [axes.index(axis) for axis in range(len(axes))])


def permute(a: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes in another order.  (2, 3, 4), axes (2, 0, 1) → (4, 2, 3)."""
    return Permute(axes)(a)


def expand_dims(a: Tensor, axis: int) -> Tensor:
    """A new axis of extent 1 at position axis of the result.  (2, 3), axis 1 → (2, 1, 3)."""
    ndim = len(a.shape) + 1
    if not -ndim <= axis < ndim:
        raise ShapeError(f"expand_dims: axis {axis} for shape {a.shape}, wanted {-ndim} to {ndim - 1}")
    axis %= ndim
    return reshape(a, a.shape[:axis] + (1,) + a.shape[axis:])


unsqueeze = expand_dims


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the given axes (by default, all) of extent 1.  (2, 1, 3) → (2, 3)."""
    ones = [i for i, extent in enumerate(a.shape) if extent == 1]
    if axis is not None:
        chosen = [axis] if isinstance(axis, int) else list(axis)
        if any(i not in ones and i + len(a.shape) not in ones for i in chosen):
            raise ShapeError(f"squeeze: axis {axis} of shape {a.shape}, wanted one of extent 1")
        ones = [i % len(a.shape) for i in chosen]
    return reshape(a, tuple(extent for i, extent in enumerate(a.shape) if i not in ones))


def flatten(a: Tensor, start: int = 0) -> Tensor:
    """All axes from start on as one.  (2, 3, 4), start 1 → (2, 12)."""
    shape = a.shape or (1,)
    start = range(len(shape))[start]
    size = 1
    for extent in shape[start:]:
        size *= extent
    return reshape(a, shape[:start] + (size,))


class Pad(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, pairs: Sequence[tuple[int, int]], value: float = 0) -> None:
        self.pairs, self.value = tuple((int(before), int(after)) for before, after in pairs), value

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
    tensors = tuple(tensors)
    if not tensors:
        raise ArgumentError("concatenate: no tensors")
    return Concatenate(axis)(*tensors)
