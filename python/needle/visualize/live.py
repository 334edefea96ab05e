"""Which tensors are alive, how many bytes they hold, which share storage, and who keeps them."""

from __future__ import annotations

import gc
import inspect
import itertools
import math
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import write_log
from ..autograd import Gradient, Value

STEPS = 6  # how many containers are followed from a tensor to a variable: model → list of layers → layer → tensor
LISTED = 12  # rows of a section of the text


@dataclass(frozen=True)
class LiveTensor:
    """One tensor that is alive."""

    shape: tuple[int, ...]
    dtype: str
    kind: str  # "variable", "constant", "gradient", or the name of the operator that made it
    nbytes: int  # of its elements, as if it had them for itself
    storage: int  # the number of its storage in the report; tensors with the same number share memory
    held_by: tuple[str, ...]  # who refers to it

    def __str__(self) -> str:
        return f"{self.kind} {self.shape} {self.dtype}"


@dataclass(frozen=True)
class LiveReport:
    """All live tensors; `print(report)` shows it as tables."""

    tensors: list[LiveTensor]
    storages: dict[int, int] = field(repr=False)  # {number: bytes} of the distinct storages behind them

    @property
    def nbytes(self) -> int:
        """Bytes of all storages, each counted once."""
        return sum(self.storages.values())

    def by_shape(self) -> list[tuple[tuple[int, ...], str, int, int]]:
        """(shape, dtype, tensors, bytes of the storages that no earlier row has), the most bytes first."""
        groups: dict[tuple[tuple[int, ...], str], list[LiveTensor]] = {}
        for tensor in sorted(self.tensors, key=lambda t: -t.nbytes):
            groups.setdefault((tensor.shape, tensor.dtype), []).append(tensor)
        rows: list[tuple[tuple[int, ...], str, int, int]] = []
        counted: set[int] = set()
        for (shape, dtype), tensors in groups.items():
            fresh = {t.storage for t in tensors} - counted
            counted |= fresh
            rows.append((shape, dtype, len(tensors), sum(self.storages[s] for s in fresh)))
        return sorted(rows, key=lambda row: -row[3])

    def shared(self) -> dict[int, list[LiveTensor]]:
        """{storage: the tensors on it} where there are several: views, detached copies, `.data`."""
        groups: dict[int, list[LiveTensor]] = {}
        for tensor in self.tensors:
            groups.setdefault(tensor.storage, []).append(tensor)
        return {storage: tensors for storage, tensors in groups.items() if len(tensors) > 1}

    def __str__(self) -> str:
        head = f"{len(self.tensors)} live tensors, {_bytes(self.nbytes)} in {len(self.storages)} storages"
        rows = [(str(s), d, str(n), _bytes(b)) for s, d, n, b in self.by_shape()]
        parts = [head, *_section(("shape", "dtype", "tensors", "bytes"), rows)]
        shared = [(f"{_bytes(self.storages[s])}", ", ".join(map(str, ts))) for s, ts in self.shared().items()]
        if shared:
            parts += ["", "share one storage", *_section(("bytes", "tensors"), shared)]
        biggest = sorted(self.tensors, key=lambda t: -t.nbytes)
        parts += ["", "kept alive by", *_section(("tensor", "by"), [(str(t), "; ".join(t.held_by)) for t in biggest])]
        return "\n".join(parts)


def live_tensors(*, holders: bool = True) -> LiveReport:
    """Find every live tensor.

    holders=False leaves out who refers to each, which takes most of the time (a second or two in a big program).
    """
    everything = gc.get_objects()
    values = [v for v in everything if issubclass(type(v), Value)]  # isinstance would wake proxies of dead objects
    values = [v for v in values if "cached_data" in v.__dict__]  # an error may keep one whose making failed
    held = _Holders(values, everything).describe() if holders else {}
    numbers: dict[int, int] = {}  # id of a storage → its number
    storages: dict[int, int] = {}
    tensors = []
    for value in values:
        for array in _arrays(value):
            owner = write_log.storage(array)
            number = numbers.setdefault(id(owner), len(numbers))
            storages[number] = _storage_bytes(owner, array)
            shape, nbytes = tuple(array.shape), math.prod(array.shape) * _itemsize(array)
            names = tuple(held.get(id(value), ()))
            tensors.append(LiveTensor(shape, str(array.dtype), _kind(value), nbytes, number, names))
    return LiveReport(tensors, storages)


def _arrays(value: Value) -> Sequence[Any]:
    data = value.cached_data
    return () if data is None else data if isinstance(data, tuple) else (data,)


def _kind(value: Value) -> str:
    if isinstance(value, Gradient):
        return "gradient"
    if value.op is not None:
        return value.op.name
    return "variable" if value.requires_grad else "constant"


def _itemsize(array: Any) -> int:
    return np.dtype(str(array.dtype)).itemsize


def _storage_bytes(owner: Any, array: Any) -> int:
    return owner.nbytes if isinstance(owner, (np.ndarray, np.generic)) else owner.size * _itemsize(array)


# ---- who refers to whom ----------------------------------------------------------------------------------------------


ATTRIBUTES = "\0"  # stands in a path for "the dict of the attributes of"


