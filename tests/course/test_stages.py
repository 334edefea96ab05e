"""The manifest: what it says of the course's own stages, and what is refused because it does not add up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from needle_course import stages, trees
from needle_course.errors import UserError

from tests.course.small_course import put

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def course() -> stages.Course:
    return stages.load(ROOT)


# ---- the course's own -----------------------------------------------------------------------------------------------


def test_stages_questions_and_points_are_the_public_ones(course):
    assert course.kind == "checkout" and course.order == ["hw0", "hw1", "hw2", "hw3", "hw4", "hw4_extra"]
    assert [stage.points for stage in course.stages.values()] == [100] * 6
    assert [len(stage.questions) for stage in course.stages.values()] == [6, 6, 19, 9, 13, 4]
    assert [(q.select, q.points) for q in course.stage("hw1").questions] == [
        ("forward", 10),
        ("backward", 25),
        ("topo_sort", 20),
        ("compute_gradient", 25),
        ("softmax_loss_ndl", 10),
        ("nn_epoch_ndl", 10),
    ]
    assert [stage.backend for stage in course.stages.values()] == ["np", "np", "np", "nd", "nd", "nd"]


def test_regions_and_parts_are_the_same(course):
    stages.check_sources(course)


def test_every_file_of_the_library_has_a_stage(course):
    folders = ("python/needle", "apps", "src")
    suffixes = {".py", ".cc", ".cu", ".h", ".npz"}
    there = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }
    assert not sorted(there - set(course.files())), "name them in the table [files] of hw/stages.toml"


def test_no_pattern_of_files_is_idle(course):
    by_hand = ("hw/", "python/mugrade/")  # which are written at the same time as this
    idle = [
        rule.pattern
        for rule in course.rules
        if not rule.pattern.startswith(by_hand) and not any(ROOT.glob(rule.pattern))
    ]
    assert not idle


def test_the_tests_of_a_part_are_as_many_as_the_manifest_says():
    done = subprocess.run([sys.executable, "tools/count_items.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_find_knows_questions_parts_and_short_names(course):
    assert isinstance(course.find("hw1/forward"), stages.Question)
    assert course.find("matmul", stage="hw3") == course.find("hw3/matmul")
    assert isinstance(course.find("hw2/adam"), stages.Part)
    assert course.question_of("hw3/matmul").id == "hw3/cpu_products"
    assert course.parts_of("hw2/flip_horizontal") == course.find("hw2/flip_horizontal").parts
    with pytest.raises(UserError, match=r"no question 'hw3/nothing' in stage hw3; wanted one of hw3/views, "):
        course.find("hw3/nothing", stage="hw3")
    with pytest.raises(UserError, match=r"no stage 'hw9'; wanted one of hw0, "):
        course.stage("hw9")


def test_needs_lead_back_to_what_they_need(course):
    needed = [part.id for part in course.needs_of(course.find("hw1/matmul_backward"))]
    assert "hw1/matmul_forward" in needed and "hw1/broadcast_to_backward" in needed
    assert "hw1/matmul_backward" not in needed and all(name.startswith("hw1/") for name in needed)


def test_selectors_match_by_function_and_fragment():
    node = "tests/hw3/test_ndarray.py::test_ewise_fn[greater_than-shape0-cpu]"
    path = "tests/hw3/test_ndarray.py::test_ewise_fn"
    assert stages.matches(path, node) and stages.matches(f"{path}[cpu]", node)
    assert stages.matches(f"{path}[greater_than-*cpu]", node) and not stages.matches(f"{path}[than-*cpu]", node)
    assert not stages.matches(f"{path}[cuda]", node) and not stages.matches(path.removesuffix("_fn"), node)


def test_a_learners_manifest_has_the_stages_present_and_loads(course, tmp_path):
    text = trees.trimmed_manifest(course, "hw2")
    learners = stages.load(put(tmp_path, {stages.MANIFEST: text, ".needle/tree.toml": ""}))
    assert learners.kind == "tree" and learners.order == ["hw0", "hw1", "hw2"] and not learners.rules
    assert learners.stage("hw2") == course.stage("hw2") and "hw3" not in text


# ---- what is refused ------------------------------------------------------------------------------------------------

GOOD = """\
[files]
hw1 = ["a.py"]

[stages.hw1]
title = "One"
backend = "np"
notebook = "hw/hw1/hw1.py"
tests = ["tests/hw1"]

