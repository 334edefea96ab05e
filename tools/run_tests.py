"""Run the tests: the core ones in one process, then each stage's in a process of its own.

    python tools/run_tests.py [--all]

A stage folder (tests/hw1 …) chooses the backend of the process it runs in, so no two of them can share one. `--all`
adds the slow tests, the sanitizers and the mutation script. The exit status is 0 only if everything passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = [folder for folder in ("tests/unit", "tests/architecture") if (ROOT / folder).is_dir()]
WORKERS = 2  # the core tests are short: more processes than this cost more in starting than they save


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also the slow tests, the sanitizers and the mutations")
    everything = parser.parse_args().all

    runs = core_tests() + contract_tests() + stage_tests()
    if everything:
        runs += slow_tests() + long_programs()
    results = {name: run(name, command, environment) for name, command, environment in runs}
    print("\n".join(["", *(f"{name:24} {verdict}" for name, (verdict, _) in results.items())]), flush=True)
    return 0 if all(passed for _, passed in results.values()) else 1


Run = tuple[str, list[str], dict[str, str]]


def core_tests() -> list[Run]:
    return [("core tests", [*pytest(), "-n", str(WORKERS), *CORE], one_thread_each())]


def contract_tests() -> list[Run]:
    """What both backends promise, a process each."""
    if not (ROOT / "tests/contract").is_dir():
        return []
    return [
        (f"contract tests, {backend}", [*pytest(), "tests/contract"], {"NEEDLE_BACKEND": backend, **one_thread_each()})
        for backend in ("np", "nd")
    ]


def stage_tests() -> list[Run]:
    """Each stage's folder; its conftest sets NEEDLE_BACKEND, so that a backend chosen outside must not reach it."""
    return [
        (f"{folder.name} tests", [*pytest(), f"tests/{folder.name}"], {}) for folder in sorted(ROOT.glob("tests/hw*/"))
    ]


def slow_tests() -> list[Run]:
    return [("slow tests", [*pytest(), "-n", str(WORKERS), "-m", "slow", *CORE], one_thread_each())]


def long_programs() -> list[Run]:
    """Checks that are programs of their own, those that this tree has."""
    programs = [("sanitizers", "tools/sanitize.py"), ("mutated gradients", "tools/mutate_gradients.py")]
    return [(name, [sys.executable, program], {}) for name, program in programs if (ROOT / program).exists()]


def pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-q"]


def one_thread_each() -> dict[str, str]:
    """Parallel test processes with parallel kernels inside would wait for each other."""
    return {"NEEDLE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(name: str, command: list[str], environment: dict[str, str]) -> tuple[str, bool]:
    print(f"\n==== {name}", flush=True)
    start = time.monotonic()
    inherited = {key: value for key, value in os.environ.items() if key not in ("NEEDLE_BACKEND", "NEEDLE_KERNELS")}
    status = subprocess.run(command, cwd=ROOT, env={**inherited, **environment}, stdin=subprocess.DEVNULL).returncode
    verdict = "passed" if status == 0 else f"FAILED (status {status})"
    return f"{verdict} in {time.monotonic() - start:.0f} s", status == 0


if __name__ == "__main__":
    sys.exit(main())
