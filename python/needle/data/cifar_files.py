"""The official CIFAR-10 files: pickled dictionaries, of which two entries matter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .errors import DataFileError
from .safe_pickle import load_arrays


def read_cifar_batches(paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read batch files and put them behind one another.  Returns uint8 (n, 3072) pixels and uint8 (n,) labels."""
    batches = [read_cifar_batch(path) for path in paths]
    return np.concatenate([data for data, _ in batches]), np.concatenate([labels for _, labels in batches])


def read_cifar_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read one batch file; what is not a batch raises a DataFileError."""
    content = load_arrays(path, "cifar10")
    data, labels = content.get(b"data"), np.asarray(content.get(b"labels"))
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        raise DataFileError(f'cifar10: {path} has no b"data" of shape (n, 3072), uint8')
    if labels.dtype.kind not in "iu" or labels.shape != data.shape[:1] or labels.min() < 0 or labels.max() > 9:
        raise DataFileError(f'cifar10: {path} has no b"labels" from 0 to 9, one for each of its {len(data)} images')
    return data, labels.astype(np.uint8)
