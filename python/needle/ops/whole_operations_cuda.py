"""Whole operations that only CUDA devices have kernels for: convolution as an implicit product, and fused operators."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Shape, Tensor
from ..backend_selection import NDArray
from ..errors import ArgumentError
from .ops_activation import Softmax
from .ops_fused import CrossEntropy, LayerNorm
from .ops_mathematic import Conv, pair
from .whole_operations import CUDA_DEVICES, DTYPE, empty, has_kernel, reduced_columns, run

LARGEST = 2**31 - 1  # elements that the convolution kernels can count

# ---- convolution -----------------------------------------------------------------------------------------------------


def conv_forward(op: Conv, images: NDArray, kernel: NDArray) -> NDArray:
    out_shape = conv_shape(op, images.shape, kernel.shape)
    if out_shape is None or not has_kernel("conv_forward", images):
        return NotImplemented
    out = empty(out_shape, images)
    run("conv_forward", images, kernel, out, images.shape, kernel.shape, op.stride, pair(op.padding))
    return out


def conv_backward(op: Conv, out_grad: Tensor, node: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What Conv.gradient gives; None for an input that requires no gradient."""
    images, kernel = (x.cached_data for x in node.inputs)
    grad = out_grad.cached_data
    if conv_shape(op, images.shape, kernel.shape) is None or not has_kernel("conv_to_images", grad):
        return NotImplemented
    how = (images.shape, kernel.shape, op.stride, pair(op.padding))
    to_images, to_kernel = (
        empty(x.shape, x) if t.requires_grad else None for x, t in zip((images, kernel), node.inputs)
    )
    if to_images is not None:
        run("conv_to_images", grad, kernel, to_images, *how)
    if to_kernel is not None:
        run("conv_to_kernel", images, grad, to_kernel, *how)
    return tuple(None if x is None else Tensor.make_const(x) for x in (to_images, to_kernel))  # type: ignore[return-value]


def conv_shape(op: Conv, images: Shape, kernel: Shape) -> Shape | None:
    """The shape of the result; None where the plain path should complain, or sizes are beyond the kernels."""
    if len(images) != 4 or len(kernel) != 4 or images[3] != kernel[2] or 0 in (*images, *kernel):
        return None
    (n, height, width, channels), (kh, kw, _, filters), (ph, pw) = images, kernel, pair(op.padding)
    rows, columns = (height + 2 * ph - kh) // op.stride + 1, (width + 2 * pw - kw) // op.stride + 1
    if height + 2 * ph < kh or width + 2 * pw < kw:
        return None
    sizes = (n * height * width * channels, kh * kw * channels * filters, n * rows * columns * filters)
    return (n, rows, columns, filters) if max(*sizes, height + 2 * ph, width + 2 * pw) <= LARGEST else None


# ---- fused operators -------------------------------------------------------------------------------------------------


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


for device in CUDA_DEVICES:
    kernels.register_operation(Conv, device, DTYPE, forward=conv_forward, backward=conv_backward)
    kernels.register_operation(Softmax, device, DTYPE, forward=softmax_forward, backward=softmax_backward)
    kernels.register_operation(
        CrossEntropy, device, DTYPE, forward=cross_entropy_forward, backward=cross_entropy_backward
    )
    kernels.register_operation(LayerNorm, device, DTYPE, forward=layer_norm_forward, backward=layer_norm_backward)
