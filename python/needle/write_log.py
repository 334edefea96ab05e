"""A clock of in-place writes, by which `backward` notices that a value it needs has been changed.

Nothing is stored per tensor: a node remembers the time of its making, a write remembers when it happened.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .errors import GraphError

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


def check_unchanged(node: Any) -> None:
    """Raise if a value that node's gradient may read was changed after node was made."""
    for x in node.inputs:
        changed = x.changed_at > node.made_at or (node.op.reads_inputs and _written(x) > node.made_at)
        if x.rewired_at > node.made_at or (node.op.reads_inputs and changed):
            raise GraphError(f"backward: an input of {node.op.name} was changed in place after it was used")
    if node.op.reads_output and max(node.changed_at, _written(node)) > node.made_at:
        raise GraphError(f"backward: the result of {node.op.name} was changed in place after it was made")


def _written(value: Any) -> int:
    data = value.cached_data
    return max(map(last_write, data)) if isinstance(data, tuple) else last_write(data)
