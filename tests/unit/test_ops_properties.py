"""Operators on drawn shapes, axes and indices: values as NumPy's, gradients by their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from needle import Tensor, ops

from tests.op_cases import convolution

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.RandomState(seed).randn(*shape))


def same(got: Tensor, expected: np.ndarray) -> None:
    expected = np.asarray(expected)
    assert got.shape == expected.shape or (got.shape, expected.shape) == ((1,), ())
    np.testing.assert_allclose(got.numpy().reshape(expected.shape), expected, rtol=1e-12, atol=1e-12)


@st.composite
def shape_and_index(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape and any index that NumPy takes for it: basic, integer arrays, or a mix."""
    shape = draw(shapes)
    kind = draw(st.sampled_from(["basic", "arrays", "mask", "mixed"]))
    if kind == "basic":
        return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    if kind == "mask":
        return shape, draw(hnp.arrays(bool, shape))
    full = [axis for axis, extent in enumerate(shape) if extent]
    if not full:
        return shape, ...
    if kind == "arrays" and len(full) == len(shape):
        return shape, draw(hnp.integer_array_indices(shape))
    axis = draw(st.sampled_from(full))
    places = draw(
        hnp.arrays(
            np.int64, hnp.array_shapes(max_dims=2, max_side=3), elements=st.integers(-shape[axis], shape[axis] - 1)
        )
    )
    return shape, (*(slice(None),) * axis, places)


@given(shape_and_index())
def test_get_item_and_its_adjoint(drawn: tuple[tuple[int, ...], Any]) -> None:
    shape, index = drawn
    a = numbers(shape)
    x = Tensor(a, dtype="float64")
    out = x[index]
    same(out, a[index])
    weights = numbers(out.shape, 1)
    if out.size:
        out.backward(weights)
        expected = np.zeros(shape)
        np.add.at(expected, index, weights.reshape(a[index].shape))
        same(x.grad, expected)


@given(shape_and_index())
def test_set_item_writes_as_numpy(drawn: tuple[tuple[int, ...], Any]) -> None:
    shape, index = drawn
    expected, value = numbers(shape), numbers(np.shape(numbers(shape)[index]), 1)
    x = Tensor(expected, dtype="float64")
    y = x * 1
    x[index] = y[index] = value
    expected[index] = value
    same(x, expected)
    same(y, expected)


@given(shapes, st.data())
def test_reductions_over_any_axes(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1) | hnp.valid_tuple_axes(len(shape)))
    a = numbers(shape)
    x = Tensor(a, dtype="float64")
    same(ops.summation(x, axes), a.sum(axis=axes))
    if a.size:
        keep = data.draw(st.booleans())
        same(ops.max(x, axes, keep), a.max(axis=axes, keepdims=keep))
        same(ops.min(x, axes, keep), a.min(axis=axes, keepdims=keep))
        same(ops.mean(x, axes, keep), a.mean(axis=axes, keepdims=keep))
        same(ops.var(x, axes, keep), a.var(axis=axes, keepdims=keep))
        same(ops.logsumexp(x, axes), np.log(np.exp(a).sum(axis=axes)))
        ops.max(x, axes).sum().backward()
        np.testing.assert_allclose(x.grad.numpy().sum(), a.max(axis=axes).size, rtol=1e-12)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_arithmetic_broadcasts_and_its_gradient_sums(drawn: hnp.BroadcastableShapes) -> None:
    a, b = (numbers(shape, i) for i, shape in enumerate(drawn.input_shapes))
    x, y = Tensor(a, dtype="float64"), Tensor(b, dtype="float64")
    out = x * y
    same(out, a * b)
    out.backward()
    assert (x.grad.shape, y.grad.shape) == (x.shape, y.shape)
    np.testing.assert_allclose(x.grad.numpy().sum(), np.broadcast_to(b, drawn.result_shape).sum(), atol=1e-12)


@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    extra=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    stride=st.integers(1, 4),
    padding=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    dilation=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
)
def test_convolution_of_any_size_and_parity(
    kernel: tuple[int, int],
    extra: tuple[int, int],
    stride: int,
    padding: tuple[int, int],
    dilation: int,
    groups: int,
) -> None:
    sizes = [max(1, dilation * (k - 1) + 1 + e - 2 * p) for k, e, p in zip(kernel, extra, padding)]
    images, weight = numbers((2, *sizes, 4)), numbers((*kernel, 4 // groups, 2), 1)
    x, w = Tensor(images, dtype="float64"), Tensor(weight, dtype="float64")
    out = ops.conv2d(x, w, stride, padding, dilation, groups)
    expected = convolution(images, weight, stride, padding, dilation, groups)
    same(out, expected)
    # the output is linear in images and in weight: ⟨g, out⟩ = ⟨grad, images⟩ = ⟨grad, weight⟩
    g = numbers(out.shape, 2)
    out.backward(g)
    for leaf, value in ((x, images), (w, weight)):
        np.testing.assert_allclose((leaf.grad.numpy() * value).sum(), (g * expected).sum(), rtol=1e-9, atol=1e-9)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.integers(3, 6), st.integers(3, 6))
def test_pooling_of_any_size(kernel: int, stride: int, padding: int, height: int, width: int) -> None:
    padding = min(padding, kernel // 2)
    a = numbers((1, 2, height, width))
    x = Tensor(a, dtype="float64")
    margin = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    for pool, filler, reduce in ((ops.max_pool2d, -np.inf, np.max), (ops.avg_pool2d, 0, np.mean)):
        padded = np.pad(a, margin, constant_values=filler)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
        out = pool(x, kernel, stride, padding)
        same(out, reduce(windows[:, :, ::stride, ::stride], axis=(-2, -1)))
        out.sum().backward()
        assert np.isfinite(x.grad.numpy()).all()


@given(shapes.filter(lambda shape: 0 not in shape), st.data())
def test_joining_and_cutting_take_each_other_back(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = Tensor(numbers(shape), dtype="float64")
    same(ops.stack(ops.split(x, axis), axis), x.numpy())
    same(ops.concatenate([ops.expand_dims(part, axis) for part in ops.split(x, axis)], axis), x.numpy())
    order = data.draw(st.permutations(range(len(shape))))
    same(ops.permute(ops.permute(x, order), np.argsort(order).tolist()), x.numpy())


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_tensors_pass_through(shape: tuple[int, ...]) -> None:
    x = Tensor(np.zeros(shape), dtype="float64")
    for f in (ops.exp, ops.relu, ops.sigmoid, ops.softplus, ops.square, ops.negate, lambda x: x + x, lambda x: 2 / x):
        out = f(x)
        assert out.shape == shape
        out.sum().backward()
        assert x.grad.shape == shape
