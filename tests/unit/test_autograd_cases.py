"""Cases that users of other frameworks tripped over; each test names its row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, ops
from needle.backend_selection import BACKEND, array_api
from needle.errors import DeviceError, ShapeError


def tensor(*numbers: float, **options: object) -> Tensor:
    return Tensor(np.array(numbers), dtype="float64", **options)


def grad_of(f: Callable[[Tensor], Tensor], *numbers: float) -> np.ndarray:
    x = tensor(*numbers)
    f(x).sum().backward()
    return x.grad.numpy()


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def test_number_on_the_left_U038() -> None:
    x = tensor(1, 2)
    np.testing.assert_array_equal((5 - x).numpy(), [4, 3])
    np.testing.assert_array_equal((1 / x).numpy(), [1, 0.5])
    np.testing.assert_array_equal((2**x).numpy(), [2, 4])
    np.testing.assert_array_equal((5 + x).numpy(), [6, 7])
    np.testing.assert_array_equal((5 * x).numpy(), [5, 10])
    np.testing.assert_array_equal((5 // x).numpy(), [5, 2])
    np.testing.assert_array_equal((5 % x).numpy(), [0, 1])
    np.testing.assert_array_equal(grad_of(lambda x: 5 - x, 1, 2), [-1, -1])
    np.testing.assert_array_equal(grad_of(lambda x: 1 / x, 1, 2), [-1, -0.25])


@pytest.mark.parametrize("operator", ["__add__", "__sub__", "__mul__", "__truediv__", "__pow__"])
def test_numpy_array_on_either_side_gives_a_tensor(operator: str) -> None:
    array = np.array([[1.0, 2], [3, 4]])
    x = Tensor(np.array([[2.0, 3], [4, 5]]), dtype="float64")
    symbol = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__pow__": "**"}[operator]
    for left, right in ((array, x), (x, array), (array.tolist(), x), (array[0], x)):
        got = eval(f"left {symbol} right", {"left": left, "right": right})
        assert isinstance(got, Tensor)
        expected = eval(f"left {symbol} right", {"left": np.asarray(left), "right": np.asarray(right)})
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


def test_numpy_matrix_on_the_left_of_a_product() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = Tensor(np.ones((3, 2)), dtype="float64")
    np.testing.assert_allclose((a @ x).numpy(), a @ np.ones((3, 2)))


@pytest.mark.parametrize("other", ["a", None, {}, object()])
def test_arithmetic_with_what_is_no_number_is_a_type_error(other: object) -> None:
    for expression in ("x + other", "other - x", "x * other", "x / other", "other ** x", "x @ other", "x < other"):
        with pytest.raises(TypeError):
            eval(expression, {"x": tensor(1.0), "other": other})


def test_power_U040() -> None:
    np.testing.assert_array_equal(grad_of(lambda x: x**2, 0), [0])
    np.testing.assert_array_equal(grad_of(lambda x: x**0.3, 0), [np.inf])
    np.testing.assert_array_equal(grad_of(lambda x: x**3, -2), [12])
    np.testing.assert_array_equal((tensor(0, -1, 2) ** 0).numpy(), [1, 1, 1])
    np.testing.assert_array_equal(grad_of(lambda x: x**0, 0, -1, 2), [0, 0, 0])
    np.testing.assert_allclose(grad_of(lambda p: 2**p, 3), [8 * math.log(2)], rtol=1e-14)


def test_power_of_tensors_at_the_edges_U040() -> None:
    a, p = tensor(0, 0, -2, 2), tensor(2, 0, 3, 0.5)
    (a**p).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [0, 0, 12, 0.5 * 2**-0.5])
    np.testing.assert_allclose(p.grad.numpy()[[0, 1, 3]], [0, 0, 2**0.5 * math.log(2)])
    assert np.isnan(p.grad.numpy()[2])  # a negative base has no derivative by its exponent
    np.testing.assert_array_equal(grad_of(lambda p: 0**p, 1, 2), [0, 0])


def test_division_neither_overflows_nor_underflows_on_the_way() -> None:
    a, b = Tensor([1e20], dtype="float32"), Tensor([1e20], dtype="float32")
    (a / b).backward()
    np.testing.assert_allclose(b.grad.numpy(), [-1e-20], rtol=1e-6)


def test_ties_and_kinks_U041() -> None:
    np.testing.assert_allclose(grad_of(lambda x: x.max(), 2, 2, 1), [0.5, 0.5, 0])  # equal shares
    np.testing.assert_allclose(grad_of(lambda x: x.min(), 2, 1, 1), [0, 0.5, 0.5])
    np.testing.assert_array_equal(grad_of(ops.relu, -1, 0, 1), [0, 0, 1])
    np.testing.assert_array_equal(grad_of(ops.relu6, 0, 3, 6, 7), [0, 1, 0, 0])
    np.testing.assert_array_equal(grad_of(abs, -1, 0, 1), [-1, 0, 1])
    np.testing.assert_array_equal(grad_of(lambda x: ops.maximum(x, 2), 1, 2, 3), [0, 0.5, 1])
    x = Tensor(np.full(100_000, 3.0), dtype="float32")
    x.max().backward()
    np.testing.assert_allclose(x.grad.numpy().sum(), 1, rtol=1e-5)


def test_integers_U065() -> None:
    one, two = (Tensor([n], dtype="int64", requires_grad=False) for n in (1, 2))
    np.testing.assert_array_equal((one / two).numpy(), [0.5])
    np.testing.assert_array_equal((Tensor([-7], dtype="int64", requires_grad=False) // 2).numpy(), [-4])
    with pytest.raises(ValueError, match="negative"):
        two**-1
    np.testing.assert_array_equal((two.float() ** -1).numpy(), [0.5])


@pytest.mark.parametrize("other", ["uint8", "bool", "int32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_difference_of_two_types_wraps_in_neither_U065(dtype: str, other: str) -> None:
    lowest = np.iinfo(other).min if other == "int32" else 0
    left, right = np.array([5, 0], dtype), np.array([1, lowest], other)
    a, b = (Tensor(array, dtype=array.dtype, requires_grad=False) for array in (left, right))
    for got, expected in ((a - b, left - right), (b - a, right - left)):
        np.testing.assert_allclose(got.numpy(), expected.astype(str(got.dtype)), rtol=1e-6)


@pytest.mark.parametrize("number", [2, 2.5, True, np.uint8(2), np.bool_(True), np.array([2], "uint8")])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_difference_with_a_number_does_not_wrap_U065(dtype: str, number: Any) -> None:
    array = np.array([0, 1], dtype)
    x = Tensor(array, dtype=dtype, requires_grad=False)
    for got, expected in ((x - number, array - number), (number - x, number - array)):
        np.testing.assert_array_equal(got.numpy(), expected.reshape(2))


def test_what_a_mask_leaves() -> None:
    mask = Tensor([3.0, 1.0]) > 2
    np.testing.assert_array_equal((1 - mask).numpy(), [0, 1])
    np.testing.assert_array_equal((mask - 1.5).numpy(), [-0.5, -1.5])


def test_gradients_of_differences_of_two_types() -> None:
    x, y = Tensor([5.0, 6.0], dtype="float32"), Tensor([1, 2], dtype="int32", requires_grad=False)
    ((x - y) * (3 - x) + (y - x)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3 - 10 + 1 - 1, 3 - 12 + 2 - 1])
    x = Tensor([5.0], dtype="float32")
    (np.uint8(3) / x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-3 / 25], rtol=1e-6)


# ---- reductions, indexing, products ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings(
    "ignore:invalid value", "ignore:divide by zero", "ignore:Mean of empty", "ignore:Degrees of"
)
def test_variance_of_nothing_is_no_number_and_no_crash() -> None:
    single = Tensor(np.ones((2, 1)), dtype="float64")
    spread = ops.var(single, 1, correction=1)
    spread.sum().backward()
    assert np.isnan(spread.numpy()).all() and single.grad.shape == (2, 1)
    empty = Tensor(np.ones((0, 3)), dtype="float64")
    ops.var(empty, 0).sum().backward()
    assert empty.grad.shape == (0, 3)


def test_sum_over_no_axes_is_the_tensor_itself_U046() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype="float64")
    np.testing.assert_array_equal(ops.summation(x, axes=()).numpy(), x.numpy())
    np.testing.assert_array_equal(ops.mean(x, ()).numpy(), x.numpy())
    a, b = Tensor(np.ones((2, 3))), Tensor(np.ones((3, 4)))
    (a @ b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full((2, 3), 4))


def test_gradient_of_stepped_slices_U055() -> None:
    z = Tensor(np.zeros((2, 3)), dtype="float64")
    (z[0::2] * np.array([1.0, 2, 3]) + z[1::2] * np.array([100.0, 101, 102])).sum().backward()
    np.testing.assert_array_equal(z.grad.numpy(), [[1, 2, 3], [100, 101, 102]])


def test_repeated_indices_add_up_U036() -> None:
    for look_up in (lambda w: ops.gather(w, [0, 0]), lambda w: w[np.array([0, 0])], lambda w: w[[0, 0]]):
        weight = Tensor(np.ones((3, 2)), dtype="float64")
        look_up(weight).sum().backward()
        np.testing.assert_array_equal(weight.grad.numpy(), [[2, 2], [0, 0], [0, 0]])


def test_gather_takes_whole_floats_and_names_other_ids() -> None:
    weight = Tensor(np.arange(6.0).reshape(3, 2), dtype="float64")
    np.testing.assert_array_equal(ops.gather(weight, Tensor([2.0, 0.0])).numpy(), [[4, 5], [0, 1]])
    with pytest.raises(TypeError, match="gather"):
        ops.gather(weight, [0.5])
    with pytest.raises(IndexError, match="gather"):
        ops.gather(weight, [3])


def test_index_by_tensors() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype="float64")
    rows = Tensor(np.array([1, 0]), dtype="int64", requires_grad=False)
    np.testing.assert_array_equal(x[rows].numpy(), [[3, 4, 5], [0, 1, 2]])
    np.testing.assert_array_equal(x[x > 2].numpy(), [3, 4, 5])
    np.testing.assert_array_equal(x[:, x.argmax(1)].numpy(), x.numpy()[:, [2, 2]])
    with pytest.raises(TypeError, match="astype"):
        x[Tensor([0.0, 1.0])]


def test_index_array_changed_later_does_not_change_the_gradient() -> None:
    x, index = tensor(1, 2, 3), np.array([0, 1])
    y = x[index]
    index[:] = 2
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 0])


@pytest.mark.parametrize("index", [7, (0, 0, 0), (..., ...), "a", 1.5, (0, 9)])
def test_index_that_does_not_fit_is_named(index: object) -> None:
    with pytest.raises((IndexError, TypeError), match=r"get_?item"):
        Tensor(np.zeros((2, 3)))[index]


def test_product_of_shapes_that_do_not_fit_names_both_U068() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 1\).*\(3, 4\)"):
        Tensor(np.ones((2, 1))) @ Tensor(np.ones((3, 4)))
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\).*\(2, 5, 4\)"):
        Tensor(np.ones((2, 3, 4))) @ Tensor(np.ones((2, 5, 4)))
    assert (Tensor(np.ones((2, 3, 4))) @ Tensor(np.ones((2, 4, 5)))).shape == (2, 3, 5)
    assert (Tensor(np.ones((2, 3, 4))) @ Tensor(np.ones((4, 5)))).shape == (2, 3, 5)


def test_shapes_that_do_not_broadcast_are_named_U090() -> None:
    x, y = Tensor(np.ones((2, 3))), Tensor(np.ones((2, 4)))
    for call in (ops.add, ops.multiply, ops.divide, ops.power, ops.maximum, ops.less, ops.equal):
        with pytest.raises(ShapeError, match=rf"{call.__name__}.*\(2, 3\).*\(2, 4\)"):
            call(x, y)


# ---- numbers at the edge ---------------------------------------------------------------------------------------------


def test_sigmoid_and_softplus_of_large_numbers_U073() -> None:
    for function, values, slopes in (
        (ops.sigmoid, [0, 0.5, 1], [0, 0.25, 0]),
        (ops.softplus, [0, math.log(2), 1000], [0, 0.5, 1]),
        (ops.silu, [0, 0, 1000], [0, 0.5, 1]),
        (ops.gelu, [0, 0, 1000], [0, 0.5, 1]),
        (ops.tanh, [-1, 0, 1], [0, 1, 0]),
    ):
        np.testing.assert_allclose(function(tensor(-1000, 0, 1000)).numpy(), values, atol=1e-300, rtol=1e-15)
        np.testing.assert_allclose(grad_of(function, -1000, 0, 1000), slopes, atol=1e-300, rtol=1e-15)


def test_softplus_keeps_its_digits_where_it_is_tiny() -> None:
    x = np.array([-30.0, -20, -5, 3])
    np.testing.assert_allclose(ops.softplus(tensor(*x)).numpy(), np.log1p(np.exp(x)), rtol=1e-14)


def test_gelu_of_the_largest_numbers_is_finite() -> None:
    x = Tensor([-3e38, 3e38], dtype="float32")
    y = ops.gelu(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), [0, 3e38], rtol=1e-6)
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1])


def test_softmax_of_huge_logits_and_masks_U070() -> None:
    x = Tensor(np.array([[0, 1e8, -np.inf], [1e30, 1e30, 0]]), dtype="float64")
    np.testing.assert_array_equal(ops.softmax(x).numpy(), [[0, 1, 0], [0.5, 0.5, 0]])
    logits = Tensor(np.array([[0, 1e8]]), dtype="float64")
    loss = (ops.logsumexp(logits, 1) - logits[:, 0]).sum()
    assert float(loss) == 1e8
    loss.backward()
    np.testing.assert_array_equal(logits.grad.numpy(), [[-1, 1]])
    np.testing.assert_array_equal(ops.logsoftmax(logits).numpy(), [[-1e8, 0]])


def test_variance_far_from_zero_keeps_its_digits() -> None:
    x = Tensor(1e4 + np.array([0.0, 1, 2, 3]), dtype="float32")
    np.testing.assert_allclose(float(ops.var(x)), 1.25, rtol=1e-5)


def test_nan_wins_U076() -> None:
    x = tensor(1, np.nan, 2)
    assert np.isnan(float(x.max()))
    assert np.isnan(float(x.min()))
    assert int(x.argmax()) == 1
    np.testing.assert_array_equal(ops.isnan(x).numpy(), [False, True, False])
    np.testing.assert_array_equal(ops.isfinite(tensor(1, np.nan, -np.inf)).numpy(), [True, False, False])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_margin_of_max_pool_never_wins_U076(dtype: str) -> None:
    low = 0 if dtype == "uint8" else -5
    images = Tensor(np.full((1, 1, 3, 3), low), dtype=dtype, requires_grad=False)
    pooled = ops.max_pool2d(images, 2, 1, 1)
    np.testing.assert_array_equal(pooled.numpy(), np.full((1, 1, 4, 4), low))
    assert str(pooled.dtype) == dtype


@pytest.mark.filterwarnings("error")
def test_logsumexp_of_nothing_but_minus_infinity_is_silent() -> None:
    x = Tensor([[-math.inf, -math.inf], [-math.inf, 1]], dtype="float64", requires_grad=False)
    np.testing.assert_array_equal(ops.logsumexp(x, 1).numpy(), [-math.inf, 1])


def test_infinity_that_is_not_chosen_gets_no_gradient() -> None:
    x, infinite = tensor(0, 4), tensor(np.inf, np.nan)
    ops.where(np.array([True, True]), x, infinite).sum().backward()
    np.testing.assert_array_equal(infinite.grad.numpy(), [0, 0])
    y = tensor(1, 2)
    y.masked_fill(y > 1, -np.inf).exp().sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [math.e, 0])


# ---- comparisons -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x, y: x < y, np.less),
        (lambda x, y: x <= y, np.less_equal),
        (lambda x, y: x > y, np.greater),
        (lambda x, y: x >= y, np.greater_equal),
        (ops.equal, np.equal),
        (ops.not_equal, np.not_equal),
        (ops.logical_and, np.logical_and),
        (ops.logical_or, np.logical_or),
    ],
)
def test_comparisons_are_bool_constants(call: Callable, expected: Callable) -> None:
    a, b = np.array([[0.0, 1, np.nan], [2, 2, 0]]), np.array([0.0, 2, 1])
    for left, right in ((tensor(*a), tensor(*b)), (tensor(*a), b), (tensor(*a), 1), (1, tensor(*b)), (b, tensor(*b))):
        got = call(left, right)
        assert str(got.dtype) == "bool"
        assert not got.requires_grad
        np.testing.assert_array_equal(got.numpy(), expected(np.asarray(left), np.asarray(right)))


def test_logical_not() -> None:
    np.testing.assert_array_equal(ops.logical_not(tensor(0, 2) > 1).numpy(), [True, False])


def test_argmax_and_argmin_are_int64_constants() -> None:
    x = Tensor(np.array([[3.0, 1, 3], [0, 5, 5]]), dtype="float64")
    assert x.argmax(1).tolist() == [0, 1]
    assert x.argmin(0).tolist() == [1, 0, 0]
    assert (int(x.argmax()), str(x.argmax(1).dtype)) == (4, "int64")
    assert x.argmax(1, keepdims=True).shape == (2, 1)


# ---- devices and dtypes ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(BACKEND == "np", reason="np mode has one device")
def test_two_devices_in_one_operator_are_named_U066() -> None:
    a, b = Tensor([1.0], device="cpu"), Tensor([1.0], device="cpu_numpy")
    for call in (lambda: a + b, lambda: ops.concatenate([a, b]), lambda: ops.stack([a, b], 0), lambda: a < b):
        with pytest.raises(DeviceError, match=r"cpu\(\).*cpu_numpy\(\)"):
            call()
    (a + b.to("cpu")).backward()
    assert (str(a.grad.device), str(b.grad.device)) == ("cpu()", "cpu_numpy()")


def test_cast_rounds_to_constants_and_floats_to_nodes() -> None:
    x = Tensor([1.7], dtype="float32")
    assert x.astype("int64").item() == 1
    assert not x.astype("int64").requires_grad
    (x.double() * 2).backward()
    assert (x.grad.item(), str(x.grad.dtype)) == (2, "float32")


def test_mask_times_float_keeps_float32_U066() -> None:
    x = Tensor([1.0, -1.0], dtype="float32")
    for y in (x * (x > 0), ops.where(x > 0, x, 0), x.relu(), x.clip(0, 1), x.max(), x.mean(), x * 2.5, x**0.5 * 0):
        assert str(y.dtype) == "float32"


def test_storage_is_of_the_backend() -> None:
    kind = np.ndarray if BACKEND == "np" else ndl.backend_ndarray.NDArray
    assert isinstance((tensor(1, 2) + tensor(1, 2)).cached_data, kind)
    assert isinstance(array_api.exp(tensor(1, 2).cached_data), kind)


def test_clone_has_storage_of_its_own() -> None:
    x = tensor(1, 2)
    y = x.clone()
    with ndl.no_grad():
        x[0] = 9
    np.testing.assert_array_equal(y.numpy(), [1, 2])


def test_requires_grad_() -> None:
    x = tensor(1.0, requires_grad=False).requires_grad_()
    assert x.requires_grad
    assert not x.requires_grad_(False).requires_grad
