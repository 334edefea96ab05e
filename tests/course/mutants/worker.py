"""Judges wrong answers: collects a stage's tests once, then forks for each mutant and runs the tests of its part.

    python worker.py JOB    in the root of the stage's solved tree; JOB is a pickle, see `Job`

A child puts the mutant into the functions that are already imported, by exchanging their code, and into whatever is
imported later.  It ends at the first red test, and may use so many seconds of processor time.  A line of JSON per
mutant: {"number", "caught", "how"}.
"""

from __future__ import annotations

import ast
import gc
import importlib.machinery
import json
import os
import pickle
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

MEMORY = 8 << 30  # bytes of address space
RED, GREEN = 1, 0


Source = tuple[int, ast.stmt] | str  # which statement of the file is exchanged for which, or the whole file's text


@dataclass
class Job:
    """What to judge, in a tree."""

    tests: list[str]  # files
    parts: dict[str, list[str]]  # {part: selectors}
    mutants: list[tuple[int, str, str, Source | None]]  # number, part, file, its source (None: as it is)
    seconds: float  # of processor time, for one
    results: str  # the file for the lines of JSON


class Judge:
    """A pytest plugin that, instead of the collected tests, runs those of one part after the other in children."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.live: dict[str, dict[str, list]] = {}  # the functions of each file

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from needle_course import stages

        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while collecting")
        items = {
            part: [item for item in session.items if any(stages.matches(test, item.nodeid) for test in tests)]
            for part, tests in self.job.parts.items()
        }
        files = {file for _, _, file, source in self.job.mutants if source is not None}
        self.live = {file: by_name(live_functions(Path(file).resolve())) for file in files}
        gc.freeze()
        with open(self.job.results, "a", encoding="utf-8") as results:
            for number, part, file, source in self.job.mutants:
                caught, how, seconds = self.judged(items[part], file, source)
                line = {"number": number, "caught": caught, "how": how, "seconds": round(seconds, 2)}
                print(json.dumps(line), file=results, flush=True)
        return True

    def judged(self, items: list[pytest.Item], file: str, source: Any) -> tuple[bool, str, float]:
        if not items:
            raise pytest.UsageError(f"{file}: a part without tests")
        start, (reader, writer) = time.monotonic(), os.pipe()
        child = os.fork()
        if child == 0:
            self.in_child(items, file, source, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            how = pipe.read().decode(errors="replace")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status < 0:
            how = f"ended by {signal.Signals(-status).name}"
        return status != GREEN, how, time.monotonic() - start

    def in_child(self, items: list[pytest.Item], file: str, source: Any, writer: int) -> None:
        status, how = RED, ""
        try:
            os.setpgid(0, 0)
            bound(self.job.seconds)
            if source is not None:
                put_in(Path(file).resolve(), source, self.live[file])
            how = first_red(items)
            status = RED if how else GREEN
        except BaseException as error:  # whatever a mutant does at import is red, too
            how = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, how.encode()[:400])
            os._exit(status)


def bound(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds)  # for what waits for nothing


def first_red(items: list[pytest.Item]) -> str:
    """Why the first red test is red, or ""."""
    from _pytest.runner import runtestprotocol

    for item, following in zip(items, [*items[1:], None], strict=True):
        for report in runtestprotocol(item, log=False, nextitem=following):
            if report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                return f"{item.name}: {crash.message if crash else report.longrepr}"
    return ""


# ---- putting a mutant in --------------------------------------------------------------------------------------------


def put_in(path: Path, source: Source, live: dict[str, list]) -> None:
    """Exchange the code of a file's functions, in what is imported, `live`, and in what will be."""
    changed = source if isinstance(source, str) else ast.Module([source[1]], [])
    wanted = by_name(functions_in(compile(changed, str(path), "exec", dont_inherit=True)))
    for name, functions in wanted.items():
        lines = sorted({code.co_firstlineno for _, code in live.get(name, [])})
        new = dict(zip(lines, (code for _, code in functions), strict=False))
        for function, code in live.get(name, []):  # a file imported under two names has each function twice
            function.__code__ = new.get(code.co_firstlineno, code)
    right = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, fullname: str) -> Any:
        if Path(loader.path).resolve() != path:
            return right(loader, fullname)
        return compile(whole(path, source), str(path), "exec", dont_inherit=True)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def whole(path: Path, source: Source) -> ast.Module:
    """The file with the change in it."""
    if isinstance(source, str):
        return ast.parse(source)
    module = ast.parse(path.read_text(encoding="utf-8"))
    module.body[source[0]] = source[1]
    return module


def functions_in(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """(qualified name, code) of the functions and methods, not of those inside functions: these are made anew."""
    for const in code.co_consts:
        if isinstance(const, CodeType) and not const.co_name.startswith("<"):
            if const.co_flags & 0x02:  # CO_NEWLOCALS: a function, not the body of a class
                yield f"{prefix}{const.co_name}", const
            else:
                yield from functions_in(const, f"{prefix}{const.co_name}.")


def live_functions(path: Path) -> Iterator[tuple[str, Any]]:
    for thing in gc.get_objects():
        if not isinstance(thing, FunctionType) or not thing.__code__.co_filename.endswith(path.name):
            continue
        if thing.__code__.co_name != thing.__name__:
            continue  # what a decorator has wrapped around a function bears its name
        if Path(thing.__code__.co_filename).resolve() == path and "<" not in thing.__qualname__:
            yield thing.__qualname__, thing


def by_name(pairs: Iterator[tuple[str, Any]]) -> dict[str, list[tuple[Any, CodeType]]]:
    """{name: [(function or code, its code), …] in the order of their lines}: a getter and its setter share a name."""
    found: dict[str, list] = defaultdict(list)
    for name, thing in pairs:
        found[name].append((thing, getattr(thing, "__code__", thing)))
    return {name: sorted(group, key=lambda pair: pair[1].co_firstlineno) for name, group in found.items()}


def main(path: str) -> int:
    with open(path, "rb") as file:
        job = pickle.load(file)
    sys.path.insert(0, os.path.abspath("python"))
    sys.argv = ["pytest"]
    options = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib"]
    options.append(f"--confcutdir={os.path.dirname(job.tests[0])}")
    return int(pytest.main([*options, *job.tests], plugins=[Judge(job)]))


if __name__ == "__main__":
    sys.modules["worker"] = sys.modules["__main__"]  # where the job's class is found
    sys.exit(main(sys.argv[1]))
