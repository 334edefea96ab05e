"""Text in PTB layout: numbering words, cutting a text into columns, taking batches from it."""

from __future__ import annotations

from pathlib import Path

import needle as ndl
import numpy as np
import pytest
from needle.data import Corpus, Dictionary, batchify, get_batch


def write_texts(folder: Path) -> Path:
    (folder / "train.txt").write_text(" the cat sat \n\n the dog\n", encoding="utf-8")
    (folder / "test.txt").write_text("a häedgehog sat\nthe end\n", encoding="utf-8")
    return folder


def test_dictionary_numbers_words_by_first_appearance() -> None:
    dictionary = Dictionary()
    assert [dictionary.add_word(word) for word in ["b", "a", "b", "c", "a"]] == [0, 1, 0, 2, 1]
    assert (dictionary.idx2word, dictionary.word2idx, len(dictionary)) == (["b", "a", "c"], {"b": 0, "a": 1, "c": 2}, 3)


def test_corpus_ends_each_line_and_numbers_train_before_test(tmp_path: Path) -> None:
    corpus = Corpus(write_texts(tmp_path))
    words = corpus.dictionary.idx2word
    assert [words[i] for i in corpus.train] == ["the", "cat", "sat", "<eos>", "<eos>", "the", "dog", "<eos>"]
    assert [words[i] for i in corpus.test] == ["a", "häedgehog", "sat", "<eos>", "the", "end", "<eos>"]
    assert words == ["the", "cat", "sat", "<eos>", "dog", "a", "häedgehog", "end"]


def test_corpus_max_lines_applies_to_each_file(tmp_path: Path) -> None:
    corpus = Corpus(str(write_texts(tmp_path)), max_lines=1)
    assert (corpus.train, corpus.test) == ([0, 1, 2, 3], [4, 5, 2, 3])
    assert len(corpus.dictionary) == 6


def test_corpus_names_the_file_that_is_not_there(tmp_path: Path) -> None:
    (write_texts(tmp_path) / "test.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"Corpus: no file .*test\.txt"):
        Corpus(tmp_path)


def test_batchify_puts_contiguous_stretches_in_columns() -> None:
    batches = batchify(list(range(11)), 3, device=None, dtype="float32")
    assert isinstance(batches, np.ndarray)
    np.testing.assert_array_equal(batches, [[0, 3, 6], [1, 4, 7], [2, 5, 8]])
    assert batches.dtype == np.float32


def test_batchify_of_too_little_text_says_so() -> None:
    for data, size in (([1, 2], 3), ([1, 2], 0), ([], 1)):
        with pytest.raises(ValueError, match=f"batchify: {len(data)} tokens do not fill a row of batch_size {size}"):
            batchify(data, size)


@pytest.mark.parametrize("bptt", [1, 3, 4, 50])
def test_get_batch_targets_are_the_next_words_up_to_the_end_U088(bptt: int) -> None:
    text = np.random.RandomState(0).randint(0, 10000, 5 * 8)
    batches = batchify(text, 5)
    seen = []
    for i in range(0, len(batches) - 1, bptt):
        data, target = get_batch(batches, i, bptt)
        rows = min(bptt, len(batches) - 1 - i)
        assert (data.shape, target.shape) == ((rows, 5), (rows * 5,))
        assert {str(data.dtype), str(target.dtype)} == {"float32"}
        np.testing.assert_array_equal(data.numpy(), batches[i : i + rows])
        np.testing.assert_array_equal(target.numpy().reshape(rows, 5), batches[i + 1 : i + 1 + rows])
        seen.append(data.numpy())
    # every row but the last, which has no row after it, is read exactly once
    np.testing.assert_array_equal(np.concatenate(seen), batches[:-1])


def test_get_batch_goes_where_it_is_told() -> None:
    data, target = get_batch(batchify(range(12), 2), 1, 3, device=ndl.cpu(), dtype="float32")
    assert data.device == target.device == ndl.cpu()
    assert not data.requires_grad


@pytest.mark.parametrize("i", [5, 6, -1])
def test_get_batch_past_the_end_says_so(i: int) -> None:
    with pytest.raises(ValueError, match=f"get_batch: .* start at {i} of 6"):
        get_batch(batchify(range(12), 2), i, 3)
