"""Logarithms of sums of exponentials, shifted by the maximum so that nothing overflows."""

from __future__ import annotations

from ..autograd import Tensor, TensorOp
from ..backend_selection import NDArray, array_api
from ..errors import ShapeError
from .ops_mathematic import broadcast_to, exp, quiet, reshape, shape_with_ones, summation

__all__ = [
    "LogSoftmax",
    "LogSumExp",
    "logsoftmax",
    "logsumexp",
]


class LogSoftmax(TensorOp):
    name = "logsoftmax"
    reads_inputs = False

    def compute(self, Z: NDArray) -> NDArray:
        if Z.ndim != 2:
            raise ShapeError(f"logsoftmax: got shape {Z.shape}, wanted 2 axes (rows, classes)")
        ### BEGIN YOUR SOLUTION hw2/logsoftmax_forward
        shifted = Z - array_api.broadcast_to(array_api.max(Z, axis=1, keepdims=True), Z.shape)
        total = array_api.sum(array_api.exp(shifted), axis=1, keepdims=True)
        return shifted - array_api.broadcast_to(array_api.log(total), Z.shape)
        ### END YOUR SOLUTION hw2/logsoftmax_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/logsoftmax_backward
        rows = (node.shape[0], 1)
        total = broadcast_to(reshape(summation(out_grad, 1), rows), node.shape)
        return out_grad - exp(node) * total
        ### END YOUR SOLUTION hw2/logsoftmax_backward


def logsoftmax(a: Tensor) -> Tensor:
    """Log of the softmax of each row.  (N, C) → (N, C)."""
    return LogSoftmax()(a)


class LogSumExp(TensorOp):
    name = "logsumexp"

    def __init__(self, axes: int | tuple[int, ...] | None = None) -> None:
        self.axes = axes

    @quiet  # nothing but -inf adds up to 0, whose logarithm is -inf
    def compute(self, Z: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw2/logsumexp_forward hw4/nd_logsumexp
        axes = tuple(self.axes) if isinstance(self.axes, list) else self.axes
        largest = finite_or_zero(array_api.max(Z, axis=axes, keepdims=True))
        total = array_api.sum(array_api.exp(Z - array_api.broadcast_to(largest, Z.shape)), axis=axes)
        return array_api.log(total) + array_api.reshape(largest, total.shape)
        ### END YOUR SOLUTION hw2/logsumexp_forward hw4/nd_logsumexp

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/logsumexp_backward
        Z = node.inputs[0]
        with_ones = shape_with_ones(Z.shape, self.axes)
        grad, value = (broadcast_to(reshape(t, with_ones), Z.shape) for t in (out_grad, node))
        return grad * exp(Z - value)
        ### END YOUR SOLUTION hw2/logsumexp_backward


def logsumexp(a: Tensor, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """log Σ exp(a) over axes (all by default), which disappear.  (N, C) → (N,) for axes=1."""
    return LogSumExp(axes)(a)


def finite_or_zero(a: NDArray) -> NDArray:
    """a with its infinities replaced by 0: rows of nothing but -inf must not make inf - inf."""
    return array_api.where(array_api.abs(a) < float("inf"), a, array_api.zeros_like(a))
