"""Convolution with dilation and groups, and pooling: composed of operators, so that no gradient is written twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Shape, Tensor, TensorOp, check_tensors, device_of
from ..backend_selection import NDArray, array_api, as_strided
from ..errors import ArgumentError, ShapeError, named
from .ops_mathematic import conv, dilate, pair
from .ops_reduction import max, mean
from .ops_shape import concatenate, pad

# >>> never
# isort: split
from .ops_mathematic import Conv, summation
from .ops_shape import permute

# <<< never

__all__ = ["avg_pool2d", "conv2d", "max_pool2d"]

Pair = int | tuple[int, int]


@named
def conv2d(a: Tensor, weight: Tensor, stride: int = 1, padding: Pair = 0, dilation: int = 1, groups: int = 1) -> Tensor:
    """Convolution: (N, H, W, Cin), (K, K, Cin / groups, Cout) → (N, H', W', Cout).

    Entries of the kernel stand `dilation` apart; each group of output channels sees its own group of input channels.
    H' = ⌊(H + 2 padding - dilation (K - 1) - 1) / stride⌋ + 1.
    """
    check_tensors("conv2d", a, weight)
    if not isinstance(dilation, int) or dilation < 1:
        raise ArgumentError(f"conv2d: dilation {dilation!r}, wanted a whole number ≥ 1")
    if len(a.shape) != 4 or len(weight.shape) != 4:
        raise ShapeError(f"conv2d: images {a.shape} and kernel {weight.shape}, wanted 4 axes each")
    c_in, c_out = a.shape[-1], weight.shape[-1]
    if groups < 1 or c_in % groups or c_out % groups or weight.shape[2] * groups != c_in:
        raise ShapeError(f"conv2d: images {a.shape} and kernel {weight.shape} do not fit {groups} groups of channels")
    # >>> never
    if dilation > 1 or groups > 1:
        return Convolution(stride, padding, dilation, groups)(a, weight)
    # <<< never
    return _composed(a, weight, stride, padding, dilation, groups)


def _composed(a: Tensor, weight: Tensor, stride: int, padding: Pair, dilation: int, groups: int) -> Tensor:
    """conv2d by operators of the course: zeros between the kernel's entries, and a convolution for each group."""
    weight = _dilated(weight, dilation)
    if groups == 1:
        return conv(a, weight, stride, padding)
    parts = zip(_channel_groups(a, groups), _channel_groups(weight, groups))
    return concatenate([conv(images, kernel, stride, padding) for images, kernel in parts], axis=-1)


def _dilated(weight: Tensor, dilation: int) -> Tensor:
    """The entries of a kernel `dilation` apart, zeros between them."""
    if dilation == 1:
        return weight
    height, width = (dilation * (extent - 1) + 1 for extent in weight.shape[:2])
    return dilate(weight, (0, 1), dilation - 1)[:height, :width]  # dilate leaves zeros behind the last entry


def _channel_groups(a: Tensor, groups: int) -> list[Tensor]:
    """The last axis in equal parts."""
    size = a.shape[-1] // groups
    return [a[..., start : start + size] for start in range(0, a.shape[-1], size)]


# >>> never
class Convolution(TensorOp):
    """Conv with dilation, groups and, if a third input comes, a bias (Cout,), as one operator.

    (N, H, W, Cin), (K, K, Cin / groups, Cout) → (N, H', W', Cout); with channels_first images and result have their
    channels on axis 1.
    """

    reads_output = False

    def __init__(
        self, stride: int, padding: Pair, dilation: int = 1, groups: int = 1, channels_first: bool = False
    ) -> None:
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.channels_first = channels_first

    def compute(self, a: NDArray, weight: NDArray, bias: NDArray | None = None) -> NDArray:
        images, kernel = Tensor.make_const(a), Tensor.make_const(weight)
        images = permute(images, (0, 2, 3, 1)) if self.channels_first else images
        out = _composed(images, kernel, self.stride, self.padding, self.dilation, self.groups).realize_cached_data()
        if bias is not None:
            out = out + array_api.broadcast_to(array_api.reshape(bias, (1, 1, 1, bias.shape[0])), out.shape)
        return array_api.transpose(out, (0, 3, 1, 2)) if self.channels_first else out

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, ...]:
        """Conv's own gradient, group by group."""
        images, kernel, *bias = node.inputs
        if self.channels_first:
            images, out_grad = (permute(x, (0, 2, 3, 1)) for x in (images, out_grad))
        conv, kernel = Conv(self.stride, self.padding), _dilated(kernel, self.dilation)
        parts = list(zip(*(_channel_groups(x, self.groups) for x in (out_grad, images, kernel))))
        to_images = concatenate([conv._image_gradient(*part) for part in parts], axis=-1)
        to_kernel = concatenate([conv._kernel_gradient(*part) for part in parts], axis=-1)
        to_images = permute(to_images, (0, 3, 1, 2)) if self.channels_first else to_images
        return to_images, to_kernel[:: self.dilation, :: self.dilation], *(summation(out_grad, (0, 1, 2)) for _ in bias)


