"""What is handed in for homework 0: `python3 -m mugrade submit KEY hw0 -k add`, and likewise for the others."""

from __future__ import annotations

import mugrade
import numpy as np
import simple_ml
from helpers import samples, write_idx


def submit_add():
    for x, y in ((1, 2), (2.5, -1), (np.array([1.0, 2.0]), 3)):
        total = simple_ml.add(x, y)
        mugrade.submit(total)
        mugrade.submit(type(total))


def submit_parse_mnist(tmp_path):
    pixels = np.random.RandomState(3).randint(0, 256, (6, 5, 4), dtype=np.uint8)
    labels = np.array([4, 0, 9, 1, 1, 7], np.uint8)
    images_file = write_idx(tmp_path / "images.gz", 2051, pixels.shape, pixels.tobytes())
    X, y = simple_ml.parse_mnist(str(images_file), str(write_idx(tmp_path / "labels.gz", 2049, labels.shape, labels)))
    for value in (X, y, X.dtype, y.dtype, X.shape):
        mugrade.submit(value)


def submit_softmax_loss():
    random = np.random.RandomState(4)
    for rows, classes in ((1, 3), (40, 10)):
        mugrade.submit(simple_ml.softmax_loss(2 * random.randn(rows, classes), random.randint(classes, size=rows)))


def submit_softmax_regression_epoch():
    regression(simple_ml.softmax_regression_epoch)


def submit_nn_epoch():
    X, y = samples(20, 6, 4, seed=5)
    random = np.random.RandomState(6)
    W1, W2 = random.randn(6, 5).astype(np.float32), random.randn(5, 4).astype(np.float32)
    for batch in (20, 8):
        simple_ml.nn_epoch(X, y, W1, W2, lr=0.5, batch=batch)
        mugrade.submit((W1, W2))


def submit_softmax_regression_epoch_cpp(extension):
    regression(extension.softmax_regression_epoch_cpp)


def regression(epoch):
    X, y = samples(20, 6, 4, seed=5)
    theta = np.zeros((6, 4), np.float32)
    for batch in (20, 8):
        epoch(X, y, theta, lr=0.7, batch=batch)
        mugrade.submit(theta)
