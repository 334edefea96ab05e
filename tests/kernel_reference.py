"""What typed kernels are compared with, on every device: NumPy's functions by the kernels' names."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool")

COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal}
COMPARISONS["lt"] = np.less
ARITHMETIC = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
ARITHMETIC |= {"div": np.divide, "power": np.power}
BINARY = {**ARITHMETIC, **COMPARISONS}
FLOAT_UNARY = ("log", "exp", "tanh", "sqrt", "sin", "cos")
UNARY = {name: getattr(np, name) for name in (*FLOAT_UNARY, "abs", "sign")}


def binary_reference(op: str, a: Any, b: Any, dtype: Any) -> np.ndarray:
    """NumPy's answer, as what the kernel gives: truths are float32, and a power of bools is no small integer."""
    return np.asarray(BINARY[op](a, b)).astype("float32" if op in COMPARISONS else dtype)


def as_view(storage: np.ndarray, shape: tuple, strides: tuple, offset: int) -> np.ndarray:
    """NumPy's view of a flat storage; strides and offset count elements."""
    strides = tuple(stride * storage.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, strides)


def assert_close(got: np.ndarray, wanted: np.ndarray, ulps: float = 0) -> None:
    """The same dtype, shape and values; for floats, but for so many units in the last place."""
    assert got.dtype == wanted.dtype
    rtol = ulps * np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=0)
