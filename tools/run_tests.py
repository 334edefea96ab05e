"""Run the tests, each group that needs a process of its own in one.

    python tools/run_tests.py [--all]

needle's backend is chosen once in a process, so what runs on plain NumPy arrays, and each stage of the course, is a
group for itself. `--all` adds the tests marked slow, the sanitizers and the mutated gradients. The exit status is 0
only if everything passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2  # the tests are short: more processes than this cost more in starting than they save


class Group(NamedTuple):
    """Tests that share a process, or are shared out among a few that are alike."""

    name: str
    folders: list[str]
    backend: str = ""  # where the tests do not choose it themselves
    parallel: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also slow tests, sanitizers and mutated gradients")
    everything = parser.parse_args().all

    verdicts = [run(group.name, pytest(group, everything), variables(group)) for group in groups()]
    if everything:
        verdicts += [run(name, [sys.executable, program], {}) for name, program in long_programs()]
    print("\n" + "\n".join(f"{verdict:22} {name}" for name, verdict in verdicts), flush=True)
    return 0 if all(verdict.startswith("passed") for _, verdict in verdicts) else 1


def groups() -> list[Group]:
    """The groups whose folders this tree has: a learner's tree has fewer."""
    found = [
        Group("core, own arrays", ["tests/unit", "tests/architecture"], parallel=True),
        Group("core, NumPy arrays", ["tests/np"], parallel=True),
        Group("contract, own arrays", ["tests/contract"], "nd", parallel=True),
        Group("contract, NumPy arrays", ["tests/contract"], "np", parallel=True),
        Group("CUDA and its emulator", ["tests/cuda"], parallel=True),
        Group("the course's tools", ["tests/course"], parallel=True),
        Group("stage hw0", ["hw/hw0/tests"]),
        *(Group(f"stage {name}", [f"tests/{name}"]) for name in ("hw1", "hw2", "hw3", "hw4", "hw4_extra")),
    ]
    return [group for group in found if any((ROOT / folder).is_dir() for folder in group.folders)]


def long_programs() -> list[tuple[str, str]]:
    return [("sanitizers", "tools/sanitize.py"), ("mutated gradients", "tools/mutate_gradients.py")]


def pytest(group: Group, everything: bool) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q"]
    command += ["-n", str(WORKERS)] if group.parallel else []
    command += ["-m", ""] if everything else []  # instead of the "not slow" of pyproject.toml
    command += [] if group.folders[0].startswith("tests/") else ["-rs"]  # tests/conftest.py tells what was skipped
    return [*command, *group.folders]


def variables(group: Group) -> dict[str, str]:
    """Parallel processes with parallel kernels inside would wait for each other."""
    threads = ("NEEDLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if group.parallel else ()
    backend = {"NEEDLE_BACKEND": group.backend} if group.backend else {}
    return {**dict.fromkeys(threads, "1"), **backend}


def outside() -> dict[str, str]:
    """The environment without what chooses a backend, and without what `make` tells a make that it starts."""
    ours = ("NEEDLE_BACKEND", "NEEDLE_KERNELS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    return {key: value for key, value in os.environ.items() if key not in ours}


def run(name: str, command: list[str], chosen: dict[str, str]) -> tuple[str, str]:
    """Run one group; returns its name and "passed in 12 s" or what went wrong."""
    print(f"\n==== {name}", flush=True)
    start = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env={**outside(), **chosen}, stdin=subprocess.DEVNULL).returncode
    verdict = "passed" if status == 0 else f"FAILED ({status})"
    return name, f"{verdict} in {time.monotonic() - start:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
