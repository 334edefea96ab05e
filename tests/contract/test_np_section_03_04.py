"""What sections 1.4, 3 and 4.1 say of NumPy mode."""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest


def test_cached_data_is_a_numpy_array_that_can_be_written_through() -> None:
    x = ndl.Tensor(np.arange(4.0).reshape(2, 2))
    assert isinstance(x.cached_data, np.ndarray)
    x.cached_data.flat[3] += 0.5
    assert x.numpy()[1, 1] == 3.5 and x.cached_data.size == 4
    assert x.cached_data.flags.owndata and x.cached_data.flags.writeable


def test_a_full_reduction_may_be_a_numpy_scalar() -> None:
    total = ndl.Tensor([1.0, 2.0]).sum()
    assert isinstance(total.cached_data, (np.ndarray, np.generic)) and total.shape == ()


def test_python_floats_become_float64_and_ints_int64() -> None:
    assert ndl.Tensor([1.0]).dtype == np.float64
    assert ndl.Tensor([1]).dtype == np.int64
    assert isinstance(ndl.Tensor([1.0]).dtype, np.dtype)


def test_float64_is_kept_through_operators_and_gradients() -> None:
    x = ndl.Tensor(np.random.randn(3, 4))
    y = ndl.logsumexp(ndl.exp(ndl.relu(x) @ ndl.Tensor(np.random.randn(4, 2))) / 2, axes=(1,)).sum()
    y.backward()
    assert y.dtype == np.float64 and x.grad.dtype == np.float64


def test_dtype_none_keeps_what_numpy_gives() -> None:
    for dtype in ("float32", "float64", "int8", "int32", "uint8", "bool"):
        assert ndl.Tensor(np.ones(2, dtype=dtype)).dtype == dtype


def test_integer_seed_has_the_dtype_of_the_output() -> None:
    x = ndl.Tensor(np.array([1, 2]))
    (x * x).backward()
    assert x.grad.dtype == np.int64


def test_a_one_element_array_counts_as_a_number() -> None:
    x = ndl.Tensor([2.0, 4.0])
    for scalar in (np.array([2.0]), np.float64(2.0), np.array(2.0)):
        y = x / scalar
        assert type(y.op).__name__ == "DivScalar"
        np.testing.assert_allclose(y.numpy(), [1.0, 2.0])


def test_broadcasting_pow_and_batched_matmul() -> None:
    a, b = np.abs(np.random.randn(3, 4)) + 0.5, np.random.randn(4)
    np.testing.assert_allclose(ndl.power(ndl.Tensor(a), ndl.Tensor(b)).numpy(), a**b)
    a, b = np.random.randn(5, 1, 2, 3), np.random.randn(4, 3, 2)
    np.testing.assert_allclose((ndl.Tensor(a) @ ndl.Tensor(b)).numpy(), a @ b)


def test_broadcast_to_of_a_scalar_and_of_new_axes() -> None:
    x = ndl.Tensor(np.array(3.0))
    y = ndl.broadcast_to(x, (2, 3))
    y.backward(ndl.Tensor(np.arange(6.0).reshape(2, 3)))
    assert x.grad.shape == () and float(x.grad.numpy()) == 15.0
    z = ndl.Tensor(np.arange(3.0))
    ndl.broadcast_to(z, (4, 2, 3)).backward()
    np.testing.assert_array_equal(z.grad.numpy(), [8.0, 8.0, 8.0])


def test_device() -> None:
    assert repr(ndl.cpu()) == "needle.cpu()"
    assert ndl.cpu() == ndl.cpu() and hash(ndl.cpu()) == hash(ndl.cpu())
    assert ndl.cpu().enabled() is True
    assert ndl.Tensor([1.0]).device == ndl.cpu()
    assert ndl.all_devices()[0] == ndl.cpu()
    assert ndl.default_device() == ndl.cpu()


def test_device_makes_arrays() -> None:
    device = ndl.cpu()
    for made, expected in (
        (device.zeros(2, 3), np.zeros((2, 3), "float32")),
        (device.ones(2, 3, dtype="float64"), np.ones((2, 3))),
        (device.full((2, 2), 7.0, "float32"), np.full((2, 2), 7.0, "float32")),
        (device.one_hot(3, np.array([2, 0]), "float32"), np.eye(3, dtype="float32")[[2, 0]]),
        (device.one_hot(3, np.array([[2, 0]]), "int32"), np.eye(3, dtype="int32")[[[2, 0]]]),
    ):
        assert isinstance(made, np.ndarray) and made.dtype == expected.dtype
        np.testing.assert_array_equal(made, expected)
    empty = device.empty((4, 5), "float64")
    assert empty.shape == (4, 5) and empty.dtype == np.float64


def test_device_draws_from_the_global_generator_in_float64() -> None:
    for name in ("rand", "randn"):
        np.random.seed(3)
        expected = getattr(np.random, name)(2, 3)
        np.random.seed(3)
        made = getattr(ndl.cpu(), name)(2, 3)
        assert made.dtype == np.float64
        np.testing.assert_array_equal(made, expected)


def test_cuda_is_named_and_politely_absent() -> None:
    assert ndl.cuda().enabled() is False
    with pytest.raises(TypeError, match="cuda"):
        ndl.Tensor([1.0], device=ndl.cuda())
