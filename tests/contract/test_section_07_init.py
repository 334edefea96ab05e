"""Section 7: tensors from nothing; every number comes from NumPy's global generator, in the order stated."""

from __future__ import annotations

import math

import needle as ndl
import numpy as np
import pytest
from needle import init

from .tools import T, close

ROOT = math.sqrt


def drawn(generator: str, *shape: int) -> np.ndarray:
    """What NumPy's generator gives from seed 42."""
    np.random.seed(42)
    return getattr(np.random, generator)(*shape)


def made(maker, *args, **kwargs) -> ndl.Tensor:
    np.random.seed(42)
    return maker(*args, **kwargs)


@pytest.mark.parametrize(
    "maker, args, kwargs, generator, shape, scale, shift",
    [
        (init.rand, (3, 4), {}, "rand", (3, 4), 1, 0),
        (init.rand, (3, 4), {"low": -2.0, "high": 3.0}, "rand", (3, 4), 5, -2),
        (init.randn, (3, 4), {}, "randn", (3, 4), 1, 0),
        (init.randn, (3, 4), {"mean": 1.5, "std": 2.0}, "randn", (3, 4), 2, 1.5),
        (init.xavier_uniform, (3, 5), {"gain": 1.5}, "rand", (3, 5), 3 * ROOT(6 / 8), -1.5 * ROOT(6 / 8)),
        (init.xavier_normal, (3, 5), {"gain": 0.33}, "randn", (3, 5), 0.33 * ROOT(2 / 8), 0),
        (init.kaiming_uniform, (3, 5), {}, "rand", (3, 5), 2 * ROOT(2), -ROOT(2)),
        (init.kaiming_normal, (3, 5), {}, "randn", (3, 5), ROOT(2 / 3), 0),
        (init.kaiming_uniform, (12, 7), {"shape": (2, 2, 3, 4)}, "rand", (2, 2, 3, 4), 2 * ROOT(0.5), -ROOT(0.5)),
    ],
)
def test_random_tensors(maker, args, kwargs, generator, shape, scale, shift) -> None:
    x = made(maker, *args, **kwargs)
    close(x, drawn(generator, *shape) * scale + shift, 1e-5)
    assert x.dtype == "float32" and not x.requires_grad


def test_one_call_draws_the_product_of_the_shape_and_no_more() -> None:
    for maker in (init.rand, init.randn, init.xavier_uniform, init.kaiming_normal, init.randb):
        made(maker, 3, 4)
        after = np.random.rand()
        drawn("rand" if maker in (init.rand, init.xavier_uniform, init.randb) else "randn", 3, 4)
        assert after == np.random.rand(), maker.__name__


def test_randb_is_true_where_a_uniform_number_is_at_most_p() -> None:
    x = made(init.randb, 4, 5, p=0.3)
    assert x.dtype == "bool"
    close(x, drawn("rand", 4, 5).astype("float32") <= 0.3)
    mask = made(init.randb, 4, 5, p=0.3, dtype="float32")
    assert mask.dtype == "float32"
    close(mask, (drawn("rand", 4, 5) <= 0.3).astype("float32"))


def test_constants() -> None:
    close(init.constant(2, 3, c=2.5), np.full((2, 3), 2.5))
    close(init.constant(2, 3), np.ones((2, 3)))
    close(init.ones(2, 3), np.ones((2, 3)))
    close(init.zeros(2, 3), np.zeros((2, 3)))


@pytest.mark.parametrize("maker", [init.rand, init.randn, init.constant, init.ones, init.zeros])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_device_and_requires_grad_are_kept(maker, dtype: str) -> None:
    x = maker(2, 3, dtype=dtype, device=ndl.cpu(), requires_grad=True)
    assert (x.dtype, x.device, x.requires_grad, x.shape) == (dtype, ndl.cpu(), True, (2, 3))


@pytest.mark.parametrize("maker", [init.xavier_uniform, init.xavier_normal, init.kaiming_uniform, init.kaiming_normal])
def test_initializers_hand_their_keywords_on(maker) -> None:
    x = maker(3, 4, dtype="float64", device=ndl.cpu(), requires_grad=True)
    assert (x.dtype, x.device, x.requires_grad, x.shape) == ("float64", ndl.cpu(), True, (3, 4))


@pytest.mark.parametrize("maker", [init.kaiming_uniform, init.kaiming_normal])
def test_kaiming_knows_relu_alone(maker) -> None:
    with pytest.raises(AssertionError, match="tanh"):
        maker(3, 4, nonlinearity="tanh")
    maker(3, 4, nonlinearity="relu")


def test_kaiming_uniform_takes_the_nonlinearity_in_third_place_as_the_early_homeworks_do() -> None:
    close(made(init.kaiming_uniform, 3, 5, "relu"), made(init.kaiming_uniform, 3, 5).numpy())


def test_one_hot() -> None:
    close(init.one_hot(4, T([1.0, 3.0, 0.0])), np.eye(4)[[1, 3, 0]])
    x = init.one_hot(3, T([[0, 2], [1, 1]]), dtype="float32")
    close(x, np.eye(3)[[[0, 2], [1, 1]]])
    assert x.shape == (2, 2, 3) and x.dtype == "float32" and not x.requires_grad


@pytest.mark.parametrize("maker, value", [(init.zeros_like, 0.0), (init.ones_like, 1.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_like(maker, value: float, dtype: str) -> None:
    x = maker(T(np.full((2, 3), 7), dtype), requires_grad=True)
    assert (x.shape, x.dtype, x.requires_grad) == ((2, 3), dtype, True)
    assert (x.numpy() == value).all()


def test_without_a_device_tensors_are_on_the_cpu() -> None:
    assert init.rand(2).device == init.zeros(2).device == ndl.cpu()
