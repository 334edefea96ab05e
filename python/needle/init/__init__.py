"""Tensors from nothing."""

from .init_basic import constant, one_hot, ones, ones_like, rand, randb, randn, zeros, zeros_like
from .init_creation import arange, empty, eye, from_numpy, full, linspace, seed, tensor
from .init_initializers import kaiming_normal, kaiming_uniform, xavier_normal, xavier_uniform

__all__ = [
    "arange",
    "constant",
    "empty",
    "eye",
    "from_numpy",
    "full",
    "kaiming_normal",
    "kaiming_uniform",
    "linspace",
    "one_hot",
    "ones",
    "ones_like",
    "rand",
    "randb",
    "randn",
    "seed",
    "tensor",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
    "zeros_like",
]
