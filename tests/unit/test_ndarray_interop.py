"""NDArrays, NumPy and other libraries: what shares memory, and what copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from needle import backend_ndarray as nd
from needle.errors import DeviceError

from tests.chosen_device import devices

DEVICES = devices()
DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
SHARING = [device for device in DEVICES if device.wrappers]  # a GPU's memory is its own


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=SHARING, ids=str)
def sharing_device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_shares_memory_both_ways(sharing_device: Any, dtype: str) -> None:
    a = np.zeros((2, 3), dtype)
    b = nd.from_numpy(a, device=sharing_device)
    assert b.dtype == dtype and b.shape == (2, 3) and b.is_compact()
    assert b._handle.ptr() == a.ctypes.data
    b[0, 1] = 1
    a[1, 2] = 1
    np.testing.assert_array_equal(b.numpy(), [[0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(a, b.numpy())


def test_from_numpy_keeps_the_memory_alive(device: Any) -> None:
    b = nd.from_numpy(np.arange(1000, dtype="float32"), device=device)
    np.arange(1000, dtype="float32")[:] = -1  # would take the memory over
    assert b.sum().item() == 499500


def read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    "a",
    [
        np.zeros((4, 4), "float32")[:, ::2],
        np.zeros((2, 3), "float32").T,
        read_only(np.zeros(3, "float32")),
        np.zeros(3, ">f4"),
        np.zeros(0, "float32"),
        np.frombuffer(bytearray(13), "uint8")[1:].view("float32"),
    ],
    ids=["strided", "transposed", "read-only", "other byte order", "empty", "misaligned"],
)
def test_from_numpy_copies_what_it_cannot_share(device: Any, a: np.ndarray) -> None:
    b = nd.from_numpy(a, device=device)
    b.fill(1)
    assert b.shape == a.shape and not a.any()


@pytest.mark.parametrize("wrong", [[1, 2], None, 3.0])
def test_from_numpy_wants_an_array(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_numpy: got"):
        nd.from_numpy(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_and_dlpack_see_the_memory_of_a_view(sharing_device: Any, dtype: str) -> None:
    a = nd.array(np.arange(12).reshape(3, 4) % 2, dtype=dtype, device=sharing_device)
    for view in (a, a.T, a[::-1, 1::2], a[1].broadcast_to((2, 4))):
        for seen in (np.asarray(view), np.from_dlpack(view)):
            np.testing.assert_array_equal(seen, view.numpy())
            assert seen.dtype == dtype
    seen = np.from_dlpack(a[1:])
    a[2, 3] = 0
    assert seen[1, 3] == 0
    np.asarray(a)[0, 0] = 1
    assert a[0, 0].item() == 1


def test_an_export_keeps_the_memory_alive(sharing_device: Any) -> None:
    seen = np.from_dlpack(nd.full((1000,), 3, device=sharing_device))
    nd.full((1000,), 4, device=sharing_device)
    assert (seen == 3).all()


def test_conversions_copy_when_asked(device: Any) -> None:
    a = nd.zeros((3,), device=device)
    copied, cast = np.array(a), np.asarray(a, dtype="float64")
    a.fill(1)
    assert not copied.any() and not cast.any() and cast.dtype == "float64"
    assert a.__array__().any()  # as NumPy 1 calls it
    assert a.__array__("int64").dtype == "int64"
    with pytest.raises(ValueError, match=r"asarray: float32 .* needs a copy"):
        a.__array__("float64", copy=False)


def test_from_dlpack_takes_other_libraries_arrays(device: Any) -> None:
    b = nd.from_dlpack(np.arange(6, dtype="float64").reshape(2, 3).T)
    assert b.shape == (3, 2) and b.dtype == "float64" and b.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_numpy_copies_on_native_devices_only(device: Any) -> None:
    a = nd.zeros((3,), device=device)
    a.numpy()[0] = 1
    assert a.tolist() == ([1, 0, 0] if device == nd.cpu_numpy() else [0, 0, 0])


def test_a_foreign_memory_is_not_looked_into() -> None:
    class Far:
        size = 3

    a = nd.NDArray.make((3,), device=nd.cpu_numpy(), handle=Far())
    with pytest.raises(DeviceError, match=r"use \.numpy\(\)"):
        np.from_dlpack(a)


def test_numpy_functions_refuse_rather_than_make_objects(device: Any) -> None:
    with pytest.raises(TypeError):
        np.exp(nd.ones((2,), device=device))


def test_a_numpy_answer_runs_on_ndarrays(device: Any) -> None:
    """An operator written for NumPy, as in the first homework, with the module in NumPy's place."""

    def logsumexp(array_api: Any, z: Any) -> Any:
        top = array_api.max(z, axis=(0, 2), keepdims=True)
        shifted = z - array_api.broadcast_to(top, z.shape)
        total = array_api.log(array_api.sum(array_api.exp(shifted), axis=(0, 2)))
        return array_api.swapaxes(array_api.reshape(array_api.squeeze(top, (0, 2)) + total, (1, -1)), 0, 1)

    z = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
    np.testing.assert_allclose(logsumexp(nd, nd.array(z, device=device)).numpy(), logsumexp(np, z), rtol=1e-6)
