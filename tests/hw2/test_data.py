"""Checks of homework 2, question 4: transforms, MNISTDataset, DataLoader.

python -m pytest tests/hw2 -k flip_horizontal      and likewise: random_crop, mnist_dataset, dataloader
"""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from stages import assert_close, assert_same, real_data, write_mnist


def draws_made(call, *expected):
    """Run call() from seed 3 and see that exactly the draws in `expected` were taken from NumPy's generator."""
    np.random.seed(3)
    for draw in expected:
        draw()
    after = np.random.rand(4)
    np.random.seed(3)
    result = call()
    assert_same(np.random.rand(4), after, what="drawn too often, too seldom, or otherwise")
    return result


# ---- transforms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 4, 1), (3, 6, 3), (28, 28, 1)])
def test_flip_horizontal(shape):
    image = np.random.RandomState(0).rand(*shape).astype(np.float32)
    mirrored = np.stack([image[:, column] for column in reversed(range(shape[1]))], axis=1)
    for p in (0, 1, 0.5, 0.3):
        flip = ndl.data.RandomFlipHorizontal(p)
        for seed in range(20):
            np.random.seed(seed)
            wanted = mirrored if np.random.rand() < p else image
            np.random.seed(seed)
            assert_same(flip(image), wanted)
        draws_made(lambda: flip(image), np.random.rand)  # noqa: B023


@pytest.mark.parametrize(
    "shape, padding", [((5, 4, 1), 1), ((3, 6, 3), 2), ((28, 28, 1), 3), ((4, 4, 1), 6), ((4, 3, 2), 0)]
)
def test_random_crop(shape, padding):
    image = 1 + np.random.RandomState(0).rand(*shape).astype(np.float32)
    height, width, _ = shape
    crop = ndl.data.RandomCrop(padding)
    for seed in range(20):
        np.random.seed(seed)
        down, right = np.random.randint(low=-padding, high=padding + 1, size=2)
        wanted = np.zeros_like(image)
        for i in range(height):
            for j in range(width):
                if 0 <= i + down < height and 0 <= j + right < width:
                    wanted[i, j] = image[i + down, j + right]
        np.random.seed(seed)
        got = crop(image)
        assert got.dtype == image.dtype
        assert_same(got, wanted)
    draws_made(lambda: crop(image), lambda: np.random.randint(low=-padding, high=padding + 1, size=2))


# ---- MNISTDataset ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    """Files in MNIST's format: the test set itself where NEEDLE_DATA_DIR has it, else 300 drawn images."""
    folder, count = real_data("mnist"), 10000
    if folder is None:
        folder, count = tmp_path_factory.mktemp("mnist"), 300
        write_mnist(folder, "t10k", count)
    return folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz", count


def test_mnist_dataset(mnist):
    images_file, labels_file, count = mnist
    X, y = ndl.data.parse_mnist(images_file, labels_file)
    dataset = ndl.data.MNISTDataset(str(images_file), str(labels_file))
    assert len(dataset) == count

    for i in (0, 1, 41, count - 1):
        image, label = dataset[i]
        assert image.dtype == np.float32 and np.size(image) == 784
        assert_same(np.reshape(image, -1), X[i])
        assert label == y[i]
    for index in (slice(3, 8), np.array([5, 0, 2])):
        images, labels = dataset[index]
        assert_same(images.reshape(-1, 784), X[index])
        assert_same(labels, y[index])

    # with transforms an image is (28, 28, 1); each access crops first, then flips
    crop, flip = ndl.data.RandomCrop(10), ndl.data.RandomFlipHorizontal()
    moving = ndl.data.MNISTDataset(str(images_file), str(labels_file), transforms=[crop, flip])
    np.random.seed(0)
    got = [moving[i][0] for i in range(10)]
    np.random.seed(0)
    for i, image in enumerate(got):
        wanted = flip(crop(X[i].reshape(28, 28, 1)))
        assert image.shape == (28, 28, 1)
        assert_same(image, wanted)


