"""MNIST: 28 x 28 grey images of handwritten digits (LeCun, Cortes, Burges 1998)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data_basic import Dataset, ImageFunction
from ..idx import Filename, read_mnist


class MNISTDataset(Dataset):
    """Images float32 (28, 28, 1) in [0, 1] with labels uint8, from an image and a label file (IDX, gzipped or not)."""

    takes_index_arrays = True

    def __init__(
        self, image_filename: Filename, label_filename: Filename, transforms: Sequence[ImageFunction] | None = None
    ) -> None:
        super().__init__(transforms)
        ### BEGIN YOUR SOLUTION hw2/mnist_init
        images, self.labels = read_mnist(image_filename, label_filename)
        self.images = images[..., np.newaxis]
        ### END YOUR SOLUTION hw2/mnist_init

    def __len__(self) -> int:
        ### BEGIN YOUR SOLUTION hw2/mnist_len
        return len(self.images)
        ### END YOUR SOLUTION hw2/mnist_len

    def __getitem__(self, index: int | slice | np.ndarray) -> tuple:
        """(image, label) for an int; (images, labels) with a batch axis for a slice or an index array."""
        ### BEGIN YOUR SOLUTION hw2/mnist_getitem
        return self.transform_images(self.images[index]), self.labels[index]
        ### END YOUR SOLUTION hw2/mnist_getitem
