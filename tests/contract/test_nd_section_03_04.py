"""What sections 1.4, 3 and 4 say of NDArray mode."""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from needle import backend_ndarray as nd

from .tools import close

DEVICES = [ndl.cpu(), ndl.cpu_numpy()]


def test_cached_data_is_an_ndarray_of_float32() -> None:
    for source in ([1.0], [1], np.ones(2), np.ones(2, dtype="float64"), 3.0):
        x = ndl.Tensor(source)
        assert isinstance(x.cached_data, nd.NDArray) and x.dtype == "float32"
    assert isinstance((x + 1).cached_data, nd.NDArray)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_tensor_of_an_ndarray_on_any_device(device) -> None:
    array = nd.array(np.arange(6).reshape(2, 3), device=device)
    x = ndl.Tensor(array)
    close(x, np.arange(6.0).reshape(2, 3))
    assert ndl.Tensor(array, device=device).device == device


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_tensor_moves_to_another_device(device) -> None:
    x = ndl.Tensor([[1.0, 2.0]], device=ndl.cpu())
    moved = ndl.Tensor(x, device=device)
    assert moved.device == device and moved.cached_data.device == device
    close(moved, [[1.0, 2.0]])


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_results_and_gradients_stay_on_the_device(device) -> None:
    x = ndl.Tensor(np.random.randn(3, 4), device=device)
    y = ndl.logsumexp(ndl.tanh(x) * 2, axes=1).sum()
    y.backward()
    assert y.device == device and x.grad.device == device and y.shape == (1,)


def test_device_names() -> None:
    assert [str(d) for d in (ndl.cpu(), ndl.cuda(), ndl.cpu_numpy())] == ["cpu()", "cuda()", "cpu_numpy()"]
    assert [repr(d) for d in (ndl.cpu(), ndl.cuda(), ndl.cpu_numpy())] == ["cpu()", "cuda()", "cpu_numpy()"]
    assert [d.name for d in (ndl.cpu(), ndl.cuda(), ndl.cpu_numpy())] == ["cpu", "cuda", "cpu_numpy"]
    assert {str(d) for d in ndl.all_devices()} >= {"cpu()", "cuda()", "cpu_numpy()"}


def test_devices_are_equal_by_name() -> None:
    assert ndl.cpu() == ndl.cpu()
    assert (ndl.cpu() != ndl.cpu()) is False
    assert ndl.cpu() != ndl.cpu_numpy() and ndl.cpu() != ndl.cuda()
    assert (ndl.cpu() == 3) is False and (ndl.cpu() == None) is False  # noqa: E711


def test_device_forwards_to_its_module() -> None:
    device = ndl.cpu()
    assert hasattr(device, "matmul_tiled") and device.__tile_size__ > 0 and device.__device_name__ == "cpu"
    assert device.mod is not None and device.mod.__device_name__ == "cpu"
    assert not hasattr(ndl.cpu_numpy(), "matmul_tiled")
    assert ndl.cpu_numpy().__device_name__ == "numpy"
    assert not hasattr(device, "no_such_kernel")


def test_enabled() -> None:
    assert ndl.cpu().enabled() is True and ndl.cpu_numpy().enabled() is True
    assert ndl.cuda().enabled() in (True, False)


def test_the_default_device_is_the_native_one() -> None:
    assert ndl.default_device() == ndl.cpu()
    assert ndl.Tensor([1.0]).device == ndl.cpu() == ndl.init.rand(2).device


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_device_draws_float32_from_the_global_generator(device, name: str) -> None:
    np.random.seed(3)
    expected = getattr(np.random, name)(2, 3).astype("float32")
    np.random.seed(3)
    made = getattr(device, name)(2, 3)
    assert isinstance(made, nd.NDArray) and made.dtype == "float32" and made.device == device
    np.testing.assert_array_equal(made.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_device_makes_arrays(device) -> None:
    for made, expected in (
        (device.one_hot(3, np.array([2, 0]), "float32"), np.eye(3)[[2, 0]]),
        (device.full((2, 2), 7.0, None), np.full((2, 2), 7.0)),
        (device.full((2, 2), 7.0, "float32"), np.full((2, 2), 7.0)),
    ):
        assert isinstance(made, nd.NDArray) and made.dtype == "float32" and made.device == device
        close(made, expected)
    assert device.empty((4, 5), None).shape == (4, 5)


def test_arithmetic_across_devices_raises_and_names_both() -> None:
    with pytest.raises(TypeError, match=r"cpu\(\).*cpu_numpy\(\)|cpu_numpy\(\).*cpu\(\)"):
        ndl.Tensor([1.0], device=ndl.cpu()) + ndl.Tensor([1.0], device=ndl.cpu_numpy())


def test_an_integer_that_float32_cannot_hold_is_refused() -> None:
    for make in (ndl.Tensor, nd.array):
        with pytest.raises(Exception, match="dtype="):
            make(np.array([2**24 + 1]))
    close(ndl.Tensor(np.array([2**24])), [2.0**24])
