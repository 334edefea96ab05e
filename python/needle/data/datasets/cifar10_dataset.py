"""CIFAR-10: 32 x 32 colour images of ten kinds of things (Krizhevsky 2009)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..cifar_files import read_cifar_batches
from ..data_basic import Dataset, ImageFunction


class CIFAR10Dataset(Dataset):
    """Images float32 (3, 32, 32) in [0, 1] with labels uint8, from a folder `cifar-10-batches-py`.

    The training set is data_batch_1 to data_batch_5 in this order, 50,000 images; the test set is test_batch, 10,000.
    Transforms see an image as (32, 32, 3), as they do everywhere; what they return is turned back.  `p` is not used.
    """

    takes_index_arrays = True
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

    def __init__(
        self,
        base_folder: str | os.PathLike[str],
        train: bool,
        p: float = 0.5,
        transforms: Sequence[ImageFunction] | None = None,
    ) -> None:
        super().__init__(transforms)
        ### BEGIN YOUR SOLUTION hw4/cifar10_init
        names = [f"data_batch_{i + 1}" for i in range(5)] if train else ["test_batch"]
        data, self.y = read_cifar_batches([Path(base_folder) / name for name in names])
        self.X = data.reshape(-1, 3, 32, 32).astype(np.float32)  # each row is a red, a green and a blue plane
        self.X /= 255
        ### END YOUR SOLUTION hw4/cifar10_init

    def __len__(self) -> int:
        ### BEGIN YOUR SOLUTION hw4/cifar10_len
        return len(self.X)
        ### END YOUR SOLUTION hw4/cifar10_len

    def __getitem__(self, index: int | slice | np.ndarray) -> tuple:
        """(image, label) for an int; (images, labels) with a batch axis for a slice or an index array."""
        ### BEGIN YOUR SOLUTION hw4/cifar10_getitem
        images = np.moveaxis(self.X[index], -3, -1)
        return np.moveaxis(self.transform_images(images), -1, -3), self.y[index]
        ### END YOUR SOLUTION hw4/cifar10_getitem
