"""Every operation of NDArray equals NumPy's in value, shape and dtype: over layouts, shapes, dtypes and devices.

Hypothesis draws an array of some shape and dtype, laid out in memory in some way: transposed, sliced, stepped,
reversed, flipped, broadcast, with an offset, of size zero.  NumPy sees the same values.  What differs on purpose is
spelled out here: a Python number never widens, float32 with integers stays float32, sums of integers are int64,
comparisons are float32, full reductions have shape (1,).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from needle import backend_ndarray as nd

from tests.chosen_device import devices

DEVICES = devices()
LADDER = ("bool", "uint8", "int32", "int64", "float32", "float64")
FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int32", "int64")

# ---- arrays in every layout ----------------------------------------------------------------------------------------


def values(draw: Callable, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small numbers, so that sums and products stay exact enough to compare; sometimes with nan and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype in FLOATS:
        array = np.asarray(rng.integers(-16, 17, shape) / 4 * rng.random(shape), dtype)
        if draw(st.integers(0, 4)) == 0:
            odd = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), shape)
            array = np.where(rng.random(shape) < 0.2, odd, array).astype(dtype)
        return array
    low = 0 if dtype in ("bool", "uint8") else -9
    return np.asarray(rng.integers(low, 2 if dtype == "bool" else 10, shape), dtype)


LAYOUTS = ("permuted", "sliced", "reversed", "flipped", "broadcast", "offset")


@st.composite
def laid_out(draw: Callable, shape: tuple[int, ...], dtype: str, device: Any) -> tuple[np.ndarray, nd.NDArray]:
    """An array of that shape: NumPy's and ours, the latter a view in up to two of the layouts, one of the other."""
    return build(draw, shape, dtype, device, draw(st.lists(st.sampled_from(LAYOUTS), max_size=2)))


def build(draw: Callable, shape: tuple, dtype: str, device: Any, layouts: list[str]) -> tuple[np.ndarray, nd.NDArray]:
    if not layouts or not shape:
        array = values(draw, shape, dtype)
        return array, nd.array(array, dtype=dtype, device=device)
    layout, ndim = layouts[0], len(shape)

    def inner(inner_shape: Any) -> tuple[np.ndarray, nd.NDArray]:
        return build(draw, tuple(inner_shape), dtype, device, layouts[1:])

    if layout == "permuted":
        axes = draw(st.permutations(range(ndim)))
        want, ours = inner(shape[axes.index(axis)] for axis in range(ndim))
        return want.transpose(axes), ours.permute(axes)
    if layout == "flipped":
        axes = draw(st.lists(st.integers(0, ndim - 1), unique=True))
        want, ours = inner(shape)
        return np.flip(want, axes), ours.flip(axes)
    if layout == "broadcast":
        narrow = draw(st.lists(st.booleans(), min_size=ndim, max_size=ndim))
        want, ours = inner(1 if one and extent else extent for one, extent in zip(narrow, shape))
        return np.broadcast_to(want, shape), ours.broadcast_to(shape)
    step = -1 if layout == "reversed" else 1 if layout == "offset" else draw(st.integers(1, 3))
    skip = draw(st.integers(0, 2)) if layout != "reversed" else 0
    want, ours = inner(skip + abs(step) * extent for extent in shape)
    index = (slice(skip or None, None, step),) * ndim
    return want[index], ours[index]


def shapes(min_dims: int = 0, max_dims: int = 4) -> st.SearchStrategy:
    return st.lists(st.integers(0, 4), min_size=min_dims, max_size=max_dims).map(tuple)


# ---- comparing -----------------------------------------------------------------------------------------------------


def expect(got: nd.NDArray, want: Any, dtype: str | None = None, tolerance: float = 0.0) -> None:
    want = np.asarray(want)
    assert isinstance(got, nd.NDArray)
    assert got.shape == want.shape
    assert got.dtype == (dtype or want.dtype.name)
    assert got.numpy().shape == want.shape and got.numpy().dtype.name == got.dtype
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        if tolerance == 0.0:
            np.testing.assert_array_equal(got.numpy(), want)
        else:
            scale = tolerance * np.finfo(got.dtype if got.dtype in FLOATS else "float32").eps
            np.testing.assert_allclose(got.numpy(), want, rtol=scale, atol=scale)


