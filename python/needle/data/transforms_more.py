"""Transforms beyond the course's: composing, normalising, reordering axes, erasing.  Images are (H, W, C) arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ArgumentError
from .data_transforms import Transform


class Compose(Transform):
    """Several transforms as one: the first is applied first."""

    def __init__(self, transforms: Sequence[Callable[[np.ndarray], np.ndarray]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        for transform in self.transforms:
            x = transform(x)
        return x


class Normalize(Transform):
    """(x - mean) / std for each channel.  (H, W, C) → (H, W, C) float32; `mean` and `std` are numbers, or C of them."""

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean = np.asarray(mean, np.float32)
        self.std = np.asarray(std, np.float32)
        if not (self.std > 0).all():
            raise ArgumentError(f"Normalize: std is {std}, wanted positive numbers")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        for name, value in (("mean", self.mean), ("std", self.std)):
            if value.ndim and value.shape != x.shape[-1:]:
                raise ArgumentError(f"Normalize: {name} of shape {value.shape} for an image {x.shape}, channels last")
        return (x.astype(np.float32, copy=False) - self.mean) / self.std


class ToCHW(Transform):
    """Channels to the front, as convolutions want them.  (H, W, C) → (C, H, W), a view."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(2, 0, 1)


class ToHWC(Transform):
    """Channels to the back, as pictures have them.  (C, H, W) → (H, W, C), a view."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(1, 2, 0)


class RandomErasing(Transform):
    """Blanks a random rectangle with probability p.

    It covers a share of the image within `area`; its height over its width is within `ratio`.  (Zhong et al. 2020,
    algorithm 1, but with the ratio drawn on a logarithmic scale, and a rectangle that does not fit is cut to the image,
    not drawn again.)
    """

    def __init__(
        self,
        p: float = 0.5,
        area: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float = 0.0,
    ) -> None:
        if not (0 <= p <= 1 and 0 < area[0] <= area[1] <= 1 and 0 < ratio[0] <= ratio[1]):
            raise ArgumentError(f"RandomErasing: p={p}, area={area}, ratio={ratio}, wanted p and areas in [0, 1]")
        self.p, self.area, self.ratio, self.value = p, area, ratio, value

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(H, W, C) → (H, W, C), a copy where it erases.  Draws five numbers, whether it erases or not."""
        erase, area, ratio, top, left = np.random.rand(5)
        if erase >= self.p:
            return x
        height, width = x.shape[:2]
        pixels = height * width * between(*self.area, area)
        aspect = math.exp(between(math.log(self.ratio[0]), math.log(self.ratio[1]), ratio))
        rows = min(height, max(1, round(math.sqrt(pixels * aspect))))
        columns = min(width, max(1, round(math.sqrt(pixels / aspect))))
        i, j = int(top * (height - rows + 1)), int(left * (width - columns + 1))
        x = x.copy()
        x[i : i + rows, j : j + columns] = self.value
        return x


def between(low: float, high: float, share: float) -> float:
    """The number that lies `share` of the way from low to high."""
    return low + (high - low) * share
