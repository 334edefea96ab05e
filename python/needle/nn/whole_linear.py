"""Linear on the CPU: one operator, whose kernel adds the bias while the product is still in registers."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, kernels, ops
from ..ops.ops_fused import Affine
from .nn_basic import Linear


def linear(module: Linear, x: Tensor) -> Any:
    """x W + b, all leading axes as rows of one product."""
    weight, bias = module.weight, module.bias
    if bias is None or not x.shape or x.shape[-1] != module.in_features or not _fit(x, weight, bias):
        return NotImplemented
    rows = x if x.ndim == 2 else ops.reshape(x, (-1, module.in_features))
    y = Affine()(rows, weight, bias)
    return y if x.ndim == 2 else ops.reshape(y, (*x.shape[:-1], module.out_features))


def _fit(x: Tensor, *parameters: Tensor) -> bool:
    """Whether the parameters are of the input's kind, and there is something to multiply."""
    return x.size > 0 and all(p.dtype == x.dtype and p.device == x.device for p in parameters)


for dtype in ("float32", "float64"):
    kernels.register_operation(Linear, "cpu", dtype, forward=linear)
