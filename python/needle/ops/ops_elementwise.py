"""Functions of each entry on its own, beyond those of the course."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np

from ..autograd import ElementwiseOp, Tensor, check_tensors
from ..backend_selection import BACKEND, NDArray, array_api
from ..errors import ArgumentError, ArgumentTypeError, describe, named
from ..init import zeros_like
from .ops_mathematic import quiet

__all__ = [
    "Abs",
    "Clip",
    "Clone",
    "Cos",
    "FloorDivide",
    "Maximum",
    "Minimum",
    "Remainder",
    "ScalarDiv",
    "ScalarPower",
    "ScalarSub",
    "Sign",
    "Sin",
    "Sqrt",
    "Subtract",
    "Where",
    "abs",
    "clip",
    "clone",
    "cos",
    "floor_divide",
    "masked_fill",
    "maximum",
    "minimum",
    "remainder",
    "scalar_div",
    "scalar_power",
    "scalar_sub",
    "sign",
    "sin",
    "sqrt",
    "square",
    "subtract",
    "where",
]


class Subtract(ElementwiseOp):
    """a - b, where b has another type than a and -b might not fit into it; else it is a + (-b)."""

    reads_inputs = reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return a - b

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        return out_grad, -out_grad


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b."""
    check_tensors("subtract", a, b)
    return a - b


class ScalarSub(ElementwiseOp):
    reads_inputs = reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    def compute(self, a: NDArray) -> NDArray:
        return self.scalar - a

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return -out_grad


def scalar_sub(scalar: Any, a: Tensor) -> Tensor:
    """scalar - a, for a number."""
    return ScalarSub(scalar)(a)


class ScalarDiv(ElementwiseOp):
    reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    def compute(self, a: NDArray) -> NDArray:
        return self.scalar / a

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.inputs[0]
        return out_grad * -self.scalar / a / a


def scalar_div(scalar: Any, a: Tensor) -> Tensor:
    """scalar / a, for a number."""
    return ScalarDiv(scalar)(a)


class ScalarPower(ElementwiseOp):
    reads_inputs = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    @quiet
    def compute(self, a: NDArray) -> NDArray:
        return self.scalar**a

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        # 0ᵃ is 0 for all a > 0: its slope is 0, too, and not 0 · log 0
        log_of_scalar = math.log(self.scalar) if self.scalar > 0 else 0.0 if self.scalar == 0 else math.nan
        return out_grad * node * log_of_scalar


def scalar_power(scalar: Any, a: Tensor) -> Tensor:
    """scalar to the power of a, for a number."""
    return ScalarPower(scalar)(a)


