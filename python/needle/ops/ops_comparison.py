"""Questions about numbers: the answers are constants of dtype bool, through which no gradient flows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from ..autograd import Tensor, check_tensors
from ..backend_selection import NDArray, array_api
from ..errors import ArgumentTypeError, ShapeError, describe
from .ops_elementwise import constant_like

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "not_equal",
]


def less(a: Tensor, b: Any) -> Tensor:
    """a < b, entry by entry, as bool; b may be a number or of any shape that broadcasts."""
    return _compared("less", a, b, operator.lt)


def less_equal(a: Tensor, b: Any) -> Tensor:
    """a <= b, entry by entry, as bool."""
    return _compared("less_equal", a, b, operator.le)


def greater(a: Tensor, b: Any) -> Tensor:
    """a > b, entry by entry, as bool."""
    return _compared("greater", a, b, operator.gt)


def greater_equal(a: Tensor, b: Any) -> Tensor:
    """a >= b, entry by entry, as bool."""
    return _compared("greater_equal", a, b, operator.ge)


def equal(a: Tensor, b: Any) -> Tensor:
    """a == b, entry by entry, as bool.  (Between tensors, `==` itself asks whether they are the same object.)"""
    return _compared("equal", a, b, operator.eq)


def not_equal(a: Tensor, b: Any) -> Tensor:
    """a != b, entry by entry, as bool."""
    return _compared("not_equal", a, b, operator.ne)


def logical_and(a: Tensor, b: Any) -> Tensor:
    """True where both are; a number counts as true unless it is 0."""
    return _compared("logical_and", a, b, lambda x, y: _truth(x) * _truth(y))


def logical_or(a: Tensor, b: Any) -> Tensor:
    """True where at least one is."""
    return _compared("logical_or", a, b, lambda x, y: _truth(x) + _truth(y))


def logical_not(a: Tensor) -> Tensor:
    """True where a is 0 or False."""
    return _asked("logical_not", a, lambda x: x == 0)


def isnan(a: Tensor) -> Tensor:
    """True where a is not a number."""
    return _asked("isnan", a, lambda x: x != x)


def isfinite(a: Tensor) -> Tensor:
    """True where a is neither infinite nor NaN."""
    return _asked("isfinite", a, lambda x: x * 0 == 0)  # inf · 0 and NaN · 0 are NaN


def _compared(name: str, a: Any, b: Any, question: Callable) -> Tensor:
    if not isinstance(a, Tensor):
        a, b, question = b, a, lambda x, y, asked=question: asked(y, x)
    x, y = _of_one_shape(name, a, b)
    return Tensor.make_const(question(x, y).astype("bool"))


def _asked(name: str, a: Any, question: Callable) -> Tensor:
    check_tensors(name, a)
    with np.errstate(invalid="ignore"):
        return Tensor.make_const(question(a.realize_cached_data()).astype("bool"))


def _of_one_shape(name: str, a: Any, b: Any) -> tuple[NDArray, Any]:
    """The array of a, and b as a number or as an array of the same shape."""
    if not isinstance(a, Tensor):
        raise ArgumentTypeError(f"{name}: got {describe(a)} and {describe(b)}, wanted a Tensor")
    x = a.realize_cached_data()
    if isinstance(b, complex):
        raise ArgumentTypeError(f"{name}: got {describe(b)}, wanted a real number")
    if isinstance(b, (Number, np.generic)):
        return x, b
    if not isinstance(b, Tensor):
        b = constant_like(name, b, a)
    y = b.realize_cached_data()
    if x.shape == y.shape:
        return x, y
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ShapeError(f"{name}: shapes {x.shape} and {y.shape} do not broadcast") from None
    return array_api.broadcast_to(x, shape), array_api.broadcast_to(y, shape)


def _truth(x: Any) -> Any:
    return x != 0 if not isinstance(x, (Number, np.generic)) else bool(x)
