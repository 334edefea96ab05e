"""Element types: the six that arrays may have, and what comes out when they meet.

The types form a ladder, and a result takes the higher rung: bool < uint8 < int32 < int64 < float32 < float64.  That is
NumPy 2's table, but for one exception: float32 with integers of any size stays float32.
A number (Python's or NumPy's) never widens an array: it only lifts it to its own kind, bool < integer < float.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, DTypeError, describe

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")  # from the lowest rung of the ladder to the highest
FLOATS = ("float32", "float64")
DEFAULT = "float32"

_RUNG = {name: rung for rung, name in enumerate(DTYPES)}
_NUMPY = {name: np.dtype(name) for name in DTYPES}
_LIMITS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in ("uint8", "int32", "int64")}
_NAMES: dict[Any, str] = {name: name for name in DTYPES}  # every spelling met so far
_NAMES.update({dtype: name for name, dtype in _NUMPY.items()})
_NAMES.update({dtype.type: name for name, dtype in _NUMPY.items()})

Scalar = bool | int | float | np.generic


def dtype_name(dtype: Any, op: str = "dtype") -> str:
    """The name of a dtype given as a name, a NumPy dtype or a type; None is "float32".  DTypeError for any other."""
    if dtype is None:
        return DEFAULT
    try:
        return _NAMES[dtype]
    except (KeyError, TypeError):
        pass
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = ""
    if name not in _RUNG:
        raise DTypeError(f"{op}: got {describe(dtype)} as a dtype, wanted one of {', '.join(sorted(DTYPES))}")
    return name


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype object of that name."""
    return _NUMPY[name]


def promote(a: str, b: str) -> str:
    """The dtype that an operator on arrays of dtypes a and b computes in."""
    return a if a == b or _RUNG[a] >= _RUNG[b] else b


def promote_to_compare(a: str, b: str) -> str:
    """The dtype to compare in: as `promote`, but float64 where float32 would blur large integers."""
    if a == b:
        return a
    both = promote(a, b)
    return "float64" if both == "float32" and {a, b} & {"int32", "int64"} else both


def promote_scalar(dtype: str, scalar: Scalar) -> str:
    """The dtype of an array of that dtype with a number: only a number of a higher kind changes it."""
    if dtype in FLOATS or isinstance(scalar, (bool, np.bool_)):
        return dtype
    if isinstance(scalar, (int, np.integer)):
        return to_number(dtype)
    return DEFAULT


def to_float(dtype: str) -> str:
    """What float functions, true division and means give: the dtype itself if it is a float, else float32."""
    return dtype if dtype in FLOATS else "float32"


def to_sum(dtype: str) -> str:
    """What sums and products give: the dtype itself if it is a float, else int64."""
    return dtype if dtype in FLOATS else "int64"


def to_number(dtype: str) -> str:
    """What powers, floor divisions and remainders give: the dtype itself, but int64 for bool."""
    return "int64" if dtype == "bool" else dtype


def scalar_to_compare(dtype: str, scalar: Scalar) -> str:
    """The dtype in which an array of that dtype is compared with a number, so that no integer is blurred."""
    if dtype in FLOATS:
        return dtype
    both = promote_scalar(dtype, scalar)
    blurred = both == "float32" and dtype in _LIMITS
    return "float64" if blurred or (both in _LIMITS and not fits(int(scalar), both)) else both


def is_bool(value: Any) -> bool:
    """Whether value is a truth value or an array of them."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool"


def is_scalar(value: Any) -> bool:
    """Whether value is a single real number: Python's, NumPy's, or a NumPy array of rank 0."""
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"


def fits(value: int, dtype: str) -> bool:
    """Whether the integer type can hold value."""
    low, high = _LIMITS[dtype]
    return low <= value <= high


def cast_scalar(value: Any, dtype: str, op: str) -> bool | int | float:
    """The Python number that an array of that dtype holds when value is put into it.

    Floats are cut towards zero on the way to integers.  ArgumentError if an integer type cannot hold the value.
    """
    if type(value) is float and dtype in FLOATS:
        return value
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError  # float("3") would be a number
        if dtype in FLOATS:
            return float(value)
        if dtype == "bool":
            return bool(value)
        number = int(value)
    except (TypeError, ValueError, OverflowError) as error:
        kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
        raise kind(f"{op}: got {describe(value)}, wanted a number that {dtype} can hold") from None
    if not fits(number, dtype):
        raise ArgumentError(f"{op}: {number} is out of range for {dtype}; use .astype to choose a wider type")
    return number


def wrap_around(value: int, dtype: str) -> int:
    """The integer that value becomes in the modular arithmetic of an integer type: 256 is 0 in uint8."""
    low, high = _LIMITS[dtype]
    return (value - low) % (high - low + 1) + low


def cast_numpy(array: np.ndarray, dtype: str, op: str = "array") -> np.ndarray:
    """A C-contiguous array of the given dtype with array's values, itself where nothing has to change.

    DTypeError for what is not a real number; ArgumentError for integers that float32 cannot hold exactly.
    """
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{op}: dtype {array.dtype}, wanted one of {', '.join(sorted(DTYPES))}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.asarray(array, dtype=_NUMPY[dtype], order="C")
    if dtype == "float32" and array.dtype.kind in "iu" and not _held_exactly(array, cast):
        raise ArgumentError(f"{op}: integers that float32 cannot hold exactly; say dtype='int64', or give floats")
    return cast


def _held_exactly(integers: np.ndarray, floats: np.ndarray) -> bool:
    if integers.itemsize <= 2 or integers.size == 0 or max(-int(integers.min()), int(integers.max())) <= 2**24:
        return True  # float32 has 24 significant bits
    inside = (floats < 2.0**63) & (floats >= -(2.0**63))
    return bool(inside.all()) and bool((floats.astype(np.int64) == integers).all())


def minus_one(dtype: str) -> int:
    """The number by which a product is the negative, in modular arithmetic for integers."""
    return wrap_around(-1, dtype) if dtype in _LIMITS else -1


def negated(scalar: Scalar, dtype: str, op: str) -> int | float:
    """The number to add to an array of that dtype in order to subtract scalar from it."""
    dtype = promote_scalar(dtype, scalar)
    value = cast_scalar(scalar, dtype, op)
    return wrap_around(-value, dtype) if dtype in _LIMITS else -value  # type: ignore[arg-type]
