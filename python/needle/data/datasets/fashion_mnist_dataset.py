"""Fashion-MNIST: 28 x 28 grey images of clothes, in MNIST's format (Xiao, Rasul, Vollgraf 2017)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..data_basic import ImageFunction
from .mnist_dataset import MNISTDataset


class FashionMNISTDataset(MNISTDataset):
    """60,000 training or 10,000 test images float32 (28, 28, 1) in [0, 1] with labels uint8.

    `base_folder` holds the four files under their official names; `ndl.data.fetch("fashion_mnist")` returns it.
    """

    classes = (
        "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
    )  # fmt: skip

    def __init__(
        self, base_folder: str | os.PathLike[str], train: bool, transforms: Sequence[ImageFunction] | None = None
    ) -> None:
        split = Path(base_folder) / ("train" if train else "t10k")
        super().__init__(f"{split}-images-idx3-ubyte.gz", f"{split}-labels-idx1-ubyte.gz", transforms)
