"""Build and test with every Python found here, each on the oldest and the newest NumPy that it has wheels for.

    python tools/test_pythons.py [--if-found] [3.10 3.12 ...]

Interpreters are looked for on PATH and among pyenv's. Each gets an environment under build/venvs; the modules of
different Pythons have different names and stand side by side. Ends with a table of what was really run. A Python that
was asked for and is not here is a failure, unless with --if-found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from setup_environment import ROOT, facts_of, requirements

NEWEST = "numpy>=2"
OLDEST_NUMPY = "numpy==1.26.*"
OLDEST_NUMPY_UP_TO = (3, 12)  # NumPy 1.26 has no wheels for later Pythons
NO_PEERS = ("mypy", "clang-format")  # for style, not for tests


def main() -> int:
    wanted = [word for word in sys.argv[1:] if word != "--if-found"]
    pythons = {version: path for version, path in find_pythons().items() if not wanted or dotted(version) in wanted}
    rows = [row for version, path in sorted(pythons.items()) for row in try_python(version, path)]
    missing = [version for version in wanted if version not in map(dotted, pythons)]
    print("\n" + table(rows + [(version, "", "not found here") for version in missing]), flush=True)
    complete = "--if-found" in sys.argv or (rows and not missing)
    return 0 if complete and all(row[2].startswith("passed") for row in rows) else 1


def find_pythons() -> dict[tuple[int, int], str]:
    """One interpreter for each minor version from 3.10 on."""
    kept = sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))
    named = [shutil.which(name) for name in ["python3", *(f"python3.{minor}" for minor in range(10, 21))]]
    found: dict[tuple[int, int], str] = {}
    for path in [*kept, *(Path(path) for path in named if path)]:
        facts = facts_of(path)
        if facts and tuple(facts["version"][:2]) >= (3, 10) and facts["makes_venvs"]:
            found.setdefault(tuple(facts["version"][:2]), str(path))
    return found


def try_python(version: tuple[int, int], path: str) -> list[tuple[str, str, str]]:
    """One row (Python, NumPy, verdict) for each NumPy; the modules are built once, they do not depend on it."""
    numpys = [OLDEST_NUMPY, NEWEST] if version <= OLDEST_NUMPY_UP_TO else [NEWEST]
    python = ROOT / "build" / "venvs" / dotted(version) / "bin" / "python"
    print(f"\n==== Python {dotted(version)} ({path})", flush=True)
    try:
        prepare(path, python, numpys[0])
        return [try_numpy(version, python, numpy) for numpy in numpys]
    except subprocess.CalledProcessError as error:
        return [(dotted(version), "none", f"FAILED before the tests: {' '.join(map(str, error.cmd[1:4]))}")]


def prepare(path: str, python: Path, numpy: str) -> None:
    if not facts_of(python):
        subprocess.run([path, "-m", "venv", "--clear", python.parent.parent], check=True)
    wanted = [
        line
        for line in requirements("full") + requirements("course") + requirements("dev")
        if not line.startswith(NO_PEERS)
    ]
    pip(python, numpy, *wanted, "cmake>=3.24")
    subprocess.run([python, "tools/build_native.py"], cwd=ROOT, check=True)


def try_numpy(version: tuple[int, int], python: Path, numpy: str) -> tuple[str, str, str]:
    start = time.monotonic()
    pip(python, "--upgrade", numpy)
    installed = output([python, "-c", "import numpy; print(numpy.__version__)"])[1].strip()
    print(f"---- Python {dotted(version)}, NumPy {installed}", flush=True)
    status, text = output([python, "tools/run_tests.py"])
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", text)
    total = {word: sum(int(n) for n, w in counts if w == word) for word in ("passed", "failed", "skipped", "error")}
    numbers = ", ".join(f"{n} {word}" for word, n in total.items() if n)
    verdict = f"{'FAILED' if status else 'passed'}: {numbers}, {time.monotonic() - start:.0f} s"
    return dotted(version), installed, verdict


def output(command: list[object]) -> tuple[int, str]:
    """Run a command, show what it prints as it comes, and return (status, what it printed)."""
    lines = []
    process = subprocess.Popen(
        [str(word) for word in command], cwd=ROOT, env=clean(), stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout or []:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def pip(python: Path, *words: str) -> None:
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words], check=True)


def clean() -> dict[str, str]:
    """Without what makes an environment active: the one under test is named by its interpreter."""
    return {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")}


def table(rows: list[tuple[str, str, str]]) -> str:
    return "\n".join(
        f"{python:8} {numpy:10} {verdict}" for python, numpy, verdict in [("Python", "NumPy", "result"), *rows]
    )


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


if __name__ == "__main__":
    sys.exit(main())
