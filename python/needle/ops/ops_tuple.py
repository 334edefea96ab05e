"""Operators between tensors and tuples of tensors."""

from __future__ import annotations

from typing import Any

from ..autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp, Value, check_tensors
from ..backend_selection import NDArray
from ..errors import ArgumentTypeError, describe
from ..init import zeros_like

__all__ = [
    "FusedAddScalars",
    "Identity",
    "MakeTensorTuple",
    "TupleGetItem",
    "fused_add_scalars",
    "make_tuple",
    "tuple_get_item",
]


class MakeTensorTuple(TensorTupleOp):
    name = "make_tuple"
    reads_inputs = reads_output = False

    def compute(self, *arrays: NDArray) -> tuple[NDArray, ...]:
        return arrays

    def gradient(self, out_grad: TensorTuple, node: TensorTuple) -> tuple[Tensor, ...]:
        return tuple(out_grad)


def make_tuple(*args: Tensor) -> TensorTuple:
    """Several tensors as one value of the graph."""
    check_tensors("make_tuple", *args)
    return MakeTensorTuple()(*args)


def several(name: str, tensors: Any) -> tuple[Tensor, ...]:
    """The tensors as a tuple; an error in the name of an operator if there are none, or if they are none."""
    if not isinstance(tensors, (tuple, list, TensorTuple)) or len(tensors) == 0:
        raise ArgumentTypeError(f"{name}: got {describe(tensors)}, wanted a list of tensors")
    check_tensors(name, *tensors)
    return tuple(tensors)


class TupleGetItem(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, a: TensorTuple, fold_const: bool = True) -> Tensor:
        if not isinstance(a, TensorTuple):
            raise ArgumentTypeError(f"tuple_get_item: got {type(a).__name__}, wanted a TensorTuple")
        if not isinstance(self.index, int):
            raise ArgumentTypeError(f"tuple_get_item: got {describe(self.index)} as an index, wanted a whole number")
        if not -len(a) <= self.index < len(a):
            raise IndexError(f"tuple_get_item: index {self.index} in a tuple of {len(a)}")
        if fold_const and isinstance(a.op, MakeTensorTuple):
            return a.inputs[self.index]
        return Tensor.make_from_op(self, (a,))

    def compute(self, arrays: tuple[NDArray, ...]) -> NDArray:
        return arrays[self.index]

    def gradient(self, out_grad: Tensor, node: Tensor) -> TensorTuple:
        index = self.index % len(node.inputs[0])
        return make_tuple(*(out_grad if i == index else zeros_like(part) for i, part in enumerate(node.inputs[0])))


def tuple_get_item(value: TensorTuple, index: int) -> Tensor:
    """One tensor out of a tuple."""
    return TupleGetItem(index)(value)


class FusedAddScalars(TensorTupleOp):
    reads_inputs = reads_output = False

    def __init__(self, c0: Any, c1: Any) -> None:
        self.c0, self.c1 = c0, c1

    def compute(self, a: NDArray) -> tuple[NDArray, NDArray]:
        return a + self.c0, a + self.c1

    def gradient(self, out_grad: TensorTuple, node: TensorTuple) -> Tensor:
        return out_grad[0] + out_grad[1]


def fused_add_scalars(x: Tensor, c0: Any, c1: Any) -> TensorTuple:
    """(x + c0, x + c1), as one operator."""
    return FusedAddScalars(c0, c1)(x)


class Identity(TensorOp):
    """A step that changes nothing; a Gradient hangs on its recipe by one."""

    reads_inputs = reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        return a

    def gradient(self, out_grad: Value, node: Value) -> Value:
        return out_grad
