"""Runs chosen tests of a tree in this process and writes down, line by line, what became of each.

    python recorder.py JOB.json

check.py starts it, as a file and not as a module: the package needle_course that the tests import must be the tree's.
A job names the tree, the test files, which functions of them to run, where to write, and the limits. The records are
lines of JSON, written as they come, so that a process that dies still leaves what it had done:

    {"collected": [...]}   {"trouble": file, "message": ...}   {"start": test}   {"test": test, "outcome": ..., ...}
    {"end": true, "imported": {module: its file, or null}}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FAILURES_THAT_DO = 5  # per part: more of the same say nothing new, and a red stage should not take minutes
LONGEST_MESSAGE = 2000
LARGEST_FILE = 256 << 20  # bytes: what a test prints without end goes to a file, and must not fill the disk


class TookTooLong(BaseException):
    """A test has used up its time. Not an Exception: a learner's `except Exception` must not swallow it."""


class Recorder:
    """A pytest plugin: keeps the chosen tests and writes down their outcomes."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.tree = Path(job["tree"])
        self.parts: dict[str, list[list[str]]] = job["parts"]  # {part: [[file, function, fragment of the parameters]]}
        self.done: set[str] = set(job.get("done", ()))  # what an earlier process has run
        self.silent: list[str] = job.get("silent", [])  # what an earlier process was ended in, for its time
        self.alarm = Alarm(job["case_seconds"])
        self.hurried: float = job["hurried_seconds"]  # for each further test once one has used up its time
        self.file = open(job["records"], "a", encoding="utf-8")  # noqa: SIM115  (for the life of the process)
        self.parts_of: dict[str, list[str]] = {}
        self.failures: Counter[str] = Counter()
        self.endless: set[str] = set()  # parts of which a test used up its time: no other needs to wait as long

    def write(self, **record: Any) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    # -- what pytest calls --

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(trouble=report.nodeid, message=last_lines(str(report.longrepr)))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            parts = self.parts_that_have(item)
            if parts:
                self.parts_of[item.nodeid] = parts
        items[:] = [item for item in items if item.nodeid in self.parts_of]
        self.write(collected=[[item.nodeid, self.parts_of[item.nodeid]] for item in items])
        self.endless.update(part for test in self.silent for part in self.parts_of.get(test, ()))
        items[:] = [item for item in items if item.nodeid not in self.done]

    def parts_that_have(self, item: Any) -> list[str]:
        file = Path(item.path).resolve().relative_to(self.tree.resolve()).as_posix()
        name, _, parameters = item.name.removesuffix("]").partition("[")
        return [
            part
            for part, tests in self.parts.items()
            if any((file, name) == (path, function) and fits(piece, parameters) for path, function, piece in tests)
        ]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(start=nodeid)

    def pytest_runtest_setup(self, item: Any) -> None:
        import pytest

        if all(part in self.endless for part in self.parts_of[item.nodeid]):
            pytest.skip("not run: a case of this part has used up its time already")
        if all(self.failures[part] >= FAILURES_THAT_DO for part in self.parts_of[item.nodeid]):
            pytest.skip(f"not run: {FAILURES_THAT_DO} cases of this part have failed already")

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is None and call.when != "call":
            return
        outcome = outcome_of(call)
        if outcome == "failed":
            self.failures.update(self.parts_of[item.nodeid])
            if call.excinfo.type is TookTooLong:
                self.endless.update(self.parts_of[item.nodeid])
                self.alarm.hurry(self.hurried)
        seconds = round(call.duration, 4)
        self.write(test=item.nodeid, when=call.when, outcome=outcome, seconds=seconds, **self.told(call.excinfo))

    def pytest_sessionfinish(self) -> None:
        modules = {name: sys.modules[name] for name in ("needle", "simple_ml") if name in sys.modules}
        # a folder without an __init__.py is a module too, which has no file
        self.write(end=True, imported={name: getattr(module, "__file__", None) for name, module in modules.items()})

    # -- what it writes down --

    def told(self, excinfo: Any) -> dict[str, Any]:
        """Kind and message of an exception, and the line of the tree, outside the tests, that it came from."""
        if excinfo is None:
            return {}
        kind = "NotImplementedError" if excinfo.errisinstance(NotImplementedError) else excinfo.type.__name__
        message = str(excinfo.value) or kind
        return {"kind": kind, "message": message[:LONGEST_MESSAGE], "where": self.place(excinfo)}

    def place(self, excinfo: Any) -> str:
        for entry in reversed(excinfo.traceback):
            path = Path(str(entry.path))
            if path.is_relative_to(self.tree) and not {"tests", ".venv"} & set(path.relative_to(self.tree).parts):
                return f"{path.relative_to(self.tree).as_posix()}:{entry.lineno + 1}"
        return ""


def fits(piece: str, parameters: str) -> bool:
    """As stages.matches has it, which this process does not import: held in it or, with a star, like it."""
    return fnmatchcase(parameters, piece) if "*" in piece else piece in parameters


def outcome_of(call: Any) -> str:
    if call.excinfo is None:
        return "passed"
    if call.excinfo.type.__name__ == "Skipped":
        return "skipped"
    return "failed"


def last_lines(text: str, count: int = 6) -> str:
    """The end of a traceback, where the exception stands."""
    lines = [line.removeprefix("E  ") for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:])[-LONGEST_MESSAGE:]


class Alarm:
    """A pytest plugin: ends a test that runs longer than its time, where Python gets a word in."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.why = ""

    def hurry(self, seconds: float) -> None:
        """Give less time from now on."""
        if seconds < self.seconds:
            self.seconds = seconds
            self.why = " (less time than usual, since an earlier case never ended; mend that one first)"

    def pytest_runtest_logstart(self) -> None:
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self.ring)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def pytest_runtest_logfinish(self) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def ring(self, *_: Any) -> None:
        raise TookTooLong(f"still running after {self.seconds:g} s: a loop that does not end?{self.why}")


def limit(memory: int, seconds: int) -> None:
    """Bound what this process may take: address space in bytes, and seconds of processor time."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: memory,
    }
    for what, value in wanted.items():
        _, hard = resource.getrlimit(what)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        if value > 0 or what == resource.RLIMIT_CORE:
            with contextlib.suppress(ValueError, OSError):  # some systems refuse some limits
                resource.setrlimit(what, (value, hard))


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    limit(job["memory"], job["cpu_seconds"])
    os.chdir(job["tree"])
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != here]
    sys.path.insert(0, os.path.join(job["tree"], "python"))
    sys.argv = ["pytest"]  # needle looks which tree the running script lies in
    import pytest

    files = sorted({test[0] for tests in job["parts"].values() for test in tests})
    options = ["-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib"]
    options.append(f"--confcutdir={os.path.dirname(files[0])}")  # what stands above is not the stage's
    recorder = Recorder(job)
    return int(pytest.main([*options, *files], plugins=[recorder, recorder.alarm]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
