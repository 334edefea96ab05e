"""How a task is measured: the answers first, then the peers in turns, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .suites import Task

ROOT = Path(__file__).resolve().parents[1]
LINUX = Path("/proc/self/stat").exists()


class Effort(NamedTuple):
    """How long to measure."""

    turns: int = 9  # that count, of each peer
    seconds: float = 0.04  # that a turn lasts, about; one call at least
    pause: float = 0.5  # at most, after a turn, until the peer's idle threads have stopped spinning
    memories: int = 3  # processes for a peak of memory
    attempts: int = 2  # at measuring a task while other programs are at work
    patience: float = 10.0  # seconds to wait, before each, until they are not


DISTURBED = 0.25  # CPUs that other programs take: more, and a measurement is repeated


QUICK = Effort(turns=2, seconds=0.0, pause=0.0, memories=1, attempts=1, patience=0.0)


class Result(NamedTuple):
    """What was measured: by peer, a number a turn, in the task's unit."""

    task: Task
    measured: dict[str, list[float]]
    others: float | None = None  # CPUs that other processes took meanwhile


class Trouble(Exception):
    """A task cannot be measured: a peer fails, or computes something else than the others."""


# ---- peers ----------------------------------------------------------------------------------------------------------


class Worker:
    """A peer's process."""

    def __init__(self, peer: str, threads: int, python: str) -> None:
        self.peer = peer
        names = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NEEDLE_NUM_THREADS"
        env = {**os.environ, **dict.fromkeys(names, str(threads)), "NEEDLE_BACKEND": "nd", "NEEDLE_KERNELS": "fast"}
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", peer, str(threads)],
            cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Trouble(f"the process of {self.peer} ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Trouble(f"{self.peer}: {answer['error']}")
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Pool:
    """The peers that are here, started when first wanted."""

    def __init__(self, torch_python: str = "", without: tuple[str, ...] = ()) -> None:
        self.torch_python, self.without = torch_python or sys.executable, without
        self.absent: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self._workers: dict[tuple[str, int], Worker] = {}

    def start(self, peer: str, threads: int) -> Worker | None:
        """A new process; None if the peer is absent."""
        library = peer.partition(":")[0]
        if library in self.without or library in self.absent:
            return None
        worker = Worker(peer, threads, self.torch_python if library == "torch" else sys.executable)
        facts = worker.ask("facts")
        if "absent" in facts:
            self.absent[library] = facts["absent"]
            worker.close()
            return None
        self.facts.update(facts)
        return worker

    def get(self, peer: str, threads: int) -> Worker | None:
        key = peer, threads
        if key not in self._workers and (worker := self.start(peer, threads)):
            self._workers[key] = worker
        return self._workers.get(key)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()


# ---- one task -------------------------------------------------------------------------------------------------------


def measure(task: Task, pool: Pool, effort: Effort) -> Result:
    """Compare the answers, then measure."""
    workers = {peer: worker for peer in task.peers if (worker := pool.get(peer, task.threads))}
    if task.peers[0] not in workers:
        raise Trouble(f"{task.peers[0]} is absent: {pool.absent.get(task.peers[0].partition(':')[0], 'left out')}")
    able = check_answers(task, workers, pool)
    if task.unit == "B":
        return Result(task, {peer: peaks(task, peer, pool, effort) for peer in able})
    turns = {peer: _turn(workers[peer], effort) for peer in able}
    pids = [w.process.pid for w in workers.values()]
    for _ in range(effort.attempts):
        wait_for_quiet(pids, effort.patience)
        busy = busy_others(pids)
        result = Result(task, take_turns(turns, effort.turns), busy())
        if (result.others or 0.0) <= DISTURBED:
            break
    return result


def _turn(worker: Worker, effort: Effort) -> Callable[[], float]:
    def turn() -> float:
        seconds = float(worker.ask("turn", seconds=effort.seconds)["seconds"])
        settle(worker.process.pid, effort.pause)
        return seconds

    return turn


def settle(pid: int, most: float) -> None:
    """Wait until a process rests: OpenBLAS's threads look for work for a tenth of a second, on the next peer's time."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        before = _ticks(pid) if LINUX else -1
        time.sleep(min(most, 0.05))  # five ticks of the clock by which Linux counts
        if LINUX and _ticks(pid) == before:
            return


def take_turns(turns: dict[str, Callable[[], float]], count: int) -> dict[str, list[float]]:
    """Let the peers take turns, in an order that turns round: what disturbs the machine disturbs them all."""
    measured: dict[str, list[float]] = {peer: [] for peer in turns}
    for number in range(count + 1):
        for peer in list(turns) if number % 2 else reversed(turns):
            seconds = turns[peer]()
            if number:  # the first turn warms up
                measured[peer].append(seconds)
    return measured


def peaks(task: Task, peer: str, pool: Pool, effort: Effort) -> list[float]:
    """Bytes that steps add at most, each time in a fresh process."""
    found = []
    for _ in range(effort.memories):
        worker = pool.start(peer, task.threads)
        assert worker is not None
        try:
            found.append(float(worker.ask("memory", sizes=task.sizes)["bytes"]))
        finally:
            worker.close()
    return found


# ---- answers --------------------------------------------------------------------------------------------------------

REFERENCES = "numpy", "torch", "needle:plain"  # whom to believe: the first that is here


def check_answers(task: Task, workers: dict[str, Worker], pool: Pool) -> list[str]:
    """Prepare every peer; return those that can do the task, all of whom give the same answer."""
    computing = {peer: worker for peer, worker in workers.items() if not peer.startswith("limit")}
    limits = {peer: worker for peer, worker in workers.items() if peer not in computing}
    if computing and not any(peer.startswith(REFERENCES) for peer in computing):
        plain = pool.get("needle:plain", task.threads)
        computing.update({"needle:plain": plain} if plain else {})
    with tempfile.TemporaryDirectory() as folder:
        answers = _answers(task, computing, Path(folder))
        _answers(task, limits, Path(folder))
    if answers:
        reference = next(peer for name in REFERENCES for peer in answers if peer.startswith(name))
        for peer, answer in answers.items():
            compare(task, peer, answer, reference, answers[reference])
    return [peer for peer in task.peers if peer in answers or peer in limits]


def _answers(task: Task, workers: dict[str, Worker], folder: Path) -> dict[str, dict[str, np.ndarray]]:
    answers, weights = {}, ""
    for peer, worker in sorted(workers.items(), key=lambda item: item[0] != "needle"):  # whose weights the others take
        path = folder / f"{peer.replace(':', '_')}.npz"
        if "absent" in worker.ask("prepare", kind=task.kind, sizes=task.sizes, save=str(path), weights=weights):
            continue
        with np.load(path) as arrays:
            answers[peer] = {name: arrays[name] for name in arrays.files if not name.startswith("weights/")}
        weights = weights or str(path)
    return answers


def compare(task: Task, peer: str, got: dict[str, np.ndarray], other: str, want: dict[str, np.ndarray]) -> None:
    for name, value in want.items():
        if name not in got:
            raise Trouble(f"wrong answer: {peer} gives no {name}")
        mine, size = got[name].reshape(-1), np.abs(value).max(initial=0.0)
        off = np.abs(mine - value.reshape(-1)).max(initial=0.0) if mine.size == value.size else np.inf
        if not off <= task.tolerance * size:
            raise Trouble(f"wrong answer: {name} of {peer} is off {other}'s by {off:.2g} of {size:.2g}")


# ---- who else works -------------------------------------------------------------------------------------------------


def busy_others(pids: list[int]) -> Callable[[], float | None]:
    """Call what this returns later on: how many CPUs processes other than these, and this one, took since."""
    start, before = time.monotonic(), _cpu_seconds(pids)

    def busy() -> float | None:
        now = _cpu_seconds(pids)
        return None if before is None or now is None else max(0.0, (now - before) / (time.monotonic() - start))

    return busy


def wait_for_quiet(pids: list[int], patience: float) -> None:
    """Return as soon as other programs take little, at the latest when patience is over."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        busy = busy_others(pids)
        time.sleep(0.2)
        if (busy() or 0.0) <= DISTURBED:
            return


def _cpu_seconds(pids: list[int]) -> float | None:
    """CPU time that the machine has spent so far, less that of these processes; None where it cannot be told."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ticks = [int(t) for t in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
        mine = sum(_ticks(pid) for pid in [*pids, os.getpid()])
        return (sum(ticks) - ticks[3] - ticks[4] - mine) / os.sysconf("SC_CLK_TCK")
    return None


def _ticks(pid: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


# ---- numbers --------------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> float:
    """Half the distance of the quartiles, as a share of the median."""
    if len(values) < 2:
        return 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / median if median else 0.0


def tasks_of(suite: Callable[[bool], Iterator[Task]], quick: bool, only: str) -> list[Task]:
    return [task for task in suite(quick) if only.lower() in task.name.lower()]
