"""Submitted values as JSON, and how two of them compare.

Of an array of eight or more entries the answers keep the shape and three sums with random signs, which is enough to
check by and no help in guessing; of everything else they keep the value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SMALL = 8  # entries; arrays of fewer are kept as they are
SUMS = 3
RTOL, ATOL = 1e-4, 1e-5  # float32 on another machine, in another order of summation
DEEPEST = 20


def encode_json(value: Any, depth: int = 0) -> Any:
    """A submitted value in the form of the course's server: arrays, types and dtypes are tagged, tuples are lists.

    Raises TypeError for what cannot be compared, a needle Tensor above all.
    """
    if depth > DEEPEST:
        raise TypeError(f"submit: the value is nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        return {str(key): encode_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode_json(item, depth + 1) for item in value]
    if isinstance(value, np.ndarray):
        return {"_encoded_type": "np.ndarray", "shape": list(value.shape), "data": value.ravel().tolist()}
    if isinstance(value, (type, np.dtype)):
        return {"_encoded_type": "type", "data": repr(np.dtype(value) if isinstance(value, np.dtype) else value)}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return value.item()
    if isinstance(value, (int, float)):
        return value
    raise TypeError(refusal(value))


def refusal(value: Any) -> str:
    name = f"{type(value).__module__}.{type(value).__name__}"
    if hasattr(value, "numpy"):
        return f"submit: cannot take a {name}; give it x.numpy()"
    return f"submit: cannot take a {name}; give it a number, a NumPy array, or a tuple of them"


def condensed(value: Any) -> Any:
    """An encoded value as it is kept among the answers."""
    if isinstance(value, list):
        return [condensed(item) for item in value]
    if not is_array(value) or len(value["data"]) < SMALL:
        return value
    data = np.asarray(value["data"], float)
    sums = [float(f"{number:.8g}") for number in signs(data.size) @ data]
    return {"_encoded_type": "sums", "shape": value["shape"], "largest": float(np.abs(data).max()), "sums": sums}


def signs(size: int) -> np.ndarray:
    """Always the same random signs (SUMS, size)."""
    return np.random.RandomState(size % 2**32).choice([-1.0, 1.0], (SUMS, size))


def difference(got: Any, want: Any) -> str:
    """ "" if an encoded value agrees with an answer, else what is wrong with it, without giving the answer away."""
    if isinstance(want, dict) and want.get("_encoded_type") == "sums":
        return difference_of_sums(got, want)
    if is_array(want):
        return difference_of_arrays(got, want)
    if isinstance(want, list):
        return difference_of_lists(got, want)
    if is_number(want) and is_number(got):
        return "" if close(float(got), float(want)) else f"off by {abs(got - want):.3g}"
    return (
        ""
        if got == want and isinstance(got, bool) == isinstance(want, bool)
        else "another value, or one of another kind"
    )


def difference_of_lists(got: Any, want: list) -> str:
    if not isinstance(got, list) or len(got) != len(want):
        return f"wanted {len(want)} values"
    found = ((i, difference(g, w)) for i, (g, w) in enumerate(zip(got, want)))
    return next((f"value {i}: {text}" for i, text in found if text), "")


def difference_of_arrays(got: Any, want: dict) -> str:
    if text := difference_of_shapes(got, want):
        return text
    wrong = sum(not close(float(g), float(w)) for g, w in zip(got["data"], want["data"]))
    return f"{wrong} of {len(want['data'])} entries are wrong" if wrong else ""


def difference_of_sums(got: Any, want: dict) -> str:
    if text := difference_of_shapes(got, want):
        return text
    data = np.asarray(got["data"], float)
    bound = 4 * math.sqrt(data.size) * (ATOL + RTOL * want["largest"])
    off = np.abs(signs(data.size) @ data - want["sums"])
    return "" if np.all(off <= bound) else "some entries are wrong"  # a NaN is not <= anything


def difference_of_shapes(got: Any, want: dict) -> str:
    if not is_array(got):
        return f"wanted an array of shape {tuple(want['shape'])}"
    return "" if got["shape"] == want["shape"] else f"shape {tuple(got['shape'])}, wanted {tuple(want['shape'])}"


def is_array(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_encoded_type") == "np.ndarray"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def close(got: float, want: float) -> bool:
    return got == want or abs(got - want) <= ATOL + RTOL * abs(want) or (math.isnan(got) and math.isnan(want))
