"""Modules whose forward pass is one operator: fused ones in float32, and the sigmoid everywhere.

The registry offers them before a module's own `forward`; what they make is differentiated like anything else.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import Tensor, kernels, ops
from ..errors import ArgumentError
from ..ops import ops_fused
from ..ops.whole_operations import CUDA_DEVICES, DTYPE
from .module import Module
from .nn_basic import Dropout, LayerNorm1d, SoftmaxLoss
from .nn_losses import CrossEntropyLoss
from .nn_normalization import LayerNorm
from .nn_sequence import Sigmoid


def softmax_loss(module: Module, logits: Tensor, y: Tensor) -> Any:
    """The mean over rows of log Σ exp(row) - row[label], without a matrix of ones and zeros."""
    if logits.ndim != 2 or logits.size == 0 or y.shape != logits.shape[:1] or y.device != logits.device:
        return NotImplemented
    labels = y.realize_cached_data()
    if labels.dtype != "int64":
        labels = labels.astype("int64")
    try:
        losses = ops_fused.CrossEntropy(labels)(logits)
    except ArgumentError:
        return NotImplemented  # a label is no class: let the plain path complain
    return ops.summation(losses) / logits.shape[0]


def cross_entropy_loss(module: CrossEntropyLoss, logits: Tensor, y: Tensor) -> Any:
    return NotImplemented if module.label_smoothing else softmax_loss(module, logits, y)


def dropout(module: Dropout, x: Tensor) -> Any:
    """The mask that `init.randb` would draw, applied and scaled in one pass."""
    if not module.training or module.p == 0:  # nothing is dropped, so nothing is drawn
        return x
    keep = 1 - module.p
    return ops_fused.Dropout(x.device.rand(*x.shape), keep)(x)


def layer_norm_1d(module: LayerNorm1d, x: Tensor) -> Any:
    if x.ndim != 2 or x.shape[1] != module.dim or not _fits(module, x):
        return NotImplemented
    return ops_fused.LayerNorm(module.eps)(x, module.weight, module.bias)


def layer_norm(module: LayerNorm, x: Tensor) -> Any:
    """The normalised axes as one row each."""
    if not module.shape or x.shape[x.ndim - len(module.shape) :] != module.shape or not _fits(module, x):
        return NotImplemented
    columns = math.prod(module.shape)
    rows = ops.reshape(x, (x.size // columns, columns))
    weight, bias = (ops.reshape(p, (columns,)) for p in (module.weight, module.bias))
    return ops.reshape(ops_fused.LayerNorm(module.eps)(rows, weight, bias), x.shape)


def _fits(module: Any, x: Tensor) -> bool:
    """Whether the parameters are of the input's kind, and there is something to normalise."""
    return x.size > 0 and all(p.dtype == x.dtype and p.device == x.device for p in (module.weight, module.bias))


def sigmoid(module: Sigmoid, x: Tensor) -> Tensor:
    return ops.sigmoid(x)


for device in ("cpu", "cpu_numpy", *CUDA_DEVICES):
    for dtype in ("float32", "float64"):
        kernels.register_operation(Sigmoid, device, dtype, forward=sigmoid)

kernels.register_operation(Dropout, "cpu", DTYPE, forward=dropout)
for device in ("cpu", *CUDA_DEVICES):
    kernels.register_operation(SoftmaxLoss, device, DTYPE, forward=softmax_loss)
    kernels.register_operation(CrossEntropyLoss, device, DTYPE, forward=cross_entropy_loss)
    kernels.register_operation(LayerNorm1d, device, DTYPE, forward=layer_norm_1d)
    kernels.register_operation(LayerNorm, device, DTYPE, forward=layer_norm)
