"""Checks of homework 0. Run them all with `make test`, or one with `python -m pytest tests -k parse_mnist`.

Gradients are compared with central differences of the loss in float64, so that no check contains an answer.
"""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import simple_ml
from helpers import assert_same, assert_within, samples, write_idx

NO_BATCH_REMAINDER, SHORT_LAST_BATCH, ONE_STEP = (12, 4), (11, 4), (7, 100)  # (rows, batch)


# ---- what the checks share ------------------------------------------------------------------------------------------


def cross_entropy(Z, y):
    """Mean over rows of -log of the probability that softmax gives to the right class; row by row, in float64."""
    losses = []
    for logits, label in zip(np.asarray(Z, np.float64), y, strict=True):
        odds = np.exp(logits - logits[label])  # against the right class
        losses.append(np.log(odds.sum()))
    return sum(losses) / len(losses)


def numerical_gradient(loss, weights, eps=1e-5):
    """Central differences of loss() with respect to each entry of weights (float64), which is left as it was."""
    gradient = np.zeros_like(weights)
    for index in np.ndindex(weights.shape):
        kept = weights[index]
        weights[index] = kept + eps
        above = loss()
        weights[index] = kept - eps
        below = loss()
        weights[index] = kept
        gradient[index] = (above - below) / (2 * eps)
    return gradient


def after_one_epoch(logits, weights, X, y, lr, batch):
    """What gradient descent makes of the list of float64 weights, with the gradients of all taken before any moves."""
    for start in range(0, len(X), batch):
        X_b, y_b = X[start : start + batch], y[start : start + batch]
        gradients = [numerical_gradient(lambda: cross_entropy(logits(X_b, *weights), y_b), w) for w in weights]  # noqa: B023
        for w, gradient in zip(weights, gradients, strict=True):
            w -= lr * gradient
    return weights


def read_body(path, header_bytes):
    with gzip.open(path) as file:
        return np.frombuffer(file.read()[header_bytes:], np.uint8)


# ---- the questions --------------------------------------------------------------------------------------------------


def test_add():
    assert simple_ml.add(5, 6) == 11
    assert type(simple_ml.add(5, 6)) is int
    assert simple_ml.add(3, -0.5) == 2.5
    assert type(simple_ml.add(5.0, 6)) is float
    assert_same(simple_ml.add(np.array([1, 2]), np.array([3.5, -4])), [4.5, -2])
    assert_same(simple_ml.add(np.ones((2, 1)), np.arange(3)), [[1, 2, 3], [1, 2, 3]])


def test_parse_mnist(tmp_path):
    random = np.random.RandomState(0)
    pixels = random.randint(0, 200, (5, 4, 3), dtype=np.uint8)  # no image has a 255: dividing by its own maximum shows
    labels = np.array([7, 0, 9, 255, 1], np.uint8)
    images_file = write_idx(tmp_path / "images.gz", 2051, pixels.shape, pixels.tobytes())
    labels_file = write_idx(tmp_path / "labels.gz", 2049, labels.shape, labels)

    X, y = simple_ml.parse_mnist(str(images_file), str(labels_file))
    assert (X.shape, X.dtype) == ((5, 12), np.float32)
    assert (y.shape, y.dtype) == ((5,), np.uint8)
    assert_within(X, pixels.reshape(5, 12) / 255, rtol=2 * np.finfo(np.float32).eps)
    assert_same(y, labels)


@pytest.mark.parametrize("split, count", [("train", 60000), ("t10k", 10000)])
def test_parse_mnist_real(mnist, split, count):
    images_file, labels_file = mnist / f"{split}-images-idx3-ubyte.gz", mnist / f"{split}-labels-idx1-ubyte.gz"
    X, y = simple_ml.parse_mnist(images_file, labels_file)
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((count, 784), np.float32, (count,), np.uint8)
    body, labels = read_body(images_file, 16), read_body(labels_file, 8)
    assert_same(np.rint(X[::97] * 255).astype(np.uint8), body.reshape(count, 784)[::97])
    assert_same(y, labels)
    assert X.min() == 0 and X.max() == 1


