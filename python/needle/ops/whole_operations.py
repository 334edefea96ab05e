"""Whole operations in float32, on the CPU and on CUDA devices: passes that run as one kernel, or as a few.

The registry offers them before an operator's own `compute` or `gradient`; where one does not fit it declines, and the
plain path runs.  Backward passes are asked only while nothing records, so they work on arrays.
"""

from __future__ import annotations

import math
from typing import Any

from .. import kernels
from ..autograd import Shape, Tensor
from ..backend_selection import NDArray, array_api
from ..errors import ArgumentError
from .ops_activation import Softmax
from .ops_fused import CrossEntropy, LayerNorm
from .ops_logarithmic import LogSoftmax, LogSumExp

CUDA_DEVICES = ("cuda", "cuda_emu")
DTYPE = "float32"

# ---- functions of rows: one pass over memory instead of one for each maximum, difference, exponential and sum --------


def logsumexp_forward(op: LogSumExp, a: NDArray) -> NDArray:
    columns = reduced_columns(a.shape, op.axes)
    if not columns or not has_kernel("logsumexp", a):
        return NotImplemented
    out = empty((1,) if op.axes is None else a.shape[: -len(columns)], a)
    run("logsumexp", a, out, math.prod(columns))
    return out


def logsumexp_backward(op: LogSumExp, out_grad: Tensor, node: Tensor) -> Tensor:
    a = node.inputs[0].cached_data
    columns = reduced_columns(a.shape, op.axes)
    if not columns or not has_kernel("logsumexp_backward", a):
        return NotImplemented
    out = empty(a.shape, a)
    run("logsumexp_backward", a, node.cached_data, out_grad.cached_data, out, math.prod(columns))
    return Tensor.make_const(out)


def logsoftmax_forward(op: LogSoftmax, a: NDArray) -> NDArray:
    if a.ndim != 2 or a.size == 0 or not has_kernel("logsoftmax", a):
        return NotImplemented
    out = empty(a.shape, a)
    run("logsoftmax", a, out, a.shape[1])
    return out


def logsoftmax_backward(op: LogSoftmax, out_grad: Tensor, node: Tensor) -> Tensor:
    y = node.cached_data
    if y.size == 0 or not has_kernel("logsoftmax_backward", y):
        return NotImplemented
    out = empty(y.shape, y)
    run("logsoftmax_backward", y, out_grad.cached_data, out, y.shape[1])
    return Tensor.make_const(out)


def softmax_forward(op: Softmax, a: NDArray) -> NDArray:
    if not reduced_columns(a.shape, op.axis) or not has_kernel("softmax", a):
        return NotImplemented
    out = empty(a.shape, a)
    run("softmax", a, out, a.shape[-1])
    return out


def softmax_backward(op: Softmax, out_grad: Tensor, node: Tensor) -> Tensor:
    y = node.cached_data
    if not reduced_columns(y.shape, op.axis) or not has_kernel("softmax_backward", y):
        return NotImplemented
    out = empty(y.shape, y)
    run("softmax_backward", y, out_grad.cached_data, out, y.shape[-1])
    return Tensor.make_const(out)


def cross_entropy_forward(op: CrossEntropy, logits: NDArray) -> NDArray:
    if logits.size == 0 or not has_kernel("cross_entropy", logits):
        return NotImplemented
    out, lse = empty(logits.shape[:1], logits), empty(logits.shape[:1], logits)
    try:
        run("cross_entropy", logits, op.labels, out, lse, logits.shape[1])
    except IndexError as error:
        raise ArgumentError(str(error)) from None  # what the plain path raises
    op.saved = lse
    return out


def cross_entropy_backward(op: CrossEntropy, out_grad: Tensor, node: Tensor) -> Tensor:
    if op.saved is None or not has_kernel("cross_entropy_backward", op.saved):
        return NotImplemented
    logits = node.inputs[0].cached_data
    out = empty(logits.shape, logits)
    run("cross_entropy_backward", logits, op.labels, op.saved, out_grad.cached_data, out, logits.shape[1])
    return Tensor.make_const(out)


def layer_norm_forward(op: LayerNorm, a: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
    if a.size == 0 or not has_kernel("layer_norm", a):
        return NotImplemented
    out, mean, scale = empty(a.shape, a), empty(a.shape[:1], a), empty(a.shape[:1], a)
    run("layer_norm", a, weight, bias, out, mean, scale, op.eps)
    op.saved = mean, scale
    return out


def layer_norm_backward(op: LayerNorm, out_grad: Tensor, node: Tensor) -> Any:
    if op.saved is None or not has_kernel("layer_norm_backward", op.saved[0]):
        return NotImplemented
    a, weight, _ = (x.cached_data for x in node.inputs)
    results = empty(a.shape, a), empty(weight.shape, a), empty(weight.shape, a)
    run("layer_norm_backward", a, weight, *op.saved, out_grad.cached_data, *results)
    return tuple(Tensor.make_const(x) for x in results)


def reduced_columns(shape: Shape, axes: Any) -> Shape:
    """The extents of the reduced axes if they are the last ones, so that rows lie together; () if not, or if empty."""
    if math.prod(shape) == 0 or not shape:
        return ()
    axes = range(len(shape)) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        return ()  # let the plain path complain
    reduced = sorted(axis % len(shape) for axis in axes)
    return shape[reduced[0] :] if reduced and reduced == list(range(reduced[0], len(shape))) else ()


def has_kernel(name: str, like: NDArray) -> bool:
    """Whether the device of an array has a kernel of that name."""
    return kernels.device_kernel(name, like.device.name, DTYPE) is not None


def run(name: str, *arguments: Any) -> None:
    """Call a device kernel on the memory of arrays, compact copies where they are not compact themselves."""
    kernel: Any = kernels.device_kernel(name, arguments[0].device.name, DTYPE)
    kernel(*(a.compact()._handle if isinstance(a, NDArray) else a for a in arguments))


def empty(shape: Shape, like: NDArray) -> NDArray:
    return array_api.empty(shape, dtype=like.dtype, device=like.device)


for device in ("cpu", *CUDA_DEVICES):
    kernels.register_operation(LogSumExp, device, DTYPE, forward=logsumexp_forward, backward=logsumexp_backward)
    kernels.register_operation(LogSoftmax, device, DTYPE, forward=logsoftmax_forward, backward=logsoftmax_backward)
    kernels.register_operation(Softmax, device, DTYPE, forward=softmax_forward, backward=softmax_backward)
    kernels.register_operation(LayerNorm, device, DTYPE, forward=layer_norm_forward, backward=layer_norm_backward)
    kernels.register_operation(
        CrossEntropy, device, DTYPE, forward=cross_entropy_forward, backward=cross_entropy_backward
    )
