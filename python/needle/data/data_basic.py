"""Data sets and the loader that cuts them into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import Tensor
from ..errors import ArgumentError, ArgumentTypeError, NamesItself, describe
from .loader_workers import read_batches

ImageFunction = Callable[[np.ndarray], np.ndarray]


class Dataset(NamesItself):
    """A sequence of samples: `dataset[i]` is the tuple of fields (image, label, ...) of sample i.

    A subclass defines `__getitem__` and `__len__`.  If its `__getitem__` also takes slices and index arrays, and then
    returns fields with a leading batch axis, let it say so: `takes_index_arrays = True` makes a DataLoader faster.
    """

    takes_index_arrays = False
    transforms: Sequence[ImageFunction] | None = None

    def __init__(self, transforms: Sequence[ImageFunction] | None = None) -> None:
        self.transforms = transforms

    def __getitem__(self, index: Any) -> tuple:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}.__len__")

    def apply_transforms(self, x: np.ndarray) -> np.ndarray:
        """Apply each transform in order to one image.  (H, W, C) → (H, W, C)"""
        for transform in self.transforms or ():
            x = transform(x)
        return x

    def transform_images(self, images: np.ndarray) -> np.ndarray:
        """`apply_transforms` to one image (H, W, C), or to each of a batch (B, H, W, C) in order."""
        if not self.transforms or len(images) == 0:
            return images
        if images.ndim == 3:
            return self.apply_transforms(images)
        return np.stack([self.apply_transforms(image) for image in images])


class DataLoader(NamesItself):
    """Cuts a data set into batches: iterating once is one epoch, of tuples of Tensors with the batch axis first.

    dataset      anything with `len` and `dataset[i]` → fields of sample i
    batch_size   samples per batch; the last batch may be shorter, and is left out by `drop_last=True`
    shuffle      a new order for each epoch: one permutation from NumPy's global generator, drawn when the epoch starts
    num_workers  threads that read ahead, each up to `prefetch` batches; the batches are the same as without, in value
                 and in order (see `loader_workers.py` for what they speed up and how random transforms stay exact)
    device       where the Tensors go; None: the default device
    dtype        their type, or a tuple with one type per field; None: as Tensor(array) chooses

    Raises ArgumentError for sizes that make no sense; an exception inside the data set reaches the caller as it is.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        num_workers: int = 0,
        prefetch: int = 2,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ArgumentTypeError(f"DataLoader: got {describe(dataset)}, wanted a data set: with len and dataset[i]")
        require_count("batch_size", batch_size, 1)
        require_count("num_workers", num_workers, 0)
        require_count("prefetch", prefetch, 1)
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.device = device
        self.dtype = dtype
        self.batches: Iterator[tuple] = iter(())

    def __len__(self) -> int:
        """Batches in one epoch."""
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> DataLoader:
        """Start an epoch."""
        ### BEGIN YOUR SOLUTION hw2/dataloader_iter
        count, size = len(self.dataset), self.batch_size
        order = np.random.permutation(count) if self.shuffle else np.arange(count)
        chunks = [order[i * size : (i + 1) * size] for i in range(len(self))]
        self.batches = read_batches(self.dataset, chunks, self.num_workers, self.prefetch)
        return self
        ### END YOUR SOLUTION hw2/dataloader_iter

    def __next__(self) -> tuple[Tensor, ...]:
        """The next batch: one Tensor per field, none of which requires a gradient."""
        ### BEGIN YOUR SOLUTION hw2/dataloader_next
        fields = next(self.batches)
        return tuple(
            Tensor(field, device=self.device, dtype=dtype, requires_grad=False)
            for field, dtype in zip(fields, self.field_dtypes(len(fields)), strict=True)
        )
        ### END YOUR SOLUTION hw2/dataloader_next

    def field_dtypes(self, count: int) -> Sequence[Any]:
        """The type of each of `count` fields, from `dtype`."""
        if not isinstance(self.dtype, (tuple, list)):
            return [self.dtype] * count
        if len(self.dtype) != count:
            raise ArgumentError(f"DataLoader: {len(self.dtype)} dtypes for the {count} fields of the data set")
        return self.dtype

    def close(self) -> None:
        """End the epoch early: workers stop, what was read ahead is dropped.  `iter` starts a new epoch."""
        if hasattr(self.batches, "close"):
            self.batches.close()


def require_count(name: str, value: Any, least: int) -> None:
    """Raise an ArgumentError unless `value` is an integer of at least `least`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"DataLoader: {name} is {describe(value)}, wanted an integer of at least {least}")
