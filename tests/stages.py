"""What the checks of all stages share: one process per stage, comparisons with float64 NumPy, data that look real.

Each stage's conftest.py calls `begin` before anything imports needle.
"""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


def begin(stage: str, backend: str) -> Callable:
    """Choose the stage's backend for this process, the course's kernels, and put this tree first on the path.

    Returns pytest's hook pytest_collection_modifyitems, which refuses to run anything but this stage's tests: a
    process has one backend, and every stage has apps of its own.
    """
    needle = sys.modules.get("needle")
    if needle is not None and backend != needle.core.BACKEND:
        raise pytest.UsageError(f"tests/{stage} wants backend {backend}, but needle runs with {needle.core.BACKEND}")
    os.environ["NEEDLE_BACKEND"] = backend
    os.environ["NEEDLE_KERNELS"] = "course"  # fast twins would hide what a learner wrote
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "apps"), str(ROOT)]

    def refuse_company(items: list[pytest.Item]) -> None:
        others = [item.nodeid for item in items if TESTS / stage not in item.path.parents]
        if others:
            raise pytest.UsageError(f"tests/{stage} wants a process of its own; leave out {others[0].split('::')[0]}")

    return refuse_company


def devices() -> list:
    """Parameters for `device`: cpu, and cuda, which is the emulated one where there is no GPU; never skipped."""
    import needle as ndl

    return [pytest.param(ndl.cpu(), id="cpu"), pytest.param(gpu_or_emulator(), id="cuda")]


@cache
def gpu_or_emulator() -> Any:
    """A GPU if there is one, else its emulator, which is built if nobody has; whether it works, the tests show."""
    import needle as ndl

    if ndl.cuda().enabled():
        return ndl.cuda()
    emulator = "cuda_emu_check" if os.environ.get("NEEDLE_CUDA_EMU") == "check" else "cuda_emu"
    built = any(ROOT.glob(f"python/needle/backend_ndarray/ndarray_backend_{emulator}.*"))
    if not built and "NEEDLE_CHECK" not in os.environ:  # a check has built what it needs, and waits for nothing else
        subprocess.run([sys.executable, ROOT / "tools" / "build_native.py", emulator], stdin=subprocess.DEVNULL)
    return ndl.cuda_emu()


# ---- comparing ------------------------------------------------------------------------------------------------------


def assert_close(got: Any, want: Any, terms: int = 16, dtype: Any = None) -> None:
    """got (a Tensor or an array) has the shape of want and its values, but for the rounding of a sum of `terms` terms.

    The bound is 8 · terms · eps of got's type, relative to the largest entry of want (or to 1 if that is larger).
    """
    __tracebackhide__ = True
    got = as_array(got)
    want = np.asarray(want, np.float64)
    eps = np.finfo(dtype or got.dtype).eps if (dtype or got.dtype.kind == "f") else 0
    assert_within(got, want, atol=8 * terms * eps * max(1.0, np.abs(want).max(initial=0.0)))


def assert_within(got: Any, want: Any, rtol: float = 0.0, atol: float = 0.0, what: str = "") -> None:
    """got has the shape of want, and no entry is further off than atol + rtol · |want|; else says how it differs.

    what  names the thing compared, where a test compares several
    """
    __tracebackhide__ = True  # the line of the test is of interest, not this one
    from needle_course.diagnosis import difference

    want = as_array(want)
    bound = atol + rtol * np.abs(want) if rtol else atol
    text = difference(as_array(got), want, bound)
    if text is not None:
        raise AssertionError(f"{what}: {text}" if what else text)


def assert_same(got: Any, want: Any, what: str = "") -> None:
    """got has the shape of want, and exactly its values."""
    __tracebackhide__ = True
    assert_within(got, want, what=what)


def as_array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def numerical_gradients(
    f: Callable[..., np.ndarray], arrays: Sequence[np.ndarray], weights: np.ndarray, eps: float = 1e-6
) -> list[np.ndarray]:
    """Central differences, in float64, of sum(f(*arrays) * weights) with respect to each entry of each array."""
    arrays = [np.array(a, np.float64) for a in arrays]
    gradients = [np.zeros_like(a) for a in arrays]
    for array, gradient in zip(arrays, gradients, strict=True):
        for index in np.ndindex(array.shape):
            kept = array[index]
            array[index] = kept + eps
            above = np.array(f(*arrays))  # a copy: f may return a view
            array[index] = kept - eps
            gradient[index] = np.sum((above - f(*arrays)) * weights) / (2 * eps)
            array[index] = kept
    return gradients


def upstream(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """What could flow back into an operator: no two entries alike, so that a forgotten or averaged axis shows."""
    return np.random.RandomState(seed).uniform(0.5, 2.0, tuple(shape)) * np.where(np.indices(shape).sum(0) % 2, -1, 1)


# ---- data -----------------------------------------------------------------------------------------------------------


def real_data(*parts: str) -> Path | None:
    """A file or folder below NEEDLE_DATA_DIR, or None if it is not there."""
    base = os.environ.get("NEEDLE_DATA_DIR")
    path = Path(base).joinpath(*parts) if base else None
    return path if path is not None and path.exists() else None


def need_real_data(*parts: str) -> Path:
    """The same, or the test is skipped."""
    path = real_data(*parts)
    if path is None:
        pytest.skip(f"no {'/'.join(parts)}: set NEEDLE_DATA_DIR to the folder that holds it")
    return path


def write_mnist(folder: Path, part: str, count: int, seed: int = 0, side: int = 28) -> tuple[np.ndarray, np.ndarray]:
    """Write two files in MNIST's format; returns pixels uint8 (count, side, side) and labels uint8 (count,).

    Each digit has a bright bar at a place of its own, so that a network can learn them.
    """
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.uint8)
    pixels = random.randint(0, 60, (count, side, side)).astype(np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[2 * label : 2 * label + 3, 3:-3] += 120
    write_mnist_files(folder, part, pixels, labels)
    return pixels, labels


def write_mnist_files(folder: Path, part: str, pixels: np.ndarray, labels: np.ndarray) -> None:
    """Write pixels uint8 (n, h, w) and labels uint8 (n,) as `part` of a folder in MNIST's format."""
    write_gzip(folder / f"{part}-images-idx3-ubyte.gz", struct.pack(">4I", 2051, *pixels.shape) + pixels.tobytes())
    write_gzip(folder / f"{part}-labels-idx1-ubyte.gz", struct.pack(">2I", 2049, len(labels)) + labels.tobytes())


def write_gzip(path: Path, content: bytes) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(content)


def write_cifar10(folder: Path, count: int, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Write the six files of CIFAR-10 with `count` images each; returns {file: (bytes (count, 3072), labels)}."""
    random = np.random.RandomState(seed)
    written = {}
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        data = random.randint(0, 256, (count, 3072)).astype(np.uint8)
        labels = random.randint(0, 10, count)
        with (folder / name).open("wb") as file:
            pickle.dump({b"data": data, b"labels": labels.tolist()}, file, protocol=2)
        written[name] = data, labels
    return written
