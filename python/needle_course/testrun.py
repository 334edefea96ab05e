"""Builds a tree's native modules and runs tests of it, each in a process group of its own, with limits.

The tests' process (recorder.py) writes records; nothing is ever read off what it prints. If it dies, the test that was
running is to blame, and another process goes on behind it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import diagnosis
from .results import ERROR, FAILED, NOT_IMPLEMENTED, PASSED, SKIPPED, Case

RECORDER = Path(__file__).with_name("recorder.py")
CASE_SECONDS = 30.0  # for one test; real data sets take some
HURRIED_SECONDS = 5.0  # for one when another has used up its time: several endless loops are told in a minute
SILENCE = 5.0  # seconds more until a process that is deaf to its alarm, in native code mostly, is ended
SILENT = "stopped after"  # how such an end is told
BUILD_SECONDS = 900.0
MEMORY = 8 << 30  # bytes of address space
MOST_PROCESSES = 12  # of one run: a kernel that crashes in every test need not be seen to do so 100 times
THREADS = ("NEEDLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
FOREIGN = ("NEEDLE_BACKEND", "NEEDLE_KERNELS", "PYTEST_ADDOPTS", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")

Tests = Mapping[str, Sequence[tuple[str, str, str]]]  # {part: (file, function, piece of the parameters), …}


@dataclass
class Outcome:
    """What became of the tests: the cases of every part, files that could not be collected, what was imported."""

    cases: dict[str, list[Case]]
    troubles: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str | None] = field(default_factory=dict)
    collected: dict[str, list[str]] = field(default_factory=dict)  # {test: its parts}
    ended: str = ""  # how the last process ended, if not as it should


# ---- tests ----------------------------------------------------------------------------------------------------------


def run_tests(tree: Path, tests: Tests, case_seconds: float = CASE_SECONDS) -> Outcome:
    """Run the tests of these parts in the tree; every part has a list of cases, if only an empty one."""
    outcome = Outcome({part: [] for part in tests})
    if not tests:
        return outcome
    done: dict[str, Case] = {}
    silent: list[str] = []  # tests that were ended because nothing came from them any more
    with tempfile.TemporaryDirectory(prefix="needle-check-") as folder:
        for _ in range(MOST_PROCESSES):
            records, ended = run_once(tree, tests, list(done), silent, Path(folder), case_seconds)
            running = read(records, outcome, done)
            if running is None:
                outcome.ended = "" if outcome.collected else ended
                break
            silent += [running] if ended.startswith(SILENT) else []
            done[running] = Case(short(running), FAILED, f"{ended} in this test", 0.0)
    for test, parts in outcome.collected.items():
        case = done.get(test) or Case(short(test), ERROR, "not run: earlier tests ended the process too often")
        for part in parts:
            outcome.cases[part].append(case)
    return outcome


def run_once(
    tree: Path, tests: Tests, done: list[str], silent: list[str], folder: Path, case_seconds: float
) -> tuple[list[dict[str, Any]], str]:
    """Start one process; returns its records, and how it ended."""
    job, records, printed = (folder / name for name in ("job.json", "records", "printed"))
    records.write_text("")
    hurried = min(HURRIED_SECONDS, case_seconds)
    wanted = {
        "tree": str(tree),
        "parts": tests,
        "done": done,
        "silent": silent,
        "records": str(records),
        "case_seconds": hurried if silent else case_seconds,
        "hurried_seconds": hurried,
        "cpu_seconds": int(20 * case_seconds),
        "memory": 0 if has_gpu() else MEMORY,  # a GPU's driver reserves more addresses than there is memory
    }
    job.write_text(json.dumps(wanted))
    with printed.open("wb") as output:
        process = start([sys.executable, str(RECORDER), str(job)], tree, output)
        ended = wait(process, records, (hurried if silent else case_seconds) + SILENCE)
    lines = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    if not any("collected" in line for line in lines):
        ended = tail(printed) or ended
    return lines, ended


def start(command: list[str], tree: Path, output: Any) -> subprocess.Popen:
    """A process in a group of its own, with nothing to read, whose words go to a file."""
    return subprocess.Popen(
        command,
        cwd=tree,
        env=environment(tree),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def environment(tree: Path) -> dict[str, str]:
    """Ours, without what would choose a backend or other tests, and with the tree's needle first."""
    kept = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    chosen = {"PYTHONPATH": str(tree / "python"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONIOENCODING": "utf-8"}
    return {**dict.fromkeys(THREADS, "1"), **kept, **chosen, "NEEDLE_CHECK": "1"}


def wait(process: subprocess.Popen, records: Path, patience: float) -> str:
    """Until the process has ended, or has written nothing for too long; then its whole group is ended.

    Returns how it ended: by a signal, with a status of its own, or silent.
    """
    seen, since = -1, time.monotonic()
    silent = False
    while not silent:
        try:
            process.wait(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            size = records.stat().st_size if records.exists() else 0
            if size != seen:
                seen, since = size, time.monotonic()
            silent = time.monotonic() - since > patience
    end_group(process)
    if silent:
        return f"{SILENT} {patience:.0f} s without an answer: a loop that does not end?"
    return ending(process.returncode)


def end_group(process: subprocess.Popen) -> None:
    """End the process and whatever it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ending(status: int) -> str:
    if status >= 0:
        return f"the process left with status {status}"
    name = signal.Signals(-status).name
    meaning = {
        "SIGSEGV": ": it touched memory that is not its own (an index out of bounds?)",
        "SIGABRT": ": it was aborted (memory written out of bounds, or an exception that nobody caught)",
        "SIGFPE": ": an integer was divided by zero",
        "SIGKILL": ": it took too much memory or time",
        "SIGXCPU": ": it took too much time",
    }.get(name, "")
    return f"the process ended by {name}{meaning}"


def has_gpu() -> bool:
    return os.path.exists("/dev/nvidiactl")


# ---- records --------------------------------------------------------------------------------------------------------


def read(records: list[dict[str, Any]], outcome: Outcome, done: dict[str, Case]) -> str | None:
    """Take the records in; returns the test that was running when the process died, or None if it came to its end."""
    running = None
    for record in records:
        if "collected" in record:
            outcome.collected = outcome.collected or dict(record["collected"])
        elif "trouble" in record:
            outcome.troubles[record["trouble"]] = record["message"]
        elif "start" in record:
            running = record["start"]
        elif "test" in record:
            running = None
            done[record["test"]] = merged(done.get(record["test"]), case_of(record))
        elif "end" in record:
            outcome.imported.update(record["imported"])
    return running


def merged(earlier: Case | None, now: Case) -> Case:
    """A test that passed and then failed to tidy up has failed."""
    return now if earlier is None or now.status != PASSED else earlier


def case_of(record: dict[str, Any]) -> Case:
    kind, message, where = (record.get(key, "") for key in ("kind", "message", "where"))
    status = status_of(record["outcome"], record["when"], kind)
    if status == PASSED:
        return Case(short(record["test"]), status, "", record["seconds"])
    if kind not in ("AssertionError", "Skipped", "Failed"):
        head = f"{kind}: {message}" + (f" (at {where})" if where else "")
        message = diagnosis.told(head, diagnosis.suspected_from_exception(kind, message))
    return Case(short(record["test"]), status, message, record["seconds"])


def status_of(outcome: str, when: str, kind: str) -> str:
    if outcome != "failed":
        return PASSED if outcome == "passed" else SKIPPED
    if kind == "NotImplementedError":
        return NOT_IMPLEMENTED
    return FAILED if when == "call" else ERROR


def short(test: str) -> str:
    """tests/hw1/test_autograd_hw.py::test_log_forward → test_log_forward"""
    return test.partition("::")[2] or test


def tail(printed: Path, lines: int = 4) -> str:
    text = printed.read_text(encoding="utf-8", errors="replace")[-4000:]
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


# ---- native modules -------------------------------------------------------------------------------------------------


def build(tree: Path, group: str) -> str:
    """Bring native modules of the tree up to date; returns "" or what the compiler says, its first error first.

    group  "cpu", or "cuda_here": those for the GPU of this machine, or for its emulator where there is none
    """
    tool = tree / "tools" / "build_native.py"
    if not tool.is_file():
        return f"{tool} is missing; restore it from the starter"
    with tempfile.TemporaryDirectory(prefix="needle-build-") as folder:
        printed = Path(folder, "printed")
        with printed.open("wb") as output:
            process = start([sys.executable, str(tool), group], tree, output)
            ended = wait(process, printed, BUILD_SECONDS)
        if process.returncode == 0:
            return ""
        return "\n".join(list(compiler_errors(printed, tree))[:6]) or tail(printed) or ended


def compiler_errors(printed: Path, tree: Path) -> Iterator[str]:
    for line in printed.read_text(encoding="utf-8", errors="replace").splitlines():
        if "error" in line.lower():
            yield line.replace(f"{tree}/", "").strip()
