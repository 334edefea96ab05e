"""What is particular to np mode: raw NumPy arrays, NumPy's own types, integers that are differentiated."""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from needle import Tensor
from needle.errors import DeviceError


def test_data_is_a_numpy_array_of_numpys_type() -> None:
    assert Tensor([1.5, 2.5]).dtype == np.float64
    assert Tensor([1, 2]).dtype == np.int64
    assert Tensor(np.float32(1)).dtype == np.float32
    assert isinstance(Tensor([1.0]).cached_data, np.ndarray)


def test_data_can_be_moved_entry_by_entry() -> None:
    array = np.array([1.0, 2.0])
    x = Tensor(array)
    x.cached_data.flat[1] += 0.5
    assert x.tolist() == [1, 2.5]
    assert array.tolist() == [1, 2]


def test_leaves_of_integers_have_gradients() -> None:
    x = Tensor([1, 2, 3])
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    (x * 2.5).sum().backward()
    assert x.grad.tolist() == [2.5, 2.5, 2.5]


def test_full_reduction_is_of_rank_0() -> None:
    total = Tensor([1.0, 2.0]).sum()
    assert total.shape == ()
    assert total.numpy().sum() == 3
    total.data = Tensor(5.0)
    assert float(total) == 5


def test_division_by_an_array_of_one_element() -> None:
    x = Tensor([1.0, 2.0])
    y = x / np.array([4.0])
    assert type(y.op).__name__ == "DivScalar"
    assert y.tolist() == [0.25, 0.5]


def test_float32_stays_float32() -> None:
    x = Tensor(np.ones(3, np.float32))
    for y in (x * 0.1, x + 1, x / 3, x**0.5, x.mean(), x.sigmoid(), x.gelu(), x.var(), x.softmax(), x - 0.5, 1 / x):
        assert y.dtype == np.float32
        y.sum().backward()
        assert x.grad.dtype == np.float32


def test_devices_other_than_the_cpu_answer_politely() -> None:
    assert not ndl.cuda().enabled()
    with pytest.raises(DeviceError, match="NEEDLE_BACKEND=nd"):
        Tensor([1.0]).to("cuda").numpy()