def test_softmax_loss():
    random = np.random.RandomState(0)
    for rows, classes in [(1, 2), (50, 10), (1000, 3)]:
        Z, y = 3 * random.randn(rows, classes), random.randint(classes, size=rows).astype(np.uint8)
        assert_within(simple_ml.softmax_loss(Z, y), cross_entropy(Z, y), rtol=1e-12)
        assert_within(simple_ml.softmax_loss(Z.astype(np.float32), y), cross_entropy(Z, y), rtol=1e-5)
    assert np.shape(simple_ml.softmax_loss(Z, y)) == ()
    assert_within(simple_ml.softmax_loss(np.zeros((4, 10)), np.arange(4)), np.log(10), rtol=1e-12)


@pytest.mark.parametrize("rows, batch", [NO_BATCH_REMAINDER, SHORT_LAST_BATCH, ONE_STEP])
def test_softmax_regression_epoch(rows, batch):
    X, y = samples(rows, 5, 3, seed=rows)
    theta = np.random.RandomState(1).randn(5, 3)
    [expected] = after_one_epoch(lambda X, theta: X @ theta, [theta.copy()], X, y, 0.7, batch)

    for dtype, rtol in ((np.float64, 1e-7), (np.float32, 1e-5)):
        trained, X_before = theta.astype(dtype), X.copy()
        assert simple_ml.softmax_regression_epoch(X, y, trained, lr=0.7, batch=batch) is None
        assert_within(trained, expected, rtol=rtol, atol=rtol)
        assert_same(X, X_before)


def test_softmax_regression_epoch_learns_mnist(mnist):
    X, y = simple_ml.parse_mnist(mnist / "t10k-images-idx3-ubyte.gz", mnist / "t10k-labels-idx1-ubyte.gz")
    theta = np.zeros((784, 10), np.float32)
    simple_ml.softmax_regression_epoch(X[:8000], y[:8000], theta, lr=0.2, batch=100)
    assert np.mean((X[8000:] @ theta).argmax(axis=1) != y[8000:]) < 0.15  # half of that after the whole training set


@pytest.mark.parametrize("rows, batch", [NO_BATCH_REMAINDER, SHORT_LAST_BATCH, ONE_STEP])
def test_nn_epoch(rows, batch):
    X, y = samples(rows, 5, 3, seed=rows)
    random = np.random.RandomState(2)
    weights = [random.randn(5, 6), random.randn(6, 3)]
    expected = after_one_epoch(
        lambda X, W1, W2: np.maximum(X @ W1, 0) @ W2, [w.copy() for w in weights], X, y, 0.5, batch
    )

    for dtype, rtol in ((np.float64, 1e-6), (np.float32, 1e-4)):
        trained = [w.astype(dtype) for w in weights]
        assert simple_ml.nn_epoch(X, y, *trained, lr=0.5, batch=batch) is None
        for got, want in zip(trained, expected, strict=True):
            assert_within(got, want, rtol=rtol, atol=rtol)


def test_nn_epoch_where_units_are_off():
    X = np.ones((2, 3), np.float32)
    W1, W2 = np.full((3, 4), -1.0), np.ones((4, 2))
    simple_ml.nn_epoch(X, np.array([0, 1], np.uint8), W1, W2, lr=1.0, batch=2)
    assert_same(W1, np.full((3, 4), -1))  # no unit fires, so nothing flows back through any
    assert_same(W2, np.ones((4, 2)))


@pytest.mark.parametrize("rows, batch", [NO_BATCH_REMAINDER, SHORT_LAST_BATCH, ONE_STEP])
def test_softmax_regression_epoch_cpp(extension, rows, batch):
    X, y = samples(rows, 5, 3, seed=rows)
    theta = np.random.RandomState(1).randn(5, 3)
    [expected] = after_one_epoch(lambda X, theta: X @ theta, [theta.copy()], X, y, 0.7, batch)

    trained, X_before = theta.astype(np.float32), X.copy()
    assert extension.softmax_regression_epoch_cpp(X, y, trained, lr=0.7, batch=batch) is None
    assert_within(trained, expected, rtol=1e-5, atol=1e-5)
    assert_same(X, X_before)
