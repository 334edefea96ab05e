"""Softmax regression and a two-layer network in plain NumPy: what every later homework automates."""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import sys
from pathlib import Path

import numpy as np

with contextlib.suppress(ImportError):  # everything but the C++ question works before `make`
    from simple_ml_ext import softmax_regression_epoch_cpp


def add(x, y):
    """x + y, for numbers and arrays alike."""
    ### BEGIN YOUR SOLUTION hw0/add
    return x + y
    ### END YOUR SOLUTION hw0/add


def parse_mnist(image_filename, label_filename):
    """Read images and labels from two gzipped files in MNIST's IDX format.

    An image file is a big-endian header of four uint32 (2051, count, rows, columns), then one byte per pixel; a label
    file two uint32 (2049, count), then one byte per label.

    Returns
        X  float32 (count, rows * columns): pixel / 255, in [0, 1]
        y  uint8 (count,)
    """
    ### BEGIN YOUR SOLUTION hw0/parse_mnist
    with gzip.open(image_filename) as images:
        magic, count, rows, columns = struct.unpack(">4I", images.read(16))
        if magic != 2051:
            raise ValueError(f"parse_mnist: {image_filename} starts with {magic}, wanted 2051: not an image file")
        pixels = np.frombuffer(images.read(), dtype=np.uint8)
    with gzip.open(label_filename) as labels:
        magic, label_count = struct.unpack(">2I", labels.read(8))
        if magic != 2049:
            raise ValueError(f"parse_mnist: {label_filename} starts with {magic}, wanted 2049: not a label file")
        y = np.frombuffer(labels.read(), dtype=np.uint8).copy()
    if not (len(y) == label_count == count and len(pixels) == count * rows * columns):
        raise ValueError(f"parse_mnist: {len(pixels)} pixels and {len(y)} labels, wanted {count} images and labels")
    X = pixels.reshape(count, rows * columns).astype(np.float32) / np.float32(255)
    return X, y
    ### END YOUR SOLUTION hw0/parse_mnist


def softmax_loss(Z, y):
    """The mean cross-entropy of softmax(Z) with the labels y.

    Z  logits (batch, classes)
    y  the right class of each row, integers (batch,)

    Returns a number: the mean over rows of log(sum_j exp(Z[i, j])) - Z[i, y[i]].
    """
    ### BEGIN YOUR SOLUTION hw0/softmax_loss
    largest = Z.max(axis=1, keepdims=True)  # exp of a large logit would overflow; shifting a row changes nothing
    log_sum_exp = np.log(np.exp(Z - largest).sum(axis=1)) + largest[:, 0]
    return np.mean(log_sum_exp - Z[np.arange(len(y)), y])
    ### END YOUR SOLUTION hw0/softmax_loss


def softmax_regression_epoch(X, y, theta, lr=0.1, batch=100):
    """One epoch of stochastic gradient descent on softmax regression; changes theta in place, returns None.

    X      inputs, float32 (m, n)
    y      labels, uint8 (m,)
    theta  weights, (n, classes)
    lr     step size
    batch  rows per step, taken in order; the last step may have fewer

    The gradient of a step is X_bᵀ (softmax(X_b theta) - onehot(y_b)) / rows.
    """
    ### BEGIN YOUR SOLUTION hw0/softmax_regression_epoch
    for first in range(0, len(X), batch):
        X_b, y_b = X[first : first + batch], y[first : first + batch]
        logits = X_b @ theta
        error = np.exp(logits - logits.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(y_b)), y_b] -= 1
        theta -= lr / len(X_b) * (X_b.T @ error)
    ### END YOUR SOLUTION hw0/softmax_regression_epoch


