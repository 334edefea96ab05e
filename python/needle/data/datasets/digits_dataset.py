"""The UCI handwritten digits, 1,797 images of 8 x 8 pixels, which come with needle (Alpaydin, Kaynak 1998)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# >>> hw3
# isort: split
from collections.abc import Sequence

from ..data_basic import Dataset, ImageFunction

# <<< hw3

DIGITS_FILE = Path(__file__).resolve().parents[1] / "digits" / "digits.npz"


def load_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(train_images, train_labels, test_images, test_labels): float32 (n, 8, 8) in [0, 1], uint8 (n,).

    The split is fixed and keeps the classes balanced: of each digit's samples, in the order of the file, the third of
    every five is for testing.  That makes 1,438 training and 359 test images.
    """
    with np.load(DIGITS_FILE, allow_pickle=False) as pack:
        pixels, labels = pack["images"], pack["labels"]
    images = pixels.astype(np.float32) / 16  # a pixel counts the ink in a 4 x 4 square
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[2::5]] = True
    return images[~test], labels[~test], images[test], labels[test]


# >>> hw3
class DigitsDataset(Dataset):
    """The embedded digits: images float32 (8, 8, 1) in [0, 1] with labels uint8; needs no files and no network."""

    takes_index_arrays = True

    def __init__(self, train: bool, transforms: Sequence[ImageFunction] | None = None) -> None:
        super().__init__(transforms)
        train_images, train_labels, test_images, test_labels = load_digits()
        self.images = (train_images if train else test_images)[..., np.newaxis]
        self.labels = train_labels if train else test_labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int | slice | np.ndarray) -> tuple:
        """(image, label) for an int; (images, labels) with a batch axis for a slice or an index array."""
        return self.transform_images(self.images[index]), self.labels[index]


# <<< hw3
