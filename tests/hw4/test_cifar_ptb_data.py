"""Checks of homework 4, parts 2 and 6: CIFAR-10 and the Penn Treebank as data sets.

python -m pytest tests/hw4 -k test_cifar10      and: ptb

Files in the official layouts are written for the checks; the real ones are read too where NEEDLE_DATA_DIR has them.
"""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from stages import assert_same, assert_within, devices, need_real_data, real_data, write_cifar10

on_devices = pytest.mark.parametrize("device", devices())


# ---- CIFAR-10 -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cifar10(tmp_path_factory):
    """A folder in CIFAR-10's layout, 20 images a file, and what was written to it."""
    folder = tmp_path_factory.mktemp("cifar") / "cifar-10-batches-py"
    folder.mkdir()
    return folder, write_cifar10(folder, 20)


@pytest.mark.parametrize("train", [True, False])
def test_cifar10_dataset(train, cifar10):
    folder, written = cifar10
    names = [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]
    pixels = np.concatenate([written[name][0] for name in names])
    labels = np.concatenate([written[name][1] for name in names])
    dataset = ndl.data.CIFAR10Dataset(str(folder), train=train)
    assert len(dataset) == len(labels)
    for i in (0, 7, len(labels) - 1):
        item = dataset[i]
        assert isinstance(item, tuple)
        image, label = item
        assert isinstance(image, np.ndarray) and image.shape == (3, 32, 32)
        for channel in range(3):  # a row is all of red, then all of green, then all of blue
            plane = pixels[i, 1024 * channel : 1024 * (channel + 1)].reshape(32, 32) / 255
            assert_within(image[channel], plane, rtol=1e-6)
        assert label == labels[i]
    images, some = dataset[np.array([3, 1, 4])]
    assert_within(images, pixels[[3, 1, 4]].reshape(3, 3, 32, 32) / 255, rtol=1e-6)
    assert_same(some, labels[[3, 1, 4]])


def test_cifar10_dataset_needs_its_files(cifar10, tmp_path):
    for train in (True, False):
        ndl.data.CIFAR10Dataset(str(cifar10[0]), train=train)
        with pytest.raises(OSError):  # at once, and not when the first image is asked for
            ndl.data.CIFAR10Dataset(str(tmp_path), train=train)


def test_cifar10_dataset_len(cifar10):
    assert len(ndl.data.CIFAR10Dataset(str(cifar10[0]), train=True)) == 100
    assert len(ndl.data.CIFAR10Dataset(str(cifar10[0]), train=False)) == 20


def test_cifar10_dataset_real():
    folder = need_real_data("cifar-10-batches-py")
    dataset = ndl.data.CIFAR10Dataset(str(folder), train=False)
    assert len(dataset) == 10000 and dataset.X.shape == (10000, 3, 32, 32)
    assert np.unique(dataset.y).tolist() == list(range(10))
    assert dataset.X.min() >= 0 and 0.9 < dataset.X.max() <= 1
    assert 0.4 < dataset.X.mean() < 0.55
    # neighbouring pixels of a picture are alike; of one that was cut wrongly they are not
    assert np.abs(np.diff(dataset.X[:500], axis=3)).mean() < 0.1


@on_devices
@pytest.mark.parametrize("batch_size", [1, 15])
@pytest.mark.parametrize("train", [True, False])
def test_cifar10_loader(batch_size, train, device, cifar10):
    dataset = ndl.data.CIFAR10Dataset(str(cifar10[0]), train=train)
    start = 0
    for X, y in ndl.data.DataLoader(dataset, batch_size):
        X, y = ndl.Tensor(X, device=device), ndl.Tensor(y, device=device)
        images, labels = dataset[slice(start, start + batch_size)]
        assert X.device == device and X.dtype == "float32" and X.shape == (len(labels), 3, 32, 32)
        assert_within(X.numpy(), images, rtol=1e-6)
        assert_same(y.numpy(), labels)
        start += batch_size
    assert start >= len(dataset)


# ---- Penn Treebank --------------------------------------------------------------------------------------------------

TRAIN = "the cat sat on the mat\n the dog  sat \n\nno <unk> sat\n" + "a b c d e f\n" * 20
TEST = "the bird sat\nx a\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ptb")
    (folder / "train.txt").write_text(TRAIN)
    (folder / "test.txt").write_text(TEST)
    return ndl.data.Corpus(str(folder)), folder


def words(text):
    return [word for line in text.splitlines() for word in [*line.split(), "<eos>"]]


