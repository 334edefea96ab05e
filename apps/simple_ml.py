"""Losses and training loops of the course."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

# >>> hw4
# isort: split
from typing import Any

# <<< hw4
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import numpy as np

# >>> hw4
# isort: split
from needle import nn

# <<< hw4

# ---- hw1: a two-layer network on MNIST, with gradients by autodiff --------------------------------------------------


def parse_mnist(image_filename: str, label_filename: str) -> tuple[np.ndarray, np.ndarray]:
    """Read images and labels from two gzipped files in MNIST's IDX format.

    An image file is a big-endian header of four uint32 (2051, count, rows, columns), then one byte per pixel; a label
    file two uint32 (2049, count), then one byte per label.

    Returns
        X  float32 (count, rows * columns): pixel / 255, in [0, 1]
        y  uint8 (count,)
    """
    ### BEGIN YOUR SOLUTION hw1/parse_mnist
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
    ### END YOUR SOLUTION hw1/parse_mnist


def softmax_loss(Z: ndl.Tensor, y_one_hot: ndl.Tensor) -> ndl.Tensor:
    """The mean cross-entropy of softmax(Z) with labels given as rows of zeros and a one.

    Z          logits (batch, classes)
    y_one_hot  1 at the right class of each row, else 0 (batch, classes)

    Returns a Tensor of one element that can be differentiated: the mean over rows of log(sum_j exp(Z_j)) - Z_y.
    """
    ### BEGIN YOUR SOLUTION hw1/softmax_loss
    # exp of a large logit would overflow; a constant that is taken off a whole row changes neither loss nor gradient
    largest = np.broadcast_to(Z.numpy().max(axis=1, keepdims=True), Z.shape)
    Z = Z - ndl.Tensor(largest, device=Z.device, dtype=Z.dtype, requires_grad=False)
    log_sum_exp = ndl.log(ndl.summation(ndl.exp(Z), axes=(1,)))
    right = ndl.summation(Z * y_one_hot, axes=(1,))
    return ndl.summation(log_sum_exp - right) / Z.shape[0]
    ### END YOUR SOLUTION hw1/softmax_loss


def nn_epoch(
    X: np.ndarray, y: np.ndarray, W1: ndl.Tensor, W2: ndl.Tensor, lr: float = 0.1, batch: int = 100
) -> tuple[ndl.Tensor, ndl.Tensor]:
    """One epoch of stochastic gradient descent on the network relu(X W1) W2.

    X      inputs, float32 (m, n)
    y      labels, uint8 (m,)
    W1     first weights (n, hidden)
    W2     second weights (hidden, classes)
    lr     step size
    batch  rows per step, taken in order; the last step may have fewer

    Returns the trained W1 and W2 as new Tensors.
    """
    ### BEGIN YOUR SOLUTION hw1/nn_epoch
    classes = W2.shape[1]
    for first in range(0, len(X), batch):
        inputs = ndl.Tensor(X[first : first + batch], requires_grad=False)
        y_one_hot = ndl.Tensor(np.eye(classes)[y[first : first + batch]], requires_grad=False)
        loss = softmax_loss(ndl.relu(inputs @ W1) @ W2, y_one_hot)
        loss.backward()
        W1 = ndl.Tensor(W1.numpy() - lr * W1.grad.numpy())
        W2 = ndl.Tensor(W2.numpy() - lr * W2.grad.numpy())
    return W1, W2
    ### END YOUR SOLUTION hw1/nn_epoch


def loss_err(h: ndl.Tensor, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The loss of the logits h, and the share of rows whose largest logit is not at y."""
    y_one_hot = ndl.Tensor(np.eye(h.shape[1])[y], requires_grad=False)
    return softmax_loss(h, y_one_hot).numpy(), np.mean(h.numpy().argmax(axis=1) != y)


# >>> hw4
# ---- hw4: pictures --------------------------------------------------------------------------------------------------


