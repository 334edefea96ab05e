"""Reductions over axes beyond the sum: extremes, means, variances, places of extremes.

axes is None (all), an int or several; they disappear, or with keepdims stay with extent 1.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd import Shape, Tensor, TensorOp, check_tensors
from ..backend_selection import NDArray, array_api
from ..errors import named
from ..execution import explained
from .ops_elementwise import sqrt
from .ops_mathematic import broadcast_to, reshape, shape_with_ones

__all__ = ["Max", "Mean", "Min", "Var", "argmax", "argmin", "max", "mean", "min", "std", "var"]

Axes = int | tuple[int, ...] | list[int] | None


class Reduction(TensorOp):
    """What the reductions share."""

    def __init__(self, axes: Axes = None, keepdims: bool = False) -> None:
        self.axes = tuple(axes) if isinstance(axes, list) else axes
        self.keepdims = keepdims

    def stretched(self, value: Tensor, shape: Shape) -> Tensor:
        """A result of the reduction, repeated along the reduced axes."""
        return broadcast_to(reshape(value, shape_with_ones(shape, self.axes)), shape)

    def count(self, shape: Shape) -> int:
        """How many entries are reduced to one."""
        return math.prod(extent for extent, kept in zip(shape, shape_with_ones(shape, self.axes)) if kept == 1)

    def ties(self, node: Tensor) -> Tensor:
        """1 / n at the n entries that tie for an extreme, else 0: a constant.  With a NaN, all tie."""
        a = node.inputs[0].realize_cached_data()
        extreme = self.stretched(node.detach(), a.shape).realize_cached_data()
        loses = a < extreme if isinstance(self, Max) else a > extreme
        wins = Tensor.make_const((loses == 0).astype(a.dtype))
        return wins / self.stretched(wins.sum(self.axes), a.shape)


class Max(Reduction):
    def compute(self, a: NDArray) -> NDArray:
        return array_api.max(a, axis=self.axes, keepdims=self.keepdims)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return self.stretched(out_grad, node.inputs[0].shape) * self.ties(node)


def max(a: Tensor, axes: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest entry over axes; NaN if there is one.  Entries that tie share the gradient equally."""
    return Max(axes, keepdims)(a)


class Min(Reduction):
    def compute(self, a: NDArray) -> NDArray:
        return array_api.min(a, axis=self.axes, keepdims=self.keepdims)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return self.stretched(out_grad, node.inputs[0].shape) * self.ties(node)


def min(a: Tensor, axes: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest entry over axes; NaN if there is one.  Entries that tie share the gradient equally."""
    return Min(axes, keepdims)(a)


class Mean(Reduction):
    reads_inputs = reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.mean(a, axis=self.axes, keepdims=self.keepdims)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        shape = node.inputs[0].shape
        return self.stretched(out_grad / self.count(shape), shape)


def mean(a: Tensor, axes: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes.  (B, T, C) → (B, C) for axes=1."""
    return Mean(axes, keepdims)(a)


class Var(Reduction):
    reads_output = False

    def __init__(self, axes: Axes = None, keepdims: bool = False, correction: int = 0) -> None:
        super().__init__(axes, keepdims)
        self.correction = correction

    def compute(self, a: NDArray) -> NDArray:
        # two passes: the mean of the squares less the square of the mean would lose all digits far from 0
        center = array_api.broadcast_to(array_api.mean(a, axis=self.axes, keepdims=True), a.shape)
        shares = (a - center) * (a - center) / self._freedom(a.shape)
        return array_api.sum(shares, axis=self.axes, keepdims=self.keepdims)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.inputs[0]
        centered = a - self.stretched(mean(a, self.axes), a.shape)
        return self.stretched(out_grad * 2 / self._freedom(a.shape), a.shape) * centered

    def _freedom(self, shape: Shape) -> int:
        return self.count(shape) - self.correction


def var(a: Tensor, axes: Axes = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The variance over axes: Σ (a - mean)² / (n - correction); correction 1 makes it unbiased."""
    return Var(axes, keepdims, correction)(a)


@named
def std(a: Tensor, axes: Axes = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The standard deviation over axes, the root of var."""
    check_tensors("std", a)
    return sqrt(var(a, axes, keepdims, correction))


def argmax(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest entry along axis stands (in the flattened tensor, by default): an int64 constant.

    The first of several; NaN counts as largest.
    """
    return _place("argmax", array_api.argmax, a, axis, keepdims)


def argmin(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest entry along axis stands: as argmax."""
    return _place("argmin", array_api.argmin, a, axis, keepdims)


def _place(name: str, find: Any, a: Any, axis: int | None, keepdims: bool) -> Tensor:
    check_tensors(name, a)
    array = a.realize_cached_data()
    try:
        return Tensor.make_const(find(array, axis=axis, keepdims=keepdims))
    except (ValueError, TypeError, OverflowError) as error:
        raise explained(name, [array], error) from error
