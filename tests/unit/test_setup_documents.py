"""What the pages say is so: commands exist, links lead somewhere, the example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def test_the_first_block_is_the_two_commands() -> None:
    assert blocks(README, "bash") == ["make demo\nmake test\n"]


def test_the_first_screen_says_what_is_not_supported() -> None:
    assert re.search(r"native windows.*use wsl", "\n".join(README.splitlines()[:25]), re.IGNORECASE | re.DOTALL)


def test_every_make_command_that_a_page_names_exists() -> None:
    named = {word for page in PAGES for word in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert {"demo", "test", "lib"} <= named
    assert not named - targets()


def test_make_help_lists_every_command() -> None:
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^ +make ([a-z-]+) ", done.stdout, re.MULTILINE))
    assert listed == targets()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:python|src|tests|tools|apps|docs|hw)/[\w/.]*)`", text)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    (example,) = blocks(README, "python")
    command = [sys.executable, "-W", "error", "-c", example]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "model.safetensors").stat().st_size > 20_000
