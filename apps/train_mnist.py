"""Train a residual MLP on images of handwritten digits.

python apps/train_mnist.py --epochs 5
python apps/train_mnist.py --data digits        without any download
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
from mlp_resnet import MLPResNet
from training import grey_images, script, train_classifier


@script(
    __doc__,
    epochs=5,
    batch_size=100,
    lr=0.002,
    weight_decay=1e-5,
    hidden_dim=256,
    data=("mnist", "fashion_mnist", "digits"),
    helps={"hidden_dim": "width of the network"},
    smoke={"data": "digits", "epochs": 3, "hidden_dim": 32, "batch_size": 50},
)
def main(chosen: argparse.Namespace) -> None:
    train, test = grey_images(chosen)
    pixels = train[0][0].size
    model = MLPResNet(pixels, chosen.hidden_dim, drop_prob=0.1)
    optimizer = ndl.optim.Adam(model.parameters(), lr=chosen.lr, weight_decay=chosen.weight_decay)
    steps = chosen.epochs * -(-len(train) // chosen.batch_size)
    schedule = ndl.optim.CosineAnnealingLR(optimizer, steps)
    train_classifier(model, train, test, optimizer, chosen, lambda x: x.reshape((len(x), pixels)), schedule)


if __name__ == "__main__":
    main()
