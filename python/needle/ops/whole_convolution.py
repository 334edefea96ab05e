"""Whole operations of convolution on the CPU: implicit products, forward and backward, for images in any layout."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Shape, Tensor
from ..backend_selection import NDArray
from .ops_convolution import Convolution
from .ops_mathematic import Conv, pair
from .whole_operations import empty

FLOATS = ("float32", "float64")

Grads = tuple[Tensor | None, ...]


def conv_forward(op: Conv, images: NDArray, kernel: NDArray) -> NDArray:
    return forward(settings(op), images, kernel)


def conv_backward(op: Conv, out_grad: Tensor, node: Tensor) -> Grads:
    """What Conv.gradient gives; None for an input that requires no gradient."""
    return backward(settings(op), out_grad.cached_data, node.inputs)


def convolution_forward(op: Convolution, images: NDArray, kernel: NDArray, *bias: NDArray) -> NDArray:
    if images.ndim != 4:
        return NotImplemented
    out = forward(settings(op), channels_last(op, images), kernel, *bias)
    return out if out is NotImplemented else channels_first(op, out)


def convolution_backward(op: Convolution, out_grad: Tensor, node: Tensor) -> Grads:
    return backward(settings(op), channels_last(op, out_grad.cached_data), node.inputs, op)


def settings(op: Conv | Convolution) -> tuple:
    """(stride, padding, dilation, groups) as the kernels take them."""
    stride, dilation = op.stride, getattr(op, "dilation", 1)
    return (stride, stride), pair(op.padding), (dilation, dilation), getattr(op, "groups", 1)


def channels_last(op: Any, a: NDArray) -> NDArray:
    """N C H W → N H W C where op has its channels first: a view."""
    return a.permute((0, 2, 3, 1)) if op.channels_first else a


def channels_first(op: Any, a: NDArray) -> NDArray:
    """And back."""
    return a.permute((0, 3, 1, 2)) if op.channels_first else a


# ---- on images (N, H, W, C) ------------------------------------------------------------------------------------------


def forward(how: tuple, images: NDArray, kernel: NDArray, bias: NDArray | None = None) -> NDArray:
    shape = result_shape(how, images.shape, kernel.shape)
    run = kernels.device_kernel("convolution", images.device.name, images.dtype)
    if shape is None or run is None or not alike(images, kernel, *([] if bias is None else [bias])):
        return NotImplemented
    out = empty(shape, images)
    handle, *view = seen(images)
    kernel_handle, bias_handle = (None if x is None else x.compact()._handle for x in (kernel, bias))
    run(handle, kernel_handle, bias_handle, out._handle, images.shape, *view, kernel.shape, *how, False)
    return out


def backward(how: tuple, grad: NDArray, inputs: Any, op: Any = None) -> Grads:
    """The gradients of images, kernel and, where there is one, bias."""
    images, kernel, *bias = (x.cached_data for x in inputs)
    wanted = [x.requires_grad for x in inputs]
    pixels = images if op is None else channels_last(op, images)
    if result_shape(how, pixels.shape, kernel.shape) != grad.shape or not alike(grad, images, kernel, *bias):
        return NotImplemented
    if kernels.device_kernel("convolution_to_images", grad.device.name, grad.dtype) is None:
        return NotImplemented
    to_images = to_images_of(how, grad, pixels.shape, kernel) if wanted[0] else None
    if to_images is not None and op is not None:
        to_images = channels_first(op, to_images)
    to_kernel, *to_bias = to_kernel_of(how, grad, pixels, kernel.shape, *bias) if any(wanted[1:]) else [None] * 2
    grads = (to_images, to_kernel, *to_bias)[: len(inputs)]
    return tuple(Tensor.make_const(x) if x is not None and asked else None for x, asked in zip(grads, wanted))


def to_images_of(how: tuple, grad: NDArray, images_shape: Shape, kernel: NDArray) -> NDArray:
    out = empty(images_shape, grad)
    run: Any = kernels.device_kernel("convolution_to_images", grad.device.name, grad.dtype)
    handle, *view = seen(grad)
    run(handle, kernel.compact()._handle, out._handle, *view, images_shape, kernel.shape, *how)
    return out


def to_kernel_of(
    how: tuple, grad: NDArray, images: NDArray, kernel_shape: Shape, bias: NDArray | None = None
) -> list[NDArray | None]:
    out, bias_out = empty(kernel_shape, grad), None if bias is None else empty(bias.shape, grad)
    run: Any = kernels.device_kernel("convolution_to_kernel", grad.device.name, grad.dtype)
    (handle, *view), (grad_handle, *grad_view) = seen(images), seen(grad)
    outs = out._handle, None if bias_out is None else bias_out._handle
    run(handle, grad_handle, *outs, images.shape, *view, *grad_view, kernel_shape, *how)
    return [out, bias_out]


def result_shape(how: tuple, images: Shape, kernel: Shape) -> Shape | None:
    """The shape of the result; None where the plain path should answer or complain."""
    if len(images) != 4 or len(kernel) != 4 or 0 in images or 0 in kernel or images[3] != kernel[2] * how[3]:
        return None
    stride, padding, dilation, _ = how
    room = [
        extent + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1 for axis, extent in enumerate(images[1:3])
    ]
    if min(room) < 0:
        return None
    return images[0], room[0] // stride[0] + 1, room[1] // stride[1] + 1, kernel[3]


def alike(*arrays: NDArray) -> bool:
    """Whether all have the dtype and the device of the first."""
    return all(a.dtype == arrays[0].dtype and a.device == arrays[0].device for a in arrays[1:])


def seen(a: NDArray) -> tuple[Any, Shape, int]:
    """An array as the kernels take a view: its memory, strides and offset; compact where elements repeat."""
    if 0 in a.strides or a.size > a._handle.size:
        a = a.compact()
    return a._handle, a.strides, a._offset


for dtype in FLOATS:
    kernels.register_operation(Conv, "cpu", dtype, forward=conv_forward, backward=conv_backward)
    kernels.register_operation(Convolution, "cpu", dtype, forward=convolution_forward, backward=convolution_backward)
