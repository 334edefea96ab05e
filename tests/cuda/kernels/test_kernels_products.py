"""Matrix products and gathers on the device equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, assert_sum, some
from tests.kernel_reference import DTYPES, FLOATS, assert_close

params = pytest.mark.parametrize


def assert_product(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if got.dtype.kind == "f":
        magnitude = np.abs(a).astype("float64") @ np.abs(b)
        assert_sum(got, a.astype("float64") @ b, magnitude, terms=a.shape[-1])
    else:
        assert_close(got, a @ b)


# ---- products -------------------------------------------------------------------------------------------------------


@params("dtype", DTYPES)
@params("shape", [(1, 1, 1), (7, 5, 3), (64, 16, 64), (65, 17, 63), (3, 100, 130), (130, 33, 2), (5, 0, 4), (0, 3, 2)])
def test_matmul_at_and_around_the_tiles_sizes_U061(kernels: Kernels, shape: tuple[int, ...], dtype: str) -> None:
    m, n, p = shape
    a, b = some((m, n), dtype), some((n, p), dtype, seed=1)
    assert_product(kernels.run("matmul", a, b, m, n, p, out=((m, p), dtype)), a, b)


@params("dtype", DTYPES)
@params(("a_step", "b_step"), [(20, 30), (0, 30), (20, 0), (0, 0)])
def test_matmul_batched(kernels: Kernels, dtype: str, a_step: int, b_step: int) -> None:
    a, b = some((7, 4, 5), dtype), some((7, 5, 6), dtype, seed=1)
    got = kernels.run("matmul_batched", a, b, 7, 4, 5, 6, a_step, b_step, out=((7, 4, 6), dtype))
    wanted_a = a if a_step else np.broadcast_to(a[:1], a.shape)
    wanted_b = b if b_step else np.broadcast_to(b[:1], b.shape)
    assert_product(got, wanted_a, wanted_b)


def test_batches_of_large_matrices(kernels: Kernels) -> None:
    a, b = some((3, 70, 40), "float32"), some((3, 40, 90), "float32", seed=1)
    got = kernels.run("matmul_batched", a, b, 3, 70, 40, 90, 2800, 3600, out=((3, 70, 90), "float32"))
    assert_product(got, a, b)


def test_what_is_no_product_is_refused(kernels: Kernels) -> None:
    a, b, out = (kernels.Buffer(size, "float32") for size in (6, 8, 12))
    with pytest.raises(ValueError, match="matmul: b has 8 elements, wanted 6"):
        kernels.matmul(a, b, kernels.Buffer(9, "float32"), 3, 2, 3)
    with pytest.raises(ValueError, match=r"matmul: shape .* negative"):
        kernels.matmul(a, b, out, -3, 2, 4)
    with pytest.raises(ValueError, match="matmul_batched: out shares memory"):
        kernels.matmul_batched(b, b, b, 2, 2, 2, 2, 4, 4)


# ---- gathers --------------------------------------------------------------------------------------------------------


@params("dtype", DTYPES)
@params("axis", [0, 1, 2])
def test_take(kernels: Kernels, dtype: str, axis: int) -> None:
    a, indices = some((4, 5, 6), dtype), np.array([0, -1, 2, 2, -3, 1], "int64")
    outer, inner = int(np.prod(a.shape[:axis])), int(np.prod(a.shape[axis + 1 :]))
    wanted = a.take(indices, axis)
    got = kernels.run("take", a, indices, outer, a.shape[axis], inner, out=(wanted.shape, dtype))
    assert_close(got, wanted)


@params("dtype", DTYPES)
@params("axis", [0, 1, 2])
def test_scatter_add(kernels: Kernels, dtype: str, axis: int) -> None:
    wanted, indices = some((4, 5, 6), dtype), np.array([0, -1, 2, 2, -3, 1, 2], "int64")
    shape = list(wanted.shape)
    shape[axis] = indices.size
    a, out = some(shape, dtype, seed=1), kernels.up(wanted)
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    kernels.scatter_add(kernels.up(a), kernels.up(indices), out, outer, wanted.shape[axis], inner)
    np.add.at(np.moveaxis(wanted, axis, 0), indices, np.moveaxis(a, axis, 0))
    if dtype in FLOATS:
        np.testing.assert_allclose(kernels.down(out, wanted.shape), wanted, atol=32 * np.finfo(dtype).eps)
    else:
        assert_close(kernels.down(out, wanted.shape), wanted)


@params("dtype", ["float32", "uint8"])
def test_many_rows_add_to_one(kernels: Kernels, dtype: str) -> None:
    a, out = np.ones((600, 7), dtype), kernels.up(np.zeros((3, 7), dtype))
    kernels.scatter_add(kernels.up(a), kernels.up(np.full(600, 1)), out, 1, 3, 7)
    wanted = np.zeros((3, 7), dtype)
    wanted[1] = np.full(7, 600).astype(dtype)
    assert_close(kernels.down(out, (3, 7)), wanted)


@params("name", ["take", "scatter_add"])
def test_an_index_outside_is_named_and_nothing_is_written(kernels: Kernels, name: str) -> None:
    whole, picked = kernels.up(np.zeros(6, "float32")), kernels.up(np.ones(8, "float32"))
    arrays, target = ((whole, picked), picked) if name == "take" else ((picked, whole), whole)
    before = kernels.down(target)
    for index in (3, -4, 2**62):
        indices = kernels.up(np.array([0, 1, index, 99], "int64"))
        with pytest.raises(IndexError, match=f"{name}: index {index} is out of bounds for an axis of 3"):
            getattr(kernels, name)(arrays[0], indices, arrays[1], 1, 3, 2)
    assert_close(kernels.down(target), before)
