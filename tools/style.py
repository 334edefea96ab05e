"""Check the sources against the house style, or rewrite them in it.

python tools/style.py [--fix]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    fix = "--fix" in sys.argv[1:]
    commands = [*python_style(fix), *cpp_style(fix)]
    return max(subprocess.run(command, cwd=ROOT).returncode for command in commands)


def python_style(fix: bool) -> list[list[str]]:
    run = [sys.executable, "-m"]
    if fix:
        return [[*run, "ruff", "check", "--fix", "."], [*run, "ruff", "format", "."]]
    return [[*run, "ruff", "check", "."], [*run, "ruff", "format", "--check", "."], [*run, "mypy"]]


def cpp_style(fix: bool) -> list[list[str]]:
    folders = ("src", "tests/cpp", "benchmarks")  # a learner's tree has fewer
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    sources = [str(path) for path in files if path.suffix in (".cc", ".cu", ".h")]
    # that of the environment first: each version lays out a little differently
    clang_format = shutil.which("clang-format", path=sysconfig.get_path("scripts")) or shutil.which("clang-format")
    if not clang_format or not sources:
        print("style: no clang-format, the C++ sources are left out", file=sys.stderr)
        return []
    return [[clang_format, "-i", *sources] if fix else [clang_format, "--dry-run", "--Werror", *sources]]


if __name__ == "__main__":
    sys.exit(main())
