"""A data set out of arrays that are already in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError
from ..data_basic import Dataset


class NDArrayDataset(Dataset):
    """Arrays of equal length, one per field: `NDArrayDataset(images, labels)[i]` is `(images[i], labels[i])`."""

    takes_index_arrays = True

    def __init__(self, *arrays: Any) -> None:
        super().__init__()
        self.arrays = tuple(np.asarray(array) for array in arrays)
        lengths = [len(array) if array.ndim else None for array in self.arrays]
        if not arrays or len(set(lengths)) > 1 or None in lengths:
            raise ArgumentError(f"NDArrayDataset: arrays of lengths {lengths}, wanted one or more of equal length")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int | slice | np.ndarray) -> tuple:
        """The fields of one sample (index: an int) or of several, with a batch axis (a slice or an index array)."""
        return tuple(array[index] for array in self.arrays)
