"""Section 10: data sets, loader, transforms, text."""

from __future__ import annotations

import gzip
import pickle
import struct

import needle as ndl
import numpy as np
import pytest
from needle import data

from .tools import close

# ---- 10.1 data set and loader ----------------------------------------------------------------------------------------


def test_dataset_applies_transforms_in_order() -> None:
    class Plain(data.Dataset):
        def __getitem__(self, index):
            return self.apply_transforms(index)

        def __len__(self):
            return 3

    assert Plain([lambda x: x + 1, lambda x: x * 10])[2] == 30
    assert Plain()[2] == 2


def test_ndarray_dataset() -> None:
    a, b = np.arange(12).reshape(6, 2), np.arange(6)
    ds = data.NDArrayDataset(a, b)
    assert len(ds) == 6
    for index in (3, slice(1, 4), np.array([4, 0])):
        item = ds[index]
        assert isinstance(item, tuple) and len(item) == 2
        np.testing.assert_array_equal(item[0], a[index])
        np.testing.assert_array_equal(item[1], b[index])


def test_loader_yields_tensors_in_order_with_a_short_last_batch() -> None:
    a, b = np.random.rand(7, 2, 3), np.arange(7)
    loader = data.DataLoader(dataset=data.NDArrayDataset(a, b), batch_size=3, shuffle=False)
    for _ in range(2):  # one iter() is one epoch
        batches = list(loader)
        assert [batch[0].shape for batch in batches] == [(3, 2, 3), (3, 2, 3), (1, 2, 3)]
        for i, batch in enumerate(batches):
            assert isinstance(batch, (tuple, list)) and all(isinstance(t, ndl.Tensor) for t in batch)
            close(batch[0], a[3 * i : 3 * i + 3])
            np.testing.assert_array_equal(batch[1].numpy(), b[3 * i : 3 * i + 3])
            assert batch[0].device == ndl.default_device()


def test_loader_iter_returns_itself_and_next_ends() -> None:
    loader = data.DataLoader(data.NDArrayDataset(np.arange(4.0)), batch_size=2)
    assert iter(loader) is loader
    assert len([next(loader), next(loader)]) == 2
    with pytest.raises(StopIteration):
        next(loader)


def test_loader_batch_size_is_one_by_default() -> None:
    assert [len(t) for (t,) in [tuple(b) for b in data.DataLoader(data.NDArrayDataset(np.arange(3.0)))]] == [1, 1, 1]


def test_loader_draws_one_permutation_for_each_epoch() -> None:
    a = np.arange(10.0)
    loader = data.DataLoader(data.NDArrayDataset(a), batch_size=4, shuffle=True)
    np.random.seed(3)
    first, second = [np.concatenate([b[0].numpy() for b in loader]) for _ in range(2)]
    after = np.random.rand()
    np.random.seed(3)
    np.testing.assert_array_equal(first, a[np.random.permutation(10)])
    np.testing.assert_array_equal(second, a[np.random.permutation(10)])
    assert after == np.random.rand()


# ---- 10.2 transforms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_flip_draws_one_number_and_turns_axis_1(p: float) -> None:
    image = np.random.rand(4, 5, 3)
    flip = data.RandomFlipHorizontal(p)
    np.random.seed(2)
    got = [flip(image) for _ in range(6)]
    after = np.random.rand()
    np.random.seed(2)
    for result in got:
        np.testing.assert_array_equal(result, image[:, ::-1] if np.random.rand() < p else image)
    assert after == np.random.rand()


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_crop_draws_two_shifts_in_one_call_and_moves_along_axis_0_and_1(padding: int) -> None:
    image = np.random.rand(5, 6, 2).astype("float32")
    crop = data.RandomCrop(padding)
    np.random.seed(2)
    got = [crop(image) for _ in range(8)]
    np.random.seed(2)
    for result in got:
        sx, sy = np.random.randint(low=-padding, high=padding + 1, size=2)
        padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
        expected = padded[padding + sx : padding + sx + 5, padding + sy : padding + sy + 6]
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == image.dtype


def test_defaults_of_the_transforms() -> None:
    assert data.RandomFlipHorizontal().p == 0.5 and data.RandomCrop().padding == 3


# ---- 10.3 MNIST ------------------------------------------------------------------------------------------------------


@pytest.fixture
def mnist_files(tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (9, 28, 28)).astype("uint8")
    labels = (np.arange(9) % 10).astype("uint8")
    images_file, labels_file = str(tmp_path / "images.gz"), str(tmp_path / "labels.gz")
    with gzip.open(images_file, "wb") as f:
        f.write(struct.pack(">4I", 2051, 9, 28, 28) + pixels.tobytes())
    with gzip.open(labels_file, "wb") as f:
        f.write(struct.pack(">2I", 2049, 9) + labels.tobytes())
    return images_file, labels_file, pixels, labels


def test_mnist(mnist_files) -> None:
    images_file, labels_file, pixels, labels = mnist_files
    ds = data.MNISTDataset(images_file, labels_file)
    assert len(ds) == 9
    image, label = ds[4]
    assert image.dtype == np.float32 and image.size == 784
    np.testing.assert_array_equal(image.reshape(28, 28), pixels[4].astype("float32") / 255)
    assert label == labels[4] and np.asarray(label).dtype == np.uint8