def same_outcome(ours: Callable, numpys: Callable, check: Callable[[nd.NDArray, Any], None]) -> None:
    """Both compute, and check(ours, numpys) holds; or both refuse."""
    refusals = (ValueError, TypeError, IndexError)
    with np.errstate(all="ignore"):
        try:
            want = numpys()
        except refusals:
            with pytest.raises(refusals):
                ours()
            return
    check(ours(), want)


def promoted(*dtypes: str) -> str:
    """NumPy 2's result type, but that float32 with integers stays float32."""
    wide = np.result_type(*(np.dtype(dtype) for dtype in dtypes)).name
    return "float32" if wide == "float64" and "float64" not in dtypes else wide


# ---- operators of two arrays, and of an array and a number ---------------------------------------------------------


@dataclass
class Binary:
    name: str
    function: Callable
    result: Callable[[str], str] = lambda dtype: dtype
    tolerance: float = 0.0

    def check(self, got: nd.NDArray, want: np.ndarray, dtype: str) -> None:
        expect(got, want, self.result(dtype), self.tolerance if self.result(dtype) in FLOATS else 0.0)


def as_float(dtype: str) -> str:
    return dtype if dtype in FLOATS else "float32"


def never_bool(dtype: str) -> str:
    return "int64" if dtype == "bool" else dtype


BINARY = [
    Binary("add", operator.add),
    Binary("subtract", operator.sub),
    Binary("multiply", operator.mul),
    Binary("divide", operator.truediv, as_float),
    Binary("power", operator.pow, never_bool, tolerance=32),
    Binary("floor_divide", operator.floordiv, never_bool),
    Binary("remainder", operator.mod, never_bool),
    Binary("maximum", nd.maximum),
    Binary("minimum", nd.minimum),
]
COMPARISONS = [operator.eq, operator.ne, operator.ge, operator.gt, operator.le, operator.lt]

NUMPY = {"maximum": np.maximum, "minimum": np.minimum}


def numpy_binary(op: Binary, a: np.ndarray, b: Any, dtype: str) -> np.ndarray:
    """NumPy's answer when both operands have the dtype in which ours computes."""
    work = op.result(dtype) if op.name in ("divide", "power", "floor_divide", "remainder") else dtype
    return NUMPY.get(op.name, op.function)(np.asarray(a, work), np.asarray(b, work))


def one_of_each(data: Any, count: int, device: Any, dtypes: tuple = LADDER) -> list[tuple[np.ndarray, nd.NDArray]]:
    shape = data.draw(shapes())
    return [data.draw(laid_out(shape, data.draw(st.sampled_from(dtypes)), device)) for _ in range(count)]


def check_binary(op: Binary, device: Any, data: Any) -> None:
    (a, ours_a), (b, ours_b) = one_of_each(data, 2, device)
    assume(op.name != "power" or not np.isneginf(a).any())  # NumPy's ** 0.5 is a root, nan where C's power is inf
    dtype = promoted(a.dtype.name, b.dtype.name)
    same_outcome(
        lambda: op.function(ours_a, ours_b),
        lambda: numpy_binary(op, a, b, dtype),
        lambda got, want: op.check(got, want, dtype),
    )


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-9, 9),
    st.integers(-36, 36).map(lambda n: n / 4),
    st.integers(-9, 9).map(np.int64),
    st.integers(-36, 36).map(lambda n: np.float64(n / 4)),
)


def with_scalar(dtype: str, scalar: Any) -> str:
    """A number lifts an array to its kind, never beyond."""
    kind = np.asarray(scalar).dtype.kind
    if kind == "f":
        return as_float(dtype)
    return never_bool(dtype) if kind == "i" else dtype


