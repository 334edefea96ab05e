"""The IDX format and the data sets in it, on files that the tests write."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import needle as ndl
import numpy as np
import pytest
from needle.data.idx import IMAGES_MAGIC, LABELS_MAGIC, read_idx

PIXELS = (np.arange(6 * 5 * 4) * 7 % 256).astype(np.uint8).reshape(6, 5, 4)  # includes no 255: a maximum would show
LABELS = np.array([3, 0, 9, 1, 1, 200], np.uint8)


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", magic or 0x800 + array.ndim, *array.shape) + array.tobytes()


def write_pair(folder: Path, images: bytes = idx(PIXELS), labels: bytes = idx(LABELS)) -> tuple[Path, Path]:
    """An image and a label file, gzipped as MNIST's are."""
    paths = folder / "images.gz", folder / "labels.gz"
    for path, content in zip(paths, (images, labels), strict=True):
        path.write_bytes(gzip.compress(content))
    return paths


def test_parse_mnist_scales_by_255_in_float32(tmp_path: Path) -> None:
    images, labels = ndl.data.parse_mnist(*write_pair(tmp_path))
    assert (images.shape, images.dtype, labels.dtype) == ((6, 20), np.float32, np.uint8)
    np.testing.assert_array_equal(images, PIXELS.reshape(6, 20).astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(labels, LABELS)


def test_parse_mnist_of_no_images(tmp_path: Path) -> None:
    images, labels = ndl.data.parse_mnist(*write_pair(tmp_path, idx(PIXELS[:0]), idx(LABELS[:0])))
    assert (images.shape, labels.shape) == ((0, 20), (0,))


def test_read_idx_takes_files_that_are_not_gzipped(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_bytes(idx(LABELS))
    labels = read_idx(tmp_path / "plain.gz", LABELS_MAGIC)
    labels[0] = 7  # a view on bytes would be read-only
    assert labels.tolist() == [7, *LABELS[1:]]


DAMAGED = {
    "the header is cut": (idx(PIXELS)[:9], "ends inside its header"),
    "labels for images": (idx(LABELS) + bytes(8), "starts with 2049, wanted 2051"),
    "a byte is missing": (idx(PIXELS)[:-1], "states 120 bytes of data (6, 5, 4) but holds only 119"),
    "a byte too many": (idx(PIXELS) + b"x", "states 120 bytes of data (6, 5, 4) but holds more"),
    "a size bomb": (struct.pack(">4I", 2051, 2**32 - 1, 2**16, 2**16), "more than 1024 MiB"),
    "nothing": (b"", "ends inside its header"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_read_idx_names_what_is_damaged(case: str, tmp_path: Path) -> None:
    content, message = DAMAGED[case]
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(ndl.data.DataFileError) as caught:
        read_idx(path, IMAGES_MAGIC)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_read_idx_finds_a_cut_and_a_changed_gzip_file(tmp_path: Path) -> None:
    packed = gzip.compress(idx(PIXELS))
    changed = bytearray(packed)
    changed[-5] ^= 1  # in the checksum: the contents are all there
    for content in (packed[: len(packed) // 2], packed[:-4], bytes(changed)):
        (tmp_path / "images.gz").write_bytes(content)
        with pytest.raises(ndl.data.DataFileError, match="is damaged"):
            read_idx(tmp_path / "images.gz", IMAGES_MAGIC)


def test_parse_mnist_wants_as_many_labels_as_images(tmp_path: Path) -> None:
    with pytest.raises(ndl.data.DataFileError, match=r"6 images .* but 5 labels"):
        ndl.data.parse_mnist(*write_pair(tmp_path, labels=idx(LABELS[:5])))


def test_parse_mnist_names_the_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        ndl.data.parse_mnist("nowhere.gz", "nowhere.gz")
    assert str(tmp_path / "nowhere.gz") in str(caught.value)
    assert "ndl.data.fetch" in str(caught.value)


def test_mnist_dataset_by_int_slice_and_index_array(tmp_path: Path) -> None:
    dataset = ndl.data.MNISTDataset(*write_pair(tmp_path))
    scaled = PIXELS[..., None] / np.float32(255)
    image, label = dataset[2]
    assert (len(dataset), image.shape, image.dtype, label, label.dtype) == (6, (5, 4, 1), np.float32, 9, np.uint8)
    for index in (2, -1, slice(1, 4), slice(None, None, -2), np.array([5, 0, 5])):
        images, labels = dataset[index]
        np.testing.assert_array_equal(images, scaled[index])
        np.testing.assert_array_equal(labels, LABELS[index])
    with pytest.raises(IndexError):
        dataset[6]


def test_mnist_dataset_draws_for_each_image_in_the_order_of_access(tmp_path: Path) -> None:
    crop_and_flip = [ndl.data.RandomCrop(2), ndl.data.RandomFlipHorizontal()]
    dataset = ndl.data.MNISTDataset(*write_pair(tmp_path), transforms=crop_and_flip)
    order = np.array([4, 1, 1, 3])
    np.random.seed(0)
    images, labels = dataset[order]
    np.random.seed(0)
    for position, i in enumerate(order):
        image = PIXELS[i][..., None] / np.float32(255)
        for transform in crop_and_flip:
            image = transform(image)
        np.testing.assert_array_equal(images[position], image)
    np.testing.assert_array_equal(labels, LABELS[order])
    assert dataset[3:3][0].shape == (0, 5, 4, 1)


def test_fashion_mnist_reads_the_split_that_is_asked_for(tmp_path: Path) -> None:
    for split, count in (("train", 6), ("t10k", 2)):
        (tmp_path / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(PIXELS[:count])))
        (tmp_path / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS[:count] % 10)))
    training = ndl.data.FashionMNISTDataset(tmp_path, train=True)
    test = ndl.data.FashionMNISTDataset(tmp_path, train=False, transforms=[lambda image: image * 0])
    assert (len(training), len(test), len(training.classes)) == (6, 2, 10)
    assert test[0][0].max() == 0 < training[0][0].max()
