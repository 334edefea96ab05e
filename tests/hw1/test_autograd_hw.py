"""Checks of homework 1: operators forward and backward, topological sort, reverse mode, softmax loss, one epoch.

python -m pytest tests/hw1 -k forward      and likewise: backward, topo_sort, compute_gradient, softmax_loss, nn_epoch

Forward passes are compared with NumPy, gradients with central differences in float64 and an upstream gradient whose
entries all differ.  No check needs a later question.
"""

from __future__ import annotations

import gzip

import needle as ndl
import numpy as np
import pytest
import simple_ml
from stages import assert_close, assert_same, assert_within, need_real_data, numerical_gradients, upstream, write_mnist

TIGHT = 1e-6  # central differences of smooth functions near 1 are right to about 1e-9


def numbers(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.RandomState(seed).uniform(low, high, shape)


def positive(*shape, seed=0):
    return numbers(*shape, seed=seed, low=0.5, high=3.0)


def turned(array):
    """The same numbers, stored in another order: as a transposed view would have them."""
    return np.asfortranarray(array)


def check_forward(f, reference, *arrays):
    """f on Tensors equals reference on arrays, in value, shape and type, whatever the order in memory and the type."""
    for arrange in (np.ascontiguousarray, turned):
        for dtype in (np.float64, np.float32):
            inputs = [arrange(a.astype(dtype)) for a in arrays]
            out = f(*(ndl.Tensor(a) for a in inputs))
            assert out.dtype == dtype, f"dtype {out.dtype}, wanted {np.dtype(dtype)}"
            assert_close(out, reference(*(a.astype(np.float64) for a in inputs)))


def check_backward(f, reference, *arrays):
    """The gradients of the operator behind f, against central differences of reference; twice, the results agree."""
    tensors = [ndl.Tensor(a) for a in arrays]
    out = f(*tensors)
    weights = upstream(out.shape)
    expected = numerical_gradients(reference, arrays, weights)
    for _ in range(2):
        gradients = out.op.gradient_as_tuple(ndl.Tensor(weights), out)
        assert len(gradients) == len(arrays)
        for got, want in zip(gradients, expected, strict=True):
            assert isinstance(got, ndl.Tensor), f"a gradient is made of needle operators; got {type(got)}"
            assert got.shape == want.shape, f"gradient of shape {got.shape}, wanted {want.shape}"
            assert_within(got.numpy(), want, rtol=TIGHT, atol=TIGHT)


# ---- question 1: forward --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", [2, 3, 0.5, -1.5, 0, 1])
def test_power_scalar_forward(scalar):
    check_forward(lambda a: ndl.power_scalar(a, scalar), lambda a: a**scalar, positive(3, 2))
    assert_close(ndl.power_scalar(ndl.Tensor([[-2.0, 0.0]]), 3), [[-8, 0]])
    assert_close(ndl.Tensor([[-2.0, 0.0]]) ** 2, [[4, 0]])


def test_divide_forward():
    check_forward(ndl.divide, lambda a, b: a / b, numbers(3, 2), positive(3, 2, seed=1))
    assert_close(ndl.Tensor([[6.0, -9]]) / ndl.Tensor([[-2.0, 3]]), [[-3, -3]])


def test_divide_scalar_forward():
    check_forward(lambda a: ndl.divide_scalar(a, 0.7), lambda a: a / 0.7, numbers(2, 3))
    assert_close(ndl.Tensor([[3.0, -5]]) / 2, [[1.5, -2.5]])
    assert_close(ndl.Tensor([[3.0, -5]]) / np.array([2.0]), [[1.5, -2.5]])


@pytest.mark.parametrize(
    "left, right",
    [((3, 4), (4, 2)), ((1, 3), (3, 1)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)), ((3, 4), (5, 4, 2)),
     ((2, 1, 3, 4), (1, 5, 4, 2))],
)  # fmt: skip
def test_matmul_forward(left, right):
    check_forward(ndl.matmul, np.matmul, numbers(*left), numbers(*right, seed=1))


@pytest.mark.parametrize("axes", [None, 0, 1, -1, (1,), (0, 2), (1, -1), (0, 1, 2)])
def test_summation_forward(axes):
    check_forward(lambda a: ndl.summation(a, axes=axes), lambda a: a.sum(axis=axes), numbers(2, 3, 4))


BROADCASTS = [((3, 1), (3, 4)), ((4,), (3, 4)), ((1, 3), (2, 3)), ((1,), (2, 3, 4)), ((), (2, 3)),
              ((5, 1, 1), (5, 2, 4)), ((3, 4), (3, 4)), ((1, 1), (1, 1))]  # fmt: skip


