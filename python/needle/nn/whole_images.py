"""Layers of images whose forward pass is one operator on the CPU: convolution with its bias, and batch norm."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, kernels, ops
from ..ops.ops_convolution import Convolution
from ..ops.ops_fused import BatchNorm
from .nn_basic import BatchNorm1d, BatchNorm2d
from .nn_conv import Conv


def conv(module: Conv, x: Tensor) -> Any:
    parameters = (module.weight,) if module.bias is None else (module.weight, module.bias)
    if x.ndim != 4 or x.shape[1] != module.in_channels or not _alike(x, *parameters):
        return NotImplemented
    padding = module.kernel_size // 2
    if module.kernel_size % 2 == 0:
        x, padding = ops.pad(x, ((0, 0), (0, 0), *2 * ((padding - 1, padding),))), 0
    return Convolution(module.stride, padding, channels_first=True)(x, *parameters)


def batch_norm(module: BatchNorm1d, x: Tensor) -> Any:
    """In training; in evaluation the plain path multiplies and adds."""
    axes = 4 if isinstance(module, BatchNorm2d) else 2
    running = module.running_mean, module.running_var
    if not module.training or x.ndim != axes or x.shape[1] != module.dim or x.size == 0:
        return NotImplemented
    if not _alike(x, module.weight, module.bias, *running):
        return NotImplemented
    op = BatchNorm(module.eps, module.momentum, *(t.realize_cached_data() for t in running))
    out = op(x, module.weight, module.bias)
    out.realize_cached_data()  # in lazy mode, too, the statistics are remembered now
    for old, new in zip(running, op.mixed):
        old.data = Tensor.make_const(new)
    return out


def _alike(x: Tensor, *parameters: Tensor) -> bool:
    return all(p.dtype == x.dtype and p.device == x.device for p in parameters)


for dtype in ("float32", "float64"):
    kernels.register_operation(Conv, "cpu", dtype, forward=conv)
    for layer in (BatchNorm1d, BatchNorm2d):
        kernels.register_operation(layer, "cpu", dtype, forward=batch_norm)
