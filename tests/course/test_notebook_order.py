"""No cell of a starter's notebook needs an answer that is asked for further down, or code of a later stage."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needle_course import stages, starter

ROOT = Path(__file__).resolve().parents[2]
COURSE = stages.load(ROOT)
OURS = ("NEEDLE_BACKEND", "NEEDLE_KERNELS", "NEEDLE_SMOKE", "PYTHONPATH")


@pytest.mark.parametrize("stage", [name for name in COURSE.order if name != "hw0"])  # hw0's needs its own extension
def test_cells_need_nothing_that_comes_later(stage, tmp_path):
    tree = tmp_path / "a tree"
    starter.make(COURSE, stage, tree)
    script = shutil.copy(Path(__file__).with_name("notebook_dry_walk.py"), tmp_path)  # of neither tree: needle looks
    command = [sys.executable, script, str(ROOT), str(tree), stage]
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    threads = {"NEEDLE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env={**kept, **threads, "MPLBACKEND": "agg"})
    assert done.returncode == 0, done.stderr[-6000:]
