"""Operators between tensors and tuples of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp, Value, check_tensors, sum_node_list
from ..backend_selection import NDArray, array_api
from ..errors import ArgumentTypeError, describe
from ..execution import is_recording

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
        whole = node.inputs[0]
        return AmongZeros(self.index % len(whole), whole.realize_cached_data())(out_grad)


class AmongZeros(TensorTupleOp):
    """A tuple of zeros but for one tensor: the adjoint of TupleGetItem.

    The zeros are made when somebody looks.  n parts pay such tuples into one gradient, which `sum_tuples` adds up
    without looking; n tuples of n tensors would take n² zeros.
    """

    reads_inputs = reads_output = False

    def __init__(self, index: int, like: tuple[NDArray, ...]) -> None:
        self.index, self.like = index, like

    def __call__(self, a: Tensor) -> TensorTuple:
        value = TensorTuple.__new__(TensorTuple)
        value._init(self, (a,), None, a.requires_grad and is_recording())
        return value

    def compute(self, a: NDArray) -> tuple[NDArray, ...]:
        return tuple(a if i == self.index else array_api.zeros_like(part) for i, part in enumerate(self.like))

    def gradient(self, out_grad: TensorTuple, node: TensorTuple) -> Tensor:
        return out_grad[self.index]


def sum_tuples(tuples: Sequence[TensorTuple]) -> TensorTuple:
    """The sums, place by place, of tuples of one length."""
    contributions: list[list[Tensor]] = [[] for _ in range(len(tuples[0]))]
    for value in tuples:
        known = [(value.op.index, value.inputs[0])] if isinstance(value.op, AmongZeros) else enumerate(value)
        for place, part in known:
            contributions[place].append(part)
    return make_tuple(*(sum_node_list(parts or [tuples[0][i]]) for i, parts in enumerate(contributions)))


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