def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):
    """One epoch of stochastic gradient descent on the network relu(X W1) W2; changes W1 and W2 in place, returns None.

    X      inputs, float32 (m, n)
    y      labels, uint8 (m,)
    W1     first weights, (n, hidden)
    W2     second weights, (hidden, classes)
    lr     step size
    batch  rows per step, taken in order; the last step may have fewer

    With Z = relu(X_b W1) and E = softmax(Z W2) - onehot(y_b), the gradients are X_bᵀ ((Z > 0) * (E W2ᵀ)) / rows and
    Zᵀ E / rows.
    """
    ### BEGIN YOUR SOLUTION hw0/nn_epoch
    for first in range(0, len(X), batch):
        X_b, y_b = X[first : first + batch], y[first : first + batch]
        Z = np.maximum(X_b @ W1, 0)
        logits = Z @ W2
        error = np.exp(logits - logits.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(y_b)), y_b] -= 1
        grad_1 = X_b.T @ ((Z > 0) * (error @ W2.T))  # before W2 moves, since it reads W2
        grad_2 = Z.T @ error
        W1 -= lr / len(X_b) * grad_1
        W2 -= lr / len(X_b) * grad_2
    ### END YOUR SOLUTION hw0/nn_epoch


# ---- given: to see what has been written learn ----------------------------------------------------------------------


def loss_err(h, y):
    """The loss of the logits h, and the share of rows whose largest logit is not at y."""
    return softmax_loss(h, y), np.mean(h.argmax(axis=1) != y)


def train_softmax(X_tr, y_tr, X_te, y_te, epochs=10, lr=0.5, batch=100, cpp=False):
    """Train softmax regression from zeros, in Python or in C++, with a line per epoch.  Returns theta."""
    theta = np.zeros((X_tr.shape[1], int(y_tr.max()) + 1), dtype=np.float32)
    epoch = softmax_regression_epoch_cpp if cpp else softmax_regression_epoch
    print(TABLE_HEAD)
    for number in range(epochs):
        epoch(X_tr, y_tr, theta, lr=lr, batch=batch)
        print_row(number, loss_err(X_tr @ theta, y_tr), loss_err(X_te @ theta, y_te))
    return theta


def train_nn(X_tr, y_tr, X_te, y_te, hidden_dim=500, epochs=10, lr=0.5, batch=100):
    """Train the two-layer network from small random weights, with a line per epoch.  Returns (W1, W2)."""
    n, k = X_tr.shape[1], int(y_tr.max()) + 1
    np.random.seed(0)
    W1 = np.random.randn(n, hidden_dim).astype(np.float32) / np.float32(hidden_dim**0.5)
    W2 = np.random.randn(hidden_dim, k).astype(np.float32) / np.float32(k**0.5)
    print(TABLE_HEAD)
    for number in range(epochs):
        nn_epoch(X_tr, y_tr, W1, W2, lr=lr, batch=batch)
        print_row(number, *(loss_err(np.maximum(X @ W1, 0) @ W2, y) for X, y in ((X_tr, y_tr), (X_te, y_te))))
    return W1, W2


TABLE_HEAD = "epoch   train loss  train error   test loss  test error"


def print_row(number, train, test):
    print(f"{number:5} {train[0]:12.4f} {train[1]:12.4f} {test[0]:11.4f} {test[1]:11.4f}")


def mnist_files():
    """The four files of MNIST: in the folder mnist of NEEDLE_DATA_DIR, else in the folder data beside src."""
    chosen = os.environ.get("NEEDLE_DATA_DIR")
    folder = Path(chosen) / "mnist" if chosen else Path(__file__).resolve().parents[1] / "data"
    names = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"]
    files = [folder / f"{name}-ubyte.gz" for name in names]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        sys.exit(f"simple_ml: no {missing[0]} in {folder}; put MNIST's four .gz files there, or set NEEDLE_DATA_DIR")
    return files


if __name__ == "__main__":
    train_images, train_labels, test_images, test_labels = mnist_files()
    X_tr, y_tr = parse_mnist(train_images, train_labels)
    X_te, y_te = parse_mnist(test_images, test_labels)

    print("Softmax regression, NumPy")
    train_softmax(X_tr, y_tr, X_te, y_te, lr=0.2)
    if "softmax_regression_epoch_cpp" in globals():
        print("\nSoftmax regression, C++")
        train_softmax(X_tr, y_tr, X_te, y_te, lr=0.2, cpp=True)
    print("\nTwo layers, 100 hidden units")
    train_nn(X_tr, y_tr, X_te, y_te, hidden_dim=100, epochs=20, lr=0.2)
