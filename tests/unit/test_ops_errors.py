"""Wrong calls of operators end in one line that names the operator and what came (U090)."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, ops
from needle.backend_selection import BACKEND
from needle.errors import NeedleError

FUNCTIONS = {name: getattr(ops, name) for name in ops.__all__ if inspect.isfunction(getattr(ops, name))}
TENSORS = ("a", "b", "x", "value", "args", "tensors", "weight", "condition")  # parameters that want tensors
OTHERS = {
    "axes": (0, 1), "axis": 0, "shape": (3, 2), "scalar": 2.0, "index": 0, "dilation": 1, "ids": [0], "mask": [True],
    "dtype": "float32", "device": "cpu", "pairs": ((1, 1), (0, 0)), "c0": 1, "c1": 2, "kernel_size": 2,
}  # fmt: skip


def tensor(*shape: int) -> Tensor:
    return Tensor(np.ones(shape), dtype="float64")


def call_with(function: Callable, wrong: object) -> None:
    """Call with something wrong wherever a tensor is wanted, and with something sensible elsewhere."""
    args: list[object] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in TENSORS:
            args.append(wrong)
        elif parameter.default is parameter.empty:
            args.append(OTHERS[parameter.name])
    function(*args)


@pytest.mark.parametrize("wrong", ["text", None, object(), {}, 1j], ids=["str", "None", "object", "dict", "complex"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_tensor_where_one_is_wanted(name: str, wrong: object) -> None:
    with pytest.raises(NeedleError, match=name):
        call_with(FUNCTIONS[name], wrong)


TUPLES_WELCOME = {"stack", "concatenate", "tuple_get_item", "requires_grad_"}
if BACKEND == "np":  # NumPy's own functions take tuples of arrays, as if they were stacked
    TUPLES_WELCOME |= {"to_device", "flip", "summation", "transpose", "max", "min", "mean"}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in TUPLES_WELCOME])
def test_tuple_of_tensors_where_one_tensor_is_wanted(name: str) -> None:
    with pytest.raises(NeedleError, match=name):
        call_with(FUNCTIONS[name], ndl.make_tuple(tensor(2, 3), tensor(2, 3)))


X, IMAGES, NCHW, KERNEL = tensor(2, 3), tensor(1, 4, 4, 2), tensor(1, 2, 4, 4), tensor(3, 3, 2, 2)

WRONG_CALLS: list[tuple[str, Callable]] = [
    *((f.__name__, lambda f=f: f(X, 5)) for f in (
        ops.summation, ops.mean, ops.max, ops.min, ops.var, ops.logsumexp, ops.softmax, ops.argmax, ops.argmin,
        ops.split, ops.squeeze, ops.expand_dims, ops.flatten)),
    *((f.__name__, lambda f=f: f(X, "text")) for f in (
        ops.summation, ops.mean, ops.max, ops.min, ops.var, ops.logsumexp, ops.softmax, ops.argmax, ops.argmin,
        ops.split, ops.squeeze, ops.expand_dims, ops.flatten, ops.reshape, ops.broadcast_to, ops.permute, ops.flip,
        ops.pad, ops.gather, ops.add_scalar, ops.mul_scalar, ops.divide_scalar, ops.power_scalar, ops.clip, ops.cast)),
    ("transpose", lambda: ops.transpose(X, (0, 5))),
    ("transpose", lambda: ops.transpose(X, 3)),
    ("permute", lambda: ops.permute(X, (0, 0))),
    ("permute", lambda: ops.permute(X, None)),
    ("flip", lambda: ops.flip(X, (5,))),
    ("reshape", lambda: ops.reshape(X, (4,))),
    ("broadcast_to", lambda: ops.broadcast_to(X, (3, 2))),
    ("squeeze", lambda: ops.squeeze(X, 0)),
    ("stack", lambda: ops.stack([X, X], 9)),
    ("stack", lambda: ops.stack([X, IMAGES], 0)),
    ("stack", lambda: ops.stack([], 0)),
    ("concatenate", lambda: ops.concatenate([X, X], 5)),
    ("concatenate", lambda: ops.concatenate([X, IMAGES], 0)),
    ("concatenate", lambda: ops.concatenate([])),
    ("pad", lambda: ops.pad(X, ((1, 1),))),
    ("pad", lambda: ops.pad(X, ((-1, 0), (0, 0)))),
    ("dilate", lambda: ops.dilate(X, (0,), -1)),
    ("undilate", lambda: ops.undilate(X, (0,), "a")),
    ("gather", lambda: ops.gather(X, [0], 5)),
    ("gather", lambda: ops.gather(X, [0.5])),
    ("logsoftmax", lambda: ops.logsoftmax(IMAGES)),
    ("scalar_div", lambda: ops.scalar_div("a", X)),
    ("scalar_sub", lambda: ops.scalar_sub("a", X)),
    ("subtract", lambda: ops.subtract(X, "a")),
    ("add", lambda: ops.EWiseAdd()()),
    ("abs", lambda: ops.Abs()()),
    ("maximum", lambda: ops.maximum(X, 1j)),
    ("masked_fill", lambda: ops.masked_fill(X, None, 1)),
    ("std", lambda: ops.std(X, 7)),
    ("to_device", lambda: ops.to_device(X, 3)),
    ("take", lambda: ops.take(X, 0.5)),
    ("argmax", lambda: ops.argmax(X, 2**70)),
    ("conv", lambda: ops.Conv(stride=X)),
    ("Tensor", lambda: Tensor(object())),
    ("scalar_power", lambda: ops.scalar_power("a", X)),
    ("clip", lambda: ops.clip(X)),
    ("clip", lambda: ops.clip(X, 3, 1)),
    ("cast", lambda: ops.cast(X, "complex64")),
    ("astype", lambda: X.astype(None)),
    ("device", lambda: X.to(3)),
    ("device", lambda: ops.to_device(X, "nowhere")),
    ("conv", lambda: ops.conv(X, KERNEL)),
    ("conv", lambda: ops.conv(IMAGES, X)),
    ("conv", lambda: ops.conv(IMAGES, tensor(3, 3, 5, 2))),
    ("conv", lambda: ops.conv(IMAGES, tensor(9, 9, 2, 2), padding=0)),
    ("conv", lambda: ops.conv(IMAGES, KERNEL, stride=-1)),
    ("conv", lambda: ops.conv(IMAGES, KERNEL, padding="a")),
    ("conv2d", lambda: ops.conv2d(IMAGES, KERNEL, groups=3)),
    ("conv2d", lambda: ops.conv2d(IMAGES, KERNEL, dilation=0)),
    ("conv2d", lambda: ops.conv2d(X, KERNEL)),
    ("max_pool2d", lambda: ops.max_pool2d(X, 2)),
    ("max_pool2d", lambda: ops.max_pool2d(NCHW, 9)),
    ("max_pool2d", lambda: ops.max_pool2d(NCHW, 2, 0)),
    ("avg_pool2d", lambda: ops.avg_pool2d(NCHW, 2, 1, 3)),
    ("matmul", lambda: X @ X),
    ("matmul", lambda: X @ tensor(3)),
    ("set_item", lambda: X.__setitem__(0, np.ones(7))),
    ("backward", lambda: X.backward(np.ones(7))),
    ("tuple_get_item", lambda: ops.tuple_get_item(ops.make_tuple(X), "a")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call"), WRONG_CALLS, ids=[f"{i}-{row[0]}" for i, row in enumerate(WRONG_CALLS)])
def test_wrong_argument_is_named(name: str, call: Callable) -> None:
    with pytest.raises(NeedleError, match=name) as caught:
        call()
    assert "\n" not in str(caught.value)
