"""Train ResNet9 on CIFAR-10, ten kinds of things in 32 × 32 pixels.

python apps/train_cifar10.py --epochs 10
python apps/train_cifar10.py --epochs 15 --augment      shifted and mirrored images: slower to fit, better in the end
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import numpy as np
from models import ResNet9
from training import folder_of, script, train_classifier


@script(
    __doc__,
    epochs=10,
    batch_size=128,
    lr=0.002,
    weight_decay=1e-4,
    augment=False,
    helps={"augment": "learn from shifted and mirrored copies"},
    smoke={"epochs": 2, "batch_size": 16},
)
def main(chosen: argparse.Namespace) -> None:
    train, test = coloured_squares(96), coloured_squares(48)
    if not chosen.smoke:
        folder = folder_of("cifar10", "cifar-10-batches-py", "data_batch_1", chosen.download)
        transforms = [ndl.data.RandomCrop(3), ndl.data.RandomFlipHorizontal()] if chosen.augment else []
        train = ndl.data.CIFAR10Dataset(folder, train=True, transforms=transforms)
        test = ndl.data.CIFAR10Dataset(folder, train=False)

    model = ResNet9()
    optimizer = ndl.optim.Adam(model.parameters(), lr=chosen.lr, weight_decay=chosen.weight_decay)
    steps = chosen.epochs * -(-len(train) // chosen.batch_size)
    schedule = ndl.optim.CosineAnnealingLR(optimizer, steps)
    train_classifier(model, train, test, optimizer, chosen, schedule=schedule)


def coloured_squares(count: int) -> ndl.data.Dataset:
    """Images that are easy to tell apart, in the shape of CIFAR-10: each class has a shade of its own."""
    labels = (np.arange(count) % 10).astype(np.uint8)
    images = 0.1 * np.random.rand(count, 3, 32, 32) + labels.reshape(-1, 1, 1, 1) / 10
    return ndl.data.NDArrayDataset(images.astype(np.float32), labels)


if __name__ == "__main__":
    main()