def test_ptb_add_word():
    dictionary = ndl.data.Dictionary()
    assert [dictionary.add_word(word) for word in ["to", "be", "or", "not", "to", "be"]] == [0, 1, 2, 3, 0, 1]
    assert dictionary.idx2word == ["to", "be", "or", "not"]
    assert dictionary.word2idx == {"to": 0, "be": 1, "or": 2, "not": 3}


def test_ptb_dictionary_len():
    dictionary = ndl.data.Dictionary()
    assert len(dictionary) == 0
    for word in ("a", "b", "a"):
        dictionary.add_word(word)
    assert len(dictionary) == 2


def test_ptb_tokenize(corpus):
    corpus, folder = corpus
    in_order = list(dict.fromkeys(words(TRAIN) + words(TEST)))  # ids by first appearance, the training text first
    assert corpus.dictionary.idx2word == in_order
    for part, text in (("train", TRAIN), ("test", TEST)):
        assert [in_order[i] for i in getattr(corpus, part)] == words(text)
    two_lines = ndl.data.Corpus(str(folder), max_lines=2)
    assert [two_lines.dictionary.idx2word[i] for i in two_lines.train] == words(TRAIN)[:11]
    assert [two_lines.dictionary.idx2word[i] for i in two_lines.test] == words(TEST)


@pytest.mark.parametrize("count, columns", [(7, 2), (12, 3), (5, 1), (6, 6), (11, 4)])
def test_ptb_batchify(count, columns):
    ids = [3 * i % 17 for i in range(count)]
    batches = ndl.data.batchify(ids, columns, device=ndl.cpu(), dtype="float32")
    rows = count // columns
    assert isinstance(batches, np.ndarray) and batches.shape == (rows, columns) and batches.dtype == np.float32
    for column in range(columns):
        assert_same(batches[:, column], ids[column * rows : (column + 1) * rows])


@on_devices
@pytest.mark.parametrize("start, bptt, size", [(0, 3, 3), (2, 3, 3), (4, 3, 1), (3, 1, 1), (0, 50, 5)])
def test_ptb_get_batch(start, bptt, size, device):
    batches = np.arange(12.0).reshape(6, 2)
    data, target = ndl.data.get_batch(batches, start, bptt, device=device)
    assert data.device == target.device == device and data.dtype == target.dtype == "float32"
    assert_same(data, batches[start : start + size])
    assert_same(target, batches[start + 1 : start + 1 + size].reshape(-1))
    assert not data.requires_grad and not target.requires_grad


@on_devices
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("bptt", [1, 3, 32])
@pytest.mark.parametrize("part", ["train", "test"])
def test_ptb_dataset(batch_size, bptt, part, device, corpus):
    corpus, folder = corpus
    in_order = list(dict.fromkeys(words(TRAIN) + words(TEST)))  # ids by first appearance, the training text first
    assert corpus.dictionary.idx2word == in_order and len(corpus.dictionary) == len(in_order)
    assert [corpus.dictionary.word2idx[word] for word in in_order] == list(range(len(in_order)))
    text = {"train": TRAIN, "test": TEST}[part]
    ids = list(getattr(corpus, part))
    assert [in_order[i] for i in ids] == words(text)
    two_lines = ndl.data.Corpus(str(folder), max_lines=2)
    assert [two_lines.dictionary.idx2word[i] for i in two_lines.train] == words(TRAIN)[:11]

    batches = ndl.data.batchify(ids, batch_size, device=device, dtype="float32")
    rows = len(ids) // batch_size
    assert isinstance(batches, np.ndarray) and batches.shape == (rows, batch_size)
    for column in range(batch_size):
        assert_same(batches[:, column], ids[column * rows : (column + 1) * rows])

    for start in {0, rows // 2, rows - 2} & set(range(rows - 1)):  # the last batch is shorter
        data, target = ndl.data.get_batch(batches, start, bptt, device=device)
        size = min(bptt, rows - 1 - start)
        assert data.shape == (size, batch_size) and target.shape == (size * batch_size,)
        assert data.device == target.device == device and data.dtype == target.dtype == "float32"
        assert_same(data.numpy(), batches[start : start + size])
        assert_same(target.numpy(), batches[start + 1 : start + 1 + size].flatten())


def test_ptb_dataset_real():
    folder = real_data("ptb") or need_real_data("shakespeare")
    corpus = ndl.data.Corpus(str(folder))
    vocabulary = len(corpus.dictionary)
    assert vocabulary == (10000 if folder.name == "ptb" else len(corpus.dictionary.word2idx))
    assert max(corpus.train) < vocabulary and max(corpus.test) < vocabulary
    text = (folder / "test.txt").read_text(encoding="utf-8")
    assert [corpus.dictionary.idx2word[i] for i in corpus.test] == words(text)
