"""Checks of homework 4, part 1: the operators on needle's own NDArray.

python -m pytest tests/hw4 -k nd_backend

Values are compared with float64 NumPy, gradients with central differences and an uneven upstream gradient.
"""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from needle import backend_ndarray as nd
from stages import assert_close, assert_same, devices, numerical_gradients, upstream

on_devices = pytest.mark.parametrize("device", devices())
with_shapes = pytest.mark.parametrize("shape", [(1, 1, 1), (4, 5, 6)])


def numbers(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def positive(*shape, seed=0):
    return numbers(*shape, seed=seed, low=0.5, high=2.0)


def tensors(arrays, device):
    """The arrays as tensors, and once more with every array laid out in memory the other way round."""
    plain = [ndl.Tensor(nd.array(a, device=device), device=device) for a in arrays]
    turned = [nd.array(a.T, device=device).permute(tuple(reversed(range(a.ndim)))) for a in arrays]
    return plain, [ndl.Tensor(a, device=device) for a in turned]


def check_forward(f, reference, *arrays, device, terms=16):
    wanted = reference(*(a.astype(np.float64) for a in arrays))
    for inputs in tensors(arrays, device):
        out = f(*inputs)
        assert isinstance(out.cached_data, nd.NDArray) and out.dtype == "float32" and out.device == device
        got = out.numpy()
        assert_close(got.reshape(np.shape(wanted)) if np.ndim(wanted) == 0 else got, wanted, terms)


def check_backward(f, reference, *arrays, device, terms=1000):
    for inputs in tensors(arrays, device):
        out = f(*inputs)
        weights = upstream(out.shape)
        out.backward(ndl.Tensor(weights, device=device))
        for leaf, want in zip(inputs, numerical_gradients(reference, arrays, weights), strict=True):
            assert isinstance(leaf.grad.cached_data, nd.NDArray) and leaf.grad.device == device
            assert_close(leaf.grad, want, terms)


# ---- element-wise ---------------------------------------------------------------------------------------------------


EWISE = {
    "divide": lambda a, b: a / b,
    "subtract": lambda a, b: a - b,
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
}
SCALAR = {
    "divide": lambda a: a / 0.7,
    "subtract": lambda a: a - 1.3,
    "power": lambda a: a**2.5,
    "multiply": lambda a: -0.3 * a,
}


@on_devices
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (4, 5, 6)])
@pytest.mark.parametrize("name", EWISE)
def test_ewise_fn(name, shape, device):
    check_forward(EWISE[name], EWISE[name], numbers(*shape), positive(*shape, seed=1), device=device)


@on_devices
@pytest.mark.parametrize("name", EWISE)
def test_ewise_fn_backward(name, device):
    check_backward(EWISE[name], EWISE[name], numbers(2, 3, 4), positive(2, 3, 4, seed=1), device=device)


@on_devices
@with_shapes
@pytest.mark.parametrize("name", SCALAR)
def test_scalar_fn(name, shape, device):
    check_forward(SCALAR[name], SCALAR[name], positive(*shape), device=device)


@on_devices
@pytest.mark.parametrize("name", SCALAR)
def test_scalar_fn_backward(name, device):
    check_backward(SCALAR[name], SCALAR[name], positive(2, 3, 4), device=device)


@on_devices
@pytest.mark.parametrize(
    "m, n, p", [(1, 1, 1), (2, 3, 4), (8, 16, 8), (3, 4, 1), (73, 72, 74), (64, 64, 64), (72, 73, 8)]
)
def test_matmul(m, n, p, device):
    check_forward(lambda a, b: a @ b, lambda a, b: a @ b, numbers(m, n), numbers(n, p, seed=1), device=device, terms=n)


@on_devices
@pytest.mark.parametrize("left, right", [((2, 3), (3, 4)), ((3, 4), (4, 1)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2))])
def test_matmul_backward(left, right, device):
    f = lambda a, b: a @ b
    check_forward(f, f, numbers(*left), numbers(*right, seed=1), device=device)
    check_backward(f, f, numbers(*left), numbers(*right, seed=1), device=device)


@on_devices
@with_shapes
def test_power(shape, device):
    for exponent in (3, 1, 0.5, -1):
        check_forward(lambda a: a**exponent, lambda a: a**exponent, positive(*shape), device=device)  # noqa: B023


