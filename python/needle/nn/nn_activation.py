"""Activation functions as modules, beside the course's ReLU and Sigmoid."""

from __future__ import annotations

from ..core import Tensor, ops
from .module import Module


class Tanh(Module):
    """Hyperbolic tangent, entry by entry."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class GELU(Module):
    """x Φ(x), Φ the normal distribution function, in the tanh form.  (Hendrycks and Gimpel 2016)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.gelu(x)


class SiLU(Module):
    """x σ(x), entry by entry.  (Elfwing et al. 2018)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.silu(x)


class LeakyReLU(Module):
    """x where it is positive, else negative_slope x.  (Maas et al. 2013)"""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return ops.relu(x) - self.negative_slope * ops.relu(-x)


class Softplus(Module):
    """log(1 + eˣ), a smooth ReLU, without overflow."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.softplus(x)


class Softmax(Module):
    """Positive numbers that sum to 1 along an axis, by default the last."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmax(x, self.axis)
