"""Kernels that are right: silent in every order of the threads; with any barrier left out, a race."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import pytest

from tests.cuda.emulator.building import Emulated, emulated

BARRIERS = 15


def correct(check: bool) -> Emulated:
    kernels = emulated("correct.cu", check)
    kernels.library.function_names.restype = ctypes.c_char_p
    return kernels


@contextlib.contextmanager
def left_out(kernels: Emulated, barrier: int) -> Iterator[None]:
    kernels.library.leave_out(barrier)
    try:
        yield
    finally:
        kernels.library.leave_out(-1)


def names(kernels: Emulated) -> list[str]:
    return kernels.library.function_names().decode().split()


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_correct_kernels_are_right_and_silent(check: bool, order: str) -> None:
    kernels = correct(check)
    for seed in range(3 if order == "random" else 1):
        with kernels.options(ORDER=order, SEED=seed):
            said = {name: kernels.run(name) for name in names(kernels)}
        assert said == dict.fromkeys(said)
        assert len(said) >= 15


@pytest.mark.parametrize("barrier", range(BARRIERS))
def test_without_a_barrier_there_is_a_race(barrier: int) -> None:
    kernels = correct(check=True)
    assert kernels.library.number_of_barriers() == BARRIERS
    with left_out(kernels, barrier):
        said = [text for text in map(kernels.run, names(kernels)) if text is not None]
    assert len(said) == 1  # in the kernel that has lost a barrier, and in no other
    assert said[0].startswith("data race on ") and "no __syncthreads() between them" in said[0]


@pytest.mark.parametrize("order", ["reverse", "random"])
def test_order_alone_shows_some_races_as_wrong_numbers(order: str) -> None:
    """The fast build does not look for races, but another order makes most of them come out wrong."""
    kernels = correct(check=False)
    wrong = 0
    for barrier in range(BARRIERS):
        with left_out(kernels, barrier), kernels.options(ORDER=order):
            wrong += any(kernels.run(name) is not None for name in names(kernels))
    assert wrong >= BARRIERS // 2
