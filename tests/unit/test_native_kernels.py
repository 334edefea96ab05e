"""Every native kernel equals NumPy, through raw handles: over kernels, shapes and dtypes.

The course's module works in float32 alone; the library's kernels work in all six dtypes. Whole numbers and bools must
agree exactly, floats to a few units in the last place, sums to what their length allows.
"""

from __future__ import annotations

import datetime
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle.backend_ndarray import kernels_cpu as kernels
from needle.backend_ndarray import ndarray_backend_cpu as course

from tests import kernel_reference
from tests.kernel_reference import BINARY, DTYPES, FLOAT_UNARY, FLOATS, INTEGERS, UNARY, as_view, binary_reference

MODULES = [(course, "float32"), *((kernels, dtype) for dtype in DTYPES)]
BATTERY = [pytest.param(module, dtype, id=f"{module.__name__.split('.')[-1]}-{dtype}") for module, dtype in MODULES]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What NumPy, the reference, thinks of overflow and of nan is not the matter here."""
    with np.errstate(all="ignore"):
        yield


# ---- handles -------------------------------------------------------------------------------------------------------


def empty(module: Any, size: int, dtype: str) -> Any:
    return course.Array(size) if module is course else kernels.Buffer(size, dtype)


def handle(module: Any, array: np.ndarray) -> Any:
    """A handle that holds a copy of the array's elements."""
    out = empty(module, array.size, str(array.dtype))
    module.from_numpy(np.ascontiguousarray(array), out)
    return out


def call(module: Any, name: str, *arguments: Any, size: int, dtype: str) -> np.ndarray:
    """The elements that a kernel leaves in a fresh `out`, which is its last argument but for those of no array."""
    out = empty(module, size, dtype)
    arrays = [handle(module, a) if isinstance(a, np.ndarray) else a for a in arguments]
    split = len([a for a in arguments if not isinstance(a, (int, tuple))])
    getattr(module, name)(*arrays[:split], out, *arrays[split:])
    return np.asarray(out).copy()


def assert_close(got: np.ndarray, wanted: Any, ulps: int = 0) -> None:
    """What a handle holds is what is wanted, in a row; for floats, but for so many units in the last place."""
    kernel_reference.assert_close(got, np.asarray(wanted).ravel(), ulps)


