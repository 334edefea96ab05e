"""How a DataLoader reads batches: here and now, or ahead of time by threads.

Threads, not processes: reading files, decompressing and NumPy's copies release Python's lock, and so do needle's
kernels, so that the next batch is read while this one is computed.  Nothing has to be pickled, no data set is copied,
no process is forked from one that already runs native threads, and it works in notebooks.  What threads cannot speed
up is Python code itself.

Randomness: transforms draw from NumPy's one global generator, so they run in the caller's thread, batch by batch in
serial order, and never ahead of time.  A run with workers is therefore bit for bit the run without: the same draws, in
the same places between the draws of dropout.  The price is that workers only do the reading: a data set with
`transforms` of its own is read in the caller's thread altogether, and `TransformedDataset` keeps the two apart.  A data
set that draws random numbers in `__getitem__` by other means gives up this promise once it has workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

THREAD_NAME = "needle-data"


def read_batches(dataset: Any, chunks: Sequence[np.ndarray], num_workers: int, prefetch: int) -> Iterator[tuple]:
    """Yield for each chunk of indices the batch of these samples: a tuple of arrays, one per field."""
    read, finish = two_halves(dataset)
    if num_workers:
        for raw in read_ahead(read, chunks, num_workers, num_workers * prefetch):
            yield finish(raw)
    else:
        for chunk in chunks:
            yield finish(read(chunk))


def two_halves(dataset: Any) -> tuple[Callable, Callable]:
    """Split the reading of a batch in two: what a worker may do, and what must be done in the caller's thread."""

    def whole(chunk: np.ndarray) -> tuple:
        return read_batch(dataset, chunk)

    def nothing(value: Any) -> Any:
        return value

    if isinstance(dataset, TransformedDataset):
        return dataset.read, dataset.finish
    return (nothing, whole) if getattr(dataset, "transforms", None) else (whole, nothing)


def read_batch(dataset: Any, chunk: np.ndarray) -> tuple:
    """The samples of `chunk` as one tuple of fields with a leading batch axis, in the order of `chunk`."""
    if getattr(dataset, "takes_index_arrays", False):
        return as_fields(dataset[chunk])
    samples = [as_fields(dataset[int(i)]) for i in chunk]
    return tuple(np.stack([np.asarray(value) for value in field]) for field in zip(*samples, strict=True))


def as_fields(sample: Any) -> tuple:
    """A sample that is one bare array has one field."""
    return tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)


def read_ahead(read: Callable, chunks: Sequence[np.ndarray], num_workers: int, ahead: int) -> Iterator[Any]:
    """Yield `read(chunk)` for each chunk, in order, while threads read up to `ahead` chunks in advance.

    An exception in a worker is raised here, in its turn.  Closing the iterator ends the threads.
    """
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix=THREAD_NAME)
    try:
        rest = iter(chunks)
        waiting = deque(pool.submit(read, chunk) for chunk in islice(rest, ahead))
        while waiting:
            batch = waiting.popleft().result()
            waiting.extend(pool.submit(read, chunk) for chunk in islice(rest, 1))
            yield batch
    finally:
        # a worker may be the one that collects a forgotten loader, and it cannot wait for itself
        inside = threading.current_thread().name.startswith(THREAD_NAME)
        pool.shutdown(wait=not inside, cancel_futures=True)


class TransformedDataset:
    """A data set whose first field goes through `transforms`, one image at a time.

    With a DataLoader's workers the samples are read ahead, and the transforms run in the caller's thread.
    """

    takes_index_arrays = False

    def __init__(self, dataset: Any, transforms: Sequence[Callable[[np.ndarray], np.ndarray]]) -> None:
        self.dataset = dataset
        self.transforms = transforms

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple:
        image, *others = as_fields(self.dataset[index])
        return self.transform(image), *others

    def read(self, chunk: np.ndarray) -> tuple:
        """The half without randomness, safe in any thread."""
        return read_batch(self.dataset, chunk)

    def finish(self, fields: tuple) -> tuple:
        """The half that draws."""
        images, *others = fields
        return np.stack([self.transform(image) for image in images]), *others

    def transform(self, image: np.ndarray) -> np.ndarray:
        """Apply each transform in order to one image."""
        for transform in self.transforms:
            image = transform(image)
        return image