@pytest.mark.parametrize("shape, wanted", BROADCASTS)
def test_broadcast_to_forward(shape, wanted):
    check_forward(lambda a: ndl.broadcast_to(a, wanted), lambda a: np.broadcast_to(a, wanted), numbers(*shape))


RESHAPES = [((4, 3), (2, 6)), ((2, 3, 4), (24,)), ((6,), (1, 3, 2)), ((1, 1), ())]


@pytest.mark.parametrize("shape, wanted", RESHAPES)
def test_reshape_forward(shape, wanted):
    check_forward(lambda a: ndl.reshape(a, wanted), lambda a: a.reshape(wanted), numbers(*shape))


def test_negate_forward():
    check_forward(ndl.negate, lambda a: -a, numbers(3, 2))
    assert_close(-ndl.Tensor([[1.0, -2]]), [[-1, 2]])


@pytest.mark.parametrize("axes", [None, (0, 1), (1, 0), (0, 2), (1, 2), (-1, 0)])
def test_transpose_forward(axes):
    check_forward(
        lambda a: ndl.transpose(a, axes=axes), lambda a: np.swapaxes(a, *(axes or (-2, -1))), numbers(2, 3, 4)
    )


def test_log_forward():
    check_forward(ndl.log, np.log, positive(3, 2))


def test_exp_forward():
    check_forward(ndl.exp, np.exp, numbers(3, 2))


def test_ewisepow_forward():
    check_forward(ndl.power, np.power, positive(3, 2), numbers(3, 2, seed=1))
    assert_close(ndl.power(ndl.Tensor([[2.0, 3]]), ndl.Tensor([[3.0, 0]])), [[8, 1]])


# ---- question 2: backward -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", [2, 3, 0.5, -1.5, 1, 0])
def test_power_scalar_backward(scalar):
    check_backward(lambda a: ndl.power_scalar(a, scalar), lambda a: a**scalar, positive(3, 2))


def test_divide_backward():
    check_backward(ndl.divide, lambda a, b: a / b, numbers(3, 2), positive(3, 2, seed=1))


def test_divide_scalar_backward():
    check_backward(lambda a: ndl.divide_scalar(a, -0.7), lambda a: a / -0.7, numbers(3, 2))


@pytest.mark.parametrize("left, right", [((3, 4), (4, 2)), ((1, 3), (3, 1)), ((2, 2), (2, 2))])
def test_matmul_simple_backward(left, right):
    check_backward(ndl.matmul, np.matmul, numbers(*left), numbers(*right, seed=1))


@pytest.mark.parametrize(
    "left, right",
    [((3, 2, 4), (3, 4, 2)), ((3, 2, 4), (4, 2)), ((2, 4), (3, 4, 2)), ((2, 1, 2, 3), (1, 3, 3, 2)),
     ((2, 3, 2, 4), (4, 2)), ((4, 2), (2, 1, 2, 3))],
)  # fmt: skip
def test_matmul_batched_backward(left, right):
    check_backward(ndl.matmul, np.matmul, numbers(*left), numbers(*right, seed=1))


@pytest.mark.parametrize("shape, wanted", RESHAPES)
def test_reshape_backward(shape, wanted):
    check_backward(lambda a: ndl.reshape(a, wanted), lambda a: a.reshape(wanted), numbers(*shape))


def test_negate_backward():
    check_backward(ndl.negate, lambda a: -a, numbers(3, 2))


@pytest.mark.parametrize("axes", [None, (0, 1), (1, 0), (0, 2), (1, 2), (-1, 0)])
def test_transpose_backward(axes):
    check_backward(
        lambda a: ndl.transpose(a, axes=axes), lambda a: np.swapaxes(a, *(axes or (-2, -1))), numbers(2, 3, 4)
    )


@pytest.mark.parametrize("shape, wanted", BROADCASTS)
def test_broadcast_to_backward(shape, wanted):
    check_backward(lambda a: ndl.broadcast_to(a, wanted), lambda a: np.broadcast_to(a, wanted), numbers(*shape))


@pytest.mark.parametrize("axes", [None, 0, 1, -1, (1,), (0, 2), (1, -1), (0, 1, 2)])
def test_summation_backward(axes):
    check_backward(lambda a: ndl.summation(a, axes=axes), lambda a: a.sum(axis=axes), numbers(2, 3, 4))


def test_log_backward():
    check_backward(ndl.log, np.log, positive(3, 2))


def test_exp_backward():
    check_backward(ndl.exp, np.exp, numbers(3, 2))


def test_ewisepow_backward():
    bases, exponents = positive(3, 2), numbers(3, 2, seed=1)
    bases[0, 0] = exponents[1, 0] = 1
    check_backward(ndl.power, np.power, bases, exponents)