def arrays(dtype: str, shape: Any = None, **more: Any) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any values of the dtype: nan, infinities and the largest integers too."""
    shape = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9) if shape is None else shape
    return hnp.arrays(dtype, shape, elements=hnp.from_dtype(np.dtype(dtype), **more))


# ---- element-wise --------------------------------------------------------------------------------------------------


def exists(module: Any, name: str, dtype: str) -> bool:
    """Whether the module has that kernel, for that dtype."""
    float_only = name.split("_")[1] in ("div", *FLOAT_UNARY)
    number_only = name.split("_")[1] in ("abs", "sign")
    return hasattr(module, name) and not (float_only and dtype not in FLOATS) and not (number_only and dtype == "bool")


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(data=st.data())
def test_ewise_binary_equals_numpy(module: Any, dtype: str, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from([op for op in BINARY if exists(module, f"ewise_{op}", dtype)]))
    a = data.draw(arrays(dtype))
    b = data.draw(arrays(dtype, a.shape, **({"min_value": 0} if op == "power" and dtype in INTEGERS else {})))
    wanted = binary_reference(op, a, b, dtype)
    got = call(module, f"ewise_{op}", a, b, size=a.size, dtype=str(wanted.dtype))
    assert_close(got, wanted, ulps=4 if op == "power" else 0)


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(data=st.data())
def test_scalar_binary_equals_numpy(module: Any, dtype: str, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from([op for op in BINARY if exists(module, f"scalar_{op}", dtype)]))
    a = data.draw(arrays(dtype))
    limits = {"min_value": 0} if op == "power" and dtype in INTEGERS else {}
    val = data.draw(hnp.from_dtype(np.dtype(dtype), **limits))
    wanted = binary_reference(op, a, np.full_like(a, val), dtype)
    out = empty(module, a.size, str(wanted.dtype))
    getattr(module, f"scalar_{op}")(handle(module, a), val.item(), out)
    assert_close(np.asarray(out), wanted, ulps=4 if op == "power" else 0)


@pytest.mark.parametrize(("module", "dtype"), [p for p in BATTERY if p.values[1] != "bool"])
@given(data=st.data())
def test_ewise_unary_equals_numpy(module: Any, dtype: str, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from([op for op in UNARY if exists(module, f"ewise_{op}", dtype)]))
    limits = {"min_value": -1000, "max_value": 1000} if op in ("sin", "cos") else {}
    a = data.draw(arrays(dtype, **limits))
    assert_close(call(module, f"ewise_{op}", a, size=a.size, dtype=dtype), UNARY[op](a), ulps=8)


@given(data=st.data())
def test_cast_equals_numpy(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    limits = (
        {} if source == "bool" else {"min_value": 0, "max_value": 200}
    )  # beyond, C leaves open what a float becomes
    a = data.draw(arrays(source, **limits))
    assert_close(call(kernels, "cast", a, size=a.size, dtype=target), a.astype(target))


@given(data=st.data())
def test_where_equals_numpy(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    cond = data.draw(arrays("bool"))
    a, b = data.draw(arrays(dtype, cond.shape)), data.draw(arrays(dtype, cond.shape))
    assert_close(call(kernels, "where", cond, a, b, size=a.size, dtype=dtype), np.where(cond, a, b))


# ---- strided views -------------------------------------------------------------------------------------------------


@st.composite
def views(draw: Callable, dtype: str) -> tuple[np.ndarray, tuple, tuple, int]:
    """A flat storage of distinct numbers, and shape, strides and offset of a view of it."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=5, max_side=5))
    storage = np.arange(np.prod(shape, dtype=int)).astype(dtype)
    view = storage.reshape(shape).transpose(draw(st.permutations(range(len(shape)))))
    view = view[draw(hnp.basic_indices(view.shape))] if view.ndim else view
    if isinstance(view, np.ndarray) and view.ndim and draw(st.booleans()):
        view = np.broadcast_to(view, (draw(st.integers(1, 3)), *view.shape))
    view = np.asarray(view) if isinstance(view, np.ndarray) else storage[:1].reshape(())
    offset = (view.ctypes.data - storage.ctypes.data) // storage.itemsize if view.size else 0
    return storage, view.shape, tuple(stride // storage.itemsize for stride in view.strides), offset


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(data=st.data())
def test_strided_reads_equal_numpy_U056(module: Any, dtype: str, data: st.DataObject) -> None:
    storage, *layout = data.draw(views(dtype))
    wanted = as_view(storage, *layout)
    assert_close(call(module, "compact", storage, *layout, size=wanted.size, dtype=dtype), wanted)
    copy = module.to_numpy(handle(module, storage), *layout)
    assert copy.shape == wanted.shape
    assert copy.flags.c_contiguous and copy.flags.owndata
    assert_close(copy.ravel(), wanted)


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(data=st.data())
def test_strided_writes_equal_numpy_U056(module: Any, dtype: str, data: st.DataObject) -> None:
    storage, *layout = data.draw(views(dtype))
    a, wanted, out = np.ones(layout[0], dtype), storage.copy(), handle(module, storage)
    module.ewise_setitem(handle(module, a), out, *layout)
    as_view(wanted, *layout)[...] = a
    assert_close(np.asarray(out), wanted)
    module.scalar_setitem(a.size, 0, out, *layout)
    as_view(wanted, *layout)[...] = 0
    assert_close(np.asarray(out), wanted)


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
def test_windows_that_overlap_are_read_like_any_view(module: Any, dtype: str) -> None:
    a = np.array([0, 1, 1, 0, 1, 0, 0], dtype)
    wanted = np.lib.stride_tricks.sliding_window_view(a, 3)
    assert_close(call(module, "compact", a, (5, 3), (1, 1), 0, size=15, dtype=dtype), wanted)


@pytest.mark.parametrize("module", [course, kernels])
def test_a_view_may_have_as_many_axes_as_numpys_and_no_more(module: Any) -> None:
    a = np.arange(6, dtype="float32")
    shape, strides = (1,) * 61 + (2, 1, 3), (7,) * 61 + (1, 0, 2)
    got = call(module, "compact", a, shape, strides, 0, size=6, dtype="float32")
    assert got.tolist() == [0, 2, 4, 1, 3, 5]
    with pytest.raises(ValueError, match="up to 64"):
        call(module, "compact", a, (1, *shape), (1, *strides), 0, size=6, dtype="float32")


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
def test_an_array_set_to_itself_reversed_is_read_before_it_is_written(module: Any, dtype: str) -> None:
    numbers = np.array([0, 1, 1], dtype)
    out = handle(module, numbers)
    module.ewise_setitem(out, out, (3,), (-1,), 2)
    assert_close(np.asarray(out), numbers[::-1])


# ---- reductions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(data=st.data())
def test_reductions_equal_numpy_U076(module: Any, dtype: str, data: st.DataObject) -> None:
    ops = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}
    op = data.draw(st.sampled_from([op for op in ops if hasattr(module, f"reduce_{op}")]))
    shape = data.draw(st.tuples(st.integers(0, 4), st.integers(0 if op in ("sum", "prod") else 1, 70)))
    if dtype in FLOATS and op == "prod":  # powers of two: exact in any order, and far from overflow
        a = data.draw(hnp.arrays(dtype, shape, elements=st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0])))
    else:
        limits = {"min_value": -100, "max_value": 100} if dtype in FLOATS and op == "sum" else {}
        a = data.draw(arrays(dtype, shape, **limits))
    keep = {"dtype": dtype} if op in ("sum", "prod") else {}
    wanted = np.asarray(ops[op](a, axis=1, **keep))
    got = call(module, f"reduce_{op}", a, shape[1], size=shape[0], dtype=str(wanted.dtype))
    if op == "sum" and dtype in FLOATS:
        bound = shape[1] * np.finfo(dtype).eps * np.abs(a).sum(axis=1)
        assert np.all(np.abs(got - wanted) <= bound)
    else:
        assert_close(got, wanted)


