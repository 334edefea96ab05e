"""The product of operands wherever they lie: over shapes, layouts, batches, dtypes, instruction sets and threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle import backend_ndarray as nd
from needle import kernels as registry
from needle.backend_ndarray import kernels_cpu

from tests.kernel_reference import DTYPES, FLOATS

ISAS = kernels_cpu.available_isas()
SIZES = st.one_of(st.integers(0, 3), st.sampled_from((4, 5, 6, 11, 12, 13, 15, 16, 17, 31, 33, 47, 64, 70, 130)))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Instruction set and threads, after the test, as they were."""
    isa, threads = kernels_cpu.isa(), kernels_cpu.num_threads()
    yield
    kernels_cpu.set_isa(isa)
    kernels_cpu.set_num_threads(threads)


def laid_out(data: Any, values: np.ndarray) -> nd.NDArray:
    """The values in a view that a user may come to: transposed, cut, stepped, reversed, or broadcast."""
    layout = data.draw(st.sampled_from(("compact", "transposed", "cut", "reversed", "repeated", "permuted")))
    whole = nd.array(values, dtype=values.dtype)
    if layout == "transposed":
        return swapped(nd.array(values.swapaxes(-1, -2), dtype=values.dtype))
    if layout == "permuted" and values.ndim > 2:  # (…, B, m, n) from memory of (…, m, B, n), as heads of attention
        return swapped(nd.array(values.swapaxes(-2, -3), dtype=values.dtype), -2, -3)
    if layout == "cut":
        wide = np.full((*values.shape[:-1], values.shape[-1] + 3), 99).astype(values.dtype)
        wide[..., 1:-2] = values
        return nd.array(wide, dtype=values.dtype)[..., 1 : 1 + values.shape[-1]]
    if layout == "reversed":
        return nd.array(np.ascontiguousarray(values[..., ::-1, ::-1]), dtype=values.dtype)[..., ::-1, ::-1]
    if layout == "repeated" and values.shape[-2]:
        values[...] = values[..., :1, :]
        return nd.array(values[..., :1, :].copy(), dtype=values.dtype).broadcast_to(values.shape)
    return whole


def swapped(array: nd.NDArray, one: int = -1, other: int = -2) -> nd.NDArray:
    order = list(range(array.ndim))
    order[one], order[other] = order[other], order[one]
    return array.permute(tuple(order))


def small_numbers(data: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers of which every sum of products is exact, so that the order of adding does not matter."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    low = 0 if dtype in ("uint8", "bool") else -4
    return rng.integers(low, 5, shape).astype(dtype)


@given(data=st.data())
def test_products_of_views_equal_numpy(data: Any) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    m, n, p = (data.draw(SIZES) for _ in range(3))
    batch = data.draw(st.lists(st.integers(0, 3), max_size=2))
    kernels_cpu.set_isa(data.draw(st.sampled_from(ISAS)))
    kernels_cpu.set_num_threads(data.draw(st.integers(1, 3)))
    a = small_numbers(data, (*batch, m, n), dtype)
    b = small_numbers(data, (*(batch if data.draw(st.booleans()) else ()), n, p), dtype)
    left, right = laid_out(data, a), laid_out(data, b)
    got = left @ right
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), np.matmul(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape",
    [(300, 520, 70), (5, 700, 2100), (130, 40, 260), (64, 3000, 3), (20, 2600, 130), (1, 300, 5003), (5003, 300, 1)],
)
@pytest.mark.parametrize("transposed", [True, False])
def test_the_number_of_threads_does_not_change_a_bit(dtype: str, shape: tuple[int, int, int], transposed: bool) -> None:
    m, n, p = shape
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((n, p)).astype(dtype)
    a = nd.array(x, dtype=dtype).permute((1, 0)) if transposed else nd.array(x.T, dtype=dtype)
    b, products = nd.array(y, dtype=dtype), []
    for threads in (1, 2, 3, 5):
        kernels_cpu.set_num_threads(threads)
        products.append((a @ b).numpy())
    assert all(np.array_equal(products[0], other) for other in products[1:])
    wanted = x.T.astype("float64") @ y.astype("float64")
    # each of n roundings is at most eps/2 of a partial sum, which is at most Σ|x||y| (Higham, 2002, section 3.1)
    bound = n * np.finfo(dtype).eps * (abs(x.T).astype("float64") @ abs(y).astype("float64"))
    assert np.all(abs(products[0] - wanted) <= bound)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_reach_their_row_and_column_alone(isa: str, dtype: str) -> None:
    kernels_cpu.set_isa(isa)
    a, b = np.ones((29, 31), dtype), np.ones((31, 37), dtype)
    a[28, 3], b[5, 36] = np.nan, np.inf
    got = (nd.array(a, dtype=dtype) @ nd.array(b, dtype=dtype)).numpy()
    wanted = np.full((29, 37), 31, dtype)
    wanted[:, 36], wanted[28] = np.inf, np.nan
    np.testing.assert_array_equal(got, wanted)


def test_no_operand_is_copied() -> None:
    x = nd.array(np.ones((40, 6), "float32"))
    heads = nd.array(np.ones((2, 9, 3, 8), "float32")).permute((0, 2, 1, 3))  # (B, H, T, D)
    compact, calls = registry.device_kernel("compact", "cpu", "float32"), []
    registry.register("compact", "cpu", "float32", lambda *a: calls.append(a), fast=True)
    try:
        assert (x.permute((1, 0)) @ x).shape == (6, 6)
        assert (heads @ heads.permute((0, 1, 3, 2))).shape == (2, 3, 9, 9)
    finally:
        registry.register("compact", "cpu", "float32", compact, fast=True)
    assert not calls


def test_a_strided_product_refuses_what_reaches_outside() -> None:
    a, out = kernels_cpu.Buffer(6, "float32"), kernels_cpu.Buffer(4, "float32")
    with pytest.raises(ValueError, match="reach outside"):
        kernels_cpu.matmul_strided(a, a, out, (2, 3, 2), (3, 1), 1, (2, 1), 0)
    with pytest.raises(ValueError, match=r"shape \(2, 3\), wanted"):
        kernels_cpu.matmul_strided(a, a, out, (2, 3), (3, 1), 0, (2, 1), 0)
    with pytest.raises(ValueError, match="shares memory"):
        kernels_cpu.matmul_strided(a, a, a, (2, 3, 3), (3, 1), 0, (1, 1), 0)
    with pytest.raises(TypeError, match="linear"):
        wrong = [kernels_cpu.Buffer(4, "int32") for _ in range(4)]
        kernels_cpu.linear(
            wrong[0], wrong[1], kernels_cpu.Buffer(2, "int32"), wrong[3], (2, 2, 2), (2, 1), 0, (2, 1), 0
        )
