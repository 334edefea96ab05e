"""Gradients cut to a bound, so that one bad batch cannot throw the parameters far away."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..core import Tensor, no_grad, ops
from ..errors import ArgumentError, named

# >>> never
# isort: split
from ..core import BACKEND, kernels

# <<< never


@named
@no_grad()
def clip_grad_norm_(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients by one factor so that their common L2 norm is at most max_norm; returns the norm they had.

    Parameters without a gradient are passed over.  (Pascanu, Mikolov and Bengio 2013, algorithm 1)
    """
    if not max_norm > 0:
        raise ArgumentError(f"clip_grad_norm: max_norm = {max_norm}, wanted a positive number")
    with_grad = [p for p in params if p.grad is not None]
    norm = math.sqrt(sum(_sum_of_squares(p.grad.data) for p in with_grad))
    if norm > max_norm:
        for p in with_grad:
            p.grad = p.grad.data * (max_norm / norm)
    return norm


def _sum_of_squares(grad: Tensor) -> float:
    # >>> never
    name = "sum_of_squares"  # one pass, in double, where the library's kernels run
    kernel = kernels.device_kernel(name, grad.device.name, grad.dtype) if BACKEND == "nd" else None
    if kernel is not None and kernels.mode() == "fast":
        return kernel([grad.realize_cached_data().compact()._handle])
    # <<< never
    return float(ops.summation(grad * grad))


@named
@no_grad()
def clip_grad_value_(params: Iterable[Tensor], max_value: float) -> None:
    """Cut every entry of every gradient to lie between -max_value and max_value."""
    if not max_value > 0:
        raise ArgumentError(f"clip_grad_value: max_value = {max_value}, wanted a positive number")
    for p in params:
        if p.grad is not None:
            p.grad = ops.clip(p.grad.data, -max_value, max_value)
