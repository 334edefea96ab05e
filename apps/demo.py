"""The first thing to run: a residual MLP learns to read handwritten digits, in a few seconds and without a network.

make demo
.venv/bin/python apps/demo.py --epochs 40     # once it is built
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "apps")]  # this tree's needle, whatever else is installed

import needle as ndl
from mlp_resnet import MLPResNet
from training import classify, one_line_for_errors, progress

NEXT_STEPS = """
What next
  make test                                    build and check everything
  .venv/bin/python apps/train_mnist.py --help  more data and bigger models; so do the other apps/train_*.py
  README.md                                    a short tour: to learn, to teach, to work with it"""


class Epoch(NamedTuple):
    """One row of the table and one point of the curves."""

    number: int
    loss: float  # mean over the training digits, in nats
    train_accuracy: float
    test_accuracy: float
    seconds: float


def main() -> None:
    options = parse_arguments()
    ndl.seed(options.seed)
    train_images, train_labels, test_images, test_labels = ndl.data.load_digits()
    batches = ndl.data.DataLoader(ndl.data.NDArrayDataset(train_images, train_labels), 50, shuffle=True)
    model = MLPResNet(dim=64, hidden_dim=64, num_blocks=2)
    optimizer = ndl.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-4)

    weights = sum(p.numel() for p in model.parameters())
    print(f"A residual MLP with {weights:,} parameters reads {len(train_labels):,} digits of 8 × 8 pixels.\n")
    print("epoch   train loss   train accuracy   test accuracy   seconds")
    history = []
    for number in range(1, options.epochs + 1):
        start = time.perf_counter()
        passing = progress(batches, f"epoch {number} of {options.epochs}")
        accuracy, loss = classify(model, passing, flat, optimizer)
        right = predict(model, test_images).argmax(axis=1) == test_labels
        row = Epoch(number, loss, accuracy, float(np.mean(right)), time.perf_counter() - start)
        print("{:5}   {:10.4f}   {:14.3f}   {:13.3f}   {:7.2f}".format(*row), flush=True)
        history.append(row)

    draw(options.picture, history, test_images, test_labels, predict(model, test_images))
    print(f"\nlearning curve and predictions: {options.picture}")
    print(f"test accuracy {history[-1].test_accuracy:.2f}")
    print(NEXT_STEPS)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training digits (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, dropout and order (default: %(default)s)")
    parser.add_argument("--picture", default="demo.png", help="the picture's file (default: %(default)s)")
    return parser.parse_args()


def flat(images: ndl.Tensor) -> ndl.Tensor:
    """(B, 8, 8) → (B, 64)"""
    return images.reshape((len(images), 64))


def predict(model: ndl.nn.Module, images: np.ndarray) -> np.ndarray:
    """The probability of each digit for each image: (n, 8, 8) → (n, 10)."""
    model.eval()
    with ndl.no_grad():
        return ndl.softmax(model(flat(ndl.Tensor(images)))).numpy()


# ---- the picture ----------------------------------------------------------------------------------------------------

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#555555"  # apart for colour-blind eyes too (Okabe, Ito 2008)


def draw(path: str, history: list[Epoch], images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Draw the curves of all epochs, and what the model makes of some test digits, its mistakes first."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # a file is wanted, no window
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.3))
    draw_curves(left, history)
    mistakes_first = np.argsort(probabilities.argmax(axis=1) == labels, kind="stable")
    draw_predictions(right, images[mistakes_first], labels[mistakes_first], probabilities[mistakes_first])
    figure.savefig(path, dpi=110)


def draw_curves(figure, history: list[Epoch]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    epochs = [row.number for row in history]
    above.plot(epochs, [row.train_accuracy for row in history], color=ORANGE, linestyle="--", label="training")
    above.plot(epochs, [row.test_accuracy for row in history], color=BLUE, marker="o", markersize=3, label="test")
    above.set(ylabel="accuracy", title=f"test accuracy {history[-1].test_accuracy:.3f}")
    above.legend(loc="lower right", frameon=False)
    below.plot(epochs, [row.loss for row in history], color=ORANGE, linestyle="--")
    below.set(ylabel="training loss (nats)", xlabel="epoch", yscale="log")
    below.xaxis.get_major_locator().set_params(integer=True)
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)


def draw_predictions(figure, images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    figure.suptitle("what it reads and how sure it is, mistakes first", fontsize=12)
    for axes, image, label, chances in zip(figure.subplots(4, 7).flat, images, labels, probabilities, strict=False):
        guess = chances.argmax()
        right = guess == label
        axes.imshow(image, cmap="gray_r", interpolation="nearest")
        caption = f"{guess}  {chances[guess]:.0%}" if right else f"{guess}  {chances[guess]:.0%} ✗ a {label}"
        axes.set_title(caption, fontsize=9, color=GREY if right else ORANGE)
        axes.axis("off")


if __name__ == "__main__":
    one_line_for_errors(main)
