"""Batch norm on the CPU: one pass for the statistics and one that writes, forward and backward."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Tensor
from ..backend_selection import NDArray
from .ops_fused import BatchNorm
from .whole_operations import empty

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # N C H W → N H W C, and back


def batch_norm_forward(op: BatchNorm, a: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
    run = kernels.device_kernel("batch_norm", a.device.name, a.dtype)
    if a.size == 0 or a.ndim < 2 or run is None:
        return NotImplemented
    last = channels_last(a)
    a = a.permute(LAST) if last else a.compact()
    out, mean, scale, *mixed = (empty(shape, a) for shape in (a.shape, *4 * (weight.shape,)))
    inputs, results = (a, weight, bias, *op.running), (out, mean, scale, *mixed)
    run(*handles(*inputs), *handles(*results), *extents(a, last), op.eps, op.momentum)
    op.saved, op.mixed = (last, mean, scale), tuple(mixed)
    return out.permute(FIRST) if last else out


def batch_norm_backward(op: BatchNorm, out_grad: Tensor, node: Tensor) -> Any:
    a, weight, _ = (x.cached_data for x in node.inputs)
    run = kernels.device_kernel("batch_norm_backward", a.device.name, a.dtype)
    if op.saved is None or run is None:
        return NotImplemented
    last, mean, scale = op.saved
    a, grad = (x.permute(LAST) if last else x for x in (a, out_grad.cached_data))
    results = to_a, to_weight, to_bias = empty(a.shape, a), empty(weight.shape, a), empty(weight.shape, a)
    run(*handles(a, weight, mean, scale, grad), *handles(*results), *extents(a, last))
    return tuple(map(Tensor.make_const, (to_a.permute(FIRST) if last else to_a, to_weight, to_bias)))


def channels_last(a: NDArray) -> bool:
    """Whether images (N, C, H, W) lie in memory as N H W C."""
    return a.ndim == 4 and a.permute(LAST).is_compact()


def extents(a: NDArray, last: bool) -> tuple[int, int]:
    """How many elements come before an array's channels and behind them."""
    channels = a.shape[-1] if last else a.shape[1]
    outer = a.size // channels if last else a.shape[0]
    return outer, a.size // (outer * channels)


def handles(*arrays: NDArray) -> list[Any]:
    return [a.compact()._handle for a in arrays]


for dtype in ("float32", "float64"):
    kernels.register_operation(BatchNorm, "cpu", dtype, forward=batch_norm_forward, backward=batch_norm_backward)
