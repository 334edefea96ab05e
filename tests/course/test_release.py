"""What a course publishes holds everything that a learner needs, and no answer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from needle_course import advance, answers, check, files, regions, release, stages, starter
from needle_course.errors import UserError
from needle_course.stages import Course

from tests.course import small_course

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bundle(course: Course, tmp_path: Path) -> Course:
    """A bundle below a folder with a blank and an umlaut, and nothing left of the course that it was made from."""
    made = release.run(course, tmp_path / "my näedle")
    shutil.rmtree(course.root)
    return stages.load(made.path)


def test_every_region_of_every_starter_is_blank(bundle: Course) -> None:
    contents = files.read_tree(bundle.root)
    found = [region for path, data in contents.items() for region in answers.regions_of(path, data).values()]
    assert len(found) == 4 + 5 + 6  # of three stages; a region is there once for each of its tags
    assert all(regions.is_blank(region) for region in found)


def test_no_line_of_an_answer_is_anywhere(bundle: Course) -> None:
    everything = "\n".join(data.decode() for data in files.read_tree(bundle.root).values())
    for line in ("total += b", "difference = a - b", "return a + a", "return a * b", "return a[-1]", "ANSWER = 42"):
        assert line not in everything


def test_folder_and_zip_hold_the_same_and_so_does_a_second_release(tmp_path: Path) -> None:
    course = small_course.write(tmp_path / "course")
    one, two = (release.run(course, tmp_path / name) for name in ("one", "two"))
    assert one.archive.read_bytes() == two.archive.read_bytes()
    with zipfile.ZipFile(one.archive) as archive:
        held = {name.removeprefix(f"{release.NAME}/"): archive.read(name) for name in archive.namelist()}
    assert held == files.read_tree(one.path)


def test_a_release_may_end_at_a_stage(course: Course, tmp_path: Path) -> None:
    made = release.run(course, tmp_path / "out", through="hw2")
    assert made.stages == ["hw1", "hw2"]
    assert stages.load(made.path).order == ["hw1", "hw2"]
    assert not (made.path / "starters/hw3").exists()


def test_an_answer_in_what_is_given_stops_the_release(tmp_path: Path) -> None:
    leak = small_course.UTIL + "\n\ndef again(a, b):\n    total = a\n    total += b\n    return total\n"
    course = small_course.write(tmp_path / "course", {"lib/util.py": leak})
    with pytest.raises(UserError, match=r"lib/util\.py: holds the answer to hw1/add"):
        release.run(course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_overwritten(course: Course, tmp_path: Path) -> None:
    release.run(course, tmp_path / "out")
    with pytest.raises(UserError, match="is there already"):
        release.run(course, tmp_path / "out")


def test_only_a_checkout_can_be_released(bundle: Course, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a bundle"):
        release.run(bundle, tmp_path / "again")


# ---- working from a bundle ------------------------------------------------------------------------------------------


def test_a_tree_from_a_bundle_goes_through_all_stages(bundle: Course, tmp_path: Path) -> None:
    tree = tmp_path / "mine"
    starter.make(bundle, "hw1", tree)
    path = tree / "lib/util.py"
    small_course.edit(path, (small_course.TWICE, "    return 2 * a\n"))
    for stage in ("hw2", "hw3"):
        outcome = advance.run(bundle, tree, stage)
        assert outcome.plan.conflicts == [] and outcome.solved == []
    assert "return 2 * a" in path.read_text()
    assert regions.is_blank(regions.regions((tree / "lib/core.py").read_text())["hw1/add"])  # nobody's answer


def test_a_late_starter_says_which_earlier_questions_are_blank(bundle: Course, tmp_path: Path) -> None:
    made = starter.make(bundle, "hw3", tmp_path / "late")
    assert made.blank == ["hw1/add", "hw1/sub", "hw1/twice", "hw2/mul", "hw2/add"]


def test_a_tree_may_change_from_a_checkout_to_a_bundle(course: Course, tmp_path: Path) -> None:
    """What the course solved for a late learner stays solved, though a bundle has it blank."""
    starter.make(course, "hw2", tmp_path / "mine")
    made = release.run(course, tmp_path / "out")
    outcome = advance.run(stages.load(made.path), tmp_path / "mine", "hw3")
    assert outcome.plan.conflicts == []
    assert "return a + a" in (tmp_path / "mine/lib/util.py").read_text()
    assert regions.is_blank(regions.regions((tmp_path / "mine/lib/more.py").read_text())["hw2/mul"])


def test_a_bundle_without_a_stage_says_so(bundle: Course, tmp_path: Path) -> None:
    shutil.rmtree(bundle.root / "starters/hw2")
    with pytest.raises(UserError, match="starters/hw2"):
        starter.make(bundle, "hw2", tmp_path / "mine")


# ---- what stands around the sources ---------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["hw/tree", "hw/bundle"])
def test_pages_name_commands_that_their_makefile_has(folder: str) -> None:
    page, makefile = ((ROOT / folder / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", page, re.MULTILINE))
    assert named and named <= targets


@pytest.mark.parametrize("stage", ["hw0", "hw3"])
def test_a_tree_s_settings_are_those_of_the_project(stage: str, tmp_path: Path) -> None:
    course = stages.load(ROOT)
    pages = {name: starter.filled(course, stage, text).decode() for name, text in starter.templates(ROOT).items()}
    assert set(pages) == {".gitignore", "Makefile", "README.md", "pyproject.toml"}
    assert [name for name, text in pages.items() if "{{" in text] == []
    mine, projects = (
        files.parse_toml(pages["pyproject.toml"]),
        files.parse_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8")),
    )
    assert mine["project"]["dependencies"] == projects["project"]["dependencies"]
    for extra in ("full", "course"):
        wanted = projects["project"]["optional-dependencies"][extra]
        assert mine["project"]["optional-dependencies"][extra] == wanted
    assert mine["tool"]["pytest"]["ini_options"]["testpaths"] == list(course.stage(stage).tests)
    assert all(question.id in pages["README.md"] for question in course.stage(stage).questions)


@pytest.mark.parametrize("makefile", ["Makefile", "hw/tree/Makefile", "hw/bundle/Makefile"])
def test_hints_can_be_asked_for_by_make(makefile: str) -> None:
    """As the last line of a red check says."""
    command = ["make", "-n", "-f", ROOT / makefile, "check", "HW=hw1", "Q=hw1/topo_sort", "H=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert '--hints "1"' in done.stdout and '--question "hw1/topo_sort"' in done.stdout


def test_make_in_a_tree_passes_words_with_blanks_on(tmp_path: Path) -> None:
    folder = tmp_path / "my näedle"
    folder.mkdir()
    makefile = starter.filled(stages.load(ROOT), "hw1", (ROOT / "hw/tree/Makefile").read_text(encoding="utf-8"))
    (folder / "Makefile").write_bytes(makefile)
    command = ["make", "-n", "advance", "HW=hw2", "COURSE=../the course"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0
    assert 'advance "hw2" --course "../the course"' in done.stdout
    done = subprocess.run(
        ["make", "-n", "advance"], cwd=folder, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    assert done.stdout.rstrip().endswith("advance")  # a stage only if one was asked for


# ---- the real course ------------------------------------------------------------------------------------------------


def course_command(home: Path, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of the tools that lie in `home`."""
    environment = {**os.environ, "PYTHONPATH": str(home / "python"), "NEEDLE_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "needle_course", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_every_command_works_in_a_released_bundle(tmp_path: Path) -> None:
    made = release.run(stages.load(ROOT), tmp_path / "my näedle")
    home, tree = made.path, tmp_path / "my tree"
    done = course_command(home, "starter", "hw0", "--out", tree, "--json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["stage"] == "hw0", done.stderr
    source = tree / "hw/hw0/src/simple_ml.py"
    source.write_text(
        source.read_text().replace('raise NotImplementedError("hw0/add is not implemented yet")', "return x + y")
    )
    done = course_command(tree, "check", "hw0", "--question", "add", "--json", cwd=tree)  # the tree's own tools
    assert done.returncode == 0 and json.loads(done.stdout)["passed"] == 1, done.stdout + done.stderr
    for home_of, words in (
        (tree, ["status"]),
        (tree, ["pack"]),
        (home, ["advance", "hw1", "--dir", tree]),
        (home, ["grade", "hw0", tree, "--out", tmp_path / "grades"]),
        (home, ["notebook", "hw1", "--out", tmp_path / "books"]),
        (tree, ["restore"]),
        (tree, ["reset", "hw0/add"]),
        (home, ["doctor", "--dir", tree]),
    ):
        done = course_command(home_of, *words, cwd=home_of)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    done = course_command(tree, "check", "hw0", "--question", "add", cwd=tree)
    assert done.returncode == 1  # blank again


@pytest.mark.slow
def test_two_trees_of_one_environment_do_not_run_each_others_code(tmp_path: Path) -> None:
    for name in ("one", "two"):
        starter.make(stages.load(ROOT), "hw1", tmp_path / name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "one/python")}
    command = [sys.executable, "-c", "import needle"]
    done = subprocess.run(command, cwd=tmp_path / "two", env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "this is the needle of" in done.stderr
    report = check.run(stages.load(tmp_path / "two"), "hw1", "hw1/exp_forward")  # from a third needle's process
    assert [part.status for part in report.parts()] == ["not_implemented"]