def epoch_general_cifar10(
    dataloader: ndl.data.DataLoader,
    model: nn.Module,
    loss_fn: nn.Module = nn.SoftmaxLoss(),  # noqa: B008  (it holds no state)
    opt: ndl.optim.Optimizer | None = None,
) -> tuple[float, float]:
    """One pass over the data: training if an optimizer is given, else evaluation.

    Returns the accuracy and the mean loss over all samples.  Batches are put on the device of the model.
    """
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/epoch_cifar10
    model.train() if opt else model.eval()
    device = model.parameters()[0].device
    right, total_loss, count = 0, 0.0, 0
    for X, y in dataloader:
        X, y = X.to(device), y.to(device)
        logits = model(X)
        loss = loss_fn(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
        right += int((logits.numpy().argmax(axis=1) == y.numpy()).sum())
        total_loss += loss.item() * y.shape[0]
        count += y.shape[0]
    return right / count, total_loss / count
    ### END YOUR SOLUTION hw4/epoch_cifar10


def train_cifar10(
    model: nn.Module,
    dataloader: ndl.data.DataLoader,
    n_epochs: int = 1,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.Adam,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
) -> tuple[float, float]:
    """Train the model for n_epochs passes; returns the accuracy and the mean loss of the last one."""
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/train_cifar10
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        accuracy, loss = epoch_general_cifar10(dataloader, model, loss_fn=loss_fn(), opt=opt)
    return accuracy, loss
    ### END YOUR SOLUTION hw4/train_cifar10


def evaluate_cifar10(
    model: nn.Module, dataloader: ndl.data.DataLoader, loss_fn: type[nn.Module] = nn.SoftmaxLoss
) -> tuple[float, float]:
    """The accuracy and the mean loss of the model, which stays as it is."""
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/evaluate_cifar10
    with ndl.no_grad():
        return epoch_general_cifar10(dataloader, model, loss_fn=loss_fn())
    ### END YOUR SOLUTION hw4/evaluate_cifar10


# ---- hw4: text ------------------------------------------------------------------------------------------------------


def epoch_general_ptb(
    data: np.ndarray,
    model: nn.Module,
    seq_len: int = 40,
    loss_fn: nn.Module = nn.SoftmaxLoss(),  # noqa: B008  (it holds no state)
    opt: ndl.optim.Optimizer | None = None,
    clip: float | None = None,
    device: Any = None,
    dtype: str = "float32",
) -> tuple[float, float]:
    """One pass over a batchified text: training if an optimizer is given, else evaluation.

    data     word ids (rows, texts side by side), as ndl.data.batchify makes them
    seq_len  rows per step; the hidden state is carried from step to step, gradients are not
    clip     bound on the norm of the gradient, or None

    Returns the accuracy and the mean loss over all words predicted.
    """
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/epoch_ptb
    model.train() if opt else model.eval()
    right, total_loss, count, h = 0, 0.0, 0, None
    for i in range(0, len(data) - 1, seq_len):
        X, y = ndl.data.get_batch(data, i, seq_len, device=device, dtype=dtype)
        logits, h = model(X, h)
        h = tuple(state.detach() for state in h) if isinstance(h, tuple) else h.detach()
        loss = loss_fn(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            if clip is not None:
                opt.clip_grad_norm(clip)
            opt.step()
        right += int((logits.numpy().argmax(axis=1) == y.numpy()).sum())
        total_loss += loss.item() * y.shape[0]
        count += y.shape[0]
    return right / count, total_loss / count
    ### END YOUR SOLUTION hw4/epoch_ptb


def train_ptb(
    model: nn.Module,
    data: np.ndarray,
    seq_len: int = 40,
    n_epochs: int = 1,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.SGD,
    lr: float = 4.0,
    weight_decay: float = 0.0,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
    clip: float | None = None,
    device: Any = None,
    dtype: str = "float32",
) -> tuple[float, float]:
    """Train the model for n_epochs passes over the text; returns the accuracy and the mean loss of the last one."""
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/train_ptb
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        accuracy, loss = epoch_general_ptb(data, model, seq_len, loss_fn(), opt, clip, device, dtype)
    return accuracy, loss
    ### END YOUR SOLUTION hw4/train_ptb


def evaluate_ptb(
    model: nn.Module,
    data: np.ndarray,
    seq_len: int = 40,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
    device: Any = None,
    dtype: str = "float32",
) -> tuple[float, float]:
    """The accuracy and the mean loss of the model on the text; the model stays as it is."""
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw4/evaluate_ptb
    with ndl.no_grad():
        return epoch_general_ptb(data, model, seq_len, loss_fn(), device=device, dtype=dtype)
    ### END YOUR SOLUTION hw4/evaluate_ptb


# <<< hw4