class Abs(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.abs(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * sign(node.inputs[0])


def abs(a: Tensor) -> Tensor:
    """|a|; the slope at 0 is taken as 0."""
    return Abs()(a)


class Sign(ElementwiseOp):
    reads_inputs = reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.sign(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return zeros_like(out_grad)


def sign(a: Tensor) -> Tensor:
    """-1, 0 or 1, as a is below, at or above 0; its slope is 0."""
    return Sign()(a)


class Sqrt(ElementwiseOp):
    reads_inputs = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.sqrt(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * node**-1 * 0.5


def sqrt(a: Tensor) -> Tensor:
    """The square root; its slope at 0 is infinite."""
    return Sqrt()(a)


def square(a: Tensor) -> Tensor:
    """a²."""
    check_tensors("square", a)
    return a * a


class Sin(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.sin(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * cos(node.inputs[0])


def sin(a: Tensor) -> Tensor:
    """The sine of a, in radians."""
    return Sin()(a)


class Cos(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return array_api.cos(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return -out_grad * sin(node.inputs[0])


def cos(a: Tensor) -> Tensor:
    """The cosine of a, in radians."""
    return Cos()(a)


class Clip(ElementwiseOp):
    reads_output = False

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        if low is None and high is None:
            raise ArgumentError("clip: neither low nor high is given")
        for bound in (low, high):
            if bound is not None and not isinstance(bound, (int, float, np.number, np.bool_)):
                raise ArgumentTypeError(f"clip: got {describe(bound)} as a bound, wanted a number")
        if low is not None and high is not None and low > high:
            raise ArgumentError(f"clip: low {low} lies above high {high}")
        self.low, self.high = low, high

    def compute(self, a: NDArray) -> NDArray:
        a = a if self.low is None else array_api.maximum(a, self.low)
        return a if self.high is None else array_api.minimum(a, self.high)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.inputs[0].realize_cached_data()
        inside = 1 if self.low is None else a > self.low
        inside = inside if self.high is None else (a < self.high) * inside
        return out_grad * Tensor.make_const(inside)


def clip(a: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """a held between two numbers, either of which may be left out.  At and beyond a bound the slope is 0."""
    return Clip(low, high)(a)


class Clone(ElementwiseOp):
    reads_inputs = reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return own_copy(a)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad


def clone(a: Tensor) -> Tensor:
    """A copy with storage of its own, through which gradients flow."""
    return Clone()(a)


def own_copy(a: Any) -> Any:
    """An array's copy with storage of its own, which may be written."""
    return np.array(a) if BACKEND == "np" else a.copy()  # in np mode a may be a scalar of NumPy's: make it an array


class FloorDivide(ElementwiseOp):
    reads_inputs = reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return a // b

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        return zeros_like(out_grad), zeros_like(out_grad)


@named
def floor_divide(a: Any, b: Any) -> Tensor:
    """⌊a / b⌋: rounded down, so that -7 // 2 is -4; its slope is 0.  Either may be a number."""
    return FloorDivide()(*_tensors("floor_divide", a, b))


class Remainder(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return a % b

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        return out_grad, -out_grad * floor_divide(*node.inputs)


@named
def remainder(a: Any, b: Any) -> Tensor:
    """a - ⌊a / b⌋ b: it has the sign of b.  Either may be a number."""
    return Remainder()(*_tensors("remainder", a, b))


class Maximum(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return array_api.maximum(a, b)

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        to_a = out_grad * _share_of_larger(*node.inputs)
        return to_a, out_grad - to_a


@named
def maximum(a: Any, b: Any) -> Tensor:
    """The larger of a and b, entry by entry; equal entries share the gradient, half each.  Either may be a number."""
    return Maximum()(*_tensors("maximum", a, b))


class Minimum(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return array_api.minimum(a, b)

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        to_b = out_grad * _share_of_larger(*node.inputs)
        return out_grad - to_b, to_b


@named
def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of a and b, entry by entry; equal entries share the gradient, half each.  Either may be a number."""
    return Minimum()(*_tensors("minimum", a, b))


def _share_of_larger(a: Tensor, b: Tensor) -> Tensor:
    """1 where a is larger, ½ where both are equal, else 0: a constant."""
    x, y = a.realize_cached_data(), b.realize_cached_data()
    return Tensor.make_const((x > y).astype(x.dtype) + (x == y).astype(x.dtype) * 0.5)


class Where(ElementwiseOp):
    reads_output = False

    def compute(self, condition: NDArray, a: NDArray, b: NDArray) -> NDArray:
        return array_api.where(condition, a, b)

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        condition, nothing = node.inputs[0], zeros_like(out_grad)
        return zeros_like(condition), Where()(condition, out_grad, nothing), Where()(condition, nothing, out_grad)


@named
def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where condition holds, else b, entry by entry.

    The three are stretched to one shape; a or b may be a number.  What is not chosen gets a gradient of 0, even where
    it is infinite or NaN.
    """
    condition, a, b = _tensors("where", condition, a, b)
    return Where()(condition.detach().astype("bool"), a, b)


@named
def masked_fill(a: Tensor, mask: Any, value: float) -> Tensor:
    """a with the number value where mask holds; no gradient flows there."""
    check_tensors("masked_fill", a)
    return where(mask, value, a)


def _tensors(name: str, *values: Any) -> list[Tensor]:
    """The values as tensors that can meet: arrays on the device of the last tensor, numbers in its dtype, too."""
    like = next((value for value in reversed(values) if isinstance(value, Tensor)), None)
    return [value if isinstance(value, Tensor) else constant_like(name, value, like) for value in values]


def constant_like(name: str, value: Any, like: Tensor | None) -> Tensor:
    """Numbers as a constant on the device of like; an error in the name of an operator for what is none."""
    if like is None or not isinstance(value, (Number, np.generic, np.ndarray, NDArray, list, tuple)):
        raise ArgumentTypeError(f"{name}: got {describe(value)}, wanted a Tensor")
    if isinstance(value, (Number, np.generic)):
        return _number(value, like)
    return Tensor(value, device=like.device, requires_grad=False)


def _number(value: Any, like: Tensor) -> Tensor:
    """A number as a tensor of like's dtype, or of a float type if it would be cut."""
    whole = isinstance(value, (bool, int, np.bool_, np.integer))
    dtype = like.dtype if whole or np.dtype(like.dtype).kind == "f" else "float32"
    return Tensor(value, device=like.device, dtype=dtype, requires_grad=False)
