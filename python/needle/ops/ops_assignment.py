"""x[index] = value: what happens to the graph when a part of a tensor is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import write_log
from ..autograd import Gradient, Tensor, check_tensors
from ..backend_selection import BACKEND
from ..errors import GraphError, named
from ..execution import enable_grad, explained, is_recording
from .ops_elementwise import own_copy
from .ops_indexing import Index, SetItem, plain_index, write
from .ops_mathematic import reshape

__all__ = ["requires_grad_", "set_item"]


@named
def set_item(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value.

    A leaf is written in place.  What an operator made becomes the result of one more operator, SetItem, through which
    gradients flow to the old value's other entries and to `value`; so does a constant to which a tensor that requires
    a gradient is assigned.  GraphError for such an assignment to a leaf that requires a gradient itself.
    """
    check_tensors("set_item", x)
    index, value = plain_index(index), _as_tensor(value, x)
    recorded = is_recording() and value.requires_grad
    if x.is_leaf() and x.requires_grad and recorded:
        raise GraphError("set_item: a leaf that requires a gradient cannot take a computed value; detach() the value")
    if isinstance(x, Gradient):
        x.data = SetItem(index)(x.detach(), value.detach())
    elif x.is_leaf() and not recorded:
        _write_in_place(x, index, value)
    else:
        _rewire(x, index, value if recorded else value.detach())


def requires_grad_(x: Tensor, on: bool = True) -> Tensor:
    """Say whether a leaf requires a gradient; returns the leaf.  GraphError for what an operator made."""
    check_tensors("requires_grad_", x)
    if not x.is_leaf() and not on:
        raise GraphError("requires_grad_: this tensor was computed; detach() it instead")
    x.requires_grad = on
    return x


def _as_tensor(value: Any, x: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        return Tensor(value, device=x.device, dtype=x.dtype, requires_grad=False)
    while len(value.shape) > len(x.shape) and value.shape[0] == 1:
        value = reshape(value, value.shape[1:])  # as NumPy does
    return value


def _write_in_place(x: Tensor, index: Index, value: Tensor) -> None:
    array = x.realize_cached_data()
    if not _is_writable(array):
        x.cached_data = array = own_copy(array)
        x.changed_at = write_log.tick()
    try:
        write(array, index, value.realize_cached_data())
    except (ValueError, TypeError, IndexError) as error:
        raise explained("set_item", [array, value], error) from error
    write_log.note_write(array)


def _is_writable(array: Any) -> bool:
    """False for NumPy's scalars and for stretched views, in which several entries share one place."""
    if BACKEND == "np":
        return isinstance(array, np.ndarray) and array.flags.writeable
    return not any(stride == 0 and extent > 1 for stride, extent in zip(array.strides, array.shape))


def _rewire(x: Tensor, index: Index, value: Tensor) -> None:
    """Make x the result of SetItem; its old node lives on in a tensor of its own."""
    old = Tensor.make_const(x.realize_cached_data(), requires_grad=x.requires_grad)
    old.op, old.inputs, old.made_at, old.changed_at = x.op, x.inputs, x.made_at, x.changed_at
    value = _redirect(value, x, old)
    with enable_grad():
        new = SetItem(index)(old, value)
    x.op, x.inputs, x.cached_data, x.requires_grad = new.op, new.inputs, new.cached_data, new.requires_grad
    x.rewired_at = x.made_at = write_log.tick()


def _redirect(value: Tensor, x: Tensor, old: Tensor) -> Tensor:
    """value, computed from old wherever it was computed from x, as in x[0] = x[1] * 2: or x would depend on itself."""
    if value is x:
        return old
    seen, waiting = {value}, [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Gradient) or node.made_at < x.made_at:
            continue  # older than x
        if x in node.inputs:
            node.inputs = tuple(old if child is x else child for child in node.inputs)
        fresh = set(node.inputs) - seen - {old}
        seen |= fresh
        waiting += fresh
    return value