def test_a_long_sum_is_as_exact_as_numpys() -> None:
    a = np.random.default_rng(0).random(1_000_003).astype("float32")
    exact = a.astype("float64").sum()
    ours = abs(call(kernels, "reduce_sum", a, a.size, size=1, dtype="float32")[0] - exact)
    assert ours <= 20 * np.finfo("float32").eps * exact  # a tree of blocks: about log2(n) roundings


def test_reducing_nothing_needs_an_identity() -> None:
    nothing = np.zeros(0, "float32")
    for module in (course, kernels):
        assert call(module, "reduce_sum", nothing, 0, size=2, dtype="float32").tolist() == [0, 0]
        with pytest.raises(ValueError, match="reduce_max"):
            call(module, "reduce_max", nothing, 0, size=2, dtype="float32")


# ---- products ------------------------------------------------------------------------------------------------------


def random(rng: np.random.Generator, shape: tuple, dtype: str) -> np.ndarray:
    return (rng.standard_normal(shape) if dtype in FLOATS else rng.integers(0, 2, shape)).astype(dtype)


def assert_product(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    wanted = a @ b
    if got.dtype.kind == "f":
        bound = a.shape[-1] * np.finfo(got.dtype).eps * (np.abs(a) @ np.abs(b))
        assert np.all(np.abs(got.reshape(wanted.shape) - wanted) <= bound)
    else:
        assert np.array_equal(got.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
@given(m=st.integers(0, 30), n=st.integers(0, 30), p=st.integers(0, 70), seed=st.integers(0, 99))
def test_matmul_equals_numpy(module: Any, dtype: str, m: int, n: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = random(rng, (m, n), dtype), random(rng, (n, p), dtype)
    assert_product(call(module, "matmul", a, b, m, n, p, size=m * p, dtype=dtype), a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul_is_right_at_sizes_that_no_tile_divides_U061(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for m in (1, 7, 8, 9, 63, 65):
        for n in (1, 7, 8, 9, 63, 65):
            for p in (1, 7, 8, 9, 63, 65):
                a, b = random(rng, (m, n), dtype), random(rng, (n, p), dtype)
                assert_product(call(kernels, "matmul", a, b, m, n, p, size=m * p, dtype=dtype), a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a_step", "b_step"), [(20, 30), (0, 30), (20, 0), (0, 0)])
def test_matmul_batched_equals_numpy(dtype: str, a_step: int, b_step: int) -> None:
    rng = np.random.default_rng(1)
    a, b = random(rng, (7, 4, 5), dtype), random(rng, (7, 5, 6), dtype)
    got = call(kernels, "matmul_batched", a, b, 7, 4, 5, 6, a_step, b_step, size=7 * 24, dtype=dtype)
    assert_product(got, a if a_step else a[:1], b if b_step else np.broadcast_to(b[:1], b.shape))


def test_matmul_tiled_equals_numpy_on_an_output_full_of_garbage() -> None:
    rng, t = np.random.default_rng(2), course.__tile_size__
    a, b = random(rng, (2 * t, 3 * t), "float32"), random(rng, (3 * t, t), "float32")
    out = course.Array(2 * t * t)
    course.fill(out, np.nan)
    tiles = [x.reshape(x.shape[0] // t, t, x.shape[1] // t, t).swapaxes(1, 2) for x in (a, b)]
    course.matmul_tiled(*(handle(course, x) for x in tiles), out, *a.shape, t)
    assert_product(np.asarray(out).reshape(2, 1, t, t).swapaxes(1, 2).reshape(2 * t, t), a, b)


def test_matmul_tiled_works_on_memory_that_is_not_aligned() -> None:
    memory = np.ones(65 * 3, "float32")
    a, b, out = (course.wrap(memory[i * 65 + 1 : i * 65 + 65]) for i in range(3))
    course.matmul_tiled(a, b, out, 8, 8, 8)
    assert np.all(np.asarray(out) == 8)


# ---- gather --------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_take_and_scatter_add_equal_numpy_U036(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    outer, size, inner = data.draw(st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(0, 4)))
    index = data.draw(hnp.arrays("int64", st.integers(0, 8), elements=st.integers(-size, size - 1)))
    rng = np.random.default_rng(0)
    a, grad = (random(rng, (outer, n, inner), dtype) for n in (size, index.size))

    out = empty(kernels, grad.size, dtype)
    kernels.take(handle(kernels, a), handle(kernels, index), out, outer, size, inner)
    assert_close(np.asarray(out), np.take(a, index, axis=1))

    out, wanted = handle(kernels, a), a.copy()
    kernels.scatter_add(handle(kernels, grad), handle(kernels, index), out, outer, size, inner)
    np.add.at(wanted, (slice(None), index), grad)
    assert_close(np.asarray(out), wanted)


def test_an_index_outside_is_an_error_and_nothing_is_written() -> None:
    a, out = handle(kernels, np.ones(3, "float32")), handle(kernels, np.full(2, 7, "float32"))
    for index in (3, -4):
        with pytest.raises(IndexError, match=rf"index {index} .* 3 elements"):
            kernels.take(a, handle(kernels, np.array([0, index])), out, 1, 3, 1)
    assert np.asarray(out).tolist() == [7, 7]


# ---- fused rows ----------------------------------------------------------------------------------------------------


@given(dtype=st.sampled_from(FLOATS), rows=st.integers(0, 4), cols=st.integers(1, 50), seed=st.integers(0, 99))
def test_fused_rows_equal_their_formulas(dtype: str, rows: int, cols: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, grad = (30 * rng.standard_normal((2, rows, cols))).astype(dtype)
    wide = a.astype("float64")
    lse = np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1, keepdims=True)) + wide.max(1, keepdims=True)
    tolerance = {"rtol": 300 * np.finfo(dtype).eps, "atol": 300 * np.finfo(dtype).eps}

    got = call(kernels, "logsumexp", a, cols, size=rows, dtype=dtype)
    np.testing.assert_allclose(got, lse.ravel(), **tolerance)
    back = call(kernels, "logsumexp_backward", a, got, grad[:, 0].copy(), cols, size=a.size, dtype=dtype)
    np.testing.assert_allclose(back, (grad[:, :1] * np.exp(wide - lse)).ravel(), **tolerance)

    y = call(kernels, "logsoftmax", a, cols, size=a.size, dtype=dtype)
    np.testing.assert_allclose(y, (wide - lse).ravel(), **tolerance)
    back = call(kernels, "logsoftmax_backward", y, grad, cols, size=a.size, dtype=dtype)
    wanted = grad - np.exp(wide - lse) * grad.astype("float64").sum(1, keepdims=True)
    np.testing.assert_allclose(back, wanted.ravel(), rtol=tolerance["rtol"], atol=cols * tolerance["atol"] * 100)


def test_logsumexp_of_huge_and_of_no_numbers_U070() -> None:
    inf = np.inf
    a = np.array([[0, 1e8], [-inf, -inf], [inf, 0], [-inf, 3]], "float32")
    assert call(kernels, "logsumexp", a, 2, size=4, dtype="float32").tolist() == [1e8, -inf, inf, 3]


# ---- storage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
def test_numpy_shares_memory_with_a_handle_and_keeps_it_alive(module: Any, dtype: str) -> None:
    out = empty(module, 5, dtype)
    view = np.asarray(out)
    assert view.dtype == dtype
    assert view.ctypes.data == out.ptr()
    view[:] = 1
    assert np.array_equal(module.to_numpy(out, (5,), (1,), 0), view)
    del out
    gc.collect()
    assert view.tolist() == [1] * 5


@pytest.mark.parametrize(("module", "dtype"), BATTERY)
def test_wrap_aliases_an_array_and_keeps_it_alive(module: Any, dtype: str) -> None:
    array = np.zeros(3, dtype)
    alive, wrapped = weakref.ref(array), module.wrap(array)
    module.fill(wrapped, 1)
    assert array.tolist() == [1] * 3
    del array
    gc.collect()
    assert alive() is not None
    del wrapped
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("module", [course, kernels])
def test_wrap_refuses_what_it_cannot_alias(module: Any) -> None:
    good = np.zeros((4, 4), "float32")
    frozen = good.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(bytearray(9), "uint8")[1:].view("float32")
    for bad in (good.T[1:], good[:, 1], frozen, unaligned, good.astype(">f4"), good.astype("float16")):
        with pytest.raises(TypeError, match="wrap"):
            module.wrap(bad)


def test_a_course_array_is_seen_through_one_private_function() -> None:
    array = course.Array(4)
    buffer = kernels._view(array.ptr(), array.size, "float32", array)
    kernels.fill(buffer, 2.5)
    assert np.asarray(array).tolist() == [2.5] * 4
    del array
    gc.collect()
    assert np.asarray(buffer).tolist() == [2.5] * 4


def test_typed_kernels_read_the_course_s_arrays() -> None:
    a, out = course.Array(4), kernels.Buffer(4, "float64")
    course.fill(a, 1.5)
    kernels.ewise_add(a, a, a)
    kernels.cast(a, out)
    assert np.asarray(out).tolist() == [3.0] * 4
    with pytest.raises(TypeError, match="ewise_add: out is float64, wanted float32"):
        kernels.ewise_add(a, a, out)
    for bad in (np.ones(4, np.float32), 4, None, course.Array):
        with pytest.raises(TypeError):
            kernels.ewise_add(a, bad, a)
    for bad in (None, 7, datetime.datetime_CAPI):
        with pytest.raises(TypeError):
            kernels._accept_arrays(bad)


def test_an_array_is_an_object_like_others() -> None:
    array = course.Array(size=3)
    course.fill(array, 2)
    assert (array.size, course.Array().size) == (3, 0)
    assert (memoryview(array).format, memoryview(array).tolist()) == ("f", [2.0] * 3)
    array.__init__(9)
    assert array.size == 3  # views of its memory may be about
    alive = weakref.ref(array)
    view = np.asarray(array)
    del array
    assert alive() is not None and view.tolist() == [2.0] * 3
    del view
    assert alive() is None
    assert type("Child", (course.Array,), {})(5).size == 5
    for bad in (-1, 2.0, "3", 2**80, None):
        with pytest.raises((ValueError, TypeError, OverflowError), match=r"Array|interpreted|too large"):
            course.Array(bad)


def test_allocated_bytes_counts_live_buffers() -> None:
    gc.collect()
    before = kernels.allocated_bytes()
    kept = [kernels.Buffer(10, dtype) for dtype in DTYPES]
    assert kernels.allocated_bytes() - before == sum(10 * np.dtype(dtype).itemsize for dtype in DTYPES)
    del kept
    gc.collect()
    assert kernels.allocated_bytes() == before


def test_errors_name_the_kernel_and_both_sizes_U090() -> None:
    for module, a, out in (
        (course, course.Array(3), course.Array(4)),
        (kernels, kernels.Buffer(3, "float32"), kernels.Buffer(4, "float32")),
    ):
        with pytest.raises(ValueError, match=r"ewise_exp: out has 4 elements, wanted 3"):
            module.ewise_exp(a, out)
        with pytest.raises(ValueError, match=r"compact: .*\(3,\).*offset 1.*outside the storage of 3"):
            module.compact(a, a, (3,), (1,), 1)
    with pytest.raises(TypeError, match="ewise_add: b is int32, wanted float32"):
        kernels.ewise_add(a, kernels.Buffer(3, "int32"), a)


def test_scalars_must_fit_the_dtype() -> None:
    out = kernels.Buffer(2, "uint8")
    for val, error in (
        (300, OverflowError),
        (-1, OverflowError),
        (1.5, ValueError),
        (np.nan, ValueError),
        ("1", TypeError),
    ):
        with pytest.raises(error):
            kernels.fill(out, val)
    for val in (7, 7.0, np.float32(7), np.int64(7)):
        kernels.fill(out, val)
        assert np.asarray(out).tolist() == [7, 7]
    with pytest.raises(ValueError, match="negative integer powers"):
        kernels.scalar_power(kernels.Buffer(1, "int32"), -1, kernels.Buffer(1, "int32"))


@pytest.mark.slow
def test_sizes_past_31_bits_are_counted_right_U060() -> None:
    size = 2**31 + 8  # two gigabytes of bytes: the index code is that of every dtype
    big, tail = kernels.Buffer(size, "uint8"), kernels.Buffer(8, "uint8")
    kernels.fill(big, 1)
    kernels.compact(big, tail, (8,), (1,), size - 8)
    assert int(np.asarray(tail).sum()) == 8


# ---- threads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def threads() -> Iterator[None]:
    before = kernels.num_threads()
    yield
    kernels.set_num_threads(before)


def test_results_do_not_depend_on_the_number_of_threads(threads: None) -> None:
    rng = np.random.default_rng(3)
    a, b = random(rng, (200, 700), "float32"), random(rng, (700, 150), "float32")
    results = []
    for count in (1, 2, 3):
        kernels.set_num_threads(count)
        assert kernels.num_threads() == count
        product = call(kernels, "matmul", a, b, 200, 700, 150, size=200 * 150, dtype="float32")
        total = call(kernels, "reduce_sum", a, a.size, size=1, dtype="float32")
        assert_product(product, a, b)
        results.append((product.tobytes(), total.tobytes()))
    assert len(set(results)) == 1


def test_a_number_of_threads_must_be_positive() -> None:
    for bad in (0, -1, 10**6):
        with pytest.raises(ValueError, match="set_num_threads"):
            kernels.set_num_threads(bad)


def run_python(program: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(course.__file__).parents[2]), **variables}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_environment_bounds_the_threads() -> None:
    program = "from needle.backend_ndarray import kernels_cpu; print(kernels_cpu.num_threads())"
    assert run_python(program, NEEDLE_NUM_THREADS="3") == "3"


def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    program = """
import os
from needle.backend_ndarray import kernels_cpu as k
k.set_num_threads(4)
a, out = k.Buffer(1 << 20, "float32"), k.Buffer(1, "float32")
k.fill(a, 1)
child = os.fork()
if child == 0:
    k.reduce_sum(a, out, a.size)
    os._exit(k.num_threads())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(program) == "1"
