"""A clock of in-place writes, by which `backward` notices that a value it needs has been changed.

Nothing is stored per tensor: a node remembers the time of its making, a write remembers when it happened.
"""

from __future__ import annotations

import weakref

import numpy as np

clock = 0  # ticks at every write; compared, never reset
_last_write: dict[int, tuple[weakref.ref, int]] = {}


def tick() -> int:
    """Move the clock on and return the new time."""
    global clock
    clock += 1
    return clock


def storage(array: object) -> object:
    """The object that owns the memory behind an array: what all its views have in common."""
    if hasattr(array, "_handle"):
        return array._handle
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def note_write(array: object) -> None:
    """Remember that the memory behind array was written just now."""
    owner, forget = storage(array), _last_write.pop
    key = id(owner)
    _last_write[key] = weakref.ref(owner, lambda _: forget(key, None)), tick()


def last_write(array: object) -> int:
    """When the memory behind array was last written in place; 0 if never."""
    if not _last_write:
        return 0
    return _last_write.get(id(storage(array)), (None, 0))[1]
