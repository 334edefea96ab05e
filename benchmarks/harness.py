"""How a task is measured, and how the times are shown."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TURNS = 9  # that count, of each peer


class Task(NamedTuple):
    """The same work, done once by a call of each peer's function."""

    name: str
    peers: dict[str, Callable[[], object]]
    calls: int  # in one turn, so that a turn takes some tens of milliseconds
    work: float = 0.0  # floating-point operations of one call, where a rate means something


class Result(NamedTuple):
    """The seconds of one call, by peer: one number a turn."""

    name: str
    work: float
    seconds: dict[str, list[float]]


def measure(task: Task) -> Result:
    """Let the peers take turns: what disturbs the machine disturbs them all."""
    seconds: dict[str, list[float]] = {peer: [] for peer in task.peers}
    for turn in range(TURNS + 1):
        for peer, function in task.peers.items():
            start = time.perf_counter()
            for _ in range(task.calls):
                function()
            if turn:  # the first turn warms up
                seconds[peer].append((time.perf_counter() - start) / task.calls)
    return Result(task.name, task.work, seconds)


def table(results: list[Result]) -> str:
    """One row a task and peer: median, spread (half the distance of the quartiles), rate, and median over needle's."""
    rows = [f"{'task':34} {'peer':8} {'median':>10} {'spread':>8} {'GFLOP/s':>8} {'× needle':>9}"]
    for result in results:
        ours = statistics.median(result.seconds["needle"])
        for peer, seconds in result.seconds.items():
            median = statistics.median(seconds)
            low, _, high = statistics.quantiles(seconds, n=4)
            rate = f"{result.work / median / 1e9:.0f}" if result.work else ""
            spread = f"± {(high - low) / 2 / median:.0%}"
            rows.append(f"{result.name:34} {peer:8} {shown(median):>10} {spread:>8} {rate:>8} {median / ours:>9.2f}")
    return "\n".join(rows)


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine() -> dict[str, str]:
    """What a number must not be read without."""
    return {"processor": processor(), "cores": str(os.cpu_count()), "Python": platform.python_version()}


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
