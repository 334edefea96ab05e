"""The build program: it builds in place, does nothing twice, and recovers from stale folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
SOABI = str(sysconfig.get_config_var("SOABI"))
CMAKE = """
cmake_minimum_required(VERSION 3.24...4.0)
project(small LANGUAGES C)
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
Python_add_library(small MODULE WITH_SOABI src/small.c)
set_target_properties(small PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_SOURCE_DIR}/python/needle/backend_ndarray")
"""
SMALL = """
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "small", "first", -1, NULL};
PyMODINIT_FUNC PyInit_small(void) { return PyModule_Create(&definition); }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose only native module is ten lines of C."""
    tree = tmp_path / "My Drive" / "näedle a"
    for folder in ("tools", "src", "python/needle/backend_ndarray"):
        (tree / folder).mkdir(parents=True)
    for program in ("setup_environment.py", "build_native.py"):
        shutil.copy(ROOT / "tools" / program, tree / "tools")
    (tree / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    (tree / "src" / "small.c").write_text(SMALL, encoding="utf-8")
    return tree


def build(tree: Path, python: Path | str = sys.executable, **variables: str) -> subprocess.CompletedProcess:
    command = [python, "tools/build_native.py"]
    return subprocess.run(command, cwd=tree, env={**os.environ, **variables}, capture_output=True, text=True)


def module(tree: Path) -> Path:
    return tree / "python" / "needle" / "backend_ndarray" / f"small{SUFFIX}"


def docstring(tree: Path) -> str:
    command = [sys.executable, "-c", "import small; print(small.__doc__)"]
    return subprocess.run(command, cwd=module(tree).parent, capture_output=True, text=True).stdout.strip()


def test_it_builds_in_place_under_the_name_of_this_python_U006(tree: Path) -> None:
    done = build(tree)
    assert "small ready" in done.stdout, done.stderr
    assert module(tree).exists()
    assert docstring(tree) == "first"


def test_a_second_run_starts_no_cmake(tree: Path) -> None:
    build(tree)
    for path in tree.rglob("src/*"):
        os.utime(path)  # as git does when branches are switched and switched back
    done = build(tree, PATH="/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_rebuilds_what_changed_or_is_gone(tree: Path) -> None:
    build(tree)
    source = tree / "src" / "small.c"
    source.write_text(SMALL.replace("first", "second"), encoding="utf-8")
    build(tree)
    assert docstring(tree) == "second"
    module(tree).unlink()
    build(tree)
    assert docstring(tree) == "second"


def test_what_changes_during_a_build_is_compiled_by_the_next(tree: Path) -> None:
    (tree / "later.c").write_text(SMALL.replace("first", "second"), encoding="utf-8")
    edit = '"${CMAKE_COMMAND}" -E copy "${PROJECT_SOURCE_DIR}/later.c" "${PROJECT_SOURCE_DIR}/src/small.c"'
    rules = CMAKE + f"add_custom_command(TARGET small POST_BUILD COMMAND {edit})\n"
    (tree / "CMakeLists.txt").write_text(rules, encoding="utf-8")
    build(tree)
    assert docstring(tree) == "first"
    build(tree)
    assert docstring(tree) == "second"


def test_a_moved_checkout_recovers_by_itself(tree: Path) -> None:
    build(tree)
    moved = tree.with_name("moved")
    tree.rename(moved)
    (moved / "src" / "small.c").write_text(SMALL.replace("first", "moved"), encoding="utf-8")
    done = build(moved)
    assert done.returncode == 0, done.stderr
    assert docstring(moved) == "moved"


def test_a_cache_that_cmake_refuses_is_thrown_away(tree: Path) -> None:
    build(tree)
    cache = tree / "build" / SOABI / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8")
    cache.write_text(re.sub("CMAKE_GENERATOR:INTERNAL=.*", "CMAKE_GENERATOR:INTERNAL=Xcode", text), encoding="utf-8")
    (tree / "src" / "small.c").write_text(SMALL.replace("first", "again"), encoding="utf-8")
    done = build(tree)
    assert done.returncode == 0, done.stderr
    assert docstring(tree) == "again"


def test_a_compile_error_is_shown(tree: Path) -> None:
    (tree / "src" / "small.c").write_text(SMALL + "int broken = here;\n", encoding="utf-8")
    done = build(tree)
    assert done.returncode == 1
    assert "small.c:5" in done.stderr
    assert done.stderr.splitlines()[-1] == "build: cmake failed with status 2; what it said stands above"


def test_without_a_compiler_one_line_names_it_U011(tree: Path) -> None:
    done = build(tree, PATH="/nowhere", CXX="")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("build: no C++17 compiler found; install one")


def test_without_pybind11_one_line_names_it_U005(tree: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    done = build(tree, python=bare / "bin" / "python")
    assert done.returncode == 1
    assert done.stderr == f"build: pybind11 is not installed; run: {bare}/bin/python -m pip install pybind11\n"


# ---- the project's own build ----------------------------------------------------------------------------------------


def test_the_build_asks_for_no_old_cmake_behaviour_U001_U003() -> None:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert not re.search(r"cmake_policy\s*\(\s*SET\s+\w+\s+OLD", text)
    assert not re.search(r"find_package\s*\(\s*(CUDA|PythonInterp|PythonLibs)\b(?!Toolkit)", text)


@pytest.mark.slow
def test_every_cmake_here_configures_without_a_warning_U001_U003(tmp_path: Path) -> None:
    candidates = {shutil.which("cmake"), shutil.which("cmake", path=str(Path(sys.executable).parent)), "/usr/bin/cmake"}
    cmakes = [cmake for cmake in candidates if cmake and Path(cmake).exists()]
    assert cmakes
    for number, cmake in enumerate(cmakes):
        options = ["-DPython_EXECUTABLE=" + sys.executable, "-Werror=dev", "-Werror=deprecated"]
        command = [cmake, "-S", ROOT, "-B", tmp_path / str(number), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "CMake Warning" not in done.stderr


def git(*words: str) -> list[str]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_ignore_rules_hide_nothing_but_what_is_built_U016() -> None:
    hidden = git("ls-files", "--others", "--ignored", "--exclude-standard", "--", "python", "src", "apps", "tests")
    assert [path for path in hidden if not re.search(r"\.(so|pyc|dylib)$", path)] == []


def test_nothing_generated_is_tracked() -> None:
    generated = git("ls-files", "--", "*.so", "*.dylib", "*.o", "*.pyc", "*.ipynb", "build", ".venv", "demo.png")
    assert generated == []