def test_mnist_dataset_needs_its_files(mnist, tmp_path):
    images_file, labels_file, _ = mnist
    ndl.data.MNISTDataset(str(images_file), str(labels_file))
    for files in ((tmp_path / "none.gz", labels_file), (images_file, tmp_path / "none.gz")):
        with pytest.raises(OSError):  # at once, and not when the first image is asked for
            ndl.data.MNISTDataset(*map(str, files))


def test_mnist_dataset_len(mnist, tmp_path):
    images_file, labels_file, count = mnist
    assert len(ndl.data.MNISTDataset(str(images_file), str(labels_file))) == count
    write_mnist(tmp_path, "train", 3)
    few = (str(tmp_path / f"train-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    assert len(ndl.data.MNISTDataset(*few)) == 3


# ---- DataLoader -----------------------------------------------------------------------------------------------------


def test_dataloader_iter():
    dataset = ndl.data.NDArrayDataset(np.arange(10.0))
    draws_made(lambda: iter(ndl.data.DataLoader(dataset, 3, shuffle=False)))
    shuffled = ndl.data.DataLoader(dataset, 3, shuffle=True)
    for _ in range(2):  # an order is drawn when an epoch begins, and no earlier
        started = draws_made(lambda: iter(shuffled), lambda: np.random.permutation(10))
        assert hasattr(started, "__next__")


@pytest.mark.parametrize("batch_size", [1, 15])
def test_dataloader_mnist(mnist, batch_size):
    images_file, labels_file, count = mnist
    dataset = ndl.data.MNISTDataset(str(images_file), str(labels_file))
    seen = 0
    for i, (images, labels) in enumerate(ndl.data.DataLoader(dataset, batch_size)):
        X, y = dataset[i * batch_size : (i + 1) * batch_size]
        assert isinstance(images, ndl.Tensor) and isinstance(labels, ndl.Tensor)
        assert images.shape == X.shape and labels.shape == y.shape
        if i % 40 == 0:
            assert_same(images.numpy(), X)
            assert_same(labels.numpy(), y)
        seen += len(y)
    assert seen == count

    # shuffled: all images, each with its label, in an order drawn anew for each epoch
    few = ndl.data.NDArrayDataset(*dataset[:60])
    loader = ndl.data.DataLoader(few, 8, shuffle=True)
    np.random.seed(0)
    orders = [np.random.permutation(60) for _ in range(2)]
    np.random.seed(0)
    for order in orders:
        batches = list(loader)
        assert_close(np.concatenate([images.numpy() for images, _ in batches]), few[order][0])
        assert_close(np.concatenate([labels.numpy() for _, labels in batches]), few[order][1])


@pytest.mark.parametrize(
    "count, batch_size, sizes", [(10, 1, [1] * 10), (10, 4, [4, 4, 2]), (10, 10, [10]), (3, 7, [3])]
)
def test_dataloader_ndarray(count, batch_size, sizes):
    X = np.random.RandomState(0).rand(count, 3, 2).astype(np.float32)
    y = np.arange(count)
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(X, y), batch_size=batch_size, shuffle=False)
    for _ in range(2):  # one iter() is one epoch; a loader can be used again, also after a loop that was left early
        batches = list(loader)
        assert [images.shape for images, _ in batches] == [(size, 3, 2) for size in sizes]
        assert_same(np.concatenate([images.numpy() for images, _ in batches]), X)
        assert_same(np.concatenate([labels.numpy() for _, labels in batches]), y)
        next(iter(loader))

    shuffled = ndl.data.DataLoader(ndl.data.NDArrayDataset(X, y), batch_size=batch_size, shuffle=True)
    np.random.seed(0)
    order = np.concatenate([labels.numpy() for _, labels in shuffled])
    assert sorted(order) == list(range(count))
    np.random.seed(0)
    assert_same(order, np.random.permutation(count))
