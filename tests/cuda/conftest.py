"""The emulated modules that these tests run, built if nobody has: a GPU is not needed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def built(group: str) -> ModuleType:
    """The course's module of the emulator: of "cuda_emu", or of "cuda_emu_check", which checks every access."""
    tool = [sys.executable, str(ROOT / "tools" / "build_native.py"), group]
    done = subprocess.run(tool, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return importlib.import_module(f"needle.backend_ndarray.ndarray_backend_{group}")


@pytest.fixture(scope="session")
def emulator() -> ModuleType:
    return built("cuda_emu")


@pytest.fixture(scope="session")
def checking_emulator() -> ModuleType:
    return built("cuda_emu_check")
