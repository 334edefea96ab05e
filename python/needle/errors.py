"""The exceptions that needle raises: each says who complains, what came and what was wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class NeedleError(Exception):
    """Base of needle's own exceptions.  Their messages are one line, whatever is quoted in them."""

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(str(message).split()))


class ShapeError(NeedleError, ValueError, AssertionError):
    """A shape, an axis or a size does not fit.  (Also an AssertionError: the course promises one.)"""


class DTypeError(NeedleError, TypeError, AssertionError):
    """An element type does not fit."""


class DeviceError(NeedleError, TypeError, ValueError):
    """Arrays live on different devices, or a device is not there."""


class ArgumentError(NeedleError, ValueError, AssertionError):
    """An argument is outside the values that make sense."""


class ArgumentTypeError(NeedleError, TypeError, AssertionError):
    """An argument is of a type that makes no sense."""


class GraphError(NeedleError, RuntimeError):
    """A gradient is asked of a graph that is gone or was changed."""


def describe(value: object) -> str:
    """What came, in a few words: type, shape and dtype if it has them."""
    kind = type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"{kind} of shape {tuple(value.shape)}, {value.dtype}"
    text = " ".join(repr(value).split())
    return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"


# ---- complaints of Python and NumPy, which say neither who asked nor what came ---------------------------------------

COMPLAINTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


def in_the_name_of(name: str, came: Iterable[object], error: Exception) -> Exception:
    """The same complaint as an error of needle, in the name of a function or class, saying what came."""
    if isinstance(error, NeedleError):
        return error if _plain(name) in _plain(str(error)) else type(error)(f"{name}: {error}")
    kind: type[Exception] = ArgumentTypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError
    if isinstance(error, IndexError):
        kind = IndexError  # a promise of its own: code that walks until it falls off relies on it
    return kind(f"{name}: got {', '.join(map(describe, came)) or 'nothing'}: {error}")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def named(function: Function) -> Function:
    """Decorator: complaints from inside come in the name of the function; of the object's class if a constructor."""
    constructor = function.__name__ == "__init__"

    @functools.wraps(function)
    def complaining(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except COMPLAINTS as error:
            name = type(args[0]).__name__ if constructor else function.__name__
            raise in_the_name_of(name, [*args[constructor:], *kwargs.values()], error) from error

    return complaining  # type: ignore[return-value]


class NamesItself:
    """Base of needle's classes whose constructors complain in the name of their class."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        ours = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and "__init__" in vars(cls):
            cls.__init__ = named(cls.__init__)  # type: ignore[method-assign]
