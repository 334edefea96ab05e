"""Work that lies in one needle tree never runs on the needle of another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from needle import own_tree


@pytest.fixture
def other_tree(tmp_path: Path) -> Path:
    """A learner's tree with a needle of its own, below a folder with a blank and an umlaut."""
    tree = tmp_path / "näedle a"
    (tree / "python" / "needle").mkdir(parents=True)
    (tree / "python" / "needle" / "__init__.py").write_text("")
    (tree / ".needle").mkdir()
    (tree / "apps").mkdir()
    return tree


def run_python(*args: str, cwd: Path) -> subprocess.CompletedProcess:
    ours = str(Path(own_tree.HERE).parent)
    return subprocess.run([sys.executable, *args], cwd=cwd, env={"PYTHONPATH": ours}, capture_output=True, text=True)


def test_import_refused_when_the_current_folder_is_in_another_tree(other_tree: Path) -> None:
    result = run_python("-c", "import needle", cwd=other_tree / "apps")
    assert result.returncode != 0
    assert own_tree.HERE in result.stderr.splitlines()[-1]
    assert "you are in the tree" in result.stderr
    assert str(other_tree) in result.stderr.splitlines()[-1]


def test_import_refused_when_the_script_is_in_another_tree(other_tree: Path, tmp_path: Path) -> None:
    script = other_tree / "apps" / "train.py"
    script.write_text("import needle")
    result = run_python(str(script), cwd=tmp_path)
    assert result.returncode != 0 and "ImportError" in result.stderr
    assert "the running script lies in the tree" in result.stderr


def test_import_works_outside_of_any_tree(tmp_path: Path) -> None:
    (tmp_path / ".needle").mkdir()  # a folder of that name alone makes no tree
    result = run_python("-c", "import needle; print('fine')", cwd=tmp_path)
    assert result.stdout == "fine\n", result.stderr


def test_tree_above_finds_the_innermost_tree(other_tree: Path) -> None:
    assert own_tree.tree_above(str(other_tree / "apps" / "not" / "there")) == str(other_tree)
    assert own_tree.tree_above(str(other_tree.parent)) is None


def test_a_package_in_its_own_tree_passes(other_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(other_tree)
    own_tree.check(str(other_tree / "python" / "needle"))
    with pytest.raises(ImportError, match="own environment"):
        own_tree.check()


def test_a_tool_of_an_environment_in_another_tree_may_run_ours(
    other_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = other_tree / ".venv" / "bin" / "pytest"
    tool.parent.mkdir(parents=True)
    tool.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tool)])
    with pytest.raises(ImportError, match="own environment"):
        own_tree.check()
    monkeypatch.setattr(sys, "prefix", str(other_tree / ".venv"))
    own_tree.check()
