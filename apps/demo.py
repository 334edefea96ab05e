"""The first thing to run: a residual MLP learns to read handwritten digits, in a few seconds and without a network.

make demo          or, once it is built:  python apps/demo.py --help
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT)]  # this tree's needle, whatever else is installed

import needle as ndl
from apps.mlp_resnet import MLPResNet

NEXT_STEPS = """\
What next
  make test                        build and check everything
  python apps/train_mnist.py -h    bigger models on bigger data; see the other apps/train_*.py too
  README.md                        a short tour: learn from it, teach with it, build with it"""


class Epoch(NamedTuple):
    """One row of the table and one point of the curves."""

    number: int
    loss: float  # mean over the training samples, in nats
    train_accuracy: float
    test_accuracy: float
    seconds: float


def main() -> int:
    options = parse_arguments()
    ndl.seed(options.seed)
    train_images, train_labels, test_images, test_labels = ndl.data.load_digits()
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(train_images, train_labels), options.batch_size, shuffle=True)
    model = MLPResNet(dim=64, hidden_dim=64, num_blocks=2, num_classes=10)
    optimizer = ndl.optim.Adam(model.parameters(), lr=options.lr, weight_decay=1e-4)

    size = f"{sum(p.numpy().size for p in model.parameters()):,} parameters"
    print(f"A residual MLP of {size} on {len(train_labels):,} digits of 8 × 8 pixels, device {ndl.default_device()}")
    history = []
    with progress(options.epochs * -(-len(train_labels) // options.batch_size)) as (advance, write):
        write("epoch   train loss   train accuracy   test accuracy   seconds")
        for number in range(1, options.epochs + 1):
            start = time.perf_counter()
            loss, accuracy = train_one_epoch(model, loader, optimizer, advance)
            seconds = time.perf_counter() - start
            test_accuracy = float(np.mean(predict(model, test_images).argmax(1) == test_labels))
            history.append(Epoch(number, loss, accuracy, test_accuracy, seconds))
            write(f"{number:5}   {loss:10.4f}   {accuracy:14.3f}   {test_accuracy:13.3f}   {seconds:7.2f}")

    draw(options.picture, history, test_images, test_labels, predict(model, test_images))
    print(f"Learning curve and predictions: {options.picture}")
    print(f"test accuracy {history[-1].test_accuracy:.2f}\n")
    print(NEXT_STEPS)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training digits (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=50, help="digits in one step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=3e-3, help="learning rate of Adam (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, dropout and order (default: %(default)s)")
    parser.add_argument("--picture", default="demo.png", help="where to draw the curves (default: %(default)s)")
    return parser.parse_args()


# ---- learning -------------------------------------------------------------------------------------------------------


def train_one_epoch(model, loader, optimizer, advance) -> tuple[float, float]:
    """One pass over the training digits; returns their mean loss and the share that was read right on the way."""
    model.train()
    loss_of = ndl.nn.SoftmaxLoss()
    losses, right, seen = 0.0, 0, 0
    for images, labels in loader:
        optimizer.reset_grad()
        logits = model(images.reshape((images.shape[0], 64)))
        loss = loss_of(logits, labels)
        loss.backward()
        optimizer.step()

        count = images.shape[0]
        losses += float(loss.numpy().sum()) * count
        right += int(np.sum(logits.numpy().argmax(1) == labels.numpy()))
        seen += count
        advance()
    return losses / seen, right / seen


def predict(model, images: np.ndarray) -> np.ndarray:
    """The probability of each digit for each image: (n, 8, 8) → (n, 10)."""
    model.eval()
    with ndl.no_grad():
        logits = model(ndl.Tensor(images.reshape(len(images), 64))).numpy()
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


# ---- showing --------------------------------------------------------------------------------------------------------


@contextmanager
def progress(steps: int) -> Iterator[tuple]:
    """Give (advance, write): a bar with lines above it on a terminal, lines alone elsewhere."""
    if not sys.stdout.isatty():
        yield (lambda: None), (lambda line: print(line, flush=True))
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("steps"), TimeRemainingColumn()
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("training", total=steps)
        yield (lambda: bar.advance(task)), (lambda line: bar.console.print(line, highlight=False))


def draw(path: str, history: list[Epoch], images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Draw the curves of all epochs and what the model makes of some test digits, its mistakes first."""
    import matplotlib

    matplotlib.use("agg")  # a file is wanted, no window
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    draw_curves(left, history)
    wrong_first = np.argsort(probabilities.argmax(1) == labels, kind="stable")
    draw_predictions(right, images[wrong_first], labels[wrong_first], probabilities[wrong_first])
    figure.savefig(path, dpi=110)
    plt.close(figure)


BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#555555"  # apart for colour-blind eyes too (Okabe, Ito 2008)


def draw_curves(figure, history: list[Epoch]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    epochs = [row.number for row in history]
    above.plot(epochs, [row.train_accuracy for row in history], color=ORANGE, linestyle="--", label="training")
    above.plot(epochs, [row.test_accuracy for row in history], color=BLUE, marker="o", markersize=3, label="test")
    above.set(ylabel="accuracy", title=f"test accuracy {history[-1].test_accuracy:.3f}")
    above.legend(loc="lower right", frameon=False)
    below.plot(epochs, [row.loss for row in history], color=ORANGE, linestyle="--")
    below.set(ylabel="training loss (nats)", xlabel="epoch", yscale="log")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)


def draw_predictions(figure, images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    figure.suptitle("what it reads, and how sure it is (mistakes first)", fontsize=11)
    for axes, image, label, chances in zip(figure.subplots(4, 7).flat, images, labels, probabilities, strict=False):
        guess = chances.argmax()
        right = guess == label
        axes.imshow(image, cmap="gray_r", interpolation="nearest")
        caption = f"{guess}  {chances[guess]:.0%}" if right else f"✗ {guess}  {chances[guess]:.0%}, is {label}"
        axes.set_title(caption, fontsize=9, color=GREY if right else ORANGE, weight="normal" if right else "bold")
        axes.axis("off")


if __name__ == "__main__":
    sys.exit(main())
