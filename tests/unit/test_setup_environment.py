"""The set-up program: which environment it takes, what it puts there, and what it says when it cannot."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import pretend

ROOT = Path(__file__).parents[2]
PROGRAM = "tools/setup_environment.py"
FAKE_PIP = """
import pathlib, sys
with open(pathlib.Path(__file__).with_name("calls.txt"), "a") as calls:
    print(*sys.argv[1:], file=calls)
print("pip 99 (pretended)")
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with nothing in it but the set-up program, where a cloud drive might put it (U025)."""
    tree = tmp_path / "My Drive" / "näedle a"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(ROOT / PROGRAM, tree / PROGRAM)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment whose pip only writes down what it was asked for."""
    prefix = tmp_path / "environment ü"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    pip = site(prefix) / "pip"
    pip.mkdir()
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(FAKE_PIP, encoding="utf-8")
    return prefix


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder to be the whole PATH, with a compiler and a cmake in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    pretend(folder, "c++", "exit 0")
    pretend(folder, "cmake", "echo cmake version 3.25.1")
    return folder


def site(prefix: Path) -> Path:
    return next(prefix.glob("lib/python*/site-packages"))


def pretend_python(folder: Path, name: str = "python3", **facts: object) -> Path:
    """An interpreter that answers every question about itself with these facts."""
    usual = {"version": [3, 11, 2], "prefix": "/usr", "site": "/usr/lib", "scripts": "/usr/bin", "machine": "x86_64"}
    answer = json.dumps({**usual, "headers": "/nowhere", "makes_venvs": True, **facts})
    return pretend(folder, name, f"echo '{answer}'")


def set_up(tree: Path, path: Path, interpreter: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """Run the program with this PATH and these variables and no others, as if by the given interpreter."""
    start = f"import runpy, sys; sys.executable = {str(interpreter or sys.executable)!r}; sys.argv = [{PROGRAM!r}]; "
    command = [sys.executable, "-c", f"{start}runpy.run_path({PROGRAM!r}, run_name='__main__')"]
    variables = {"PATH": str(path), "LC_ALL": "C.UTF-8", **variables}
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, encoding="utf-8")


def complaint(done: subprocess.CompletedProcess) -> str:
    """The one line that a failing set-up ends with; what it says before is what it is doing."""
    assert done.returncode == 1
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("setup: making", "setup: installing"))]
    assert len(lines) == 1, done.stderr
    return lines[0]


def calls(prefix: Path) -> list[str]:
    """What pip was asked to install, one string a call."""
    log = site(prefix) / "pip" / "calls.txt"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [line for line in lines if line.startswith("install")]


# ---- which environment ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_is_used_as_it_is(tree: Path, environment: Path, path: Path, variable: str) -> None:
    done = set_up(tree, path, **{variable: str(environment)})
    assert done.stdout.strip() == str(environment / "bin" / "python"), done.stderr
    assert not (tree / ".venv").exists()


def test_colab_is_an_active_environment(tree: Path, environment: Path, path: Path) -> None:
    python = environment / "bin" / "python"
    done = set_up(tree, path, interpreter=python, COLAB_RELEASE_TAG="release-colab")
    assert done.stdout.strip() == str(python), done.stderr


def test_without_an_active_environment_one_is_made_in_the_tree(tree: Path, path: Path) -> None:
    python = pretend_python_without_venvs(path)
    assert f"made -m venv --clear {tree / '.venv'}" in complaint(set_up(tree, path, interpreter=python))


def test_the_trees_own_environment_is_used_again_unless_it_moved(tree: Path, environment: Path, path: Path) -> None:
    own = environment.rename(tree / ".venv")
    assert set_up(tree, path, VIRTUAL_ENV=str(own)).returncode == 0
    again = set_up(tree, path)
    assert (again.stdout, again.stderr) == (f"{own / 'bin' / 'python'}\n", "")

    moved = tree.rename(tree.with_name("moved"))
    python = pretend_python_without_venvs(path)
    assert f"made -m venv --clear {moved / '.venv'}" in complaint(set_up(moved, path, interpreter=python))


def pretend_python_without_venvs(path: Path) -> Path:
    """One that fails to make an environment, saying how it was asked: to make a real one takes seconds."""
    answers = pretend_python(path, headers=str(headers(path))).read_text(encoding="utf-8").removeprefix("#!/bin/sh\n")
    return pretend(path, "python3", f'[ "$1" = -m ] && echo "made $*" && exit 1\n{answers}')


def headers(folder: Path) -> Path:
    (folder / "Python.h").touch()
    return folder


