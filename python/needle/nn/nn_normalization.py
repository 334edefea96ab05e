"""Normalization beside the course's: over any trailing axes, and over groups of channels."""

from __future__ import annotations

import math
from typing import Any

from ..core import Tensor, init, ops
from ..errors import ArgumentError, ShapeError
from .module import Module, Parameter


class LayerNorm(Module):
    """The last axes, together, brought to mean 0 and variance 1, then scaled and shifted.  (…, *shape) → (…, *shape).

    weight and bias have the given shape, an extent or several.  (Ba, Kiros and Hinton 2016, eq. 4)
    """

    def __init__(
        self, shape: int | tuple[int, ...], eps: float = 1e-5, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps = eps
        self.weight = Parameter(init.ones(*self.shape, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(*self.shape, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        kept = x.ndim - len(self.shape)
        if kept < 0 or x.shape[kept:] != self.shape:
            raise ShapeError(f"layer_norm: got shape {x.shape}, wanted (…, {', '.join(map(str, self.shape))})")
        normal = normalized(x, tuple(range(kept, x.ndim)), self.eps)
        return _stretched(self.weight, x.shape) * normal + _stretched(self.bias, x.shape)


class GroupNorm(Module):
    """Groups of channels brought to mean 0 and variance 1, sample by sample.  (N, C, …) → (N, C, …).

    Then each channel is scaled by its weight (C,) and shifted by its bias (C,).  (Wu and He 2018)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(f"group_norm: {num_channels} channels cannot be shared out to {num_groups} groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter(init.ones(num_channels, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(num_channels, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(f"group_norm: got shape {x.shape}, wanted (N, {self.num_channels}, …)")
        groups = ops.reshape(x, (x.shape[0] * self.num_groups, math.prod(x.shape[1:]) // self.num_groups))
        normal = ops.reshape(normalized(groups, (1,), self.eps), x.shape)
        per_channel = (1, self.num_channels) + (1,) * (x.ndim - 2)
        weight, bias = (ops.broadcast_to(ops.reshape(p, per_channel), x.shape) for p in (self.weight, self.bias))
        return weight * normal + bias


def normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """(x - mean) / √(variance + eps), both taken over axes; the variance is the biased one."""
    centred = x - ops.broadcast_to(ops.mean(x, axes, keepdims=True), x.shape)
    var = ops.mean(centred * centred, axes, keepdims=True)
    return centred * ops.broadcast_to((var + eps) ** -0.5, x.shape)


def _stretched(parameter: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A parameter with the shape of the last axes, repeated along those before."""
    return ops.broadcast_to(ops.reshape(parameter, (1,) * (len(shape) - parameter.ndim) + parameter.shape), shape)
