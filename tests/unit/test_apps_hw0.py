"""The Makefile and the extension of homework 0: what happens where something is missing, or an array does not fit."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

HW0 = Path(__file__).resolve().parents[2] / "hw" / "hw0"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@pytest.fixture
def tree(tmp_path):
    """A copy of the homework, at a path with a blank and an umlaut, without what was built."""
    shutil.copytree(HW0, tmp_path / "näedle a", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path / "näedle a"


def make(tree: Path, **settings: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *(f"{key}={value}" for key, value in settings.items())], cwd=tree, capture_output=True, text=True
    )


def complaints(done: subprocess.CompletedProcess) -> list[str]:
    """What was said besides make's own closing line."""
    assert done.returncode != 0 and done.stdout == ""
    return [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]


@needs_make
def test_make_names_pybind11_where_it_is_missing_U005(tree, tmp_path):
    bare = tmp_path / "python-without-packages"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    bare.chmod(0o755)
    [line] = complaints(make(tree, PYTHON=str(bare)))
    assert "pybind11 is not installed" in line and "-m pip install pybind11" in line


@needs_make
def test_make_names_the_compiler_where_it_is_missing_U011(tree):
    [line] = complaints(make(tree, PYTHON=sys.executable, CXX="no-such-compiler"))
    assert "no-such-compiler" in line and "install" in line


@needs_make
def test_make_names_the_python_where_it_is_missing(tree):
    [line] = complaints(make(tree, PYTHON="no-such-python"))
    assert "no-such-python" in line


@pytest.mark.slow  # pybind11 takes the compiler some seconds; the homework's own checks build it in any case
@needs_make
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here")
def test_make_builds_for_this_python_and_once_U006(tree):
    settings = {"PYTHON": sys.executable, "CXXFLAGS": "-O1"}
    assert make(tree, **settings).returncode == 0
    [module] = tree.glob("src/*.so")
    assert module.name == "simple_ml_ext" + SUFFIX
    built = module.stat().st_mtime_ns
    assert make(tree, **settings).returncode == 0
    assert module.stat().st_mtime_ns == built
    check_refusals(load(module))


def load(path: Path):
    spec = importlib.util.spec_from_file_location("simple_ml_ext", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_refusals(extension):
    """What the C++ function cannot write to, or would read beyond, is refused and named."""
    X, y, theta = np.ones((4, 3), np.float32), np.array([0, 1, 0, 1], np.uint8), np.zeros((3, 2), np.float32)
    frozen = theta.copy()
    frozen.flags.writeable = False
    for arguments, said in [
        ((X, y, theta.astype(float), 0.1, 2), "theta is float64"),
        ((X, y, np.zeros((2, 3), np.float32).T, 0.1, 2), "theta is float32, not C-ordered"),
        ((X, y, frozen, 0.1, 2), "read-only"),
        ((X, y + 2, theta, 0.1, 2), "label"),
        ((X, y[:3], theta, 0.1, 2), "X has 4 rows, y 3"),
        ((X, y, theta[:2], 0.1, 2), "theta 2 rows"),
        ((X, y.astype(int), theta, 0.1, 2), "y is int64"),
        ((X[0], y, theta, 0.1, 2), "X (m, n)"),
        ((X, y, theta, 0.1, 0), "batch is 0"),
        ((X, y, theta, 0.1, -5), "batch is -5"),
    ]:
        with pytest.raises(ValueError) as caught:
            extension.softmax_regression_epoch_cpp(*arguments)
        assert said in str(caught.value)
    assert not theta.any()
    extension.softmax_regression_epoch_cpp(X, y, theta, 0.1, 2**62)  # more than there is: one batch
    extension.softmax_regression_epoch_cpp(X[:0], y[:0], theta, 0.1, 2)
