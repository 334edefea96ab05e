"""The table of operators: each row says how to call one, what NumPy would compute, and on which numbers.

The rows drive the tests of tests/unit/test_ops_table.py (forward, gradient, second order, in every memory layout) and
tools/mutate_gradients.py, which spoils one gradient rule after the other and wants to see a row fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from needle import Tensor, init, kernels, ops
from needle.core import BACKEND
from needle.ops.ops_convolution import FoldWindows, Windows
from needle.ops.ops_indexing import PutItem, ScatterAdd, SetItem
from needle.ops.ops_tuple import AmongZeros, Identity

Numbers = Callable[[np.random.RandomState], np.ndarray]


@dataclass(frozen=True)
class OpCase:
    """One way of calling an operator."""

    name: str
    op: Callable[..., Any]  # on tensors
    reference: Callable[..., Any]  # on float64 arrays
    inputs: tuple[Numbers, ...]
    smooth: bool = True  # has it second derivatives worth checking around these numbers?

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        random = np.random.RandomState(seed)
        return [draw(random) for draw in self.inputs]


# ---- numbers to call with --------------------------------------------------------------------------------------------


def normal(*shape: int) -> Numbers:
    return lambda random: np.asarray(random.randn(*shape))


def positive(*shape: int) -> Numbers:
    return lambda random: random.uniform(0.5, 2.0, shape)


def apart(*shape: int) -> Numbers:
    """Numbers of both signs, all at least 0.1 away from each other and from the multiples of ½."""

    def draw(random: np.random.RandomState) -> np.ndarray:
        size = int(np.prod(shape))
        return (random.permutation(size) - size // 2).reshape(shape) * 0.5 + random.uniform(0.15, 0.35, shape)

    return draw


# ---- references that NumPy does not have -----------------------------------------------------------------------------


def batch_normed(a: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Every channel over the other axes, with an epsilon of 0.1."""
    axes, channels = (0, *range(2, a.ndim)), (-1,) + (1,) * (a.ndim - 2)
    normal = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 0.1)
    return normal * weight.reshape(channels) + bias.reshape(channels)


def running(a: Tensor) -> list[Any]:
    """Running statistics of three channels."""
    return [make(3, device=a.device, dtype=a.dtype).cached_data for make in (init.zeros, init.ones)]


def layer_normed(a: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 0.1) * weight + bias


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def logsumexp(a: np.ndarray, axis: Any = None) -> np.ndarray:
    return np.log(np.exp(a).sum(axis=axis))


def softmax(a: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(a) / np.exp(a).sum(axis=axis, keepdims=True)


def gelu(a: np.ndarray) -> np.ndarray:
    return a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


def convolution(
    images: np.ndarray, kernel: np.ndarray, stride: int = 1, padding: Any = 0, dilation: int = 1, groups: int = 1
) -> np.ndarray:
    """By its definition: one output number at a time."""
    ph, pw = (padding, padding) if isinstance(padding, int) else padding
    images = np.pad(images, ((0, 0), (ph, ph), (pw, pw), (0, 0)))
    kh, kw, per_group, c_out = kernel.shape
    reach_h, reach_w = dilation * (kh - 1) + 1, dilation * (kw - 1) + 1
    rows, columns = (images.shape[1] - reach_h) // stride + 1, (images.shape[2] - reach_w) // stride + 1
    out = np.zeros((len(images), rows, columns, c_out))
    for i, j, c in np.ndindex(rows, columns, c_out):
        group = c // (c_out // groups)
        window = images[:, i * stride : i * stride + reach_h : dilation, j * stride : j * stride + reach_w : dilation]
        channels = window[..., group * per_group : (group + 1) * per_group]
        out[:, i, j, c] = (channels * kernel[..., c]).sum(axis=(1, 2, 3))
    return out


def windows(a: np.ndarray, kernel: Any, stride: Any) -> np.ndarray:
    view = np.lib.stride_tricks.sliding_window_view(a, kernel, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1]]


def fold(a: np.ndarray, shape: Any, stride: Any) -> np.ndarray:
    out = np.zeros(shape)
    for n, c, i, j, k, m in np.ndindex(*a.shape):
        out[n, c, i * stride[0] + k, j * stride[1] + m] += a[n, c, i, j, k, m]
    return out