# ---- question 3: topological sort -----------------------------------------------------------------------------------


def assert_order(roots, wanted):
    """find_topo_sort gives exactly these nodes, in this order."""
    got = ndl.autograd.find_topo_sort(roots)
    names = {id(node): f"wanted[{i}]" for i, node in enumerate(wanted)}
    assert [id(node) for node in got] == [id(node) for node in wanted], (
        f"got {[names.get(id(node), 'another node') for node in got]}"
    )


def test_topo_sort():
    a, b = ndl.Tensor([[1.0]]), ndl.Tensor([[2.0]])
    assert_order([a], [a])
    product = a * b
    assert_order([product], [a, b, product])
    turned_round = b * a
    assert_order([turned_round], [b, a, turned_round])

    # a diamond: every node once, after its inputs; the left input and all below it first
    left = product + a
    right = ndl.log(product)
    top = left / right
    assert_order([top], [a, b, product, left, right, top])
    other_top = right * left
    assert_order([other_top], [a, b, product, right, left, other_top])
    assert_order([left, top], [a, b, product, left, right, top])
    assert_order([top, left], [a, b, product, left, right, top])  # left is there already

    # subtraction is two nodes, a scalar is none
    difference = a - b
    assert_order([difference], [a, b, difference.inputs[1], difference])
    shifted = 2 * a + 1
    assert_order([shifted], [a, shifted.inputs[0], shifted])


def test_topo_sort_of_a_long_chain():
    x = ndl.Tensor([1.0])
    chain = [x]
    for _ in range(400):
        chain.append(chain[-1] + 1)
    assert_order([chain[-1]], chain)


def test_topo_sort_of_sums_of_sums():
    chain = [ndl.Tensor([1.0])]
    for _ in range(40):  # 2⁴⁰ paths lead to the leaf: each node must be visited once
        chain.append(chain[-1] + chain[-1])
    assert_order([chain[-1]], chain)


# ---- question 4: reverse mode ---------------------------------------------------------------------------------------


def check_leaves(f, reference, *arrays):
    """f(...).backward(weights) leaves on every input what central differences say."""
    tensors = [ndl.Tensor(a) for a in arrays]
    out = f(*tensors)
    weights = upstream(out.shape)
    out.backward(ndl.Tensor(weights))
    for tensor, want in zip(tensors, numerical_gradients(reference, arrays, weights), strict=True):
        assert tensor.grad.shape == want.shape
        assert_within(tensor.grad.numpy(), want, rtol=TIGHT, atol=TIGHT)


def test_compute_gradient():
    a, b, c = numbers(3, 4), numbers(4, 2, seed=1), positive(3, 2, seed=2)
    check_leaves(lambda a, b, c: (a @ b) / c + a @ b, lambda a, b, c: (a @ b) / c + a @ b, a, b, c)
    check_leaves(lambda a: a * a * a, lambda a: a**3, a)  # used three times
    check_leaves(lambda a, b: (a + b) * (a - b), lambda a, b: a * a - b * b, a, a + 0.5)
    check_leaves(
        lambda a, c: ndl.exp(a.reshape((2, 6)).transpose()).sum(axes=0).broadcast_to((3, 2)) * ndl.log(c),
        lambda a, c: np.broadcast_to(np.exp(a.reshape(2, 6).T).sum(axis=0), (3, 2)) * np.log(c),
        a, c,
    )  # fmt: skip


def test_compute_gradient_seed_is_ones():
    x = ndl.Tensor(numbers(3, 2))
    (x * x).backward()
    assert_close(x.grad, 2 * x.numpy())


def test_compute_gradient_overwrites():
    x = ndl.Tensor([3.0])
    y = x * x
    y.backward()
    y.backward()
    assert_close(x.grad, [6.0])
    (5 * x).backward()
    assert_close(x.grad, [5.0])


def test_compute_gradient_of_gradient():
    x = ndl.Tensor([[2.0, -3.0]])
    y = x * x * x + x * x
    y.backward()
    assert_close(x.grad, 3 * x.numpy() ** 2 + 2 * x.numpy())
    x.grad.backward()
    assert_close(x.grad, 6 * x.numpy() + 2)
    x.grad.backward()
    assert_close(x.grad, [[6.0, 6.0]])


def test_compute_gradient_of_integers():
    x = ndl.Tensor([1, 2, 3])
    (x * x).backward()
    assert_close(x.grad, [2, 4, 6])


# ---- question 5: softmax loss ---------------------------------------------------------------------------------------


