"""The real data sets, where NEEDLE_DATA_DIR has them: numbers that their publishers state."""

from __future__ import annotations

from pathlib import Path

import needle as ndl
import numpy as np
import pytest


def folder(real_data: Path, name: str) -> Path:
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name}/ in NEEDLE_DATA_DIR")
    return real_data / name


def test_mnist_has_its_counts_and_its_mean(real_data: Path) -> None:
    mnist = folder(real_data, "mnist")
    counts = {
        "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "t10k": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    }
    for split, wanted in counts.items():
        dataset = ndl.data.MNISTDataset(
            mnist / f"{split}-images-idx3-ubyte.gz", mnist / f"{split}-labels-idx1-ubyte.gz"
        )
        assert np.bincount(dataset.labels).tolist() == wanted
        assert dataset.images.shape == (sum(wanted), 28, 28, 1)
        assert dataset.images.max() == 1
        if split == "train":  # mean and deviation by which everybody normalises
            assert abs(dataset.images.mean(dtype=np.float64) - 0.1307) < 5e-5
            assert abs(dataset.images.std(dtype=np.float64) - 0.3081) < 5e-5


def test_mnist_is_found_whole(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mnist = folder(real_data, "mnist")
    monkeypatch.setattr(ndl.data.download, "download", None)  # asking the network would fail
    assert ndl.data.fetch("mnist").samefile(mnist)


def test_cifar10_has_its_counts_and_looks_like_it(real_data: Path) -> None:
    cifar10 = folder(real_data, "cifar-10-batches-py")
    for train, count in ((False, 1000), (True, 5000)):
        dataset = ndl.data.CIFAR10Dataset(cifar10, train=train)
        assert np.bincount(dataset.y).tolist() == [count] * 10
        assert dataset.X.shape == (10 * count, 3, 32, 32)
    # means of red, green and blue; the tolerance leaves room for a copy that went through JPEG
    means = dataset.X.mean(axis=(0, 2, 3), dtype=np.float64)
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=2e-3)


def test_a_text_in_ptb_layout(real_data: Path) -> None:
    text = folder(real_data, "shakespeare")
    corpus = ndl.data.Corpus(text)
    for name, ids in (("train", corpus.train), ("test", corpus.test)):
        with (text / f"{name}.txt").open(encoding="utf-8") as file:
            lines = list(file)
        assert ids.count(corpus.dictionary.word2idx["<eos>"]) == len(lines)
        words = [corpus.dictionary.idx2word[i] for i in ids]
        assert " ".join(words).replace("<eos>", "\n").split() == " ".join(lines).split()
    assert max(corpus.train) < len(corpus.dictionary) == len(set(corpus.train) | set(corpus.test))