def put(a: np.ndarray, shape: Any, index: Any) -> np.ndarray:
    out = np.zeros(shape)
    np.add.at(out, index, a)
    return out


def assigned(a: np.ndarray, value: np.ndarray, index: Any) -> np.ndarray:
    out = a.copy()
    out[index] = value
    return out


def dilated(a: np.ndarray, axes: Any, dilation: int) -> np.ndarray:
    for axis in axes:
        a = np.stack([a] + [np.zeros_like(a)] * dilation, axis + 1)
        a = a.reshape(*a.shape[:axis], -1, *a.shape[axis + 2 :])
    return a


def rnn(x: np.ndarray, h: np.ndarray, W: np.ndarray, U: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.stack([h := np.tanh(step @ W + b + h @ U + d) for step in x])


def lstm(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, W: np.ndarray, U: np.ndarray, b: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """All h, and the last c below them."""
    states = []
    for step in x:
        i, f, g, o = np.split(step @ W + b + h @ U + d, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        states.append(h := sigmoid(o) * np.tanh(c))
    return np.stack([*states, c])


def gru(x: np.ndarray, h: np.ndarray, W: np.ndarray, U: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    states = []
    for step in x:
        (rx, zx, nx), (rh, zh, nh) = np.split(step @ W + b, 3, axis=1), np.split(h @ U + d, 3, axis=1)
        z, n = sigmoid(zx + zh), np.tanh(nx + sigmoid(rx + rh) * nh)
        states.append(h := (1 - z) * n + z * h)
    return np.stack(states)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal; (B, T, H, D), as many keys as queries or more."""
    logits = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[3])
    later = np.triu(np.ones(logits.shape[2:], dtype=bool), k.shape[1] - q.shape[1] + 1)
    return np.einsum("bhqk,bkhd->bqhd", softmax(np.where(later, -np.inf, logits), 3), v)


MASK = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([0, 1, 1, 0, 1])
PAIRED = (np.array([0, 1, 1]), np.array([2, 0, 0]))

# ---- the table -------------------------------------------------------------------------------------------------------

ELEMENTWISE = [
    OpCase("add", ops.add, np.add, (normal(2, 3), normal(2, 3))),
    OpCase("add, stretched", lambda a, b: a + b, np.add, (normal(2, 3), normal(3))),
    OpCase("add, both stretched", lambda a, b: a + b, np.add, (normal(2, 1), normal(1, 3))),
    OpCase("add, a tensor to itself", lambda a: a + a, lambda a: 2 * a, (normal(2, 3),)),
    OpCase("add_scalar", lambda a: ops.add_scalar(a, 1.5), lambda a: a + 1.5, (normal(2, 3),)),
    OpCase("subtract", lambda a, b: a - b, np.subtract, (normal(2, 3), normal(2, 3))),
    OpCase("subtract from a number", lambda a: 5 - a, lambda a: 5 - a, (normal(2, 3),)),
    OpCase("subtract a number", lambda a: a - 1.5, lambda a: a - 1.5, (normal(2, 3),)),
    OpCase("multiply", ops.multiply, np.multiply, (normal(2, 3), normal(2, 3))),
    OpCase("multiply, stretched", lambda a, b: a * b, np.multiply, (normal(2, 1, 3), normal(4, 1))),
    OpCase("mul_scalar", lambda a: ops.mul_scalar(a, -2.5), lambda a: a * -2.5, (normal(2, 3),)),
    OpCase("divide", ops.divide, np.divide, (normal(2, 3), positive(2, 3))),
    OpCase("divide_scalar", lambda a: ops.divide_scalar(a, 4), lambda a: a / 4, (normal(2, 3),)),
    OpCase("scalar_div", lambda a: 3 / a, lambda a: 3 / a, (positive(2, 3),)),
    OpCase("subtract, one step", lambda a, b: ops.Subtract()(a, b), np.subtract, (normal(2, 3), normal(2, 3))),
    OpCase("power", ops.power, np.power, (positive(2, 3), normal(2, 3))),
    OpCase("power_scalar 3", lambda a: ops.power_scalar(a, 3), lambda a: a**3, (normal(2, 3),)),
    OpCase("power_scalar -2", lambda a: a**-2, lambda a: a**-2.0, (positive(2, 3),)),
    OpCase("power_scalar ½", lambda a: a**0.5, np.sqrt, (positive(2, 3),)),
    OpCase("power_scalar 0", lambda a: a**0, np.ones_like, (normal(2, 3),), smooth=False),
    OpCase("scalar_power", lambda a: 2**a, lambda a: 2.0**a, (normal(2, 3),)),
    OpCase("negate", ops.negate, np.negative, (normal(2, 3),)),
    OpCase("abs", abs, np.abs, (apart(2, 3),), smooth=False),
    OpCase("sign", ops.sign, np.sign, (apart(2, 3),), smooth=False),
    OpCase("sqrt", ops.sqrt, np.sqrt, (positive(2, 3),)),
    OpCase("square", ops.square, np.square, (normal(2, 3),)),
    OpCase("exp", ops.exp, np.exp, (normal(2, 3),)),
    OpCase("log", ops.log, np.log, (positive(2, 3),)),
    OpCase("sin", ops.sin, np.sin, (normal(2, 3),)),
    OpCase("cos", ops.cos, np.cos, (normal(2, 3),)),
    OpCase("tanh", ops.tanh, np.tanh, (normal(2, 3),)),
    OpCase("relu", ops.relu, lambda a: np.maximum(a, 0), (apart(2, 3),), smooth=False),
    OpCase("relu6", lambda a: ops.relu6(4 * a), lambda a: np.clip(4 * a, 0, 6), (apart(2, 3),), smooth=False),
    OpCase("sigmoid", ops.sigmoid, sigmoid, (normal(2, 3),)),
    OpCase("softplus", ops.softplus, lambda a: np.log1p(np.exp(a)), (normal(2, 3),)),
    OpCase("silu", ops.silu, lambda a: a * sigmoid(a), (normal(2, 3),)),
    OpCase("gelu", ops.gelu, gelu, (normal(2, 3),)),
    OpCase("clip", lambda a: ops.clip(a, -0.5, 0.5), lambda a: np.clip(a, -0.5, 0.5), (apart(2, 3),), smooth=False),
    OpCase("clip below", lambda a: a.clip(low=0), lambda a: np.maximum(a, 0), (apart(2, 3),), smooth=False),
    OpCase("clip above", lambda a: a.clip(high=0), lambda a: np.minimum(a, 0), (apart(2, 3),), smooth=False),
    OpCase("clone", ops.clone, np.copy, (normal(2, 3),)),
    OpCase("identity", Identity(), np.copy, (normal(2, 3),)),
    OpCase("cast", lambda a: ops.cast(a, "float64"), np.copy, (normal(2, 3),)),
    OpCase("to_device", lambda a: ops.to_device(a, a.device), np.copy, (normal(2, 3),)),
    OpCase("maximum", lambda a, b: ops.maximum(a, 0.7 * b), lambda a, b: np.maximum(a, 0.7 * b),
           (apart(2, 3), apart(2, 3)), smooth=False),
    OpCase("minimum", lambda a, b: ops.minimum(a, 0.7 * b), lambda a, b: np.minimum(a, 0.7 * b),
           (apart(2, 3), apart(2, 3)), smooth=False),
    OpCase("floor_divide", ops.floor_divide, np.floor_divide, (apart(2, 3), positive(2, 3)), smooth=False),
    OpCase("remainder", ops.remainder, np.remainder, (apart(2, 3), positive(2, 3)), smooth=False),
    OpCase("where", lambda a, b: ops.where(MASK, a * a, b * a), lambda a, b: np.where(MASK, a * a, b * a),
           (normal(2, 3), normal(2, 3))),
    OpCase("where, stretched", lambda a, b: ops.where(MASK, a, b), lambda a, b: np.where(MASK, a, b),
           (normal(3), normal(2, 1)), smooth=False),
    OpCase("where, the condition a leaf", ops.Where(), np.where, (apart(2, 3), normal(2, 3), normal(2, 3)),
           smooth=False),
    OpCase("masked_fill", lambda a: ops.masked_fill(a * a, MASK, 9), lambda a: np.where(MASK, 9, a * a),
           (normal(2, 3),)),
]  # fmt: skip

SHAPES = [
    OpCase("transpose", ops.transpose, lambda a: a.swapaxes(-1, -2), (normal(2, 3, 4),)),
    OpCase("transpose 0, 2", lambda a: ops.transpose(a, (0, 2)), lambda a: a.swapaxes(0, 2), (normal(2, 3, 4),)),
    OpCase("permute", lambda a: ops.permute(a, (2, 0, -2)), lambda a: a.transpose(2, 0, 1), (normal(2, 3, 4),)),
    OpCase("T", lambda a: a.T, lambda a: a.T, (normal(2, 3, 4),)),
    OpCase("reshape", lambda a: ops.reshape(a, (3, -1)), lambda a: a.reshape(3, -1), (normal(2, 3, 2),)),
    OpCase("flatten", lambda a: a.flatten(1), lambda a: a.reshape(2, 6), (normal(2, 3, 2),)),
    OpCase("expand_dims", lambda a: ops.expand_dims(a, -2), lambda a: np.expand_dims(a, -2), (normal(2, 3),)),
    OpCase("squeeze", lambda a: a.squeeze(), np.squeeze, (normal(1, 3, 1, 2),)),
    OpCase("squeeze one", lambda a: a.squeeze(-2), lambda a: a.squeeze(-2), (normal(1, 3, 1, 2),)),
    OpCase("broadcast_to", lambda a: ops.broadcast_to(a, (2, 3, 4)), lambda a: np.broadcast_to(a, (2, 3, 4)),
           (normal(3, 1),)),
    OpCase("broadcast_to, several axes", lambda a: a.broadcast_to((2, 3, 4)), lambda a: np.broadcast_to(a, (2, 3, 4)),
           (normal(2, 1, 1),)),
    OpCase("flip", lambda a: ops.flip(a, (0, 2)), lambda a: np.flip(a, (0, 2)), (normal(2, 3, 2),)),
    OpCase("flip all", lambda a: ops.flip(a), np.flip, (normal(2, 3),)),
    OpCase("pad", lambda a: ops.pad(a, ((1, 0), (0, 2))), lambda a: np.pad(a, ((1, 0), (0, 2))), (normal(2, 3),)),
    OpCase("pad with 5", lambda a: ops.pad(a, ((0, 1), (1, 1)), 5),
           lambda a: np.pad(a, ((0, 1), (1, 1)), constant_values=5), (normal(2, 3),)),
    OpCase("concatenate", lambda a, b: ops.concatenate([a, b, a], 1), lambda a, b: np.concatenate([a, b, a], 1),
           (normal(2, 3), normal(2, 1))),
    OpCase("concatenate, last axis", lambda a, b: ops.concatenate([a, b], -1), lambda a, b: np.concatenate([a, b], -1),
           (normal(2, 1, 2), normal(2, 1, 3))),
    OpCase("stack", lambda a, b: ops.stack([a, b], 1), lambda a, b: np.stack([a, b], 1), (normal(2, 3), normal(2, 3))),
    OpCase("stack, last axis", lambda a, b: ops.stack([a, b], -1), lambda a, b: np.stack([a, b], -1),
           (normal(2, 3), normal(2, 3))),
    OpCase("split", lambda a: ops.stack([t * (i + 1) for i, t in enumerate(ops.split(a, 1))], 0),
           lambda a: np.stack([a[:, 0], 2 * a[:, 1], 3 * a[:, 2]]), (normal(2, 3, 2),)),
    OpCase("split, one part used", lambda a: ops.split(a, -1)[1], lambda a: a[..., 1], (normal(2, 3),)),
    OpCase("split, one part squared", lambda a: ops.split(a, 0)[-1] ** 2, lambda a: a[-1] ** 2, (normal(2, 3),)),
    OpCase("make_tuple", lambda a, b: ops.make_tuple(a, b)[0] * ops.make_tuple(a, b)[1], np.multiply,
           (normal(2, 3), normal(2, 3))),
    OpCase("tuple_get_item, not folded", lambda a, b: ops.TupleGetItem(1)(ops.make_tuple(a, b), fold_const=False) * a,
           lambda a, b: a * b, (normal(2, 3), normal(2, 3))),
    OpCase("among_zeros", lambda a: sum(AmongZeros(1, (a.cached_data,) * 3)(a)), lambda a: a,
           (normal(2, 3),)),
    OpCase("tuples added", lambda a, b: (ops.make_tuple(a, b) + ops.make_tuple(b, b))[0], np.add,
           (normal(2, 3), normal(2, 3))),
    OpCase("fused_add_scalars", lambda a: ops.fused_add_scalars(a, 1, 2)[0] * ops.fused_add_scalars(a, 1, 2)[1],
           lambda a: (a + 1) * (a + 2), (normal(2, 3),)),
    OpCase("dilate", lambda a: ops.dilate(a, (0, 1), 2), lambda a: dilated(a, (0, 1), 2), (normal(2, 3),)),
    OpCase("dilate, an axis that is not there", lambda a: ops.dilate(a, (1, 7), 1), lambda a: dilated(a, (1,), 1),
           (normal(2, 3),)),
    OpCase("undilate", lambda a: ops.undilate(a, (0, 1), 1), lambda a: a[::2, ::2], (normal(4, 5),)),
]  # fmt: skip

INDICES: list[tuple[str, Any]] = [
    ("an int", 1),
    ("a negative int", -1),
    ("two ints", (1, 2)),
    ("all ints", (0, 1, 2)),
    ("a slice", slice(1, None)),
    ("a stepped slice", (slice(None), slice(None, None, 2))),
    ("a reversed slice", (slice(None, None, -1), slice(None), slice(None, None, -2))),
    ("an ellipsis", (..., 1)),
    ("a new axis", (slice(None), None, 1)),
    ("an empty slice", slice(1, 1)),
    ("rows", np.array([1, 0, 1, 1])),
    ("a table of rows", np.array([[1, 0], [1, -1]])),
    ("a list", [1, 1]),
    ("an array behind a slice", (slice(None), np.array([2, 0, 2]))),
    ("paired arrays", (np.array([0, 1, 1]), np.array([2, 0, 0]))),
    ("arrays around a slice", (np.array([0, 1]), slice(None), np.array([3, 3]))),
    ("a mask of rows", np.array([False, True])),
    ("a mask of entries", np.arange(24).reshape(2, 3, 4) % 5 == 0),
    ("a mask of nothing", np.zeros((2, 3, 4), bool)),
]

INDEXING = [
    *(OpCase(f"get_item by {what}", lambda a, index=index: a[index], lambda a, index=index: a[index],
             (normal(2, 3, 4),)) for what, index in INDICES),
    OpCase("put_item", PutItem((2, 3), (slice(None), 1)), lambda a: put(a, (2, 3), (slice(None), 1)), (normal(2),)),
    OpCase("put_item, entries that meet", PutItem((2, 3), PAIRED), lambda a: put(a, (2, 3), PAIRED), (normal(3),)),
    OpCase("set_item", SetItem((slice(None), 1)), lambda a, b: assigned(a, b, (slice(None), 1)),
           (normal(2, 3), normal(2))),
    OpCase("set_item, a number stretched", SetItem((0,)), lambda a, b: assigned(a, b, 0), (normal(2, 3), normal())),
    OpCase("set_item, the last value stays", SetItem(PAIRED), lambda a, b: assigned(a, b, PAIRED),
           (normal(2, 3), normal(3))),
    OpCase("set_item by a mask", SetItem(MASK), lambda a, b: assigned(a, b, MASK), (normal(2, 3), normal(3))),
    OpCase("gather", lambda a: ops.gather(a, ROWS), lambda a: a[ROWS], (normal(2, 3),)),
    OpCase("gather, a table along the last axis", lambda a: ops.gather(a, [[2, 0], [2, -1]], -1),
           lambda a: a[:, [[2, 0], [2, -1]]], (normal(2, 3),)),
    OpCase("scatter_add", ScatterAdd(ROWS, 0, (2, 3)), lambda a: put(a, (2, 3), ROWS), (normal(5, 3),)),
    OpCase("scatter_add, last axis", ScatterAdd([0, 0], 1, (2, 3)), lambda a: put(a, (2, 3), (slice(None), [0, 0])),
           (normal(2, 2),)),
]  # fmt: skip

REDUCTIONS = [
    *(OpCase(f"summation over {axes}", lambda a, axes=axes: ops.summation(a, axes),
             lambda a, axes=axes: a.sum(axis=axes), (normal(2, 3, 4),)) for axes in (None, 1, -1, (0, 2), ())),
    *(OpCase(f"mean over {axes}", lambda a, axes=axes: ops.mean(a, axes), lambda a, axes=axes: a.mean(axis=axes),
             (normal(2, 3, 4),)) for axes in (None, 1, (0, -1))),
    OpCase("mean, axes kept", lambda a: a.mean((0, 2), keepdims=True), lambda a: a.mean((0, 2), keepdims=True),
           (normal(2, 3, 4),)),
    *(OpCase(f"{name} over {axes}", lambda a, axes=axes, name=name: getattr(ops, name)(a, axes),
             lambda a, axes=axes, name=name: getattr(a, name)(axis=axes), (apart(2, 3, 4),), smooth=False)
      for name in ("max", "min") for axes in (None, 1, -1, (0, 2))),
    OpCase("max, axes kept", lambda a: a.max(1, keepdims=True), lambda a: a.max(1, keepdims=True), (apart(2, 3),),
           smooth=False),
    OpCase("var", ops.var, np.var, (normal(2, 3, 4),)),
    OpCase("var over (0, 2), kept, unbiased", lambda a: a.var((0, 2), keepdims=True, correction=1),
           lambda a: a.var((0, 2), keepdims=True, ddof=1), (normal(2, 3, 4),)),
    OpCase("std", lambda a: ops.std(a, 1), lambda a: a.std(1), (normal(2, 3),)),
    *(OpCase(f"logsumexp over {axes}", lambda a, axes=axes: ops.logsumexp(a, axes),
             lambda a, axes=axes: logsumexp(a, axes), (normal(2, 3, 4),)) for axes in (None, 1, -1, (0, 2))),
    OpCase("logsoftmax", ops.logsoftmax, lambda a: np.log(softmax(a, 1)), (normal(3, 4),)),
    OpCase("softmax", ops.softmax, lambda a: softmax(a, -1), (normal(2, 3, 4),)),
    OpCase("softmax over 0", lambda a: a.softmax(0), lambda a: softmax(a, 0), (normal(3, 4),)),
]  # fmt: skip

PRODUCTS = [
    OpCase("matmul", ops.matmul, np.matmul, (normal(2, 3), normal(3, 4))),
    OpCase("matmul, batches", ops.matmul, np.matmul, (normal(2, 2, 3), normal(2, 3, 2))),
    OpCase("matmul, one matrix for all", ops.matmul, np.matmul, (normal(2, 2, 3), normal(3, 2))),
    OpCase("matmul, batches that stretch", ops.matmul, np.matmul, (normal(2, 1, 2, 3), normal(2, 3, 2))),
    *(
        OpCase(f"conv of {h}×{w} by {kh}×{kw}, stride {stride}, padding {padding}",
               lambda a, b, stride=stride, padding=padding: ops.conv(a, b, stride=stride, padding=padding),
               lambda a, b, stride=stride, padding=padding: convolution(a, b, stride, padding),
               (normal(2, h, w, 2), normal(kh, kw, 2, 3)))
        for h, w, kh, kw, stride, padding in [
            (4, 4, 3, 3, 1, 1), (4, 5, 2, 2, 1, 0), (4, 5, 2, 3, 2, 0), (5, 4, 3, 3, 2, 1), (5, 5, 3, 3, 2, 2),
            (6, 5, 3, 2, 3, 1), (5, 6, 1, 1, 2, 0), (4, 4, 1, 1, 1, 1), (5, 5, 2, 2, 2, (1, 0)), (3, 3, 3, 3, 4, 0),
        ]
    ),
    OpCase("conv2d, dilated", lambda a, b: ops.conv2d(a, b, stride=2, padding=1, dilation=2),
           lambda a, b: convolution(a, b, 2, 1, 2), (normal(1, 5, 6, 2), normal(2, 3, 2, 2))),
    OpCase("conv2d, groups", lambda a, b: ops.conv2d(a, b, padding=1, groups=2),
           lambda a, b: convolution(a, b, 1, 1, 1, 2), (normal(1, 3, 4, 4), normal(3, 2, 2, 4))),
    OpCase("windows", Windows((2, 3), (2, 1)), lambda a: windows(a, (2, 3), (2, 1)), (normal(1, 2, 5, 4),)),
    OpCase("fold_windows", FoldWindows((1, 2, 4, 4), (2, 2), (2, 1)), lambda a: fold(a, (1, 2, 4, 4), (2, 1)),
           (normal(1, 2, 2, 3, 2, 2),)),
    OpCase("max_pool2d", lambda a: ops.max_pool2d(a, 2), lambda a: windows(a, (2, 2), (2, 2)).max((-2, -1)),
           (apart(1, 2, 4, 5),), smooth=False),
    OpCase("max_pool2d, overlapping, padded", lambda a: ops.max_pool2d(a, 3, 2, 1),
           lambda a: windows(np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf), (3, 3), (2, 2))
           .max((-2, -1)), (apart(1, 2, 4, 5),), smooth=False),
    OpCase("avg_pool2d", lambda a: ops.avg_pool2d(a, (2, 3), 1, (0, 1)),
           lambda a: windows(np.pad(a, ((0, 0), (0, 0), (0, 0), (1, 1))), (2, 3), (1, 1)).mean((-2, -1)),
           (normal(1, 2, 3, 4),)),
]  # fmt: skip

CASES = ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + PRODUCTS

if BACKEND == "nd":  # operators that stand for a layer where a device has one kernel for it
    from needle.ops.ops_attention import Attention
    from needle.ops.ops_convolution import Convolution
    from needle.ops.ops_fused import Affine, BatchNorm, CrossEntropy, Dropout, LayerNorm
    from needle.ops.ops_recurrent import GRULayer, LSTMLayer, RNNLayer

    LABELS, UNIFORM = np.array([2, 0, 1]), np.array([[0.1, 0.7, 0.5], [0.61, 0.2, 0.9]])
    FUSED = [
        OpCase("cross_entropy", lambda a: CrossEntropy(Tensor(LABELS, device=a.device, dtype="int64").cached_data)(a),
               lambda a: np.log(np.exp(a).sum(1)) - a[np.arange(3), LABELS], (normal(3, 4),)),
        OpCase("layer_norm", lambda a, w, b: LayerNorm(0.1)(a, w, b), layer_normed,
               (normal(3, 4), normal(4), normal(4))),
        OpCase("affine", lambda x, w, b: Affine()(x, w, b), lambda x, w, b: x @ w + b,
               (normal(3, 4), normal(4, 5), normal(1, 5))),
        OpCase("dropout", lambda a: Dropout(Tensor(UNIFORM, device=a.device, dtype=a.dtype).cached_data, 0.6)(a),
               lambda a: a * (UNIFORM <= 0.6) / 0.6, (normal(2, 3),)),
    ]  # fmt: skip
    BATCH_NORMS = [
        OpCase(f"batch_norm, {len(shape)} axes", lambda a, w, b: BatchNorm(0.1, 0.1, *running(a))(a, w, b),
               batch_normed, (normal(*shape), normal(3), normal(3)))
        for shape in [(4, 3), (2, 3, 2, 3)]
    ]  # fmt: skip
    CONVOLUTIONS = [
        OpCase("convolution, bias", lambda a, k, b: Convolution(2, 1)(a, k, b),
               lambda a, k, b: convolution(a, k, 2, 1) + b, (normal(2, 4, 5, 2), normal(3, 3, 2, 3), normal(3))),
        OpCase("convolution, channels first", lambda a, k, b: Convolution(1, 1, 2, 2, True)(a, k, b),
               lambda a, k, b: np.moveaxis(convolution(np.moveaxis(a, 1, 3), k, 1, 1, 2, 2) + b, 3, 1),
               (normal(2, 4, 5, 4), normal(2, 2, 2, 4), normal(4))),
    ]  # fmt: skip
    CASES += FUSED + BATCH_NORMS + CONVOLUTIONS

    def recurrent(gates: int, states: int = 1) -> tuple[Numbers, ...]:
        """x, the states, W_ih, W_hh, b_ih, b_hh for 2 steps of a batch of 3, 2 features, states of 2."""
        weights = (normal(2, 2 * gates), normal(2, 2 * gates), normal(2 * gates), normal(2 * gates))
        return (normal(2, 3, 2), *[normal(3, 2)] * states, *weights)

    def lstm_layer(*inputs: Tensor) -> Tensor:
        hidden, memory = LSTMLayer()(*inputs)
        return ops.stack([*ops.split(hidden, 0), memory], 0)

    RECURRENT = [
        OpCase("rnn_layer", RNNLayer("tanh"), rnn, recurrent(1)),
        OpCase("lstm_layer", lstm_layer, lstm, recurrent(4, states=2)),
        OpCase("gru_layer", GRULayer(), gru, recurrent(3)),
    ]
    ATTENTION = [OpCase("attention", Attention(causal=True), attention,
                        (normal(2, 2, 2, 3), normal(2, 3, 2, 3), normal(2, 3, 2, 3)))]  # fmt: skip
    CASES += RECURRENT + ATTENTION

# ---- whole operations: in float32, against the plain path in float64 -------------------------------------------------

WHOLE: dict[type, list[OpCase]] = {
    ops.LogSumExp: [case for case in REDUCTIONS if case.name.startswith("logsumexp")],
    ops.LogSoftmax: [case for case in REDUCTIONS if case.name == "logsoftmax"],
    ops.Softmax: [case for case in REDUCTIONS if case.name.startswith("softmax")],
    ops.Conv: [case for case in PRODUCTS if case.name.startswith("conv")],
    ops.MatMul: [case for case in PRODUCTS if case.name.startswith("matmul")],
    ops.EWiseMul: [case for case in ELEMENTWISE if case.name.startswith("multiply")],
}
for _activation in (ops.ReLU, ops.Tanh, ops.Sigmoid, ops.Silu, ops.Gelu):
    WHOLE[_activation] = [case for case in ELEMENTWISE if case.name == _activation.__name__.lower()]
if BACKEND == "nd":
    WHOLE |= {RNNLayer: RECURRENT[:1], LSTMLayer: RECURRENT[1:2], GRULayer: RECURRENT[2:], Attention: ATTENTION}
    WHOLE |= {BatchNorm: BATCH_NORMS, Convolution: CONVOLUTIONS}
    WHOLE |= {CrossEntropy: FUSED[:1], LayerNorm: FUSED[1:2], Affine: FUSED[2:3], Dropout: FUSED[3:]}
    WHOLE |= {ScatterAdd: [case for case in CASES if case.name.startswith(("scatter_add", "gather", "take"))]}


def check_whole_operation(case: OpCase, device: str, dtype: str) -> None:
    """AssertionError unless values and gradients with whole operations are those of the plain path in float64."""
    results = []
    for mode, kind in (("course", "float64"), ("fast", dtype)):
        with kernels.use(mode):
            inputs = [Tensor(array, device=device, dtype=kind) for array in case.arrays()]
            out = case.op(*inputs)
            out.backward(np.random.RandomState(1).uniform(0.5, 1.5, out.shape))
            results.append([out.numpy(), *(x.grad.numpy() for x in inputs)])
    assert_ways_agree(*results)


def assert_ways_agree(plain: Sequence[np.ndarray], fast: Sequence[np.ndarray]) -> None:
    """What was computed fast is what the plain path computes, but for the rounding of float32."""
    for wanted, got in zip(plain, fast):
        assert got.shape == wanted.shape
        assert np.abs(got - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())


# ---- memory layouts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """A way to store numbers: `stored` makes a leaf's numbers from those wanted, `seen` a view of the wanted shape."""

    name: str
    stored: Callable[[np.ndarray], np.ndarray]
    seen: Callable[[Tensor, tuple[int, ...]], Tensor]


def _spread(a: np.ndarray) -> np.ndarray:
    """a as every second entry, from the second on, of something larger."""
    out = np.full(tuple(2 * extent + 1 for extent in a.shape), 7.0)
    out[(slice(1, None, 2),) * a.ndim] = a
    return out


LAYOUTS = [
    Layout("transposed", lambda a: a.T, lambda t, shape: t.T),
    Layout("reversed", np.flip, lambda t, shape: t[(slice(None, None, -1),) * len(shape)]),
    Layout("stepped", _spread, lambda t, shape: t[(slice(1, None, 2),) * len(shape)]),
    Layout(
        "sliced",
        lambda a: np.pad(a, ((2, 1),) * a.ndim) if a.ndim else a,
        lambda t, shape: t[(slice(2, -1),) * len(shape)],
    ),
    Layout("stretched", lambda a: a[:1] if a.ndim else a, lambda t, shape: t.broadcast_to(shape)),
]
