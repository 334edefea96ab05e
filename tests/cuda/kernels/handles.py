"""Kernels called with NumPy arrays: copied to the device, run, and copied back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from tests.kernel_reference import FLOATS


class Kernels:
    """A module of typed kernels."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def up(self, array: np.ndarray) -> Any:
        """A buffer that holds a copy of the array's elements."""
        array = np.ascontiguousarray(array)
        buffer = self.module.Buffer(array.size, str(array.dtype))
        self.module.from_numpy(array, buffer)
        return buffer

    def down(self, buffer: Any, shape: Sequence[int] | None = None) -> np.ndarray:
        """The buffer's elements as an array."""
        shape = (buffer.size,) if shape is None else tuple(shape)
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        return self.module.to_numpy(buffer, shape, strides, 0)

    def run(self, name: str, *arguments: Any, out: tuple[Sequence[int], str] | Sequence[tuple]) -> Any:
        """What a kernel leaves in fresh results of the shapes and dtypes `out`; they come after its arrays."""
        outs = out if isinstance(out, list) else [out]
        results = [self.module.Buffer(math.prod(shape), str(dtype)) for shape, dtype in outs]
        arrays = [self.up(a) for a in arguments if isinstance(a, np.ndarray)]
        getattr(self.module, name)(*arrays, *results, *(a for a in arguments if not isinstance(a, np.ndarray)))
        copies = [self.down(result, shape) for result, (shape, _) in zip(results, outs)]
        return copies if isinstance(out, list) else copies[0]


def some(shape: Sequence[int] | int, dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of a dtype: standard normal ones, small whole ones of either sign, or truth values."""
    rng = np.random.default_rng(seed)
    if dtype in FLOATS:
        return rng.standard_normal(shape).astype(dtype)
    low, high = {"bool": (0, 2), "uint8": (0, 12)}.get(dtype, (-9, 10))
    return rng.integers(low, high, shape).astype(dtype)


def with_specials(array: np.ndarray) -> np.ndarray:
    """The array with nan, infinities and zeros in it, if it holds floats."""
    if array.dtype.kind == "f":
        specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], array.dtype)
        array.flat[: min(array.size, 5)] = specials[: array.size]
    return array


def assert_sum(got: np.ndarray, wanted: np.ndarray, magnitude: np.ndarray | float, terms: int) -> None:
    """Sums of `terms` terms, whose absolute values add up to magnitude, as exact as any order of adding can promise."""
    assert got.shape == wanted.shape
    bound = (terms + 4) * np.finfo(got.dtype).eps * (np.asarray(magnitude) + 1e-30)
    assert np.all(np.abs(got - wanted) <= bound), np.abs(got - wanted).max() / np.max(bound)
