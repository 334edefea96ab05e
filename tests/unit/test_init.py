"""Tensors from nothing, from numbers at hand and from ranges: values, dtypes, devices, and the order of draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, init

np_mode = ndl.core.BACKEND == "np"
only_nd = pytest.mark.skipif(np_mode, reason="np mode has one device")


# ---- numbers at hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"),
        ([1.5, 2], "float32"),
        (3, "int64"),
        ([[1, 2], [3, 2**40 + 1]], "int64"),
        (True, "bool"),
        ([True, False], "bool"),
        ([], "float32"),
        (np.arange(3, dtype="uint8"), "uint8"),
        (np.arange(3, dtype="float64"), "float64"),
        ([np.ones(2, "float64"), np.zeros(2, "float64")], "float64"),
    ],
)
def test_tensor_keeps_what_the_numbers_are(data: Any, dtype: str) -> None:
    x = ndl.tensor(data)
    assert str(x.dtype) == dtype and x.shape == np.shape(data) and not x.requires_grad
    np.testing.assert_array_equal(x.numpy(), np.asarray(data, dtype=dtype))


def test_tensor_copies() -> None:
    source = np.zeros(3, "float32")
    x, y = ndl.tensor(source), ndl.zeros(3)
    z = ndl.tensor(y)
    source[0] = 7
    y[0] = 7
    assert not x.numpy().any() and not z.numpy().any()


def test_tensor_takes_dtype_and_requires_grad() -> None:
    x = ndl.tensor([1, 2], dtype="float64", requires_grad=True)
    assert str(x.dtype) == "float64" and x.requires_grad
    assert str(ndl.tensor(x).dtype) == "float64"
    assert str(ndl.tensor([ndl.ones(2), ndl.zeros(2)]).dtype) == "float32"


@pytest.mark.parametrize("wrong", ["text", [1, "a"], object(), None, [[1, 2], [3]], {"a": 1}])
def test_tensor_refuses_what_is_no_numbers(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="tensor"):
        ndl.tensor(wrong)


def test_from_numpy_shares_contiguous_memory() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    x = ndl.from_numpy(array)
    array[0, 0] = 42
    assert x.numpy()[0, 0] == 42 and not x.requires_grad


def test_from_numpy_copies_what_is_not_contiguous() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    x = ndl.from_numpy(array.T)
    np.testing.assert_array_equal(x.numpy(), array.T)
    array[0, 0] = 42
    assert x.numpy()[0, 0] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_from_numpy_keeps_type_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    x = ndl.from_numpy(np.ones(shape, dtype))
    assert str(x.dtype) == dtype and x.shape == shape


@pytest.mark.parametrize("wrong", [[1, 2], 3, np.array(["a"]), np.array([1j])])
def test_from_numpy_refuses_what_is_no_array_of_numbers(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_numpy"):
        ndl.from_numpy(wrong)


# ---- constants and ranges --------------------------------------------------------------------------------------------

MAKERS: dict[str, tuple[Callable[..., Tensor], np.ndarray]] = {
    "zeros": (lambda **kw: ndl.zeros(2, 3, **kw), np.zeros((2, 3))),
    "ones": (lambda **kw: ndl.ones(2, 3, **kw), np.ones((2, 3))),
    "constant": (lambda **kw: init.constant(2, 3, c=4, **kw), np.full((2, 3), 4)),
    "full": (lambda **kw: ndl.full((2, 3), 4, **kw), np.full((2, 3), 4)),
    "full-vector": (lambda **kw: ndl.full(3, 4, **kw), np.full(3, 4)),
    "eye": (lambda **kw: ndl.eye(2, 3, **kw), np.eye(2, 3)),
    "arange": (lambda **kw: ndl.arange(2, 9, 3, **kw), np.array([2, 5, 8])),
    "linspace": (lambda **kw: ndl.linspace(0, 3, 7, **kw), np.linspace(0, 3, 7)),
    "one_hot": (lambda **kw: init.one_hot(3, Tensor([2, 0]), **kw), np.eye(3)[[2, 0]]),
}
all_makers = pytest.mark.parametrize("name", MAKERS)


@all_makers
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_constants_and_ranges(name: str, dtype: str) -> None:
    make, expected = MAKERS[name]
    x = make(dtype=dtype, requires_grad=False)
    assert str(x.dtype) == dtype and not x.requires_grad
    np.testing.assert_allclose(x.numpy(), expected.astype(dtype), rtol=1e-6)


@all_makers
def test_makers_may_require_a_gradient(name: str) -> None:
    assert MAKERS[name][0](requires_grad=True).requires_grad


def test_shapes_may_be_one_tuple() -> None:
    for make in (ndl.zeros, ndl.ones, ndl.rand, ndl.randn, ndl.empty):
        assert make((2, 3)).shape == make(2, 3).shape == (2, 3)
    assert ndl.zeros().shape == ()


def test_arange_counts_in_integers_and_steps_in_floats() -> None:
    assert str(ndl.arange(3).dtype) == "int64" and str(ndl.arange(0, 1, 0.25).dtype) == "float32"
    np.testing.assert_array_equal(ndl.arange(5, 0, -2).numpy(), [5, 3, 1])
    assert ndl.arange(0).shape == (0,)


def test_like_keeps_dtype_and_shape() -> None:
    x = Tensor(np.ones((2, 3)), dtype="float64")
    assert str(ndl.zeros_like(x).dtype) == "float64" and ndl.ones_like(x).shape == (2, 3)
    assert ndl.ones_like(x).numpy().all() and not ndl.zeros_like(x).numpy().any()
    assert not ndl.ones_like(x).requires_grad and ndl.ones_like(x, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ndl.arange(0, 3, 0), "arange"),
        (lambda: ndl.linspace(0, 1, -1), "linspace"),
        (lambda: init.one_hot(3, Tensor([3])), "one_hot"),
        (lambda: init.one_hot(3, Tensor([-1])), "one_hot"),
        (lambda: init.kaiming_uniform(2, 3, nonlinearity="tanh"), "kaiming_uniform"),
        (lambda: init.kaiming_normal(2, 3, nonlinearity="tanh"), "kaiming_normal"),
    ],
)
def test_errors_name_the_function_U090(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        call()


# ---- random numbers --------------------------------------------------------------------------------------------------

DRAWS: dict[str, tuple[Callable[..., Tensor], Callable[[], np.ndarray]]] = {
    "rand": (lambda **kw: ndl.rand(3, 4, low=-2, high=5, **kw), lambda: np.random.rand(3, 4) * 7 - 2),
    "randn": (lambda **kw: ndl.randn(3, 4, mean=2, std=3, **kw), lambda: np.random.randn(3, 4) * 3 + 2),
    "randb": (lambda **kw: init.randb(3, 4, p=0.3, **kw), lambda: np.random.rand(3, 4) <= 0.3),
    "xavier_uniform": (
        lambda **kw: init.xavier_uniform(3, 4, gain=2, **kw),
        lambda: (np.random.rand(3, 4) * 2 - 1) * 2 * np.sqrt(6 / 7),
    ),
    "xavier_normal": (
        lambda **kw: init.xavier_normal(3, 4, gain=2, **kw),
        lambda: np.random.randn(3, 4) * 2 * np.sqrt(2 / 7),
    ),
    "kaiming_uniform": (
        lambda **kw: init.kaiming_uniform(3, 4, **kw),
        lambda: (np.random.rand(3, 4) * 2 - 1) * np.sqrt(6 / 3),
    ),
    "kaiming_uniform-shape": (
        lambda **kw: init.kaiming_uniform(12, 8, shape=(2, 2, 3, 2), **kw),
        lambda: (np.random.rand(2, 2, 3, 2) * 2 - 1) * np.sqrt(6 / 12),
    ),
    "kaiming_uniform-positional": (
        lambda **kw: init.kaiming_uniform(3, 4, "relu", **kw),
        lambda: (np.random.rand(3, 4) * 2 - 1) * np.sqrt(6 / 3),
    ),
    "kaiming_normal": (
        lambda **kw: init.kaiming_normal(3, 4, **kw),
        lambda: np.random.randn(3, 4) * np.sqrt(2 / 3),
    ),
}
all_draws = pytest.mark.parametrize("name", DRAWS)


@all_draws
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_scale_numpys_global_stream(name: str, dtype: str) -> None:
    draw, reference = DRAWS[name]
    ndl.seed(42)
    x = draw(dtype=dtype)
    after = np.random.rand()
    np.random.seed(42)
    expected = reference()
    assert str(x.dtype) == dtype and not x.requires_grad
    # numbers up to 10, each rounded at most three times
    np.testing.assert_allclose(x.numpy(), expected, rtol=0, atol=30 * np.finfo(dtype).eps)
    assert np.random.rand() == after  # and not one number more was drawn


def test_equal_seeds_equal_numbers_U078() -> None:
    for seed in (0, 1):
        ndl.seed(seed)
        first, second = ndl.randn(5).numpy(), ndl.randn(5).numpy()
        assert not np.array_equal(first, second)
        ndl.seed(seed)
        np.testing.assert_array_equal(ndl.randn(5).numpy(), first)


def test_random_integers_and_bools() -> None:
    ndl.seed(0)
    x = ndl.rand(1000, low=0, high=5, dtype="int64")
    assert set(np.unique(x.numpy())) == {0, 1, 2, 3, 4}
    mask = init.randb(1000, p=0.25)
    assert str(mask.dtype) == "bool" and abs(mask.numpy().mean() - 0.25) < 0.06  # four standard deviations
    assert init.randb(5, p=1).numpy().all() and not init.randb(5, p=0).numpy().any()


def test_randb_is_true_where_the_draw_equals_p() -> None:
    np.random.seed(3)
    draw = np.random.rand()
    np.random.seed(3)
    assert init.randb(1, p=draw if np_mode else float(np.float32(draw))).numpy().all()


@only_nd
@pytest.mark.parametrize("name", [*MAKERS, *DRAWS])
def test_makers_follow_the_device_U066(name: str) -> None:
    make = {**MAKERS, **DRAWS}[name][0]
    for device in (ndl.cpu_numpy(), "cpu_numpy"):
        assert make(device=device).device == ndl.cpu_numpy()
    assert make().device == ndl.default_device()
    with ndl.device("cpu_numpy"):
        assert make().device == ndl.cpu_numpy()


@only_nd
def test_like_and_tensor_follow_the_device_U066() -> None:
    x = Tensor([1.0], device="cpu_numpy")
    for made in (ndl.zeros_like(x), ndl.ones_like(x), ndl.tensor(x), ndl.tensor([1], device="cpu_numpy")):
        assert made.device == ndl.cpu_numpy()
    assert ndl.empty(2, device="cpu_numpy").device == ndl.cpu_numpy()


@only_nd
def test_the_stream_does_not_depend_on_the_device_U078() -> None:
    ndl.seed(0)
    here = ndl.randn(4).numpy()
    ndl.seed(0)
    np.testing.assert_array_equal(ndl.randn(4, device="cpu_numpy").numpy(), here)
