"""What the contract's tests share: tensors of the backend under test, comparison, differences in float64."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np

BACKEND = os.environ["NEEDLE_BACKEND"]
SCALAR = () if BACKEND == "np" else (1,)  # the shape of a full reduction (contract 13, 14.1)


def T(array: Any, dtype: str = "float32", **kwargs: Any) -> ndl.Tensor:
    """A tensor of the backend under test."""
    return ndl.Tensor(np.asarray(array), dtype=dtype, **kwargs)


def normal(*shape: int) -> np.ndarray:
    """Random numbers in float64, from NumPy's global generator."""
    return np.random.randn(*shape)


def close(got: Any, expected: Any, tol: float = 1e-5) -> None:
    """Equal shapes, and values that differ by at most tol of their own size or of 1."""
    got = got.numpy() if hasattr(got, "numpy") else np.asarray(got)
    expected = np.asarray(expected)
    assert got.shape == expected.shape, f"shape {got.shape}, wanted {expected.shape}"
    np.testing.assert_allclose(got, expected, rtol=tol, atol=tol)


def check_gradients(f: Callable[..., ndl.Tensor], *arrays: np.ndarray, tol: float = 1e-6) -> None:
    """Compare `backward` with central differences, in float64, under an upstream gradient that differs entry by entry.

    The step 1e-5 balances truncation (1e-10) against rounding (1e-16 / 1e-5), which leaves 1e-6 with room.
    """
    arrays = [np.array(a, dtype="float64") for a in arrays]
    weight = np.random.RandomState(7).uniform(0.5, 2.0, f(*(T(a, "float64") for a in arrays)).shape)

    def value(*values: np.ndarray) -> float:
        return float((f(*(T(a, "float64") for a in values)).numpy() * weight).sum())

    inputs = [T(a, "float64") for a in arrays]
    f(*inputs).backward(T(weight, "float64"))
    for number, (array, tensor) in enumerate(zip(arrays, inputs, strict=True)):
        expected = np.zeros_like(array)
        for index in np.ndindex(*array.shape):
            up, down = array.copy(), array.copy()
            up[index] += 1e-5
            down[index] -= 1e-5
            args = [[*arrays[:number], moved, *arrays[number + 1 :]] for moved in (up, down)]
            expected[index] = (value(*args[0]) - value(*args[1])) / 2e-5
        close(tensor.grad, expected, tol)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    shifted = np.exp(x - x.max(axis=axis, keepdims=True))
    return shifted / shifted.sum(axis=axis, keepdims=True)


def logsumexp(x: np.ndarray, axis: Any = None) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top, axis=axis)
