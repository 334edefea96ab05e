"""Train LeNet, the convolutional network that read cheques in the 1990s, on images of handwritten digits.

python apps/train_lenet.py
python apps/train_lenet.py --data fashion_mnist
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
from needle import nn
from training import grey_images, script, train_classifier


def LeNet(height: int, width: int) -> nn.Module:
    """Two convolutions with pooling, three linear layers (after LeCun et al. 1998).  (B, 1, H, W) → logits (B, 10)

    With relu and max where the original has scaled tanh and averages; convolutions keep the size of the image.
    """
    return nn.Sequential(
        nn.Conv(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (height // 4) * (width // 4), 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


@script(
    __doc__,
    epochs=3,
    batch_size=100,
    lr=0.002,
    data=("mnist", "fashion_mnist", "digits"),
    smoke={"data": "digits", "epochs": 2, "batch_size": 50},
)
def main(chosen: argparse.Namespace) -> None:
    train, test = grey_images(chosen)
    height, width, _ = train[0][0].shape
    model = LeNet(height, width)
    optimizer = ndl.optim.Adam(model.parameters(), lr=chosen.lr)
    train_classifier(model, train, test, optimizer, chosen, lambda x: x.reshape((len(x), 1, height, width)))


if __name__ == "__main__":
    main()
