"""How each peer does a task: a module for each, with a function for each kind of task."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Answer = dict[str, np.ndarray]


class Absent(Exception):
    """The peer, or its way of doing a task, is not here; the text says why."""


class Work(NamedTuple):
    """A prepared task: `run` does it once; `answer` does it once and gives what must be right, by name.

    What `answer` gives under "weights/…" is not compared; it is what the other peers begin with.
    """

    run: Callable[[], Any]
    answer: Callable[[], Answer]


def normal(seed: int, *shape: int) -> np.ndarray:
    """The same numbers for every peer."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def integers(seed: int, high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape)


def operands(sizes: dict[str, Any]) -> list[np.ndarray]:
    """What an operation of suites.OPERATIONS works on: rows of numbers, positive ones for a logarithm."""
    shape = sizes["n"] // sizes["width"], sizes["width"]
    arrays = [normal(seed, *shape) for seed in ((0, 1) if sizes["name"] in ("add", "multiply") else (0,))]
    return [np.abs(a) + 0.1 for a in arrays] if sizes["name"] == "log" else arrays


# copies of what is only read, 160 MB in all, so that no cache of up to 40 MB holds one until its next turn: McCalpin's
# rule for STREAM
COPIES = dict.fromkeys(("read", "sum", "max", "sum of rows", "sum of columns"), 4)


def in_turn(function: Callable[..., Any], name: str, copy: Callable[[], Sequence[Any]]) -> Callable[[], Any]:
    """Call an operation on its operands; a reduction, whose result is small, on one copy of them after the other."""
    turns = itertools.cycle([copy() for _ in range(COPIES.get(name, 1))])
    return lambda: function(*next(turns))


def training_data(sizes: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A batch and its labels: pictures, or words (T, B) and the words that follow."""
    batch = sizes["batch"]
    if "words" in sizes:
        words, steps = sizes["words"], sizes["steps"]
        return integers(0, words, steps, batch), integers(1, words, steps * batch)
    shape = (batch, sizes["dim"]) if "dim" in sizes else (batch, 3, 32, 32)
    return normal(0, *shape), integers(1, 10, batch)


STEPS_COMPARED = 3  # the losses of so many training steps have to agree
