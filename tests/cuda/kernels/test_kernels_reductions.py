"""Reductions on the device equal NumPy's: runs for one thread, for a warp, for a block, and for many blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, assert_sum, some, with_specials
from tests.kernel_reference import DTYPES, FLOATS, assert_close

params = pytest.mark.parametrize
SHAPES = [(40, 3), (3, 31), (70, 32), (9, 33), (3, 1024), (2, 1025), (3, 5000)]
LONG = [(1, 40_000), (3, 100_001)]  # in pieces
MEMBERS = {"max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}


@params("dtype", DTYPES)
def test_sum(kernels: Kernels, dtype: str) -> None:
    for rows, length in SHAPES + (LONG if dtype in (*FLOATS, "int32") else []):
        a = some((rows, length), dtype)
        wanted = a.sum(axis=1, dtype="float64" if dtype in FLOATS else dtype)
        got = kernels.run("reduce_sum", a, length, out=((rows,), dtype))
        if dtype in FLOATS:  # threads add up to 64 numbers each, then a tree
            assert_sum(got, wanted, np.abs(a).sum(axis=1), terms=80)
        else:
            assert_close(got, wanted)


@params("dtype", DTYPES)
def test_prod(kernels: Kernels, dtype: str) -> None:
    for rows, length in SHAPES:
        a = some((rows, length), dtype)
        if dtype in FLOATS:  # powers of two: exact in any order
            a = np.random.default_rng(0).choice([-2.0, -1.0, 0.5, 1.0, 2.0], (rows, length)).astype(dtype)
        got = kernels.run("reduce_prod", a, length, out=((rows,), dtype))
        assert_close(got, np.prod(a, axis=1, dtype=dtype))


@params("op", MEMBERS)
@params("dtype", DTYPES)
def test_members(kernels: Kernels, op: str, dtype: str) -> None:
    for rows, length in SHAPES + LONG:
        a = some((rows, length), dtype)  # with many equal numbers in it: the first one wins
        wanted = np.asarray(MEMBERS[op](a, axis=1))
        assert_close(kernels.run(f"reduce_{op}", a, length, out=((rows,), wanted.dtype)), wanted)


@params("op", MEMBERS)
@params("dtype", FLOATS)
def test_a_nan_wins(kernels: Kernels, op: str, dtype: str) -> None:
    for length in (5, 40, 1100, 40_000):
        a = with_specials(some((2, length), dtype))
        a[1, length // 2 : length // 2 + 2] = np.nan
        wanted = np.asarray(MEMBERS[op](a, axis=1))
        assert_close(kernels.run(f"reduce_{op}", a, length, out=((2,), wanted.dtype)), wanted)


def test_nothing_is_reduced_to_an_identity_or_refused(kernels: Kernels) -> None:
    nothing = np.zeros(0, "float32")
    assert kernels.run("reduce_sum", nothing, 0, out=((2,), "float32")).tolist() == [0, 0]
    assert kernels.run("reduce_prod", nothing, 0, out=((2,), "float32")).tolist() == [1, 1]
    assert kernels.run("reduce_max", nothing, 5, out=((0,), "float32")).size == 0
    with pytest.raises(ValueError, match="reduce_max: runs of 0 elements"):
        kernels.run("reduce_max", nothing, 0, out=((2,), "float32"))
    with pytest.raises(ValueError, match="reduce_argmin: runs of 0 elements"):
        kernels.run("reduce_argmin", nothing, 0, out=((2,), "int64"))


def test_a_long_sum_is_as_exact_as_numpys(kernels: Kernels) -> None:
    a = np.random.default_rng(0).random(300_003).astype("float32")
    exact = a.astype("float64").sum()
    got = kernels.run("reduce_sum", a, a.size, out=((1,), "float32"))[0]
    assert abs(got - exact) <= 20 * np.finfo("float32").eps * exact