def test_an_active_environment_that_is_gone_is_named(tree: Path, path: Path) -> None:
    assert "/gone/bin/python" in complaint(set_up(tree, path, VIRTUAL_ENV="/gone"))


# ---- what it puts there ---------------------------------------------------------------------------------------------


def test_it_installs_the_dependencies_and_never_needle_itself(tree: Path, environment: Path, path: Path) -> None:
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    (call,) = calls(environment)
    words = call.split()
    assert {"numpy>=1.26", "safetensors>=0.4", "pybind11>=2.12", "pytest>=8"} <= set(words)
    assert not {"-e", "--editable", ".", str(tree), "needle"} & set(words)
    assert not any(word.startswith("torch") for word in words)


def test_a_pth_file_names_this_tree(tree: Path, environment: Path, path: Path) -> None:
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    (tree / "python").mkdir()
    (tree / "python" / "needle_here.py").write_text("print('this tree')", encoding="utf-8")
    python = environment / "bin" / "python"
    done = subprocess.run(
        [python, "-c", "import needle_here"], capture_output=True, text=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout == "this tree\n", done.stderr


def test_the_second_run_does_nothing_U013(tree: Path, environment: Path, path: Path) -> None:
    first = set_up(tree, path, VIRTUAL_ENV=str(environment))
    second = set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert second.stdout == first.stdout
    assert second.stderr == ""
    assert len(calls(environment)) == 1


def test_a_change_of_what_is_wanted_installs_again(tree: Path, environment: Path, path: Path) -> None:
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    pyproject = tree / "pyproject.toml"
    pyproject.write_text(pyproject.read_text(encoding="utf-8") + "\n# a comment changes nothing\n", encoding="utf-8")
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert len(calls(environment)) == 1
    pyproject.write_text(pyproject.read_text(encoding="utf-8").replace('"rich>=13"', '"rich>=14"'), encoding="utf-8")
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert "rich>=14" in calls(environment)[1]


def test_a_second_tree_takes_the_environment_over(tree: Path, environment: Path, path: Path) -> None:
    other = tree.with_name("other tree")
    shutil.copytree(tree, other)
    for each in (tree, other, tree, other):
        set_up(each, path, VIRTUAL_ENV=str(environment))
        pth = site(environment) / "needle-checkout.pth"
        assert pth.read_text(encoding="utf-8") == f"{each / 'python'}\n"
    assert len(calls(environment)) == 1, "a switch installs nothing"


def test_trees_that_want_different_packages_share_an_environment(tree: Path, environment: Path, path: Path) -> None:
    other = tree.with_name("other tree")
    shutil.copytree(tree, other)
    pyproject = other / "pyproject.toml"
    changed = pyproject.read_text(encoding="utf-8").replace('"rich>=13"', '"rich>=14"').replace('"pytest>=8",', "")
    pyproject.write_text(changed, encoding="utf-8")
    for each in (tree, other, other, tree, tree):
        set_up(each, path, VIRTUAL_ENV=str(environment))
    assert ["rich>=14" in call for call in calls(environment)] == [False, True, False]
    assert "pytest>=8" not in calls(environment)[1]


def test_a_learners_tree_without_its_pyproject_has_a_copy(tree: Path, environment: Path, path: Path) -> None:
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    pyproject = tree / "pyproject.toml"
    content = pyproject.read_text(encoding="utf-8")
    pyproject.unlink()
    assert "pyproject.toml is missing; bring it back" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))
    copy = tree / ".needle" / "starter" / "pyproject.toml"
    copy.parent.mkdir(parents=True)
    copy.write_text(content, encoding="utf-8")
    again = set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert (again.returncode, again.stderr, len(calls(environment))) == (0, "", 1)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("echo cmake version 3.24.0", False),
        ("echo cmake version 4.1.2", False),
        ("echo cmake version 3.22.1", True),
        ("exit 1", True),
    ],
)
def test_cmake_comes_from_pypi_only_where_it_is_missing_or_old(
    tree: Path, environment: Path, path: Path, answer: str, wanted: bool
) -> None:
    pretend(path, "cmake", answer)
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert ("cmake>=3.24" in calls(environment)[0].split()) == wanted


def test_the_course_script_comes_with_the_course(tree: Path, environment: Path, path: Path) -> None:
    script = environment / "bin" / "needle-course"
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert not script.exists()
    course = tree / "python" / "needle_course"
    course.mkdir(parents=True)
    (course / "__main__.py").write_text("import sys; print('course', *sys.argv[1:])", encoding="utf-8")
    set_up(tree, path, VIRTUAL_ENV=str(environment))
    assert subprocess.run([script, "a b"], capture_output=True, text=True).stdout == "course a b\n"


