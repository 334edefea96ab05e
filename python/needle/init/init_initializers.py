"""First values of weights, scaled so that signals neither die nor explode over depth."""

from __future__ import annotations

import math
from typing import Any

from ..autograd import Tensor
from ..errors import ArgumentError, named
from .init_basic import rand, randn


@named
def xavier_uniform(fan_in: int, fan_out: int, gain: float = 1.0, **kwargs: Any) -> Tensor:
    """U(-a, a), a = gain √(6 / (fan_in + fan_out)).  (Glorot and Bengio 2010, eq. 16)"""
    ### BEGIN YOUR SOLUTION hw2/xavier_uniform
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return rand(fan_in, fan_out, low=-bound, high=bound, **kwargs)
    ### END YOUR SOLUTION hw2/xavier_uniform


@named
def xavier_normal(fan_in: int, fan_out: int, gain: float = 1.0, **kwargs: Any) -> Tensor:
    """N(0, σ²), σ = gain √(2 / (fan_in + fan_out)).  (Glorot and Bengio 2010, eq. 12)"""
    ### BEGIN YOUR SOLUTION hw2/xavier_normal
    std = gain * math.sqrt(2 / (fan_in + fan_out))
    return randn(fan_in, fan_out, std=std, **kwargs)
    ### END YOUR SOLUTION hw2/xavier_normal


@named
def kaiming_uniform(
    fan_in: int, fan_out: int, shape: tuple[int, ...] | None = None, nonlinearity: str = "relu", **kwargs: Any
) -> Tensor:
    """U(-b, b), b = √2 √(3 / fan_in), of shape (fan_in, fan_out) or as given.  (He et al. 2015, eq. 10)"""
    if isinstance(shape, str):  # where it is given by place, the shape is left out
        shape, nonlinearity = None, shape
    _check_relu("kaiming_uniform", nonlinearity)
    ### BEGIN YOUR SOLUTION hw2/kaiming_uniform hw4/kaiming_uniform
    bound = math.sqrt(2) * math.sqrt(3 / fan_in)
    return rand(*(shape or (fan_in, fan_out)), low=-bound, high=bound, **kwargs)
    ### END YOUR SOLUTION hw2/kaiming_uniform hw4/kaiming_uniform


@named
def kaiming_normal(fan_in: int, fan_out: int, nonlinearity: str = "relu", **kwargs: Any) -> Tensor:
    """N(0, σ²), σ = √2 / √fan_in.  (He et al. 2015, eq. 10)"""
    _check_relu("kaiming_normal", nonlinearity)
    ### BEGIN YOUR SOLUTION hw2/kaiming_normal
    return randn(fan_in, fan_out, std=math.sqrt(2) / math.sqrt(fan_in), **kwargs)
    ### END YOUR SOLUTION hw2/kaiming_normal


def _check_relu(name: str, nonlinearity: str) -> None:
    if nonlinearity != "relu":
        raise ArgumentError(f"{name}: nonlinearity {nonlinearity!r}, wanted 'relu'")
