"""Where time goes, where the first NaN comes from, how much memory is held.

with needle.profile.Profile() as p:
    model(x).backward()
print(p)                            # a row per operator
p.save_chrome_trace("step.json")    # open in chrome://tracing or ui.perfetto.dev

with needle.profile.detect_anomaly():
    loss(model(x), y).backward()    # raises at the operator that makes the first NaN or infinity
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import autograd
from .autograd import Op, Value
from .errors import NeedleError
from .execution import execution_hook

__all__ = ["AnomalyError", "Event", "Memory", "Profile", "Row", "detect_anomaly", "memory"]

# ---- time ------------------------------------------------------------------------------------------------------------


class Event(NamedTuple):
    """One pass of an operator; times in nanoseconds."""

    name: str
    phase: str  # "forward" or "backward"
    start: int
    duration: int
    nbytes: int  # of all inputs and results of a forward pass
    shapes: str
    inside: bool  # made by the backward pass of another operator, in whose duration this one is contained
    thread: int


class Row(NamedTuple):
    """All passes of the operators of one name; times in seconds."""

    name: str
    calls: int
    forward: float
    backward: float
    nbytes: int


class Profile:
    """Times every operator, forward and backward, inside a `with` block; printed, it is a table, the slowest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.seconds = 0.0  # inside the block
        self._inside = threading.local()

    def __enter__(self) -> Profile:
        self._watching = execution_hook(self._watch)
        self._watching.__enter__()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.seconds += time.perf_counter() - self._start
        self._watching.__exit__(*exc_info)

    def _watch(self, phase: str, op: Op, inputs: Sequence[Value], call: Callable[[], Any]) -> Any:
        """The hook: run the pass and note it."""
        inside = getattr(self._inside, "backward", False)
        self._inside.backward = inside or phase == "backward"
        start = time.perf_counter_ns()
        try:
            result = call()
        finally:
            self._inside.backward = inside
        duration = time.perf_counter_ns() - start
        arrays = [a for x in inputs for a in _arrays(x.cached_data)]
        results = list(_arrays(result)) if phase == "forward" else []
        nbytes = sum(map(_nbytes, arrays + results)) if phase == "forward" else 0
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        self.events.append(Event(op.name, phase, start, duration, nbytes, shapes, inside, threading.get_ident()))
        return result

    def rows(self) -> list[Row]:
        """A row per operator, the slowest first.

        An operator that runs inside the backward pass of another counts there and nowhere else.
        """
        rows: dict[str, Row] = {}
        for event in self.events:
            if event.inside:
                continue
            row = rows.get(event.name, Row(event.name, 0, 0.0, 0.0, 0))
            seconds = event.duration / 1e9
            if event.phase == "forward":
                row = row._replace(calls=row.calls + 1, forward=row.forward + seconds, nbytes=row.nbytes + event.nbytes)
            else:
                row = row._replace(backward=row.backward + seconds)
            rows[event.name] = row
        return sorted(rows.values(), key=lambda row: -(row.forward + row.backward))

    def __str__(self) -> str:
        rows = self.rows()
        spent = sum(row.forward + row.backward for row in rows)
        width = max([len("operator"), *(len(row.name) for row in rows)])
        lines = [
            f"{'operator':{width}}  {'calls':>7}  {'forward ms':>10}  {'backward ms':>11}  {'share':>6}  {'MB':>9}"
        ]
        for row in rows:
            share = (row.forward + row.backward) / spent if spent else 0.0
            lines.append(
                f"{row.name:{width}}  {row.calls:>7}  {row.forward * 1e3:>10.3f}  {row.backward * 1e3:>11.3f}  "
                f"{share:>6.1%}  {row.nbytes / 1e6:>9.2f}"
            )
        total = f"{spent * 1e3:.3f} ms in operators of {self.seconds * 1e3:.3f} ms; MB: inputs and results, forward"
        return "\n".join([*lines, total])

    def chrome_trace(self) -> dict[str, Any]:
        """The events in Chrome's trace format: nested bars over time.  (Trace Event Format, Google)"""
        origin = min((event.start for event in self.events), default=0)
        threads = {ident: i for i, ident in enumerate(dict.fromkeys(event.thread for event in self.events))}
        return {
            "displayTimeUnit": "ms",
            "traceEvents": [
                {
                    "name": event.name if event.phase == "forward" else f"{event.name} backward",
                    "cat": event.phase,
                    "ph": "X",
                    "ts": (event.start - origin) / 1e3,
                    "dur": event.duration / 1e3,
                    "pid": os.getpid(),
                    "tid": threads[event.thread],
                    "args": {"inputs": event.shapes, "bytes": event.nbytes},
                }
                for event in sorted(self.events, key=lambda event: event.start)
            ],
        }

    def save_chrome_trace(self, path: str | Path) -> Path:
        """Write the events as JSON for chrome://tracing or ui.perfetto.dev."""
        Path(path).write_text(json.dumps(self.chrome_trace()), encoding="utf-8")
        return Path(path)


# ---- anomalies -------------------------------------------------------------------------------------------------------


class AnomalyError(NeedleError, FloatingPointError):
    """An operator made a NaN or an infinity."""


