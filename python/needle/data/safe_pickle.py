"""Read arrays out of a pickle without running what the pickle says.

CIFAR's official files are pickles, and a pickle is a program: `pickle.load` calls whatever function it names.  Here a
pickle may name only what ADMITTED lists, and even these are stand-ins of our own that check what they are given:
NumPy's own `dtype` and `ndarray` trust the state that a pickle hands them, down to pointers of Python objects.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import re
from typing import Any

import numpy as np

from .errors import DataFileError
from .paths import existing_file

MAX_BYTES = 256 << 20  # eight times an official CIFAR batch
MAX_MEMO = 1 << 22  # the unpickler allocates its memo up to the highest index that a pickle writes


def load_arrays(path: str | os.PathLike[str], owner: str) -> dict[bytes, Any]:
    """Read a pickled dictionary of NumPy arrays, numbers, bytes and lists of these; its strings come as bytes.

    Admitted are arrays of plain numeric dtypes, written by NumPy 1 or 2 under Python 2 or 3 (pickle protocols 0 to 5).
    `owner` opens the message of the DataFileError that anything else raises.
    """
    path = existing_file(path, owner)
    if path.stat().st_size > MAX_BYTES:
        raise DataFileError(f"{owner}: {path} is larger than {MAX_BYTES >> 20} MiB, the most that is read")
    raw = path.read_bytes()
    try:
        check_memo(raw)
        content = ArrayUnpickler(io.BytesIO(raw), encoding="bytes").load()
        if not isinstance(content, dict):
            raise pickle.UnpicklingError(f"a {type(content).__name__} and no dictionary")
        return {key: unwrap(value) for key, value in content.items()}
    except Exception as error:  # a damaged pickle can raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataFileError(f"{owner}: {path} is not a dictionary of plain arrays ({reason})") from None


def check_memo(raw: bytes) -> None:
    """Refuse memo indices that no honest pickle of this size has; also finds truncation before anything is built."""
    for opcode, index, _ in pickletools.genops(raw):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(index or 0) > MAX_MEMO:
            raise pickle.UnpicklingError(f"memo index {index}")


class ArrayUnpickler(pickle.Unpickler):
    """An Unpickler that knows no name but those of `ADMITTED`."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


class Callee:
    """A function that a pickle may call, and do nothing else with (BUILD would set attributes on a bare function)."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes a function")


class PickledDType:
    """Stands in for a numpy.dtype that is being unpickled: a plain number, in either byte order."""

    __slots__ = ("dtype",)

    def __init__(self, code: str) -> None:
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        _version, order, *rest = state
        if rest[:3] != [None, None, None] or order not in (b"<", b">", b"|", b"=", "<", ">", "|", "="):
            raise pickle.UnpicklingError("a dtype with fields")
        self.dtype = np.dtype(as_text(order) + self.dtype.str[1:])


class PickledArray:
    """Stands in for a numpy.ndarray that is being unpickled; `array` is None until its state has come."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: np.ndarray | None = None

    def __setstate__(self, state: tuple) -> None:
        _version, shape, kind, fortran, raw = state
        self.array = make_array(raw, kind, shape, "F" if fortran else "C")


def as_text(value: bytes | str) -> str:
    """Python 2 wrote text as bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def make_array(raw: bytes, kind: PickledDType, shape: tuple[int, ...], order: str) -> np.ndarray:
    """An array over a copy of `raw`; NumPy refuses a shape that needs more or fewer bytes."""
    return np.frombuffer(raw, kind.dtype).reshape(shape, order=order).copy(order="K")  # type: ignore[call-overload]


def make_dtype(code: bytes | str, *flags: Any) -> PickledDType:
    """numpy.dtype("u1", False, True), for codes of numbers and booleans."""
    code = as_text(code)
    if not re.fullmatch(r"[<>|=]?[biufc]\d{1,2}", code):
        raise pickle.UnpicklingError(f"a dtype {code!r}")
    return PickledDType(code)


def make_empty(kind: Any, shape: tuple, code: Any) -> PickledArray:
    """numpy.core.multiarray._reconstruct(ndarray, (0,), b"b"): an array whose state is to follow."""
    return PickledArray()


def make_from_buffer(
    raw: bytes, kind: PickledDType, shape: tuple[int, ...], order: str, axis_order: tuple[int, ...] | None = None
) -> PickledArray:
    """numpy.core.numeric._frombuffer, which pickles of protocol 5 use; `axis_order` goes with order "K"."""
    made = PickledArray()
    if axis_order is None:
        made.array = make_array(raw, kind, shape, as_text(order))
    else:
        made.array = make_array(raw, kind, shape, "C").transpose(axis_order)
    return made


def make_scalar(kind: PickledDType, raw: bytes) -> Any:
    """numpy.core.multiarray.scalar: one number of NumPy's, such as a label out of an array of labels."""
    return make_array(raw, kind, (), "C")[()]


def encode(text: str, encoding: bytes | str) -> bytes:
    """_codecs.encode(text, "latin1"): how Python 3 writes bytes for protocols that have none."""
    if as_text(encoding) not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in encoding {encoding!r}")
    return text.encode("latin1")


def empty_bytes() -> bytes:
    """bytes(), the other way in which Python 3 writes bytes; with a number it would be a way to fill the memory."""
    return b""


# NumPy 2 renamed numpy.core to numpy._core; Python 2 calls the builtins __builtin__
ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): Callee(make_dtype),
    ("_codecs", "encode"): Callee(encode),
    **{(core + ".multiarray", "_reconstruct"): Callee(make_empty) for core in ("numpy.core", "numpy._core")},
    **{(core + ".multiarray", "scalar"): Callee(make_scalar) for core in ("numpy.core", "numpy._core")},
    **{(core + ".numeric", "_frombuffer"): Callee(make_from_buffer) for core in ("numpy.core", "numpy._core")},
    **{(module, "bytes"): Callee(empty_bytes) for module in ("builtins", "__builtin__")},
}


def unwrap(value: Any) -> Any:
    """Stand-ins become arrays, in a value and in the items of a list or tuple."""
    if isinstance(value, PickledArray):
        if value.array is None:
            raise pickle.UnpicklingError("an array without contents")
        return value.array
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(item) if isinstance(item, PickledArray) else item for item in value)
    return value
