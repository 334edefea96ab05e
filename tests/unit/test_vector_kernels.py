"""The CPU's kernels on vectors equal NumPy in wider floats: for every instruction set that this machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import needle as ndl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle.backend_ndarray import kernels_cpu as kernels

from tests.kernel_reference import COMPARISONS, FLOATS

ISAS = kernels.available_isas()
EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
EXACT |= {"maximum": np.maximum, "minimum": np.minimum, **COMPARISONS}
ODD = [0, 1, 3, 15, 16, 17, 31, 33, 65, 300]  # sizes about those of vectors
every_isa = pytest.mark.parametrize("isa", ISAS, indirect=True)


@pytest.fixture(autouse=True)
def isa(request: Any) -> Iterator[str]:
    before = kernels.isa()
    kernels.set_isa(getattr(request, "param", before))
    with np.errstate(all="ignore"):
        yield kernels.isa()
    kernels.set_isa(before)


def handle(a: np.ndarray) -> Any:
    out = kernels.Buffer(a.size, str(a.dtype))
    kernels.from_numpy(np.ascontiguousarray(a), out)
    return out


def call(name: str, *arguments: Any, size: int, dtype: str, after: tuple = ()) -> np.ndarray:
    """What a kernel leaves in its `out`, which comes after the arrays and numbers."""
    out = kernels.Buffer(size, dtype)
    getattr(kernels, name)(*(handle(a) if isinstance(a, np.ndarray) else a for a in arguments), out, *after)
    return np.asarray(out).copy()


def ulps(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest error in units in the last place of got's type; infinite where only one is NaN or infinite."""
    rounded = wanted.astype(got.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    unit = np.spacing(np.abs(rounded)).astype(wanted.dtype)
    error = np.where(same, 0, np.abs(got.astype(wanted.dtype) - wanted) / unit)
    return float(np.nan_to_num(error, nan=np.inf).max(initial=0))


# ---- functions -------------------------------------------------------------------------------------------------------


def sigmoid(a: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(a))
    return np.where(a < 0, small, 1) / (1 + small)


FUNCTIONS: dict[str, tuple[Callable, float]] = {  # and how many units in the last place they may be off
    "ewise_exp": (np.exp, 2),
    "ewise_log": (np.log, 2),
    "ewise_tanh": (np.tanh, 2),
    "ewise_sqrt": (np.sqrt, 0.5),
    "ewise_abs": (np.abs, 0),
    "sigmoid": (sigmoid, 2),
}


@every_isa
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_over_all_float32(name: str, isa: str) -> None:
    """Every 4099th bit pattern: denormals, infinities, NaN and both signs are among them."""
    bits = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32)
    a = np.concatenate([bits.view("float32"), np.array([0.0, -0.0, np.inf, -np.inf, np.nan], "float32")])
    function, bound = FUNCTIONS[name]
    assert ulps(call(name, a, size=a.size, dtype="float32"), function(a.astype("float64"))) <= bound


@every_isa
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="NumPy's long double is no wider than float64 here")
def test_functions_in_float64(name: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    any_bits = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view("float64")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 709.8, -745.2, 1.0])
    a = np.concatenate([any_bits, rng.uniform(-20, 20, 20_000), rng.uniform(-750, 750, 20_000), special])
    function, bound = FUNCTIONS[name]
    assert ulps(call(name, a, size=a.size, dtype="float64"), function(a.astype(np.longdouble))) <= bound


@every_isa
def test_zeros_keep_their_sign(isa: str) -> None:
    a = np.array([0.0, -0.0], "float32")
    assert np.signbit(call("ewise_tanh", a, size=2, dtype="float32")).tolist() == [False, True]
    assert np.signbit(call("ewise_sqrt", a, size=2, dtype="float32")).tolist() == [False, True]


@every_isa
@pytest.mark.parametrize("exponent", [3, 2, -1, -2, 0.5, -0.5, 1, 0])
def test_powers_without_logarithms(exponent: float, isa: str) -> None:
    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, 1e-40, 3e38, -1e20])
    a = np.concatenate([special, rng.uniform(0, 9, 50)]).astype("float32")
    got = call("scalar_power", a, exponent, size=a.size, dtype="float32")
    wanted = np.power(a.astype("float64"), np.full(a.size, exponent))  # of an array: for 0.5 alone NumPy takes the root
    assert ulps(got, wanted) <= 2


# ---- activations -----------------------------------------------------------------------------------------------------


def gelu_slope(a: np.ndarray) -> np.ndarray:
    near = np.clip(a, -30, 30)
    t = np.tanh(np.sqrt(2 / np.pi) * (near + 0.044715 * near**3))
    return 0.5 + 0.5 * t + 0.5 * near * (1 - t * t) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * near**2)