class _Detector:
    """Looks at every result and remembers where each operator was called."""

    def __init__(self, inf: bool) -> None:
        self.inf = inf
        self.called: weakref.WeakKeyDictionary[Op, str] = weakref.WeakKeyDictionary()
        self.backward: list[Op] = []  # whose backward pass runs now

    def watch(self, phase: str, op: Op, inputs: Sequence[Value], call: Callable[[], Any]) -> Any:
        with np.errstate(all="ignore"):  # NumPy's warning would only come before our own message
            if phase == "forward":
                return self._forward(op, inputs, call)
            return self._backward(op, inputs, call)

    def _forward(self, op: Op, inputs: Sequence[Value], call: Callable[[], Any]) -> Any:
        if not self.backward:
            self.called[op] = _call_site()
        result = call()
        self._check_forward(op, inputs, result)
        return result

    def _backward(self, op: Op, inputs: Sequence[Value], call: Callable[[], Any]) -> Any:
        self.backward.append(op)
        try:
            result = call()
            self._check_backward(op, inputs, result)
        finally:
            self.backward.pop()
        return result

    def _check_forward(self, op: Op, inputs: Sequence[Value], result: Any) -> None:
        came = [_trouble(a) for x in inputs for a in _arrays(x.cached_data)]
        for array in _arrays(result):
            made = _trouble(array)
            if made == "nan" and "nan" in came:
                number = came.index("nan")
                raise self._error(op, inputs, f"nan came in with input {number}; no operator in this block made it")
            if made == "nan" or (made == "inf" and self.inf and "inf" not in came):
                raise self._error(op, inputs, f"made {_where(array)}")

    def _check_backward(self, op: Op, inputs: Sequence[Value], result: Any) -> None:
        grads = result if isinstance(result, (tuple, list)) else (result,)
        for number, grad in enumerate(grads):
            for array in _arrays(getattr(grad, "cached_data", None)):
                made = _trouble(array)
                if made == "nan" or (made == "inf" and self.inf):
                    raise self._error(op, inputs, f"the gradient of input {number} holds {_where(array)}")

    def _error(self, op: Op, inputs: Sequence[Value], what: str) -> AnomalyError:
        came = ", ".join(_summary(a) for x in inputs for a in _arrays(x.cached_data))
        outer = self.backward[0] if self.backward else None
        if outer is None:
            return AnomalyError(f"{op.name}: forward {what}; inputs: {came}; called at {self.called.get(op, '?')}")
        inner = "" if op is outer else f"{op.name} "
        site = self.called.get(outer, "a place outside this block")
        return AnomalyError(f"{outer.name}: backward: {inner}{what}; inputs: {came}; called at {site}")


def detect_anomaly(*, inf: bool = True) -> contextlib.AbstractContextManager[None]:
    """Raise AnomalyError where the first NaN or infinity comes about in the block, forward or backward.

    The message names the operator, the shapes and ranges of its inputs, the first bad entry and the line that called
    the operator.  inf=False lets infinities pass, for code that means them.  Everything gets slower: for debugging.
    """
    return execution_hook(_Detector(inf).watch)


def _trouble(array: Any) -> str:
    """The worst that array holds: "nan", "inf" or nothing."""
    values = _numpy(array)
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return ""
    return "nan" if np.isnan(values).any() else "inf"


def _where(array: Any) -> str:
    values = _numpy(array)
    bad = ~np.isfinite(values)
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(bad)))[: values.ndim]
    return (
        f"{float(values[first])} in {int(bad.sum())} of {values.size} entries, first at {first}, shape {values.shape}"
    )


def _summary(array: Any) -> str:
    values = _numpy(array)
    span = f" from {values.min():.4g} to {values.max():.4g}" if values.size else ""
    return f"{values.shape} {values.dtype}{span}"


def _call_site() -> str:
    """The line outside needle that is running now: file, line number, function and text."""
    package = str(Path(__file__).parent) + os.sep
    frame = sys._getframe(1)
    while frame.f_back is not None and _inside_machinery(frame.f_code.co_filename, package):
        frame = frame.f_back
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    text = text if len(text) <= 80 else text[:79] + "…"
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}" + (f": {text}" if text else "")


def _inside_machinery(filename: str, package: str) -> bool:
    return filename.startswith(package) or filename == contextlib.__file__


# ---- memory ----------------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """How much is held now; None where this machine cannot tell."""

    tensors: int  # live Values of the graph
    kernel_bytes: int | None  # live storage of the native typed kernels
    resident_bytes: int | None  # of the process
    peak_resident_bytes: int | None  # the most so far

    def __str__(self) -> str:
        parts = [f"{self.tensors} tensors"]
        for name, count in (("in kernels", self.kernel_bytes), ("resident", self.resident_bytes)):
            parts += [f"{count / 2**20:.1f} MiB {name}"] if count is not None else []
        if self.peak_resident_bytes is not None:
            parts.append(f"peak {self.peak_resident_bytes / 2**20:.1f} MiB")
        return ", ".join(parts)


def memory() -> Memory:
    """Live tensors, bytes of native storage, and the memory of the process."""
    resident, peak = _resident_bytes(), _peak_resident_bytes()
    if resident is not None and peak is not None:
        peak = max(peak, resident)  # the system notes the peak now and then only
    return Memory(autograd.TENSOR_COUNTER, _kernel_bytes(), resident, peak)


def _kernel_bytes() -> int | None:
    module = sys.modules.get("needle.backend_ndarray.kernels_cpu")
    return module.allocated_bytes() if module is not None else None


def _resident_bytes() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])  # Linux alone tells without another package
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _peak_resident_bytes() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes on macOS, KiB elsewhere


# ---- arrays of either backend ----------------------------------------------------------------------------------------


def _arrays(data: Any) -> Sequence[Any]:
    return () if data is None else data if isinstance(data, tuple) else (data,)


def _numpy(array: Any) -> np.ndarray:
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


def _nbytes(array: Any) -> int:
    return int(array.size) * np.dtype(str(array.dtype)).itemsize