class _Holders:
    """Follows references backwards from tensors, through containers, to the names of variables."""

    def __init__(self, values: Sequence[Value], everything: Sequence[Any]) -> None:
        self.values = {id(v): v for v in values}
        self.everything = everything  # taken before our own containers came about, so that they are not in it
        self.skipped = {id(part) for v in values for part in (v, v.__dict__, v.__dict__.get("inputs"))}
        self.links: dict[int, list[tuple[Any, str]]] = {}  # id of an object → (holder, how it reaches the object)
        self.named: dict[int, list[str]] = {}  # id of an object → the variables that are it
        self.opened: dict[
            int, dict
        ] = {}  # id → attributes of objects that were looked at, which moves them into a dict

    def describe(self) -> dict[int, list[str]]:
        """{id of a tensor: what refers to it}."""
        self._variables()
        self._graph()
        frontier: dict[int, Any] = dict(self.values)
        followed = set(frontier)
        for _ in range(STEPS):
            holders = self._holders_of(frontier)
            frontier = {key: x for key, x in holders.items() if key not in followed and key not in self.named}
            followed |= set(frontier)
        return {key: self._paths_to(key) or ["an object out of sight"] for key in self.values}

    def _variables(self) -> None:
        """Global variables of modules, and local ones of the functions that are running."""
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType):
                self._name(vars(module), "" if module.__name__ == "__main__" else f"{module.__name__}.")
        frames: list[types.FrameType | None] = list(sys._current_frames().values())
        while frames:  # emptied, since a frame that we kept would keep us
            frame = frames.pop()
            while frame is not None:
                if frame.f_globals is not globals() and frame.f_locals is not frame.f_globals:
                    variables = frame.f_locals
                    self._name(variables, f"{frame.f_code.co_name}(): ")
                    if isinstance(variables, dict) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                        variables.clear()  # before Python 3.13 this is a copy that the frame would keep
                frame = frame.f_back

    def _name(self, variables: Mapping[str, Any], prefix: str) -> None:
        if isinstance(variables, dict):
            self.skipped.add(id(variables))
        for name, value in list(variables.items()):
            self.named.setdefault(id(value), []).append(prefix + name)

    def _graph(self) -> None:
        """What tensors hold: inputs and gradients."""
        for value in self.values.values():
            made = f"{_kind(value)} {_shape(value)}"
            for child in value.__dict__.get("inputs") or ():
                self.links.setdefault(id(child), []).append((value, f"input of {made}"))
            if isinstance(grad := value.__dict__.get("grad"), Value):
                self.links.setdefault(id(grad), []).append((value, f".grad of {made}"))

    def _holders_of(self, objects: Mapping[int, Any]) -> dict[int, Any]:
        """{id: holder} of all that refers to the objects, by one pass over the heap; links are noted."""
        holders = {}
        for holder in self.everything if objects else ():
            if id(holder) in self.skipped or isinstance(holder, (types.FrameType, types.ModuleType)):
                continue
            referents = gc.get_referents(holder)
            if id(holder) in self.opened:
                referents += list(self.opened[id(holder)].values())
            for x in referents:
                if id(x) in objects:
                    self.links.setdefault(id(x), []).append((holder, self._step(holder, x)))
                    holders[id(holder)] = holder
        return holders

    def _step(self, holder: Any, x: Any) -> str:
        """How x is reached from holder: [3], ['w'], .weight."""
        if isinstance(holder, dict):
            return next((f"[{key!r}]" for key, value in list(holder.items()) if value is x), "[…]")
        if isinstance(holder, (list, tuple)):
            return next((f"[{i}]" for i, value in enumerate(holder) if value is x), "[…]")
        if isinstance(holder, types.CellType):
            return ""
        if isinstance(holder, types.FunctionType):
            return f" {holder.__qualname__}: variables of its surroundings"
        if isinstance(holder, types.GeneratorType):
            return f" {holder.__qualname__}, which waits"
        names = getattr(holder, "__dict__", None)
        if not isinstance(names, dict):  # a set, a queue, an object of slots, or one that makes up attributes
            return " …"
        self.opened[id(holder)] = names
        if x is names:
            return ATTRIBUTES
        return next((f".{name}" for name, value in list(names.items()) if value is x), " …")

    def _paths_to(self, key: int) -> list[str]:
        found = dict.fromkeys(itertools.islice(self._paths(key, STEPS), 4))  # the first few; a hub may have thousands
        return [re.sub(ATTRIBUTES + r"\['(.*?)'\]", r".\1", path).replace(ATTRIBUTES, "") for path in found]

    def _paths(self, key: int, steps: int) -> Iterator[str]:
        yield from self.named.get(key, ())
        for holder, step in self.links.get(key, ()):
            if id(holder) in self.values:
                yield step
                continue
            outer = list(itertools.islice(self._paths(id(holder), steps - 1), 4)) if steps else []
            yield from (path + step for path in outer or [type(holder).__name__])


def _shape(value: Value) -> str:
    return " and ".join(str(tuple(a.shape)) for a in _arrays(value))


# ---- text ------------------------------------------------------------------------------------------------------------


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def _section(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    shown = [head, *rows[:LISTED]]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    for row in shown:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    if len(rows) > LISTED:
        yield f"  … and {len(rows) - LISTED} more"
