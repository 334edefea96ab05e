"""Convolution as a layer."""

from __future__ import annotations

import math
from typing import Any

from ..core import Tensor, init, ops
from ..errors import ArgumentError, ShapeError
from .module import Module, Parameter


class Conv(Module):
    """Slide square kernels over images.  (N, Cin, H, W) → (N, Cout, ⌈H / stride⌉, ⌈W / stride⌉).

    weight has shape (K, K, Cin, Cout); bias has shape (Cout,), or is None.  Zeros around the image keep its size at
    stride 1: K // 2 on each side for an odd K; for an even one, one zero less above and left than below and right.
    A kernel_size or stride given as a tuple counts by its first entry.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        bias: bool = True,
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _first("kernel_size", kernel_size)
        self.stride = _first("stride", stride)
        ### BEGIN YOUR SOLUTION hw4/nn_conv_init
        window = self.kernel_size**2
        shape = (self.kernel_size, self.kernel_size, in_channels, out_channels)
        self.weight = Parameter(
            init.kaiming_uniform(in_channels * window, out_channels * window, shape=shape, device=device, dtype=dtype)
        )
        self.bias = None
        if bias:
            bound = 1 / math.sqrt(in_channels * window)
            self.bias = Parameter(init.rand(out_channels, low=-bound, high=bound, device=device, dtype=dtype))
        ### END YOUR SOLUTION hw4/nn_conv_init

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ShapeError(f"conv: got images of shape {x.shape}, wanted (N, {self.in_channels}, H, W)")
        ### BEGIN YOUR SOLUTION hw4/nn_conv_forward
        pixels, padding = x.transpose((1, 2)).transpose((2, 3)), self.kernel_size // 2  # N C H W → N H W C
        if self.kernel_size % 2 == 0:
            pixels, padding = ops.pad(pixels, ((0, 0), *2 * ((padding - 1, padding),), (0, 0))), 0
        y = ops.conv(pixels, self.weight, stride=self.stride, padding=padding)
        if self.bias is not None:
            y = y + ops.broadcast_to(ops.reshape(self.bias, (1, 1, 1, self.out_channels)), y.shape)
        return y.transpose((2, 3)).transpose((1, 2))
        ### END YOUR SOLUTION hw4/nn_conv_forward


def _first(name: str, size: int | tuple[int, ...]) -> int:
    size = size[0] if isinstance(size, (tuple, list)) and size else size
    if not isinstance(size, int) or size < 1:
        raise ArgumentError(f"conv: {name} {size!r}, wanted a whole number from 1 on")
    return size
