"""The bends of neural networks, written so that nothing overflows."""

from __future__ import annotations

import math
from typing import TypeVar

from ..autograd import ElementwiseOp, Tensor, TensorOp, check_tensors
from ..backend_selection import NDArray, array_api
from .ops_elementwise import clip
from .ops_mathematic import broadcast_to, reshape, shape_with_ones, summation, tanh

__all__ = ["Gelu", "Sigmoid", "Silu", "Softmax", "Softplus", "gelu", "relu6", "sigmoid", "silu", "softmax", "softplus"]

Numbers = TypeVar("Numbers", Tensor, NDArray)


class Sigmoid(ElementwiseOp):
    reads_inputs = False

    def compute(self, a: NDArray) -> NDArray:
        return _sigmoid(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * node * (1 - node)


def sigmoid(a: Tensor) -> Tensor:
    """1 / (1 + exp(-a))."""
    return Sigmoid()(a)


def _sigmoid(a: NDArray) -> NDArray:
    small = array_api.exp(-array_api.abs(a))  # exp of what is never above 0 cannot overflow
    return array_api.where(a >= 0, 1 / (1 + small), small / (1 + small))


class Softplus(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.maximum(a, 0) + _log1p(array_api.exp(-array_api.abs(a)))

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * sigmoid(node.inputs[0])


def softplus(a: Tensor) -> Tensor:
    """log(1 + exp(a)), a smooth relu."""
    return Softplus()(a)


def _log1p(a: NDArray) -> NDArray:
    """log(1 + a) for a ≥ 0, right to the last digits where a is tiny.  (Goldberg 1991, theorem 4)"""
    rounded = 1 + a
    lost = rounded == 1  # there log(1 + a) is a
    return array_api.where(lost, a, array_api.log(rounded) * a / array_api.where(lost, rounded, rounded - 1))


class Silu(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return a * _sigmoid(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.inputs[0]
        s = sigmoid(a)
        return out_grad * (s + a * s * (1 - s))


def silu(a: Tensor) -> Tensor:
    """a · sigmoid(a), also called swish.  (Elfwing et al. 2018)"""
    return Silu()(a)


class Gelu(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        near = array_api.minimum(array_api.maximum(a, -_FAR), _FAR)
        return a * (0.5 + 0.5 * array_api.tanh(_gelu_angle(near)))

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.inputs[0]
        near = clip(a, -_FAR, _FAR)
        t = tanh(_gelu_angle(near))
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * near * near)
        return out_grad * (0.5 + 0.5 * t + 0.5 * near * (1 - t * t) * slope)


_FAR = 10.0  # there the tanh in gelu is ±1 to the last digit, and the cube of a cannot overflow yet


def _gelu_angle(a: Numbers) -> Numbers:
    return math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a)


def gelu(a: Tensor) -> Tensor:
    """a · Φ(a), Φ the normal distribution, in the tanh form, which is off by less than 0.001.

    a/2 · (1 + tanh(√(2/π) (a + 0.044715 a³))).  (Hendrycks and Gimpel 2016, section 2)
    """
    return Gelu()(a)


def relu6(a: Tensor) -> Tensor:
    """a held between 0 and 6; the slope at both ends is taken as 0."""
    check_tensors("relu6", a)
    return clip(a, 0, 6)


class Softmax(TensorOp):
    reads_inputs = False

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def compute(self, a: NDArray) -> NDArray:
        largest = array_api.max(a, axis=self.axis, keepdims=True)
        powers = array_api.exp(a - array_api.broadcast_to(largest, a.shape))
        total = array_api.sum(powers, axis=self.axis, keepdims=True)
        return powers / array_api.broadcast_to(total, a.shape)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        weighted = out_grad * node
        total = reshape(summation(weighted, self.axis), shape_with_ones(node.shape, self.axis))
        return weighted - node * broadcast_to(total, node.shape)


def softmax(a: Tensor, axis: int = -1) -> Tensor:
    """exp(a) / Σ exp(a) along axis: positive numbers that sum to 1."""
    return Softmax(axis)(a)