# <<< never


@named
def max_pool2d(a: Tensor, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The largest entry of every window.  (N, C, H, W) → (N, C, H', W'), H' = ⌊(H + 2p - K) / s⌋ + 1.

    Windows lie side by side unless stride says otherwise.  The margin holds the smallest number there is, so that it
    never wins.  Entries that tie share the gradient.
    """
    kernel, steps, margin = _window("max_pool2d", a, kernel_size, stride, padding)
    return max(Windows(kernel, steps)(_with_margin(a, margin, _smallest(a.dtype))), (-2, -1))


@named
def avg_pool2d(a: Tensor, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The mean of every window, zeros in the margin counted.  Shapes as for max_pool2d."""
    kernel, steps, margin = _window("avg_pool2d", a, kernel_size, stride, padding)
    return mean(Windows(kernel, steps)(_with_margin(a, margin, 0)), (-2, -1))


def _window(name: str, a: Tensor, kernel_size: Pair, stride: Pair | None, padding: Pair) -> tuple[Shape, Shape, Shape]:
    check_tensors(name, a)
    kernel, margin = pair(kernel_size), pair(padding)
    steps = kernel if stride is None else pair(stride)
    if min(kernel + steps) < 1 or min(margin) < 0 or any(2 * m > k for m, k in zip(margin, kernel)):
        raise ArgumentError(
            f"{name}: kernel {kernel}, stride {steps}, padding {margin}; wanted stride ≥ 1, 0 ≤ padding ≤ kernel / 2"
        )
    if len(a.shape) != 4 or any(extent + 2 * m < k for extent, m, k in zip(a.shape[2:], margin, kernel)):
        raise ShapeError(f"{name}: window {kernel}, padding {margin}, on shape {a.shape}; wanted (N, C, H, W), H ≥ K")
    return kernel, steps, margin


def _with_margin(a: Tensor, margin: Shape, value: float) -> Tensor:
    pairs = ((0, 0), (0, 0), (margin[0], margin[0]), (margin[1], margin[1]))
    return pad(a, pairs, value) if any(margin) else a


def _smallest(dtype: Any) -> float:
    kind = np.dtype(dtype)
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min if kind.kind in "iu" else 0


class Windows(TensorOp):
    """Every window of every image.  (N, C, H, W) → (N, C, H', W', KH, KW): a view in which entries come repeatedly."""

    reads_inputs = reads_output = False

    def __init__(self, kernel: Shape, stride: Shape) -> None:
        self.kernel, self.stride = kernel, stride

    def compute(self, a: NDArray) -> NDArray:
        n, c, h, w = a.shape
        (kh, kw), (sh, sw) = self.kernel, self.stride
        shape = (n, c, (h - kh) // sh + 1, (w - kw) // sw + 1, kh, kw)
        return as_strided(a, shape, (c * h * w, h * w, sh * w, sw, w, 1))

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return FoldWindows(node.inputs[0].shape, self.kernel, self.stride)(out_grad)


class FoldWindows(TensorOp):
    """The adjoint of Windows: images to which every window is added at its place."""

    reads_inputs = reads_output = False

    def __init__(self, shape: Shape, kernel: Shape, stride: Shape) -> None:
        self.shape, self.kernel, self.stride = shape, kernel, stride

    def compute(self, a: NDArray) -> NDArray:
        out = device_of(a).zeros(*self.shape, dtype=a.dtype)
        (sh, sw), (rows, columns) = self.stride, a.shape[2:4]
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                part = array_api.reshape(a[:, :, :, :, i : i + 1, j : j + 1], a.shape[:4])
                places = (slice(None), slice(None), slice(i, i + sh * rows, sh), slice(j, j + sw * columns, sw))
                out[places] = out[places] + part
        return out

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return Windows(self.kernel, self.stride)(out_grad)
