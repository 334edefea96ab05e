"""Learn exclusive or: one linear layer cannot, two with a bend between them can (Minsky and Papert 1969).

python apps/train_xor.py        and look at boundary.png
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import numpy as np
from needle import nn
from training import Log, script


@script(
    __doc__,
    epochs=300,
    lr=0.02,
    hidden_dim=8,
    helps={"hidden_dim": "units between the two layers"},
    smoke={"epochs": 200},
)
def main(chosen: argparse.Namespace) -> None:
    points, labels = noisy_xor(200)
    x, y = ndl.Tensor(points, requires_grad=False), ndl.Tensor(labels, requires_grad=False)

    perceptron = nn.Linear(2, 2)
    mlp = nn.Sequential(nn.Linear(2, chosen.hidden_dim), nn.Tanh(), nn.Linear(chosen.hidden_dim, 2))
    models = {"perceptron": perceptron, "mlp": mlp}
    optimizers = {name: ndl.optim.Adam(model.parameters(), lr=chosen.lr) for name, model in models.items()}

    log = Log(chosen)
    for epoch in range(1, chosen.epochs + 1):
        losses = {f"{name}_loss": step(model, optimizers[name], x, y) for name, model in models.items()}
        if epoch % max(1, chosen.epochs // 10) == 0:
            log.row(epoch=epoch, **losses, **{f"{name}_accuracy": accuracy(m, x, labels) for name, m in models.items()})
    log.picture("boundary.png", boundary(models, points, labels))
    log.close(perceptron_accuracy=accuracy(perceptron, x, labels), mlp_accuracy=accuracy(mlp, x, labels))


def noisy_xor(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around the corners of a square, and 1 where exactly one coordinate is positive.  (n, 2), (n,)"""
    corners = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)], np.float32)[np.arange(count) % 4]
    points = corners + 0.25 * np.random.randn(count, 2).astype(np.float32)
    return points, (corners[:, 0] * corners[:, 1] < 0).astype(np.uint8)


def step(model: nn.Module, optimizer: ndl.optim.Optimizer, x: ndl.Tensor, y: ndl.Tensor) -> float:
    """One step on all points; returns the loss before it."""
    optimizer.reset_grad()
    loss = nn.SoftmaxLoss()(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def accuracy(model: nn.Module, x: ndl.Tensor, labels: np.ndarray) -> float:
    return float(np.mean(model(x).numpy().argmax(axis=1) == labels))


def boundary(models: dict[str, nn.Module], points: np.ndarray, labels: np.ndarray) -> ndl.visualize.Picture:
    """What each model answers all over the plane, and the points that it learnt from."""
    from matplotlib.figure import Figure

    across = np.linspace(-2, 2, 120, dtype=np.float32)
    plane = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for axes, (name, model) in zip(figure.subplots(1, 2), models.items(), strict=True):
        chance = nn.Softmax()(model(ndl.Tensor(plane))).numpy()[:, 1].reshape(120, 120)
        shades = axes.contourf(across, across, chance, levels=np.linspace(0, 1, 11), cmap="PuOr_r", alpha=0.7)
        axes.contour(across, across, chance, levels=[0.5], colors="black")
        for label, marker, colour in ((0, "o", "#5e3c99"), (1, "^", "#b35806")):
            axes.scatter(*points[labels == label].T, s=14, c=colour, marker=marker, edgecolors="white", linewidths=0.3)
        axes.set(title=f"{name}: {accuracy(model, ndl.Tensor(points), labels):.0%} right", aspect="equal")
    figure.colorbar(shades, ax=axes, label="chance of 1")
    return ndl.visualize.Picture(figure)


if __name__ == "__main__":
    main()