BACKWARD: dict[str, Callable] = {
    "relu_backward": lambda a: (a > 0).astype(a.dtype),
    "tanh_backward": lambda y: 1 - y * y,
    "sigmoid_backward": lambda y: y * (1 - y),
    "silu_backward": lambda a: sigmoid(a) * (1 + a * (1 - sigmoid(a))),
    "gelu_backward": gelu_slope,
}


@every_isa
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_of_activations(name: str, dtype: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    for size in ODD:
        a, grad = rng.uniform(-5, 5, (2, size)).astype(dtype)
        a = np.tanh(a) if name in ("tanh_backward", "sigmoid_backward") else a
        got = call(name, a, grad, size=size, dtype=dtype)
        wanted = grad * BACKWARD[name](a.astype("float64"))
        # a sum of a few terms of at most 2 · 5 · 5, each off by a few roundings
        np.testing.assert_allclose(got, wanted, rtol=0, atol=400 * np.finfo(dtype).eps)


@every_isa
def test_gelu_far_out(isa: str) -> None:
    a = np.array([-3e38, -30, -10, 10, 30, 3e38, np.inf], "float32")
    np.testing.assert_allclose(call("gelu", a, size=7, dtype="float32"), [0, 0, 0, *a[3:]], rtol=1e-6, atol=1e-30)
    ones = np.ones_like(a)
    np.testing.assert_allclose(call("gelu_backward", a, ones, size=7, dtype="float32")[:2], 0, atol=1e-30)


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_draws_the_same_masks_in_both_modes(p: float) -> None:
    results = []
    for mode in ("course", "fast"):
        with ndl.kernels.use(mode):
            np.random.seed(7)
            x = ndl.Tensor(np.arange(1, 60, dtype="float32").reshape(1, 59), device="cpu")
            out = ndl.nn.Dropout(p)(x)
            out.sum().backward()
            results.append((out.numpy(), x.grad.numpy(), np.random.rand()))
    for plain, fast in zip(*results):
        np.testing.assert_array_equal(plain, fast)


# ---- operands as they lie --------------------------------------------------------------------------------------------


@st.composite
def operands(draw: Callable) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """A shape, and two views of it: permuted, reversed or repeated along some axes."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 17, 40]), max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    views = []
    for _ in range(2):
        own = tuple(draw(st.sampled_from([extent, 1])) for extent in shape)
        order = draw(st.permutations(range(len(shape))))
        stored = np.asarray(rng.integers(-4, 5, [own[axis] for axis in order]), "float32")
        view = stored.transpose(np.argsort(order)) if order else stored
        if shape and draw(st.booleans()):
            view = view[::-1]
        views.append(np.broadcast_to(view, shape))
    return shape, views


def layout(view: np.ndarray) -> tuple[np.ndarray, tuple[int, ...], int]:
    """The storage under a view, its strides, and where in the storage it begins."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    base = base.reshape(-1, order="A") if base.flags.c_contiguous else base
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // view.itemsize
    return base, tuple(stride // view.itemsize for stride in view.strides), offset


@given(drawn=operands(), op=st.sampled_from(list(EXACT)), dtype=st.sampled_from(FLOATS), isa=st.sampled_from(ISAS))
def test_operations_on_views_equal_numpy(drawn: Any, op: str, dtype: str, isa: str) -> None:
    kernels.set_isa(isa)
    shape, (a, b) = drawn
    (a_base, *a_where), (b_base, *b_where) = layout(a), layout(b)
    out_dtype = "float32" if op in COMPARISONS else dtype
    stored = a_base.astype(dtype), b_base.astype(dtype)
    got = call(f"view_{op}", *stored, size=a.size, dtype=out_dtype, after=(shape, *a_where, *b_where))
    wanted = EXACT[op](a.astype(dtype), b.astype(dtype)).astype(out_dtype)
    np.testing.assert_array_equal(got.reshape(shape), wanted)


@given(drawn=operands(), op=st.sampled_from(["sum", "max", "min"]), kept=st.integers(0, 4), isa=st.sampled_from(ISAS))
def test_reductions_of_views_equal_numpy(drawn: Any, op: str, kept: int, isa: str) -> None:
    """Sums of small whole numbers are exact, in any order."""
    kernels.set_isa(isa)
    shape, (a, _) = drawn
    kept = min(kept, len(shape))
    base, strides, offset = layout(a)
    wanted = getattr(a, op)(axis=tuple(range(kept, len(shape))))
    got = call(f"view_reduce_{op}", base, size=wanted.size, dtype="float32", after=(shape, strides, offset, kept))
    np.testing.assert_array_equal(got, wanted.ravel())


@every_isa
@pytest.mark.parametrize("shape", [(70_000, 3), (40, 9000), (300, 700), (5, 70_000), (150_001, 1)])
def test_long_sums_stay_exact_over_both_axes(shape: tuple[int, int], isa: str) -> None:
    a = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    for view in (a, a.T):
        base, strides, offset = layout(view)
        got = call("view_reduce_sum", base, size=len(view), dtype="float32", after=(view.shape, strides, offset, 1))
        wide = view.astype("float64")
        # at most 32 terms one after the other, the rest in trees
        depth = 40 + 2 * np.log2(view.shape[1])
        bound = depth * np.finfo("float32").eps / 2 * np.abs(wide).sum(1)
        assert (np.abs(got - wide.sum(1)) <= bound).all()


@every_isa
def test_nan_wins_extremes_wherever_it_stands(isa: str) -> None:
    """Among numbers, and among infinities of both signs."""
    for size in (1, 7, 16, 40, 3000):
        for place in {0, 1 % size, size // 2, size - 1}:
            for others in (0.0, np.inf, -np.inf):
                a = np.full((size, 5), others, "float32")
                a[place, 2] = np.nan
                for op in ("max", "min"):
                    columns = call(f"view_reduce_{op}", a, size=5, dtype="float32", after=((5, size), (1, 5), 0, 1))
                    assert np.isnan(columns).tolist() == [False, False, True, False, False]
                    assert np.isnan(call(f"reduce_{op}", a, size=1, dtype="float32", after=(a.size,)))[0]


@every_isa
@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_of_rows_of_every_length(op: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    for cols in [*range(1, 70), 257, 2047, 2049, 5000]:
        a = rng.uniform(-1, 1, (3, cols)).astype("float32")
        a[1, rng.integers(cols)] = np.nan
        a[2, rng.integers(cols)] = np.inf
        got = call(f"reduce_{op}", a, size=3, dtype="float32", after=(cols,))
        np.testing.assert_array_equal(got, getattr(a, op)(axis=1))


@every_isa
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_columns_of_every_shape(dtype: str, isa: str) -> None:
    """Small whole numbers add up exactly; rows have gaps, and 16 are folded at a time."""
    rng = np.random.default_rng(0)
    for rows in (1, 2, 15, 16, 17, 33, 64, 100):
        for cols in (1, 3, 8, 17, 63, 130, 300, 2049):
            a = rng.integers(-4, 5, (rows, cols + 2)).astype(dtype)
            got = call("view_reduce_sum", a, size=cols, dtype=dtype, after=((cols, rows), (1, cols + 2), 1, 1))
            np.testing.assert_array_equal(got, a[:, 1:-1].sum(0))


def test_wrong_views_are_refused() -> None:
    a, out = kernels.Buffer(6, "float32"), kernels.Buffer(6, "float32")
    with pytest.raises(ValueError, match=r"view_add: .*outside the storage of 6"):
        kernels.view_add(a, a, out, (2, 3), (3, 1), 0, (3, 1), 1)
    with pytest.raises(ValueError, match=r"view_reduce_sum: 3 kept axes"):
        kernels.view_reduce_sum(a, out, (2, 3), (3, 1), 0, 3)
    with pytest.raises(TypeError, match="view_add: b is float64"):
        kernels.view_add(a, kernels.Buffer(6, "float64"), out, (2, 3), (3, 1), 0, (3, 1), 0)


# ---- rows ------------------------------------------------------------------------------------------------------------


def softmax(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a - a.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@every_isa
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cols", [1, 2, 7, 16, 33, 100, 1111])
def test_softmax_and_cross_entropy(cols: int, dtype: str, isa: str) -> None:
    rng = np.random.default_rng(cols)
    a, grad = rng.uniform(-20, 20, (2, 5, cols)).astype(dtype)
    wide, eps = a.astype("float64"), np.finfo(dtype).eps
    # exp turns an error of eps · |a| in its argument into a relative one; sums add little to it
    probability, tolerance = softmax(wide), 200 * eps
    got = call("softmax", a, size=a.size, dtype=dtype, after=(cols,)).reshape(a.shape)
    np.testing.assert_allclose(got, probability, rtol=tolerance, atol=tolerance * eps)
    back = call("softmax_backward", got, grad, size=a.size, dtype=dtype, after=(cols,)).reshape(a.shape)
    wanted = probability * (grad - (probability * grad).sum(1, keepdims=True))
    np.testing.assert_allclose(back, wanted, rtol=0, atol=20 * tolerance)

    labels, lse = rng.integers(0, cols, 5), kernels.Buffer(5, dtype)
    loss = kernels.Buffer(5, dtype)
    kernels.cross_entropy(handle(a), handle(labels), loss, lse, cols)
    np.testing.assert_allclose(np.asarray(loss), -np.log(probability[np.arange(5), labels]), rtol=0, atol=tolerance)
    paid = call("cross_entropy_backward", a, labels, lse, grad[:, 0].copy(), size=a.size, dtype=dtype, after=(cols,))
    wanted = grad[:, :1] * (probability - (np.arange(cols) == labels[:, None]))
    np.testing.assert_allclose(paid.reshape(a.shape), wanted, rtol=0, atol=20 * tolerance)


def test_a_label_that_is_no_class_is_refused() -> None:
    a, loss, lse = kernels.Buffer(6, "float32"), kernels.Buffer(2, "float32"), kernels.Buffer(2, "float32")
    for label in (3, -1):
        with pytest.raises(IndexError, match=f"label {label} of row 1 is out of bounds for 3 classes"):
            kernels.cross_entropy(a, handle(np.array([0, label])), loss, lse, 3)


def test_a_loss_names_the_wrong_label_as_the_plain_path_does() -> None:
    logits, labels = ndl.Tensor(np.zeros((2, 3), "float32")), ndl.Tensor([0, 3])
    for loss in (ndl.nn.SoftmaxLoss(), ndl.nn.CrossEntropyLoss()):
        with ndl.kernels.use("fast"), pytest.raises(ndl.errors.ArgumentError, match="one_hot"):
            loss(logits, labels)


@every_isa
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "cols"), [(0, 3), (1, 1), (3, 7), (70, 33), (5, 1111)])
def test_layer_norm(rows: int, cols: int, dtype: str, isa: str) -> None:
    rng = np.random.default_rng(cols)
    a, grad = rng.uniform(-2, 2, (2, rows, cols)).astype(dtype)
    weight, bias = rng.uniform(-2, 2, (2, cols)).astype(dtype)
    out, mean, scale = (kernels.Buffer(size, dtype) for size in (a.size, rows, rows))
    kernels.layer_norm(handle(a), handle(weight), handle(bias), out, mean, scale, 0.1)

    wide, tolerance = a.astype("float64"), 100 * np.finfo(dtype).eps  # scale is at most √10
    factor = 1 / np.sqrt(wide.var(1, keepdims=True) + 0.1)
    normal = (wide - wide.mean(1, keepdims=True)) * factor
    np.testing.assert_allclose(np.asarray(out).reshape(a.shape), normal * weight + bias, rtol=0, atol=tolerance)

    results = [kernels.Buffer(size, dtype) for size in (a.size, cols, cols)]
    kernels.layer_norm_backward(handle(a), handle(weight), mean, scale, handle(grad), *results)
    paid = grad.astype("float64") * weight
    to_a = factor * (paid - paid.mean(1, keepdims=True) - normal * (paid * normal).mean(1, keepdims=True))
    wanted = to_a, (grad * normal).sum(0), grad.astype("float64").sum(0)
    for got, exact, terms in zip(results, wanted, (1, rows, rows)):
        np.testing.assert_allclose(np.asarray(got), exact.ravel(), rtol=0, atol=10 * max(1, terms) * tolerance)


# ---- threads ---------------------------------------------------------------------------------------------------------


@every_isa
def test_results_do_not_depend_on_the_number_of_threads(isa: str) -> None:
    rng, before = np.random.default_rng(0), kernels.num_threads()
    a, b = rng.standard_normal((2, 300, 701)).astype("float32")
    row, size = b[0].copy(), a.size
    labels, views = rng.integers(0, 701, 300), ((300, 701), (701, 1), 0, (0, 1), 0)

    def all_results() -> list[bytes]:
        mean, scale, lse, loss = (kernels.Buffer(300, "float32") for _ in range(4))
        norm, *back = (kernels.Buffer(n, "float32") for n in (size, size, 701, 701))
        kernels.layer_norm(handle(a), handle(row), handle(row), norm, mean, scale, 1e-5)
        kernels.layer_norm_backward(handle(a), handle(row), mean, scale, handle(b), *back)
        kernels.cross_entropy(handle(a), handle(labels), loss, lse, 701)
        one = {"size": 1, "dtype": "float32"}
        columns = {"size": 701, "dtype": "float32", "after": ((701, 300), (1, 701), 0, 1)}
        whole = {"size": size, "dtype": "float32"}
        arrays = [norm, *back, loss, lse, call("reduce_sum", a, **one, after=(size,))]
        arrays += [call(f"view_reduce_{op}", a, **columns) for op in ("sum", "max")]
        arrays += [call(name, a, **whole) for name in ("ewise_exp", "gelu")]
        arrays += [call("view_add", a, row, **whole, after=views), call("softmax", a, **whole, after=(701,))]
        return [np.asarray(array).tobytes() for array in arrays]

    try:
        results = []
        for count in (1, 2, 3):
            kernels.set_num_threads(count)
            results.append(all_results())
    finally:
        kernels.set_num_threads(before)
    assert results[0] == results[1] == results[2]
