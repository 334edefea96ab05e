"""A tree with one kernel file of the course and its build, for tests that build other states of that file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
with_cmake = pytest.mark.skipif(cmake is None, reason="no cmake here")


class Tree:
    """A checkout with the course's kernel file and its bindings alone, as an early stage has it."""

    def __init__(self, root: Path, kernel_file: str, *options: str, folders: Sequence[str] = ("src",)) -> None:
        """kernel_file: in src; options: of CMake; folders: what else but CMakeLists.txt is there."""
        self.root, self.kernel_file = root, root / "src" / kernel_file
        self.modules = root / "python" / "needle" / "backend_ndarray"
        for folder in folders:
            ignored = shutil.ignore_patterns("kernels", "kernels_*", "__pycache__")
            shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
        shutil.copy(ROOT / "CMakeLists.txt", root)
        self.run(cmake, "-S", root, "-B", root / "build", f"-DPython_EXECUTABLE={sys.executable}", *options)

    def build(self, text: str, target: str = "all") -> None:
        """Build the tree with this text as its kernel file."""
        self.kernel_file.write_text(text, encoding="utf-8")
        self.run(cmake, "--build", self.root / "build", "--parallel", "2", "--target", target)

    def python(self, module: str, *lines: str) -> str:
        """What a fresh interpreter prints that has imported the module as m."""
        code = "\n".join([f"import {module} as m", "import numpy as np", *lines])
        return self.run(sys.executable, "-c", code, cwd=self.modules)

    @staticmethod
    def run(*command: object, cwd: Path | None = None) -> str:
        done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()
