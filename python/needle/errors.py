"""The exceptions that needle raises: each says who complains, what came and what was wanted."""

from __future__ import annotations


class NeedleError(Exception):
    """Base of needle's own exceptions."""


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
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{kind} of shape {tuple(value.shape)}, {value.dtype}"
    text = " ".join(repr(value).split())
    return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"
