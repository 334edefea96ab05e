"""Whole operations that only CUDA devices have kernels for: convolution as an implicit product."""

from __future__ import annotations

from .. import kernels
from ..autograd import Shape, Tensor
from ..backend_selection import NDArray
from .ops_mathematic import Conv, pair
from .whole_operations import CUDA_DEVICES, DTYPE, empty, has_kernel, run

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


for device in CUDA_DEVICES:
    kernels.register_operation(Conv, device, DTYPE, forward=conv_forward, backward=conv_backward)
