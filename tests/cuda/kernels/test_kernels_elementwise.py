"""Element-wise kernels on the device equal NumPy's, in all dtypes and at sizes around those of warps and blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, some, with_specials
from tests.kernel_reference import BINARY, DTYPES, FLOAT_UNARY, FLOATS, INTEGERS, UNARY, assert_close, binary_reference

SIZES = (1, 31, 257, 3000)  # one thread, less than a warp, a block and one, several blocks

params = pytest.mark.parametrize
binary_cases = params(
    ("op", "dtype"), [(op, dtype) for op in BINARY for dtype in DTYPES if op != "div" or dtype in FLOATS]
)


def operands(op: str, dtype: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = with_specials(some(size, dtype)), some(size, dtype, seed=1)
    return (np.abs(a), np.abs(b)) if op == "power" and dtype != "bool" else (a, b)


@binary_cases
def test_ewise_binary(kernels: Kernels, op: str, dtype: str) -> None:
    for size in SIZES:
        a, b = operands(op, dtype, size)
        wanted = binary_reference(op, a, b, dtype)
        got = kernels.run(f"ewise_{op}", a, b, out=((size,), wanted.dtype))
        assert_close(got, wanted, ulps=4 if op == "power" else 0)


@binary_cases
def test_scalar_binary(kernels: Kernels, op: str, dtype: str) -> None:
    a, _ = operands(op, dtype, 300)
    number = {"bool": True, "uint8": 3}.get(dtype, 2.5 if dtype in FLOATS else 3)
    wanted = binary_reference(op, a, np.full_like(a, number), dtype)
    out = kernels.Buffer(300, str(wanted.dtype))
    getattr(kernels, f"scalar_{op}")(kernels.up(a), number, out)
    assert_close(kernels.down(out), wanted, ulps=4 if op == "power" else 0)


@params(("op", "dtype"), [(op, d) for op in UNARY for d in DTYPES[:5] if d in FLOATS or op not in FLOAT_UNARY])
def test_ewise_unary(kernels: Kernels, op: str, dtype: str) -> None:
    for size in SIZES:
        a = with_specials(some(size, dtype))
        assert_close(kernels.run(f"ewise_{op}", a, out=((size,), dtype)), UNARY[op](a), ulps=8)


@params("source", DTYPES)
@params("target", DTYPES)
def test_cast(kernels: Kernels, source: str, target: str) -> None:
    a = np.abs(some(300, source) * (1 if source == "bool" else 5)).astype(source)
    assert_close(kernels.run("cast", a, out=((300,), target)), a.astype(target))


@params("dtype", DTYPES)
def test_where_and_fill(kernels: Kernels, dtype: str) -> None:
    cond, a, b = some(300, "bool"), with_specials(some(300, dtype)), some(300, dtype, seed=1)
    assert_close(kernels.run("where", cond, a, b, out=((300,), dtype)), np.where(cond, a, b))
    out = kernels.Buffer(300, dtype)
    kernels.fill(out, 1)
    assert_close(kernels.down(out), np.ones(300, dtype))


@params("dtype", INTEGERS)
def test_integers_wrap_around(kernels: Kernels, dtype: str) -> None:
    a = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 3], dtype)
    assert_close(kernels.run("ewise_add", a, a, out=((3,), dtype)), a + a)
    assert_close(kernels.run("ewise_mul", a, a, out=((3,), dtype)), a * a)


@params("dtype", ["int32", "int64"])
def test_negative_powers_of_integers_are_refused(kernels: Kernels, dtype: str) -> None:
    a, b = np.full(300, 2, dtype), np.arange(299, -1, -1).astype(dtype) - 7
    with pytest.raises(ValueError, match="ewise_power: integers to negative integer powers"):
        kernels.run("ewise_power", a, b, out=((300,), dtype))
    with pytest.raises(ValueError, match="scalar_power: integers to negative integer powers"):
        kernels.scalar_power(kernels.up(a), -1, kernels.Buffer(300, dtype))


def test_an_operand_may_be_the_result(kernels: Kernels) -> None:
    a = kernels.up(some(300, "float32"))
    kernels.ewise_add(a, a, a)
    assert_close(kernels.down(a), 2 * some(300, "float32"))


def test_nothing_is_not_launched(kernels: Kernels) -> None:
    """A launch of no blocks would be an error."""
    nothing = np.zeros(0, "float32")
    kernels.run("ewise_add", nothing, nothing, out=((0,), "float32"))
    kernels.run("ewise_exp", nothing, out=((0,), "float32"))
    kernels.run("cast", nothing, out=((0,), "bool"))
    kernels.run("ewise_power", nothing.astype("int32"), nothing.astype("int32"), out=((0,), "int32"))
    kernels.fill(kernels.Buffer(0, "float32"), 1)


@params(
    ("name", "arrays", "complaint"),
    [
        ("ewise_add", [("float32", 3), ("float32", 4), ("float32", 3)], "b has 4 elements, wanted 3"),
        ("ewise_add", [("float32", 3), ("float64", 3), ("float32", 3)], "b is float64, wanted float32"),
        ("ewise_eq", [("int32", 3), ("int32", 3), ("int32", 3)], "out is int32, wanted float32"),
        ("ewise_exp", [("int32", 3), ("int32", 3)], "dtype int32, wanted float32 or float64"),
        ("ewise_abs", [("bool", 3), ("bool", 3)], "dtype bool, wanted a number dtype"),
        ("where", [("int32", 3)] * 4, "cond is int32, wanted bool"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(kernels: Kernels, name: str, arrays: list, complaint: str) -> None:
    buffers = [kernels.Buffer(size, dtype) for dtype, size in arrays]
    with pytest.raises((ValueError, TypeError), match=f"{name}: {complaint}"):
        getattr(kernels, name)(*buffers)