@on_devices
def test_power_backward(device):
    for exponent in (3, 1, 0.5, -1):
        check_backward(lambda a: a**exponent, lambda a: a**exponent, positive(2, 3), device=device)  # noqa: B023


@on_devices
@with_shapes
def test_log(shape, device):
    check_forward(ndl.log, np.log, positive(*shape), device=device)


@on_devices
def test_log_backward(device):
    check_backward(ndl.log, np.log, positive(3, 4), device=device)


@on_devices
@with_shapes
def test_exp(shape, device):
    check_forward(ndl.exp, np.exp, numbers(*shape), device=device)


@on_devices
def test_exp_backward(device):
    check_backward(ndl.exp, np.exp, numbers(3, 4), device=device)


@on_devices
@with_shapes
def test_relu(shape, device):
    check_forward(ndl.relu, lambda a: np.maximum(a, 0), numbers(*shape), device=device)


@on_devices
def test_relu_backward(device):
    check_backward(ndl.relu, lambda a: np.maximum(a, 0), numbers(3, 4), device=device)
    x = ndl.Tensor([[-1.0, 0.0, 1.0]], device=device)
    ndl.relu(x).backward()
    assert_same(x.grad.numpy(), [[0, 0, 1]])


@on_devices
@with_shapes
def test_tanh(shape, device):
    check_forward(ndl.tanh, np.tanh, numbers(*shape), device=device)
    check_forward(ndl.tanh, np.tanh, 100 * numbers(*shape), device=device)


@on_devices
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4)])
def test_tanh_backward(shape, device):
    check_backward(ndl.tanh, np.tanh, numbers(*shape), device=device)
    x = ndl.Tensor([[-200.0, 200.0]], device=device)
    ndl.tanh(x).backward()
    assert_same(x.grad.numpy(), [[0, 0]])  # flat, not NaN


# ---- joining --------------------------------------------------------------------------------------------------------

STACKS = [((5, 5), 0, 1), ((5, 4), 0, 2), ((3, 5, 7), 1, 3), ((3, 2), 2, 4), ((4,), 1, 3)]  # shape, axis, how many


@on_devices
@pytest.mark.parametrize("shape, axis, count", STACKS)
def test_stack(shape, axis, count, device):
    arrays = [numbers(*shape, seed=seed) for seed in range(count)]
    f, reference = lambda *a: ndl.stack(a, axis=axis), lambda *a: np.stack(a, axis=axis)
    check_forward(f, reference, *arrays, device=device, terms=0)
    check_forward(lambda *a: ndl.stack(list(a), axis), reference, *arrays, device=device, terms=0)


@on_devices
@pytest.mark.parametrize("shape, axis, count", STACKS)
def test_stack_backward(shape, axis, count, device):
    arrays = [numbers(*shape, seed=seed) for seed in range(count)]
    check_backward(lambda *a: ndl.stack(a, axis=axis), lambda *a: np.stack(a, axis=axis), *arrays, device=device)


def pieces(axis):
    """Split along an axis, as a function to a list of tensors, and the same in NumPy."""
    return lambda a: list(ndl.split(a, axis=axis)), lambda a: [np.take(a, i, axis) for i in range(a.shape[axis])]


