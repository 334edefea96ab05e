"""NumPy's way of doing the kinds of task that it knows; its products are those of OpenBLAS."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np

from . import Work, in_turn, normal, operands


def set_up(variant: str, threads: int) -> None:
    """Threads are set by the environment; OpenBLAS chooses its kernels by the processor."""


def facts() -> dict[str, str]:
    return {"NumPy": np.__version__, "NumPy's BLAS": _blas()}


def _blas() -> str:
    """The library's name, and the core type whose kernels it chose."""
    build = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    name = f"{build['name']} {build['version']}"
    for library in Path(np.__file__).parents[1].glob("numpy.libs/*openblas*"):
        for ask in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            if function := getattr(ctypes.CDLL(str(library)), ask, None):
                function.restype = ctypes.c_char_p
                return f"{name}, core type {function().decode()}"
    return name


def product(m: int, k: int, n: int) -> Work:
    a, b = normal(0, m, k), normal(1, k, n)
    return Work(lambda: a @ b, lambda: {"product": a @ b})


def operation(name: str, n: int, width: int) -> Work:
    arrays = operands({"name": name, "n": n, "width": width})
    run = in_turn(FUNCTIONS[name], name, lambda: [a.copy() for a in arrays])
    return Work(run, lambda: {"out": run()})


def _softmax(a: np.ndarray) -> np.ndarray:
    exp = np.exp(a - a.max(1, keepdims=True))
    return exp / exp.sum(1, keepdims=True)


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "multiply": np.multiply,
    "scale": lambda a: a * np.float32(3),
    "relu": lambda a: np.maximum(a, 0),
    "sum": np.sum,
    "max": np.max,
    "sum of rows": lambda a: a.sum(1),
    "sum of columns": lambda a: a.sum(0),
    "exp": np.exp,
    "tanh": np.tanh,
    "log": np.log,
    "softmax": _softmax,
}