[[stages.hw1.questions]]
id = "hw1/first"
title = "First"
select = "first"
file = "a.py"
test_file = "tests/hw1/test_a.py"
parts = [
  { id = "hw1/a", title = "a", tests = ["test_a"], items = 2 },
  { id = "hw1/b", title = "b", tests = ["test_b[x]"], items = 1, needs = ["hw1/a"] },
]

[[stages.hw1.questions]]
id = "hw1/second"
title = "Second"
select = "second"
file = "a.py"
test_file = "tests/hw1/test_a.py"
parts = [{ id = "hw1/c", title = "c", tests = ["test_c"], items = 1, needs = ["hw1/first"] }]
"""


def loaded(folder: Path, text: str) -> stages.Course:
    return stages.load(put(folder, {stages.MANIFEST: text}))


def test_questions_without_points_share_a_hundred(tmp_path):
    stage = loaded(tmp_path, GOOD).stage("hw1")
    assert [q.points for q in stage.questions] == [50, 50] and stage.tags == ("hw1/a", "hw1/b", "hw1/c")
    some = GOOD.replace('select = "first"', 'select = "first"\npoints = 30')
    assert [q.points for q in loaded(tmp_path, some).stage("hw1").questions] == [30, 70]


@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ('backend = "np"', 'backend = "tf"', 4, "backend is 'tf'"),
        ('title = "One"', "title = 1", 4, "title is 1, wanted text"),
        ('title = "One"', "title = ", 5, "no TOML"),
        ('title = "One"', 'title = "One"\npoints = 7', 4, "add up to"),
        ("items = 2", "items = 0", 17, "0 items"),
        ("items = 2", 'items = "two"', 17, "items is 'two'"),
        ('id = "hw1/b"', 'id = "hw1/a"', 17, "two parts"),
        ('id = "hw1/second"', 'id = "hw1/first"', 11, "two questions"),
        ('id = "hw1/second"', 'id = "hw2/second"', 22, "no id of stage hw1"),
        ('id = "hw1/second"', 'id = "hw1/Second"', 22, "no id of stage hw1"),
        ('id = "hw1/first"', 'id = "hw1/a"', 11, "also a part"),
        ('needs = ["hw1/a"]', 'needs = ["hw1/z"]', 18, "needs 'hw1/z', which is not there"),
        ('needs = ["hw1/a"]', 'needs = ["hw1/c"]', 18, "needs hw1/c, which comes later"),
        ('needs = ["hw1/a"]', 'needs = ["hw1/b"]', 18, "comes later"),
        ('hw1 = ["a.py"]', 'hw7 = ["a.py"]', 2, "no stage 'hw7'"),
    ],
)
def test_a_manifest_that_does_not_add_up_is_refused_with_its_line(tmp_path, old, new, line, words):
    assert GOOD.count(old) == 1
    if line == 4 and "points" in new:
        text = (
            GOOD.replace(old, new)
            .replace('select = "first"', 'select = "first"\npoints = 3')
            .replace('select = "second"', 'select = "second"\npoints = 3')
        )
    else:
        text = GOOD.replace(old, new)
    with pytest.raises(UserError) as error:
        loaded(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / stages.MANIFEST}:{line}: ") and words in str(error.value)
    assert "\n" not in str(error.value)


def test_no_manifest_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"stages\.toml: not found; name the course's folder"):
        stages.load(tmp_path)


SOURCE = "".join(f"### BEGIN YOUR SOLUTION hw1/{tag}\nx\n### END YOUR SOLUTION hw1/{tag}\n" for tag in "abc")


@pytest.mark.parametrize(
    "source, message",
    [
        (SOURCE.replace("hw1/c", "hw1/d"), r"^a\.py:7: hw1/d is no part in"),
        (SOURCE.replace("hw1/b", "hw1/a"), r"^a\.py:4: hw1/a has a region already"),
        (SOURCE[: SOURCE.index("### BEGIN YOUR SOLUTION hw1/c")], r"^hw/stages\.toml:27: hw1/c has no region in a\.py"),
        (SOURCE + "# >>> hw9\n# <<< hw9\n", r"^a\.py:10: a block of 'hw9'"),
    ],
)
def test_sources_that_do_not_fit_the_manifest_are_refused(tmp_path, source, message):
    course = loaded(tmp_path, GOOD)
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    stages.check_sources(course)
    (tmp_path / "a.py").write_text(source, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        stages.check_sources(course)
