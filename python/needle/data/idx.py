"""The IDX format of MNIST and its look-alikes: a big-endian header, then one byte per pixel or label.

    images  2051, count, rows, columns   (four uint32), then count * rows * columns bytes
    labels  2049, count                  (two uint32),  then count bytes

The magic number is 0x0800 plus the number of axes (LeCun, Cortes, Burges: "The MNIST database of handwritten digits").
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import named
from .errors import DataFileError
from .paths import existing_file

LABELS_MAGIC = 0x0801
IMAGES_MAGIC = 0x0803
MAX_BYTES = 1 << 30  # twenty times MNIST; a header that claims more is damaged, or meant to fill the memory

Filename = str | os.PathLike[str]


@named
def parse_mnist(image_filename: Filename, label_filename: Filename) -> tuple[np.ndarray, np.ndarray]:
    """Read an image file and its label file.  Returns float32 (n, rows * columns) in [0, 1] and uint8 (n,).

    Raises DataMissingError or DataFileError when a file is absent, damaged, or does not match the other.
    """
    images, labels = read_mnist(image_filename, label_filename)
    return images.reshape(len(images), math.prod(images.shape[1:])), labels


def read_mnist(image_filename: Filename, label_filename: Filename) -> tuple[np.ndarray, np.ndarray]:
    """As `parse_mnist`, but the images keep their shape: float32 (n, rows, columns)."""
    pixels, labels = read_idx(image_filename, IMAGES_MAGIC), read_idx(label_filename, LABELS_MAGIC)
    if len(pixels) != len(labels):
        raise DataFileError(
            f"parse_mnist: {len(pixels)} images in {image_filename}, but {len(labels)} labels in {label_filename}"
        )
    images = pixels.astype(np.float32)
    images /= 255  # in place: the training images alone are 180 MB
    return images, labels


def read_idx(path: Filename, magic: int) -> np.ndarray:
    """Read one IDX file of bytes, gzipped or not.  Returns a uint8 array of the shape that its header states."""
    path = existing_file(path, "parse_mnist")
    try:
        with open_maybe_gzip(path) as stream:
            shape = read_header(stream, path, magic)
            size = math.prod(shape)
            body = stream.read(size + 1)  # one byte more: it shows what is left over, and has gzip verify its checksum
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(f"parse_mnist: {path} is damaged ({error}); delete it and fetch it anew") from None
    if len(body) != size:
        found = f"only {len(body)}" if len(body) < size else "more"
        raise DataFileError(f"parse_mnist: {path} states {size} bytes of data {shape} but holds {found}")
    return np.frombuffer(body, np.uint8).reshape(shape).copy()  # a copy, since a view on bytes is read-only


def open_maybe_gzip(path: Path) -> BinaryIO:
    """Open for reading; the first two bytes tell whether it is gzip, whatever its name says."""
    with path.open("rb") as stream:
        is_gzip = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzip else path.open("rb")  # type: ignore[return-value]


def read_header(stream: BinaryIO, path: Path, magic: int) -> tuple[int, ...]:
    """Read and check the header.  Returns the shape: (count, rows, columns) or (count,)."""
    axes = magic & 0xFF
    header = stream.read(4 + 4 * axes)
    if len(header) < 4 + 4 * axes:
        raise DataFileError(f"parse_mnist: {path} ends inside its header; delete it and fetch it anew")
    found, *shape = struct.unpack(f">{1 + axes}I", header)
    if found != magic:
        raise DataFileError(f"parse_mnist: {path} starts with {found}, wanted {magic} (2051: images, 2049: labels)")
    if math.prod(shape) > MAX_BYTES:
        raise DataFileError(f"parse_mnist: {path} states a shape of {tuple(shape)}, more than {MAX_BYTES >> 20} MiB")
    return tuple(shape)
