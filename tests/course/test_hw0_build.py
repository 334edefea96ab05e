"""Building the C++ half of homework 0: quick after an edit, and also with a file that brings bindings of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN_BINDINGS = """
#include <pybind11/pybind11.h>
PYBIND11_MODULE(simple_ml_ext, module) { module.def("answer", [] { return 42; }); }
"""


def make(folder: Path) -> None:
    done = subprocess.run(["make", "-s", f"PYTHON={sys.executable}"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(folder: Path, code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder / "src", capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_bindings_are_compiled_once_and_left_out_where_they_are_not_wanted(tmp_path):
    folder = tmp_path / "hw 0"
    shutil.copytree(ROOT / "hw" / "hw0", folder, ignore=shutil.ignore_patterns("*.so", "build", "__pycache__"))
    make(folder)
    [bindings] = (folder / "build").glob("bindings*.a")
    built = bindings.stat().st_mtime_ns
    assert "theta" in run(folder, "import simple_ml_ext as m; print(m.softmax_regression_epoch_cpp.__doc__)")

    source = folder / "src" / "simple_ml_ext.cpp"
    text = source.read_text()
    body = text[text.index("size_t batch) {") :]
    source.write_text(text.replace(body, 'size_t batch) {\n  throw NotImplemented("hw0/something");\n}\n'))
    make(folder)
    assert bindings.stat().st_mtime_ns == built
    call = (
        "import numpy as np, simple_ml_ext as m\n"
        "X, y, theta = np.ones((2, 3), 'f'), np.zeros(2, 'u1'), np.zeros((3, 2), 'f')\n"
        "m.softmax_regression_epoch_cpp(X, y, theta, lr=1.0, batch=1)"
    )
    assert "NotImplementedError: hw0/something is not implemented yet" in run(folder, call)

    source.write_text(OWN_BINDINGS)
    make(folder)
    assert run(folder, "import simple_ml_ext; print(simple_ml_ext.answer())") == "42\n"