# ---- what it says when it cannot ------------------------------------------------------------------------------------


def test_no_compiler_is_said_before_anything_is_installed_U011(tree: Path, environment: Path, path: Path) -> None:
    (path / "c++").unlink()
    assert "no C++17 compiler found; install one" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))
    assert calls(environment) == []


def test_a_compiler_that_cannot_compile_is_no_compiler(tree: Path, environment: Path, path: Path) -> None:
    pretend(path, "c++", "exit 1")
    assert "no C++17 compiler" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))
    done = set_up(tree, path, VIRTUAL_ENV=str(environment), CXX="my-c++ -m32")
    assert "CXX=my-c++ -m32 compiles no C++17" in complaint(done)


def test_a_python_without_venv_is_told_the_package(tree: Path, path: Path) -> None:
    python = pretend_python(path, makes_venvs=False)
    assert "apt install python3.11-venv" in complaint(set_up(tree, path, interpreter=python))


def test_a_python_without_headers_is_told_the_package(tree: Path, path: Path) -> None:
    python = pretend_python(path)
    assert "apt install python3.11-dev" in complaint(set_up(tree, path, interpreter=python))


def test_a_python_that_is_too_old_is_told_so(tree: Path, path: Path) -> None:
    python = pretend_python(path, version=[3, 8, 10])
    assert "Python 3.8.10 is too old; install 3.10 or newer" in complaint(set_up(tree, path, interpreter=python))


def test_a_newer_python_on_the_path_is_found(tree: Path, path: Path) -> None:
    old = pretend_python(path, version=[3, 8, 10])
    pretend_python(path, "python3.12", version=[3, 12, 1], headers=str(headers(path)))
    done = set_up(tree, path, interpreter=old)
    assert done.stderr.startswith("setup: making .venv with Python 3.12.1\n")


def test_an_active_environment_that_is_too_old_is_told_so(tree: Path, environment: Path, path: Path) -> None:
    old = environment / "bin" / "python"
    old.unlink()
    pretend_python(old.parent, "python", version=[3, 9, 1], prefix=str(environment))
    assert "has Python 3.9.1, needle needs 3.10 or newer" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))


def test_an_intel_python_on_apple_silicon_is_told_so_U015(tree: Path, environment: Path, path: Path) -> None:
    pretend(path, "sysctl", "echo 1")
    python = environment / "bin" / "python"
    python.unlink()
    pretend_python(python.parent, "python", prefix=str(environment))
    assert "install an arm64 Python" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_environment_of_somebody_else_is_one_line(tree: Path, environment: Path, path: Path) -> None:
    environment.chmod(0o555)
    assert "cannot write" in complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))
    environment.chmod(0o755)


def test_no_network_is_one_line_and_leaves_no_stamp(tree: Path, environment: Path, path: Path) -> None:
    said = "ERROR: Could not find a version that satisfies the requirement numpy>=1.26"
    failing = f"import sys\nif sys.argv[1] == 'install':\n    sys.exit({said!r})\nprint('pip 99')"
    (site(environment) / "pip" / "__main__.py").write_text(failing, encoding="utf-8")
    line = complaint(set_up(tree, path, VIRTUAL_ENV=str(environment)))
    assert said in line
    assert "network" in line
    assert not (environment / "needle-setup.stamp").exists()


def test_it_starts_on_pythons_too_old_for_needle() -> None:
    text = (ROOT / PROGRAM).read_text(encoding="utf-8")
    assert "from __future__ import annotations" not in text  # Python 3.6 knows no such future
    ast.parse(text, feature_version=(3, 6))


def old_pythons() -> list[str]:
    """Interpreters of this machine that needle does not support, on PATH or kept by pyenv."""
    kept = Path.home().glob(".pyenv/versions/3.[6-9].*/bin/python3")
    named = filter(None, (shutil.which(f"python3.{minor}") for minor in range(6, 10)))
    found = [str(python) for python in [*kept, *named]]
    return [python for python in found if subprocess.run([python, "--version"], capture_output=True).returncode == 0]


def test_old_pythons_really_start_it(tree: Path, path: Path) -> None:
    pythons = old_pythons()
    if not pythons:
        pytest.skip("no Python 3.6 to 3.9 on this machine")
    for python in pythons:
        done = subprocess.run([python, PROGRAM], cwd=tree, env={"PATH": str(path)}, capture_output=True, text=True)
        assert "is too old; install 3.10 or newer" in complaint(done)


def test_without_any_python_make_says_what_to_install() -> None:
    done = subprocess.run(["make", "lib", "PYTHON=python-of-nobody"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == "setup: python-of-nobody not found; install Python 3.10 or newer"
