"""Random changes to an image that do not change what it shows.  An image is a NumPy array (H, W, C)."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError, NamesItself


class Transform(NamesItself):
    """A function from one image (H, W, C) to another."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__}.__call__")


class RandomFlipHorizontal(Transform):
    """Mirrors an image left to right, with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"RandomFlipHorizontal: p is {p}, wanted a probability in [0, 1]")
        self.p = p

    def __call__(self, img: np.ndarray) -> np.ndarray:
        """Flip along the width.  (H, W, C) → (H, W, C), a view.  Draws one number, whatever p is."""
        flip_img = np.random.rand() < self.p
        ### BEGIN YOUR SOLUTION hw2/flip_horizontal
        return img[:, ::-1] if flip_img else img
        ### END YOUR SOLUTION hw2/flip_horizontal


class RandomCrop(Transform):
    """Shifts an image by up to `padding` pixels up, down, left and right; what comes in is zero."""

    def __init__(self, padding: int = 3) -> None:
        if padding < 0:
            raise ArgumentError(f"RandomCrop: padding is {padding}, wanted a number of pixels of at least 0")
        self.padding = padding

    def __call__(self, img: np.ndarray) -> np.ndarray:
        """Cut a window of the same size out of the zero-padded image.  (H, W, C) → (H, W, C), same dtype."""
        shift_x, shift_y = np.random.randint(low=-self.padding, high=self.padding + 1, size=2)
        ### BEGIN YOUR SOLUTION hw2/random_crop
        height, width = img.shape[:2]
        pad = self.padding
        padded = np.zeros((height + 2 * pad, width + 2 * pad, *img.shape[2:]), img.dtype)
        padded[pad : pad + height, pad : pad + width] = img
        top, left = pad + shift_x, pad + shift_y
        return padded[top : top + height, left : left + width]
        ### END YOUR SOLUTION hw2/random_crop