def cross_entropy(logits, one_hot):
    """Mean over rows of -log of the probability of the right class."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return -np.mean(np.log((odds * one_hot).sum(axis=1) / odds.sum(axis=1)))


@pytest.mark.parametrize("rows, classes", [(1, 2), (7, 3), (50, 10)])
def test_softmax_loss_ndl(rows, classes):
    logits = 3 * np.random.RandomState(rows).randn(rows, classes)
    one_hot = np.eye(classes)[np.arange(rows) * 7 % classes]
    Z = ndl.Tensor(logits)
    loss = simple_ml.softmax_loss(Z, ndl.Tensor(one_hot))
    assert isinstance(loss, ndl.Tensor) and loss.shape == ()
    assert_close(loss, cross_entropy(logits, one_hot), terms=100)

    loss.backward()
    [want] = numerical_gradients(lambda z: cross_entropy(z, one_hot), [logits], np.array(1.0))
    assert_within(Z.grad.numpy(), want, rtol=TIGHT, atol=TIGHT)


def test_softmax_loss_ndl_parse_mnist(tmp_path):
    pixels, labels = write_mnist(tmp_path, "train", 20, side=7)
    X, y = simple_ml.parse_mnist(
        str(tmp_path / "train-images-idx3-ubyte.gz"), str(tmp_path / "train-labels-idx1-ubyte.gz")
    )
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((20, 49), np.float32, (20,), np.uint8)
    assert_close(X, pixels.reshape(20, 49) / 255)
    assert_same(y, labels)


# ---- question 6: one epoch of stochastic gradient descent -----------------------------------------------------------


def after_one_epoch(X, y, weights, lr, batch):
    """What gradient descent makes of W1 and W2; gradients by central differences."""
    one_hot = np.eye(weights[1].shape[1])[y]
    for start in range(0, len(X), batch):
        part = slice(start, start + batch)
        loss = lambda W1, W2: cross_entropy(np.maximum(X[part] @ W1, 0) @ W2, one_hot[part])  # noqa: B023
        gradients = numerical_gradients(loss, weights, np.array(1.0))
        weights = [w - lr * g for w, g in zip(weights, gradients, strict=True)]
    return weights


@pytest.mark.parametrize("rows, batch", [(12, 4), (11, 4), (7, 100)])
def test_nn_epoch_ndl(rows, batch):
    random = np.random.RandomState(rows)
    X, y = random.randn(rows, 5).astype(np.float32), (np.arange(rows) % 3).astype(np.uint8)
    weights = [random.randn(5, 6), random.randn(6, 3)]
    trained = simple_ml.nn_epoch(X, y, *(ndl.Tensor(w) for w in weights), lr=0.5, batch=batch)
    assert len(trained) == 2
    for got, want in zip(trained, after_one_epoch(X, y, weights, 0.5, batch), strict=True):
        assert isinstance(got, ndl.Tensor) and got.shape == want.shape
        assert_within(got.numpy(), want, rtol=1e-6, atol=1e-6)


RELU_INPUT = np.array([[-1.5, 0.0, 2.0], [3.0, -0.1, 0.1]])


def test_nn_epoch_ndl_relu():
    for dtype in (np.float64, np.float32):
        out = ndl.relu(ndl.Tensor(RELU_INPUT.astype(dtype)))
        assert out.dtype == dtype
        assert_close(out, [[0, 0, 2], [3, 0, 0.1]])
    check_forward(ndl.relu, lambda a: np.maximum(a, 0), numbers(3, 4))


def test_nn_epoch_ndl_relu_gradient():
    for dtype in (np.float64, np.float32):
        out = ndl.relu(ndl.Tensor(RELU_INPUT.astype(dtype)))
        [gradient] = out.op.gradient_as_tuple(ndl.Tensor(np.array([[1.0, 2, 3], [4, 5, 6]], dtype)), out)
        assert isinstance(gradient, ndl.Tensor)
        assert_close(gradient, [[0, 0, 3], [4, 0, 6]])
    check_backward(ndl.relu, lambda a: np.maximum(a, 0), numbers(3, 4))


def test_nn_epoch_ndl_learns_mnist():
    folder = need_real_data("mnist")
    X, y = simple_ml.parse_mnist(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz")
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        assert len(file.read()) - 16 == X.size
    random = np.random.RandomState(0)
    weights = [ndl.Tensor(random.randn(784, 50).astype(np.float32) / 28), ndl.Tensor(random.randn(50, 10) / 7)]
    weights = simple_ml.nn_epoch(X[:8000], y[:8000], *weights, lr=0.2, batch=100)
    loss, error = simple_ml.loss_err(ndl.relu(ndl.Tensor(X[8000:]) @ weights[0]) @ weights[1], y[8000:])
    assert error < 0.15 and loss < 0.5
