"""Operators that stand for several: what a layer computes in one piece where a device has one kernel for it.

Each computes and differentiates by plain operators, too: that is what runs where there is no kernel, where a graph is
recorded through the gradient, and what the kernels are tested against.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd import Tensor, TensorOp
from ..backend_selection import NDArray, array_api
from ..init import one_hot
from .ops_logarithmic import logsoftmax
from .ops_mathematic import broadcast_to, exp, reshape, summation, transpose

__all__ = ["Affine", "BatchNorm", "CrossEntropy", "Dropout", "LayerNorm"]


class FusedOp(TensorOp):
    """An operator whose kernel leaves something to its backward pass."""

    saved: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # arrays would not help a reader


class Affine(FusedOp):
    """x W + b, for each row x.  (N, I), (I, O), (O,) or (1, O) → (N, O)."""

    reads_output = False

    def compute(self, x: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
        y = x @ weight
        return y + array_api.broadcast_to(array_api.reshape(bias, (1, y.shape[1])), y.shape)

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, bias = node.inputs
        to_bias = reshape(summation(out_grad, 0), bias.shape)
        return out_grad @ transpose(weight), transpose(x) @ out_grad, to_bias


class CrossEntropy(FusedOp):
    """log Σ exp(row) - row[label], for each row of logits.  (N, C) → (N,).  labels: int64 array (N,)."""

    reads_output = False

    def __init__(self, labels: NDArray) -> None:
        self.labels = labels

    def compute(self, logits: NDArray) -> NDArray:
        largest = array_api.max(logits, axis=1, keepdims=True)
        shifted = logits - array_api.broadcast_to(largest, logits.shape)
        total = array_api.log(array_api.sum(array_api.exp(shifted), axis=1))
        return total - array_api.sum(shifted * self._one_hot(logits).cached_data, axis=1)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        logits = node.inputs[0]
        difference = exp(logsoftmax(logits)) - self._one_hot(logits.cached_data)
        return difference * broadcast_to(reshape(out_grad, (-1, 1)), logits.shape)

    def _one_hot(self, logits: NDArray) -> Tensor:
        labels = Tensor.make_const(self.labels)
        return one_hot(logits.shape[1], labels, device=logits.device, dtype=logits.dtype)


class Dropout(FusedOp):
    """a / keep where uniform, an array of a's shape, is at most keep; elsewhere 0.  (Srivastava et al. 2014)"""

    reads_inputs = reads_output = False

    def __init__(self, uniform: NDArray, keep: float) -> None:
        self.uniform, self.keep = uniform, keep
        self.divisor = keep or math.inf  # keep = 0: nothing is left, and 0 / inf = 0

    def compute(self, a: NDArray) -> NDArray:
        return a * (self.uniform <= self.keep) / self.divisor

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * Tensor.make_const(self.uniform <= self.keep) / self.divisor


class LayerNorm(FusedOp):
    """(row - mean) / √(variance + eps) · weight + bias, for each row.  (N, C), (C,), (C,) → (N, C)."""

    reads_output = False

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def compute(self, a: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
        columns = a.shape[1]
        centred = a - array_api.broadcast_to(array_api.sum(a, axis=1, keepdims=True) / columns, a.shape)
        variance = array_api.sum(centred * centred, axis=1, keepdims=True) / columns
        normal = centred * array_api.broadcast_to((variance + self.eps) ** -0.5, a.shape)
        weight, bias = (array_api.broadcast_to(array_api.reshape(p, (1, columns)), a.shape) for p in (weight, bias))
        return normal * weight + bias

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, weight, _ = node.inputs
        shape, columns = a.shape, a.shape[1]

        def row_mean(x: Tensor) -> Tensor:
            return broadcast_to(reshape(summation(x, 1) / columns, (shape[0], 1)), shape)

        centred = a - row_mean(a)
        scale = (row_mean(centred * centred) + self.eps) ** -0.5
        normal = centred * scale
        paid = out_grad * broadcast_to(reshape(weight, (1, columns)), shape)
        to_a = scale * (paid - row_mean(paid) - normal * row_mean(paid * normal))
        return to_a, summation(out_grad * normal, 0), summation(out_grad, 0)


class BatchNorm(FusedOp):
    """(a - mean) / √(variance + eps) · weight + bias, for each channel.  (N, C, …), (C,), (C,) → (N, C, …).

    Once computed, `mixed` holds the running mean and variance with the observed ones mixed in.
    """

    reads_output = False
    mixed: Any = None

    def __init__(self, eps: float, momentum: float, running_mean: NDArray, running_var: NDArray) -> None:
        self.eps, self.momentum = eps, momentum
        self.running = running_mean, running_var

    def compute(self, a: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
        axes, channels = (0, *range(2, len(a.shape))), (1, a.shape[1]) + (1,) * (len(a.shape) - 2)
        count = a.size // a.shape[1]
        mean = array_api.sum(a, axis=axes, keepdims=True) / count
        centred = a - array_api.broadcast_to(mean, a.shape)
        variance = array_api.sum(centred * centred, axis=axes, keepdims=True) / count
        observed = (array_api.reshape(x, weight.shape) for x in (mean, variance))
        keep = 1 - self.momentum
        self.mixed = tuple(keep * old + self.momentum * new for old, new in zip(self.running, observed))
        scale = array_api.reshape(weight, channels) / (variance + self.eps) ** 0.5
        scale, shift = (array_api.broadcast_to(x, a.shape) for x in (scale, array_api.reshape(bias, channels)))
        return scale * centred + shift

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, weight, _ = node.inputs
        axes, channels = (0, *range(2, a.ndim)), (1, a.shape[1]) + (1,) * (a.ndim - 2)
        count = math.prod(a.shape) // a.shape[1]

        def stretched(x: Tensor) -> Tensor:
            return broadcast_to(reshape(x, channels), a.shape)

        def mean(x: Tensor) -> Tensor:
            return stretched(summation(x, axes) / count)

        centred = a - mean(a)
        scale = (mean(centred * centred) + self.eps) ** -0.5
        normal = centred * scale
        to_a = stretched(weight) * scale * (out_grad - mean(out_grad) - normal * mean(out_grad * normal))
        return to_a, summation(out_grad * normal, axes), summation(out_grad, axes)
