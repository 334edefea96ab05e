"""A residual MLP on MNIST: the first network that is made of needle's own modules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import needle.nn as nn
import numpy as np

np.random.seed(0)


def ResidualBlock(
    dim: int, hidden_dim: int, norm: Callable[[int], nn.Module] = nn.BatchNorm1d, drop_prob: float = 0.1
) -> nn.Module:
    """relu(x + f(x)), with f through a hidden layer.  (B, dim) → (B, dim)

    f is Linear(dim, hidden_dim), norm, ReLU, Dropout(drop_prob), Linear(hidden_dim, dim), norm.
    """
    ### BEGIN YOUR SOLUTION hw2/residual_block
    path = nn.Sequential(
        nn.Linear(dim, hidden_dim),
        norm(hidden_dim),
        nn.ReLU(),
        nn.Dropout(drop_prob),
        nn.Linear(hidden_dim, dim),
        norm(dim),
    )
    return nn.Sequential(nn.Residual(path), nn.ReLU())
    ### END YOUR SOLUTION hw2/residual_block


def MLPResNet(
    dim: int,
    hidden_dim: int = 100,
    num_blocks: int = 3,
    num_classes: int = 10,
    norm: Callable[[int], nn.Module] = nn.BatchNorm1d,
    drop_prob: float = 0.1,
) -> nn.Module:
    """Linear, ReLU, num_blocks residual blocks (each half as wide inside), Linear.  (B, dim) → (B, num_classes)"""
    ### BEGIN YOUR SOLUTION hw2/mlp_resnet
    return nn.Sequential(
        nn.Linear(dim, hidden_dim),
        nn.ReLU(),
        *(ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob) for _ in range(num_blocks)),
        nn.Linear(hidden_dim, num_classes),
    )
    ### END YOUR SOLUTION hw2/mlp_resnet


def epoch(
    dataloader: ndl.data.DataLoader, model: nn.Module, opt: ndl.optim.Optimizer | None = None
) -> tuple[float, float]:
    """One pass over the data: training if an optimizer is given, else evaluation.

    Returns the error rate and the mean loss over all samples.  Images are flattened, whatever shape they come in.
    """
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw2/epoch
    model.train() if opt else model.eval()
    cross_entropy = nn.SoftmaxLoss()
    wrong, total_loss, count = 0, 0.0, 0
    for images, y in dataloader:
        logits = model(images.reshape((images.shape[0], -1)))
        loss = cross_entropy(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
        wrong += int((logits.numpy().argmax(axis=1) != y.numpy()).sum())
        total_loss += loss.item() * y.shape[0]
        count += y.shape[0]
    return wrong / count, total_loss / count
    ### END YOUR SOLUTION hw2/epoch


def train_mnist(
    batch_size: int = 100,
    epochs: int = 10,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.Adam,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    hidden_dim: int = 100,
    data_dir: str = "data",
) -> tuple[float, float, float, float]:
    """Train an MLPResNet on the MNIST files in data_dir.

    Returns (training error rate, training loss, test error rate, test loss) after the last epoch.
    """
    np.random.seed(4)
    ### BEGIN YOUR SOLUTION hw2/train_mnist
    train, test = (
        ndl.data.MNISTDataset(f"{data_dir}/{part}-images-idx3-ubyte.gz", f"{data_dir}/{part}-labels-idx1-ubyte.gz")
        for part in ("train", "t10k")
    )
    train_loader = ndl.data.DataLoader(train, batch_size, shuffle=True)
    test_loader = ndl.data.DataLoader(test, batch_size)

    model = MLPResNet(28 * 28, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        train_error, train_loss = epoch(train_loader, model, opt)
    test_error, test_loss = epoch(test_loader, model)
    return train_error, train_loss, test_error, test_loss
    ### END YOUR SOLUTION hw2/train_mnist


if __name__ == "__main__":
    print("train error, train loss, test error, test loss:", train_mnist(data_dir=str(ndl.data.fetch("mnist"))))