def check_scalar(op: Binary, device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    assume(op.name != "power" or not np.isneginf(a).any())
    scalar = data.draw(SCALARS)
    dtype = with_scalar(a.dtype.name, scalar)
    refused = "out of range" if op.result(dtype) == "uint8" and scalar < 0 else ""
    if op.name == "power" and op.result(dtype) in INTEGERS and scalar < 0:
        refused = refused or "negative integer powers"  # NumPy looks at the elements, and lets an empty array pass
    if refused:
        with pytest.raises(ValueError, match=refused):
            op.function(ours, scalar)
        return
    same_outcome(
        lambda: op.function(ours, scalar),
        lambda: numpy_binary(op, a, scalar, dtype),
        lambda got, want: op.check(got, want, dtype),
    )
    same_outcome(
        lambda: op.function(scalar, ours),
        lambda: numpy_binary(op, np.full(a.shape, scalar), a, dtype),
        lambda got, want: op.check(got, want, dtype),
    )


def check_comparison(compare: Callable, device: Any, data: Any) -> None:
    (a, ours_a), (b, ours_b) = one_of_each(data, 2, device)
    expect(compare(ours_a, ours_b), compare(a, b), "float32")
    scalar = data.draw(st.one_of(SCALARS, st.just(float("nan")), st.integers(-(2**40), 2**40)))
    wide = a.astype("float64") if a.dtype.kind != "f" else a  # a number out of an integer type's range is allowed
    expect(compare(ours_a, scalar), compare(wide, np.asarray(scalar, wide.dtype)), "float32")


# ---- functions of each element -------------------------------------------------------------------------------------

UNARY = {
    "negative": (lambda dtype: dtype, 0),
    "absolute": (lambda dtype: dtype, 0),
    "sign": (lambda dtype: dtype, 0),
    "square": (lambda dtype: dtype, 0),
    "exp": (as_float, 8),
    "log": (as_float, 8),
    "tanh": (as_float, 8),
    "sqrt": (as_float, 0),
    "sin": (as_float, 8),
    "cos": (as_float, 8),
}


def check_unary(name: str, device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    result, tolerance = UNARY[name]
    dtype = result(a.dtype.name)
    same_outcome(
        lambda: getattr(nd, name)(ours),
        lambda: getattr(np, name)(a.astype(dtype)),
        lambda got, want: expect(got, want, dtype, tolerance),
    )


def check_astype(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    dtype = data.draw(st.sampled_from(LADDER))
    if (
        a.dtype.kind == "f" and dtype in INTEGERS
    ):  # what NumPy makes of nan and of negative uint8 is the machine's choice
        a = np.abs(np.where(np.isfinite(a), a, 0))
        ours = nd.array(a, dtype=a.dtype, device=device)
    expect(ours.astype(dtype), a.astype(dtype))


def check_where(device: Any, data: Any) -> None:
    (c, ours_c), (a, ours_a), (b, ours_b) = one_of_each(data, 3, device)
    expect(nd.where(ours_c, ours_a, ours_b), np.where(c != 0, a, b), promoted(a.dtype.name, b.dtype.name))
    expect(nd.where(ours_c, ours_a, 2), np.where(c != 0, a, 2), with_scalar(a.dtype.name, 2))


def check_clip(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device, INTEGERS + FLOATS)
    low, high = sorted(data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=2)))
    expect(nd.clip(ours, low, high), np.clip(a, low, high), a.dtype.name)
    expect(nd.clip(ours, None, high), np.minimum(a, np.asarray(high, a.dtype)))


# ---- reductions ----------------------------------------------------------------------------------------------------


def axes_of(ndim: int) -> st.SearchStrategy:
    """None, an axis from either end, several axes in any order, or none."""
    one = st.integers(-ndim, ndim - 1) if ndim else st.nothing()
    return st.one_of(st.none(), one, st.lists(one, unique_by=lambda axis: axis % ndim).map(tuple))


def as_sum(dtype: str) -> str:
    return dtype if dtype in FLOATS else "int64"


REDUCTIONS = {
    "sum": (as_sum, 64),
    "prod": (as_sum, 64),
    "max": (lambda dtype: dtype, 0),
    "min": (lambda dtype: dtype, 0),
    "mean": (as_float, 64),
    "var": (as_float, 1024),  # of the squares, which are up to 16 times the deviations
    "any": (lambda dtype: "bool", 0),
    "all": (lambda dtype: "bool", 0),
}


def check_reduction(name: str, device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    axis, keepdims = data.draw(axes_of(a.ndim)), data.draw(st.booleans())
    result, tolerance = REDUCTIONS[name]

    def numpys() -> np.ndarray:
        work = a.astype("float64") if a.dtype.kind == "f" or name in ("mean", "var") else a
        options = {"dtype": "int64"} if a.dtype.kind != "f" and name in ("sum", "prod") else {}
        return getattr(np, name)(work, axis=axis, keepdims=keepdims, **options)

    def check(got: nd.NDArray, want: Any) -> None:
        full = axis is None and not keepdims
        expect(got, np.reshape(want, (1,)) if full else want, result(a.dtype.name), tolerance)

    ignore_warnings(lambda: same_outcome(lambda: getattr(nd, name)(ours, axis, keepdims), numpys, check))


def ignore_warnings(run: Callable) -> None:
    """NumPy warns of means of nothing."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()


def check_arg_reduction(name: str, device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    axis = data.draw(st.none() | (st.integers(-a.ndim, a.ndim - 1) if a.ndim else st.nothing()))
    keepdims = data.draw(st.booleans())

    def check(got: nd.NDArray, want: Any) -> None:
        expect(got, np.reshape(want, (1,)) if axis is None and not keepdims else want, "int64")

    if a.size == 0 and not (axis is not None and a.shape[axis]):
        with pytest.raises(ValueError, match=name):
            getattr(nd, name)(ours, axis, keepdims)
    else:
        check(getattr(nd, name)(ours, axis, keepdims), getattr(np, name)(a, axis=axis, keepdims=keepdims))


# ---- matrix products -----------------------------------------------------------------------------------------------


def check_matmul(device: Any, data: Any) -> None:
    m, n, p = (data.draw(st.sampled_from((0, 1, 2, 3, 7, 8, 16))) for _ in range(3))
    batch = data.draw(st.lists(st.integers(0, 3), max_size=2))
    left = [1 if data.draw(st.booleans()) and extent else extent for extent in batch]
    right = [1 if data.draw(st.booleans()) and extent else extent for extent in batch]
    left, right = left[data.draw(st.integers(0, len(batch))) :], right[data.draw(st.integers(0, len(batch))) :]
    a_shape = (*left, m, n) if left or data.draw(st.integers(0, 3)) else (n,)
    b_shape = (*right, n, p) if right or data.draw(st.integers(0, 3)) else (n,)
    dtypes = [data.draw(st.sampled_from(LADDER)) for _ in range(2)]
    (a, ours_a), (b, ours_b) = (data.draw(laid_out(s, d, device)) for s, d in zip((a_shape, b_shape), dtypes))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):  # 0 * inf: which sums become nan may depend on the order
        a, b = (np.nan_to_num(x, posinf=1, neginf=-1) for x in (a, b))
        ours_a, ours_b = (nd.array(x, dtype=x.dtype, device=device) for x in (a, b))
    dtype = promoted(*dtypes)
    work = "float64" if dtype in FLOATS else dtype
    expect(ours_a @ ours_b, np.matmul(a.astype(work), b.astype(work)), dtype, tolerance=512 if dtype in FLOATS else 0)


# ---- shapes and indices --------------------------------------------------------------------------------------------


def same_view(got: nd.NDArray, want: np.ndarray, whole: nd.NDArray) -> None:
    """Equal, and a view of the same memory with NumPy's strides."""
    expect(got, want)
    assert got._handle is whole._handle


def check_reshape(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    factors = [n for n in a.shape for n in ({4: (2, 2)}.get(n, (n,)))]
    new_shape = list(data.draw(st.permutations(factors + [1])))
    if data.draw(st.booleans()) and a.size:
        new_shape[data.draw(st.integers(0, len(new_shape) - 1))] = -1
    got = ours.reshape(new_shape)
    expect(got, a.reshape(new_shape))
    expect(ours.flat, a.reshape(-1))
    if ours.is_compact():
        assert got._handle is ours._handle


def check_axes(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    axes = data.draw(st.permutations(range(a.ndim)))
    same_view(ours.permute(axes), a.transpose(axes), ours)
    same_view(nd.transpose(ours), a.T, ours)
    if a.ndim:
        one, two = (data.draw(st.integers(-a.ndim, a.ndim - 1)) for _ in range(2))
        same_view(nd.swapaxes(ours, one, two), a.swapaxes(one, two), ours)
        same_view(nd.moveaxis(ours, one, two), np.moveaxis(a, one, two), ours)
    where = data.draw(st.integers(-a.ndim - 1, a.ndim))
    same_view(nd.expand_dims(ours, where), np.expand_dims(a, where), ours)
    same_view(nd.squeeze(ours), np.squeeze(a), ours)


def check_broadcast(device: Any, data: Any) -> None:
    shape = data.draw(shapes())
    narrow = tuple(1 if data.draw(st.booleans()) else extent for extent in shape)
    narrow = narrow[data.draw(st.integers(0, len(shape))) :]
    a, ours = data.draw(laid_out(narrow, data.draw(st.sampled_from(LADDER)), device))
    same_view(ours.broadcast_to(shape), np.broadcast_to(a, shape), ours)


@st.composite
def indices(draw: Callable, shape: tuple[int, ...]) -> tuple:
    """Some of NumPy's basic indices: integers, slices of every kind, `...`, None, fewer than axes."""
    bound = st.none() | st.integers(-6, 6)
    entries: list[Any] = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        any_slice = st.builds(slice, bound, bound, st.none() | st.sampled_from((-3, -2, -1, 1, 2, 3)))
        entries.append(draw(any_slice | st.integers(-extent, extent - 1) if extent else any_slice))
    for extra in (Ellipsis, None):
        if draw(st.integers(0, 3)) == 0:
            entries.insert(draw(st.integers(0, len(entries))) if extra is None else len(entries), extra)
    return tuple(entries)


def keep_axes(index: tuple) -> tuple:
    """The index with which NumPy keeps the axes of integers too, as NDArray does."""
    return tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)


def check_getitem(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    index = data.draw(indices(a.shape))
    want = a[keep_axes(index)]
    got = ours[index]
    same_view(got, want, ours)
    if want.size and not any(entry is None for entry in index):
        base = nd.array(np.zeros(a.shape), device=device)[index]
        strides = np.zeros(a.shape, "float32")[keep_axes(index)].strides
        assert all(s * 4 == t for s, t, n in zip(base.strides, strides, want.shape) if n > 1)


def check_setitem(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    a, ours = a.copy(), ours.copy()
    index = data.draw(indices(a.shape))
    target = a[keep_axes(index)]
    source_dtype = data.draw(st.sampled_from(LADDER))
    narrow = tuple(1 if data.draw(st.integers(0, 3)) == 0 else extent for extent in target.shape)
    b, ours_b = data.draw(laid_out(narrow, source_dtype, device))
    if not np.isfinite(b).all() or (b < 0).any():
        b = np.abs(np.nan_to_num(b, posinf=1, neginf=1))  # so that every type can hold it
        ours_b = nd.array(b, dtype=b.dtype, device=device)
    pointer = ours._handle.ptr()
    ours[index] = ours_b
    a[keep_axes(index)] = b.astype(a.dtype)
    expect(ours, a)
    ours[index] = 1
    a[keep_axes(index)] = 1
    expect(ours, a)
    assert ours._handle.ptr() == pointer


def check_setitem_overlapping(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    a, ours = a.copy(), ours.copy()
    if a.ndim == 0:
        return
    step = data.draw(st.sampled_from((-1, 1)))
    shift = data.draw(st.integers(0, 2))
    source, target = slice(None, None, step), slice(shift, None)
    expected = a[source][: max(a.shape[0] - shift, 0)].copy()
    ours[target] = ours[source][: max(a.shape[0] - shift, 0)]
    a[target] = expected
    expect(ours, a)


def check_flip_and_pad(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    axes = data.draw(axes_of(a.ndim))
    expect(nd.flip(ours, axes), np.flip(a, axes))
    assert nd.flip(ours, axes).is_compact() and nd.flip(ours, axes)._handle is not ours._handle
    widths = [tuple(data.draw(st.integers(0, 2)) for _ in range(2)) for _ in a.shape]
    value = data.draw(st.integers(0, 1))
    expect(nd.pad(ours, widths, constant_values=value), np.pad(a, widths, constant_values=value) if widths else a)


def check_joining(device: Any, data: Any) -> None:
    shape = data.draw(shapes(min_dims=1))
    dtypes = data.draw(st.lists(st.sampled_from(LADDER), min_size=1, max_size=3))
    pairs = [data.draw(laid_out(shape, dtype, device)) for dtype in dtypes]
    arrays, ours = [a for a, _ in pairs], [b for _, b in pairs]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = promoted(*dtypes)
    expect(nd.stack(ours, axis), np.stack(arrays, axis), dtype)
    joined = nd.concatenate(ours, axis)
    expect(joined, np.concatenate(arrays, axis), dtype)
    for part, want in zip(nd.split(joined, len(ours), axis), arrays):
        same_view(part, want.astype(dtype), joined)
    expect(nd.repeat(ours[0], 2, axis), np.repeat(arrays[0], 2, axis))
    reps = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    expect(nd.tile(ours[0], reps), np.tile(arrays[0], reps))


def check_gather(device: Any, data: Any) -> None:
    shape = data.draw(shapes(min_dims=1))
    a, ours = data.draw(laid_out(shape, data.draw(st.sampled_from(LADDER)), device))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    extent = shape[axis]
    where = np.array(data.draw(st.lists(st.integers(-extent, extent - 1), max_size=4)) if extent else [], "int64")
    where = where.reshape((2, -1)) if where.size % 2 == 0 and data.draw(st.booleans()) else where
    as_given = nd.array(where, dtype=data.draw(st.sampled_from(("int32", "int64", "float32"))), device=device)
    got = nd.take(ours, as_given if data.draw(st.booleans()) else where.tolist(), axis) if where.size else None
    if got is not None:
        expect(got, np.take(a, where, axis))
    outside = data.draw(st.sampled_from((extent, -extent - 1)))
    if np.prod(a.shape[: axis % a.ndim] + a.shape[axis % a.ndim + 1 :]):
        with pytest.raises(IndexError, match=str(outside)):
            nd.take(ours, [outside], axis)
    dtype = a.dtype.name
    if dtype != "bool" and where.size:
        v, ours_v = data.draw(laid_out(np.take(a, where, axis).shape, dtype, device))
        want = a.copy()
        with np.errstate(all="ignore"):
            np.add.at(want, (slice(None),) * (axis % a.ndim) + (where,), v)
        expect(nd.scatter_add(ours, as_given, ours_v, axis), want, dtype, tolerance=32 if dtype in FLOATS else 0)


def check_conversions(device: Any, data: Any) -> None:
    ((a, ours),) = one_of_each(data, 1, device)
    expect(ours, a)
    expect(ours.copy(), a)
    expect(ours.compact(), a)
    assert ours.compact().is_compact() and ours.copy()._handle is not ours._handle
    np.testing.assert_array_equal(np.asarray(ours), a)
    np.testing.assert_array_equal(np.array(ours, dtype="float64"), a.astype("float64"))
    if device.wrappers:  # else its memory cannot be shared
        np.testing.assert_array_equal(np.from_dlpack(ours), a)
    expect(nd.from_numpy(a, device=device), a)
    for other in DEVICES:
        expect(ours.to(other), a)
        assert ours.to(other).device == other


CHECKS: dict[str, Callable[[Any, Any], None]] = {
    **{f"{op.name}": lambda device, data, op=op: check_binary(op, device, data) for op in BINARY},
    **{f"{op.name}_with_number": lambda device, data, op=op: check_scalar(op, device, data) for op in BINARY},
    **{op.__name__: lambda device, data, op=op: check_comparison(op, device, data) for op in COMPARISONS},
    **{name: lambda device, data, name=name: check_unary(name, device, data) for name in UNARY},
    **{name: lambda device, data, name=name: check_reduction(name, device, data) for name in REDUCTIONS},
    **{name: lambda device, data, name=name: check_arg_reduction(name, device, data) for name in ("argmax", "argmin")},
    "astype": check_astype,
    "where": check_where,
    "clip": check_clip,
    "matmul": check_matmul,
    "reshape": check_reshape,
    "axes": check_axes,
    "broadcast_to": check_broadcast,
    "getitem": check_getitem,
    "setitem": check_setitem,
    "setitem_overlapping": check_setitem_overlapping,
    "flip_and_pad": check_flip_and_pad,
    "joining": check_joining,
    "gather": check_gather,
    "conversions": check_conversions,
}


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", CHECKS)
@given(data=st.data())
def test_operation_equals_numpy_U056(name: str, device: Any, data: Any) -> None:
    CHECKS[name](device, data)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=400)  # 53 checks x 2 devices x 400: over 40,000 examples
@given(data=st.data())
def test_operation_equals_numpy_over_many_examples_U056(name: str, device: Any, data: Any) -> None:
    CHECKS[name](device, data)
