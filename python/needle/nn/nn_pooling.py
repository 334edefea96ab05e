"""Pooling: images made smaller by taking the largest or the mean entry of every window."""

from __future__ import annotations

from ..core import Tensor, ops
from .module import Module

Pair = int | tuple[int, int]


class MaxPool2d(Module):
    """The largest entry of every window.  (N, C, H, W) → (N, C, H', W'), H' = ⌊(H + 2 padding - K) / stride⌋ + 1.

    Windows lie side by side unless stride says otherwise; the margin never wins, whatever the entries.
    """

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        return ops.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(MaxPool2d):
    """The mean of every window, zeros of the margin counted.  Shapes as for MaxPool2d."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.avg_pool2d(x, self.kernel_size, self.stride, self.padding)