@pytest.mark.parametrize("batch", [1, 4])
def test_mnist_slices_have_the_shape_that_the_loader_gives(mnist_files, batch: int) -> None:
    ds = data.MNISTDataset(mnist_files[0], mnist_files[1])
    for i, (x, y) in enumerate(data.DataLoader(ds, batch_size=batch)):
        images, labels = ds[i * batch : (i + 1) * batch]
        assert x.shape == images.shape and x.shape[0] == len(labels)
        np.testing.assert_array_equal(x.numpy(), images)
        np.testing.assert_array_equal(y.numpy(), labels)
    images, labels = ds[np.array([7, 2])]
    np.testing.assert_array_equal(labels, [7, 2])


def test_mnist_transforms_meet_images_of_three_axes_and_draw_in_the_order_of_access(mnist_files) -> None:
    images_file, labels_file, pixels, _ = mnist_files
    ds = data.MNISTDataset(images_file, labels_file, transforms=[data.RandomCrop(2), data.RandomFlipHorizontal(0.5)])
    np.random.seed(4)
    got = [ds[i][0].reshape(28, 28) for i in (3, 1)]
    np.random.seed(4)
    for image, i in zip(got, (3, 1), strict=True):
        sx, sy = np.random.randint(low=-2, high=3, size=2)
        expected = np.pad(pixels[i].astype("float32") / 255, 2)[2 + sx : 30 + sx, 2 + sy : 30 + sy]
        expected = expected[:, ::-1] if np.random.rand() < 0.5 else expected
        np.testing.assert_array_equal(image, expected)


# ---- 10.4 CIFAR-10 ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cifar_folder(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.RandomState(0)
    stored = {}
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        batch = {b"data": rng.randint(0, 256, (4, 3072)).astype("uint8"), b"labels": rng.randint(0, 10, 4).tolist()}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
        stored[name] = batch
    return str(folder), stored


@pytest.mark.parametrize("train", [True, False])
def test_cifar10(cifar_folder, train: bool) -> None:
    folder, stored = cifar_folder
    names = [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]
    pixels = np.concatenate([stored[n][b"data"] for n in names]).reshape(-1, 3, 32, 32) / 255
    labels = np.concatenate([stored[n][b"labels"] for n in names])
    ds = data.CIFAR10Dataset(folder, train=train)
    assert len(ds) == len(labels) and ds.X.shape == pixels.shape
    np.testing.assert_allclose(ds.X, pixels, rtol=1e-6)
    np.testing.assert_array_equal(ds.y, labels)
    item = ds[2]
    assert isinstance(item, tuple) and isinstance(item[0], np.ndarray) and item[0].shape == (3, 32, 32)
    assert item[1] == labels[2]


def test_cifar10_in_a_loader(cifar_folder) -> None:
    ds = data.CIFAR10Dataset(cifar_folder[0], train=True)
    loader = data.DataLoader(ds, batch_size=8, shuffle=True)
    assert [x.shape for x, _ in loader] == [(8, 3, 32, 32), (8, 3, 32, 32), (4, 3, 32, 32)]
    assert ds[np.array([3, 0])][0].shape == (2, 3, 32, 32)


# ---- 10.5 text -------------------------------------------------------------------------------------------------------


def test_dictionary() -> None:
    d = data.Dictionary()
    assert [d.add_word(w) for w in ("the", "cat", "the", "sat")] == [0, 1, 0, 2]
    assert len(d) == 3 and d.word2idx == {"the": 0, "cat": 1, "sat": 2} and list(d.idx2word) == ["the", "cat", "sat"]


@pytest.fixture
def text_folder(tmp_path):
    (tmp_path / "train.txt").write_text(" a b c \n b  d \n e f g\n")
    (tmp_path / "test.txt").write_text(" a h \n c\n")
    return str(tmp_path)


def test_corpus(text_folder) -> None:
    corpus = data.Corpus(text_folder)
    words = corpus.dictionary.idx2word
    assert list(words) == ["a", "b", "c", "<eos>", "d", "e", "f", "g", "h"]
    assert " ".join(words[i] for i in corpus.train) == "a b c <eos> b d <eos> e f g <eos>"
    assert " ".join(words[i] for i in corpus.test) == "a h <eos> c <eos>"


def test_corpus_max_lines_holds_for_each_file(text_folder) -> None:
    corpus = data.Corpus(text_folder, max_lines=1)
    words = corpus.dictionary.idx2word
    assert " ".join(words[i] for i in corpus.train) == "a b c <eos>"
    assert " ".join(words[i] for i in corpus.test) == "a h <eos>"


def test_batchify_columns_are_contiguous_stretches() -> None:
    batches = data.batchify(list(range(11)), 3, device=ndl.cpu(), dtype="float32")
    assert isinstance(batches, np.ndarray)
    np.testing.assert_array_equal(batches, [[0, 3, 6], [1, 4, 7], [2, 5, 8]])


@pytest.mark.parametrize("i, size", [(0, 2), (2, 2), (3, 1)])
def test_get_batch_targets_are_the_words_that_follow(i: int, size: int) -> None:
    batches = data.batchify(list(range(10)), 2, device=None, dtype="float32")  # 5 rows
    x, y = data.get_batch(batches, i, 2, device=ndl.cpu(), dtype="float32")
    assert x.shape == (size, 2) and y.shape == (size * 2,)
    close(x, batches[i : i + size])
    close(y, batches[i + 1 : i + 1 + size].reshape(-1))
    for t in (x, y):
        assert t.dtype == "float32" and t.device == ndl.cpu()
