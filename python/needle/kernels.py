"""The registry: which function computes what, where, in which dtype.

Two tables.  *Device kernels*, keyed (name, device, dtype), work on flat storage; NDArray asks for them.
*Whole operations*, keyed (class, device, dtype), replace the forward or the backward pass of an Op, the forward of a
Module or the step of an Optimizer; the executor asks, in one place, and an entry may decline with NotImplemented.

In mode "course" the whole operations and the fast twins of the course's own kernels are left out, so that the
learner's code is what runs.  In mode "fast" everything registered may run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from .defaults import KERNELS as DEFAULT_MODE
from .errors import ArgumentError

MODES = ("course", "fast")


class Operation(NamedTuple):
    """A fast forward and backward pass of one class; either may be absent."""

    forward: Callable | None
    backward: Callable | None


_plain: dict[tuple[str, str, str], Callable] = {}
_fast: dict[tuple[str, str, str], Callable] = {}
_best: dict[tuple[str, str, str], Callable] = {}  # the fast twin where there is one, else the plain kernel
_operations: dict[tuple[type, str, str], Operation] = {}
# classes with such a pass, so that the others are passed over by one look-up
_classes: dict[str, set[type]] = {"forward": set(), "backward": set()}


def _checked(mode: str) -> str:
    if mode not in MODES:
        raise ArgumentError(f"kernels.use: mode {mode!r}, wanted one of {MODES}")
    return mode


def _set(mode: str) -> None:
    """Put a mode in force, and with it the table in which `device_kernel` looks."""
    global _mode, _in_force
    _mode, _in_force = mode, _best if mode == "fast" else _plain


_mode: str
_in_force: dict[tuple[str, str, str], Callable]
_set(_checked(os.environ.get("NEEDLE_KERNELS") or DEFAULT_MODE))


def mode() -> str:
    """The mode in force: "course" or "fast"."""
    return _mode


class use:
    """Choose the mode, at once; as a context manager, until the block ends: `with kernels.use("course"):`."""

    def __init__(self, mode: str) -> None:
        self._before = _mode
        _set(_checked(mode))

    def __enter__(self) -> use:
        return self

    def __exit__(self, *exc_info: object) -> None:
        _set(self._before)


def register(name: str, device: str, dtype: str, function: Callable, *, fast: bool = False) -> None:
    """Enter a device kernel; `fast` marks a twin that steps aside in mode "course"."""
    key = name, device, dtype
    (_fast if fast else _plain)[key] = function
    _best[key] = _fast.get(key, function)


def device_kernel(name: str, device: str, dtype: str) -> Callable | None:
    """The kernel to call for name on device in dtype, or None if nobody registered one."""
    return _in_force.get((name, device, dtype))


def register_operation(
    cls: type, device: str, dtype: str, *, forward: Callable | None = None, backward: Callable | None = None
) -> None:
    """Enter a whole operation.

    For an Op: forward(op, *arrays) returns an array, backward(op, out_grad, node) what `gradient` would.
    For a Module: forward(module, *args) returns tensors made of ops.  For an Optimizer: forward(optimizer) is a step.
    Each may return NotImplemented to decline.
    """
    entry = _operations[cls, device, dtype] = Operation(forward, backward)
    for which, classes in _classes.items():
        if getattr(entry, which) is not None:
            classes.add(cls)


def whole_pass(which: str, cls: type, array: Any) -> Callable | None:
    """The "forward" or "backward" pass registered for cls on the device and dtype of array, if the mode allows one."""
    if cls not in _classes[which] or _mode == "course":
        return None
    if isinstance(array, tuple):  # what an operator with several results made
        array = array[0]
    device = getattr(array, "device", None)
    entry = _operations.get((cls, getattr(device, "name", "numpy"), str(array.dtype)))
    return None if entry is None else getattr(entry, which)


def operations() -> dict[tuple[type, str, str], Operation]:
    """All whole operations: {(class, device, dtype): entry}."""
    return dict(_operations)


def table() -> str:
    """Both tables as text, a row per kernel: what, device, dtypes, and whether it is a fast twin."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for kind, entries in (("plain", _plain), ("fast", _fast)):
        for name, device, dtype in entries:
            rows.setdefault((name, device, kind), []).append(dtype)
    for (cls, device, dtype), entry in _operations.items():
        passes = " + ".join(p for p in ("forward", "backward") if getattr(entry, p) is not None)
        rows.setdefault((cls.__name__, device, f"whole operation: {passes}"), []).append(dtype)
    lines = [f"mode: {_mode}", f"{'kernel':<24}{'device':<12}{'kind':<38}dtypes"]
    lines += [
        f"{name:<24}{device:<12}{kind:<38}{' '.join(dtypes)}" for (name, device, kind), dtypes in sorted(rows.items())
    ]
    return "\n".join(lines)
