"""The executor: the one place where an operator meets arrays, and whether a graph is being recorded meanwhile."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import kernels
from .errors import ArgumentError, ArgumentTypeError, DTypeError, NeedleError, ShapeError, describe

# ---- recording -------------------------------------------------------------------------------------------------------


class _State(threading.local):
    """What each thread has for itself."""

    def __init__(self) -> None:
        self.recording = True
        self.forgetting = False  # is an inner node's gradient dropped as soon as it has been passed on to its inputs?
        self.outer: list[bool] = []  # what to go back to, the innermost block last


state = _State()


def is_recording() -> bool:
    """True if operators build a graph now."""
    return state.recording


class recording(contextlib.ContextDecorator):
    """Switch the building of graphs on or off for a block, or, as a decorator, for a function."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __enter__(self) -> recording:
        state.outer.append(state.recording)  # not in self: a decorator is one object for all threads
        state.recording = self.on
        return self

    def __exit__(self, *exc_info: object) -> None:
        state.recording = state.outer.pop()


def no_grad() -> recording:
    """Compute values only: inside the block no graph is built and results require no gradient."""
    return recording(False)


def enable_grad() -> recording:
    """Build graphs again inside a `no_grad` block."""
    return recording(True)


@contextlib.contextmanager
def forgetting(on: bool) -> Iterator[None]:
    """Whether a walk drops gradients on its way; never in mode "course": a learner's walk may look at them again."""
    before, state.forgetting = state.forgetting, on and kernels.mode() == "fast"
    try:
        yield
    finally:
        state.forgetting = before


# ---- forward and backward --------------------------------------------------------------------------------------------


def forward(op: Any, inputs: Sequence[Any]) -> Any:
    """The value of op on inputs, which are Values; hooks may watch."""
    if _hooks:
        return _hooked("forward", op, inputs, functools.partial(_forward, op, inputs))
    return _forward(op, inputs)


def _forward(op: Any, inputs: Sequence[Any]) -> Any:
    """By a whole operation from the registry if one fits, else by op.compute."""
    arrays = []
    for x in inputs:
        arrays.append(x.realize_cached_data())
    try:
        twin = kernels.whole_pass("forward", type(op), arrays[0]) if arrays else None
        if twin is not None:
            result = twin(op, *arrays)
            if result is not NotImplemented:
                return result
        if len(arrays) == 2:  # as it mostly is, and spelled out it is faster
            return op.compute(arrays[0], arrays[1])
        return op.compute(*arrays)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        if str(error).startswith(op.name):
            raise
        raise explained(op.name, arrays, error) from error


def backward(op: Any, out_grad: Any, node: Any) -> Any:
    """The gradients of node's inputs, given that of node, which op made; hooks may watch."""
    if _hooks:
        return _hooked("backward", op, node.inputs, functools.partial(_backward, op, out_grad, node))
    return _backward(op, out_grad, node)


def _backward(op: Any, out_grad: Any, node: Any) -> Any:
    """By a whole operation if one fits and nothing records, since its result has no graph; else by op.gradient."""
    if not state.recording:
        twin = kernels.whole_pass("backward", type(op), node.cached_data)
        if twin is not None:
            grads = twin(op, out_grad, node)
            if grads is not NotImplemented:
                return grads
    return op.gradient(out_grad, node)


def explained(name: str, arrays: Sequence[Any], error: Exception) -> Exception:
    """The error of an array library again, saying which operator met which arrays."""
    if isinstance(error, NeedleError):
        return type(error)(f"{name}: {error}")
    if isinstance(error, ValueError):  # NumPy's AxisError is one, too
        kind: type[Exception] = ShapeError
    elif isinstance(error, (IndexError, OverflowError)):
        kind = IndexError if isinstance(error, IndexError) else ArgumentError
    else:
        kind = DTypeError if isinstance(error, TypeError) else ArgumentTypeError
    return kind(f"{name}: {', '.join(map(describe, arrays))}: {error}")


# ---- watchers --------------------------------------------------------------------------------------------------------

Hook = Callable[[str, Any, Sequence[Any], Callable[[], Any]], Any]
_hooks: list[Hook] = []  # watchers of the executor (a profile, a search for NaN); each calls on, as it likes


@contextlib.contextmanager
def execution_hook(hook: Hook) -> Iterator[None]:
    """Let hook(phase, op, inputs, call) run around every forward and backward pass of an operator in the block."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)


def _hooked(phase: str, op: Any, inputs: Sequence[Any], call: Callable[[], Any]) -> Any:
    for hook in _hooks:
        call = functools.partial(hook, phase, op, inputs, call)
    return call()
