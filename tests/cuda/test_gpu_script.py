"""benchmarks/gpu.sh, which wants a GPU: what it does without one, and that it writes down how each step ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import pretend

ROOT = Path(__file__).resolve().parents[2]
bash = shutil.which("bash")
pytestmark = pytest.mark.skipif(bash is None, reason="no bash here")


def run(folder: Path, python: Path) -> subprocess.CompletedProcess:
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(python)}
    command = [str(bash), str(ROOT / "benchmarks" / "gpu.sh"), str(folder / "out")]
    return subprocess.run(command, env=variables, capture_output=True, text=True, cwd=folder)


def test_without_a_gpu_it_says_so_and_runs_nothing(tmp_path: Path) -> None:
    pretend(tmp_path, "nvidia-smi", "exit 9")
    done = run(tmp_path, pretend(tmp_path, "never", "touch ran"))
    assert (done.returncode, done.stderr) == (1, "gpu.sh: nvidia-smi finds no GPU; nothing was run\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("broken", ["", "tests/hw4"])
def test_it_writes_down_how_each_step_ended(tmp_path: Path, broken: str) -> None:
    """With a card and an interpreter that are played by scripts; one step may fail."""
    pretend(
        tmp_path, "nvidia-smi", 'case "$*" in *-L*) echo "GPU 0: Card (UUID: x)";; *) echo "Card, 1.0, 8 MiB";; esac\n'
    )
    fails = f'case "$*" in *"{broken} "*) echo broken; exit 3;; esac\n' if broken else ""
    plays = f'case "$*" in *json.tool*) exec "{sys.executable}" "$@";; esac\n{fails}echo "did \\"$3\\""\n'
    done = run(tmp_path, pretend(tmp_path, "python", plays))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert done.returncode == (1 if broken else 0), done.stdout + done.stderr
    assert summary["card"] == "Card, 1.0, 8 MiB"
    assert list(summary["steps"]) == ["build", "devices", "benchmark", "core", "hw3", "hw4", "hw4_extra"]
    assert [name for name, step in summary["steps"].items() if step["status"]] == (["hw4"] if broken else [])
    assert (tmp_path / "out" / "table.txt").exists()
