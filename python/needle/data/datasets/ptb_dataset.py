"""Text in the layout of the Penn Treebank language-modelling data: train.txt, valid.txt and test.txt in one folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...core import Tensor
from ...errors import ArgumentError, NamesItself, named
from ..paths import existing_file


class Dictionary:
    """Numbers words by first appearance: `word2idx["the"]` is an id, `idx2word[id]` the word."""

    def __init__(self) -> None:
        self.word2idx: dict[str, int] = {}
        self.idx2word: list[str] = []

    def add_word(self, word: str) -> int:
        """Return the word's id, a new one if the word is new."""
        ### BEGIN YOUR SOLUTION hw4/add_word
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]
        ### END YOUR SOLUTION hw4/add_word

    def __len__(self) -> int:
        """The number of different words."""
        ### BEGIN YOUR SOLUTION hw4/dictionary_len
        return len(self.idx2word)
        ### END YOUR SOLUTION hw4/dictionary_len


class Corpus(NamesItself):
    """The texts of a folder as lists of word ids: `train`, then `test`, with one `dictionary` for both.

    `max_lines` bounds the lines read from each file.  Raises DataMissingError when a file is absent.
    """

    def __init__(self, base_dir: str | os.PathLike[str], max_lines: int | None = None) -> None:
        self.dictionary = Dictionary()
        self.train = self.tokenize(Path(base_dir) / "train.txt", max_lines)
        self.test = self.tokenize(Path(base_dir) / "test.txt", max_lines)

    def tokenize(self, path: str | os.PathLike[str], max_lines: int | None = None) -> list[int]:
        """Split each line on whitespace, end it with <eos>, and return the ids of all words in one list."""
        ### BEGIN YOUR SOLUTION hw4/tokenize
        ids = []
        with existing_file(path, "Corpus").open(encoding="utf-8") as lines:
            for line in islice(lines, max_lines):
                ids += [self.dictionary.add_word(word) for word in [*line.split(), "<eos>"]]
        return ids
        ### END YOUR SOLUTION hw4/tokenize


@named
def batchify(data: Sequence[int], batch_size: int, device: Any = None, dtype: Any = None) -> np.ndarray:
    """Cut a text into `batch_size` stretches that are read side by side.  (n,) → (n // batch_size, batch_size)

    Column j is the j-th contiguous stretch of the text; what does not fill a row is left out.  With 2 columns

        a b c d e f g   →   a d
                            b e
                            c f

    `device` is accepted for the sake of old callers and not used: the result is a NumPy array.
    """
    rows = len(data) // batch_size if batch_size > 0 else 0
    if rows == 0:
        raise ArgumentError(f"batchify: {len(data)} tokens do not fill a row of batch_size {batch_size}")
    ### BEGIN YOUR SOLUTION hw4/batchify
    return np.array(data[: rows * batch_size], dtype=dtype).reshape(batch_size, rows).T
    ### END YOUR SOLUTION hw4/batchify


@named
def get_batch(batches: np.ndarray, i: int, bptt: int, device: Any = None, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Take rows i to i + s - 1 of a batchified text, and as targets the word after each: rows i + 1 to i + s.

    s is bptt, or what is left before the last row.  Returns data (s, batch_size) and target (s * batch_size,), which
    belongs to data.reshape(-1); both hold ids as float32 unless `dtype` says otherwise.
    """
    s = min(bptt, len(batches) - 1 - i)
    if s < 1 or i < 0:
        raise ArgumentError(f"get_batch: no {bptt} rows with a row after them start at {i} of {len(batches)}")
    dtype = "float32" if dtype is None else dtype
    ### BEGIN YOUR SOLUTION hw4/get_batch
    data = Tensor(batches[i : i + s], device=device, dtype=dtype, requires_grad=False)
    target = Tensor(batches[i + 1 : i + 1 + s].reshape(-1), device=device, dtype=dtype, requires_grad=False)
    return data, target
    ### END YOUR SOLUTION hw4/get_batch
