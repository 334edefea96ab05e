"""One peer in a process of its own: reads requests from standard input, a JSON document a line, and answers likewise.

python -m benchmarks.worker torch:fused 2
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .peers import Absent, Work

STEPS_FOR_MEMORY = 3
LONG = 0.1  # seconds of a call beside which waking threads is nothing


def main() -> None:
    peer, threads = sys.argv[1], int(sys.argv[2])
    out, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not spoil the answers
    server: Server | None = None
    for line in sys.stdin:
        try:
            server = server or Server(peer, threads)
            request = json.loads(line)
            answer = getattr(server, request.pop("do"))(**request)
        except (Absent, ImportError) as absence:
            answer = {"absent": str(absence)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


class Server:
    """Each method answers one kind of request."""

    def __init__(self, peer: str, threads: int) -> None:
        name, _, variant = peer.partition(":")
        self.peer: ModuleType = importlib.import_module(f"benchmarks.peers.with_{name}")
        self.peer.set_up(variant, threads)
        self.work: Work | None = None
        self.calls, self.once = 0, 0.0  # in a turn; seconds of one

    def facts(self) -> dict[str, str]:
        return self.peer.facts()

    def prepare(self, kind: str, sizes: dict[str, Any], save: str, weights: str = "") -> dict[str, Any]:
        """Make the task ready, write its answer to a file; from the weights in another file, if one is named."""
        self.work, self.calls, self.once = None, 0, 0.0
        if weights and (given := _weights(Path(weights))) and self.peer.__name__.endswith("torch"):
            sizes = {**sizes, "weights": given}
        self.work = self._build(kind, sizes)
        np.savez(save, **self.work.answer())
        return {}

    def _build(self, kind: str, sizes: dict[str, Any]) -> Work:
        if (function := getattr(self.peer, kind, None)) is None:
            raise Absent(f"knows no {kind}")
        return function(**sizes)

    def turn(self, seconds: float) -> dict[str, float]:
        """Call for about so long; a call before, which does not count, wakes the threads if that can matter."""
        assert self.work is not None
        run = self.work.run
        if self.once < LONG:
            _timed(run, 1)
        if not self.calls:
            self.once = _timed(run, 1)
            self.calls = max(1, min(int(seconds / max(self.once, 1e-7)), 20000))
        return {"seconds": _timed(run, self.calls), "calls": self.calls}

    def memory(self, sizes: dict[str, Any]) -> dict[str, float]:
        """Bytes that training steps add, at most, to what this process holds before the first of them."""
        warm = self.peer.smaller_step(sizes)
        for _ in range(2):
            warm.run()
        del warm
        gc.collect()
        work = self._build("step", sizes)
        start = reset_peak()
        for _ in range(STEPS_FOR_MEMORY):
            work.run()
        return {"bytes": max(1, status("VmHWM") - start)}  # a ratio of nothing to nothing is none


def _timed(run: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def _weights(path: Path) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [arrays[name] for name in sorted(arrays.files) if name.startswith("weights/")]


# ---- memory, as Linux tells it --------------------------------------------------------------------------------------


def reset_peak() -> int:
    """Let the peak begin again at what is held now, which is returned in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        raise Absent("the peak of memory can be measured on Linux only") from error
    return status("VmRSS")


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