@on_devices
@pytest.mark.parametrize("shape, axis", [((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1), ((1, 5), 0)])
def test_split(shape, axis, device):
    split, reference = pieces(axis)
    A = numbers(*shape)
    for x in (inputs[0] for inputs in tensors([A], device)):
        parts, wanted = split(x), reference(A)
        assert len(parts) == len(wanted)
        for part, want in zip(parts, wanted, strict=True):
            assert part.device == device
            assert_same(part, want)


@on_devices
@pytest.mark.parametrize("shape, axis", [((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1)])
def test_split_backward(shape, axis, device):
    split, _ = pieces(axis)
    A = numbers(*shape)
    weights = upstream(shape)
    for [x] in tensors([A], device):
        parts = [np.take(weights, i, axis) for i in range(shape[axis])]
        total = sum((part * ndl.Tensor(w, device=device)).sum() for part, w in zip(split(x), parts, strict=True))
        total.backward()
        assert_close(x.grad, weights)


# ---- reducing and reshaping -----------------------------------------------------------------------------------------

SUMMATIONS = [
    ((2, 3), None),
    ((2, 3), 0),
    ((5, 3), 1),
    ((2, 3, 2), 2),
    ((2, 3, 2), (1,)),
    ((2, 3, 4), (0, 2)),
    ((2, 3), -1),
]


@on_devices
@pytest.mark.parametrize("shape, axes", SUMMATIONS)
def test_summation(shape, axes, device):
    check_forward(
        lambda a: ndl.summation(a, axes=axes), lambda a: a.sum(axis=axes), numbers(*shape), device=device, terms=24
    )
    if axes is None:
        assert ndl.summation(ndl.Tensor(numbers(*shape), device=device)).shape == (1,)


@on_devices
@pytest.mark.parametrize("shape, axes", SUMMATIONS)
def test_summation_backward(shape, axes, device):
    check_backward(lambda a: ndl.summation(a, axes=axes), lambda a: a.sum(axis=axes), numbers(*shape), device=device)


BROADCASTS = [((1, 1, 1), (3, 3, 3)), ((4, 1, 6), (4, 3, 6)), ((2, 1, 1), (2, 3, 2)), ((2, 3), (2, 3))]
RESHAPES = [((1, 1, 1), (1,)), ((4, 1, 6), (6, 4, 1)), ((2, 3), (3, 2)), ((2, 2, 3), (12,))]
LOGSUMEXPS = [((1, 1, 1), None), ((5, 3), 0), ((5, 3), 1), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)), ((3, 3), None)]
AXES = [(0, 1), (0, 2), (1, 2), (2, 1), (-1, 0), None]


def broadcast(wanted):
    return lambda a: ndl.broadcast_to(a, wanted), lambda a: np.broadcast_to(a, wanted)


def reshape(wanted):
    return lambda a: ndl.reshape(a, shape=wanted), lambda a: a.reshape(wanted)


def transpose(axes):
    return lambda a: ndl.transpose(a, axes=axes), lambda a: np.swapaxes(a, *(axes or (-2, -1)))


def logsumexp(axes):
    def reference(a):
        largest = a.max(axis=axes, keepdims=True)
        return np.squeeze(np.log(np.exp(a - largest).sum(axis=axes, keepdims=True)) + largest, axis=axes)

    return lambda a: ndl.logsumexp(a, axes=axes), reference


@on_devices
@pytest.mark.parametrize("shape, wanted", BROADCASTS)
def test_broadcast_to(shape, wanted, device):
    check_forward(*broadcast(wanted), numbers(*shape), device=device, terms=0)


@on_devices
@pytest.mark.parametrize("shape, wanted", [*BROADCASTS, ((3,), (2, 3)), ((1,), (2, 2))])
def test_broadcast_to_backward(shape, wanted, device):
    check_backward(*broadcast(wanted), numbers(*shape), device=device)


@on_devices
@pytest.mark.parametrize("shape, wanted", RESHAPES)
def test_reshape(shape, wanted, device):
    check_forward(*reshape(wanted), numbers(*shape), device=device, terms=0)


@on_devices
@pytest.mark.parametrize("shape, wanted", RESHAPES)
def test_reshape_backward(shape, wanted, device):
    check_backward(*reshape(wanted), numbers(*shape), device=device)


@on_devices
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4)])
def test_transpose(shape, axes, device):
    check_forward(*transpose(axes), numbers(*shape), device=device, terms=0)


@on_devices
@pytest.mark.parametrize("axes", AXES)
def test_transpose_backward(axes, device):
    check_backward(*transpose(axes), numbers(2, 3, 4), device=device)


@on_devices
@pytest.mark.parametrize("shape, axes", LOGSUMEXPS)
def test_logsumexp(shape, axes, device):
    check_forward(*logsumexp(axes), numbers(*shape), device=device, terms=24)
    check_forward(*logsumexp(axes), 1e9 * numbers(*shape), device=device)


@on_devices
@pytest.mark.parametrize("shape, axes", LOGSUMEXPS)
def test_logsumexp_backward(shape, axes, device):
    check_backward(*logsumexp(axes), numbers(*shape), device=device)
