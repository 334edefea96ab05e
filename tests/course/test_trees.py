"""Trees: what a course's folder makes of a stage, from a checkout and from a bundle, and how it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from needle_course import stages, trees
from needle_course.errors import UserError

from tests.course.small_course import put

MANIFEST = """\
[files]
# which file comes when
never = ["secret.py"]
hw1 = ["*.py", "python/needle/defaults.py", "picture.bin"]
hw2 = ["late/*"]

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
parts = [{ id = "hw1/a", title = "a", tests = ["test_a"], items = 1 }]

[stages.hw2]
title = "Two"
backend = "nd"
notebook = "hw/hw2/hw2.py"
tests = ["tests/hw2"]

[[stages.hw2.questions]]
id = "hw2/second"
title = "Second"
select = "second"
test_file = "tests/hw2/test_a.py"
parts = [
  { id = "hw2/a", title = "a", tests = ["test_a"], items = 1, file = "a.py" },
  { id = "hw2/b", title = "b", tests = ["test_b"], items = 1, file = "late/b.py" },
]
"""
A = """\
### BEGIN YOUR SOLUTION hw1/a hw2/a
x = 1
### END YOUR SOLUTION hw1/a hw2/a
# >>> hw2
y = 2
# <<< hw2
"""
B = """\
### BEGIN YOUR SOLUTION hw2/b
z = 3
### STARTER
# z = None  # to be written
# raise NotImplementedError("hw2/b is not implemented yet")
### END YOUR SOLUTION hw2/b
"""
FILES = {
    stages.MANIFEST: MANIFEST,
    "a.py": A,
    "secret.py": b"",
    "late/b.py": B,
    "late/__pycache__/b.py": b"",
    "late/b.so": b"\x7fELF",
    "picture.bin": b"\xff\x00",
    "python/needle/defaults.py": b'"""Chosen."""\n\nBACKEND = "nd"\nKERNELS = "fast"\n',
}


@pytest.fixture
def course(tmp_path: Path) -> stages.Course:
    return stages.load(put(tmp_path / "course", FILES))


def test_a_tree_has_the_files_of_its_stage_and_of_those_before(course):
    early = {"a.py", "picture.bin", "python/needle/defaults.py", stages.MANIFEST}
    assert set(trees.starter(course, "hw1")) == early and set(trees.starter(course, "hw2")) == {*early, "late/b.py"}
    assert trees.starter(course, "hw2")["picture.bin"] == b"\xff\x00"


def test_what_is_asked_again_is_blank_in_a_fresh_starter_and_solved_between(course):
    blank = {stage: trees.starter(course, stage)["a.py"].decode() for stage in course.order}
    assert 'raise NotImplementedError("hw1/a is not implemented yet")' in blank["hw1"] and "y = 2" not in blank["hw1"]
    assert 'raise NotImplementedError("hw2/a is not implemented yet")' in blank["hw2"] and "y = 2" in blank["hw2"]
    assert ">>>" not in blank["hw2"]
    assert trees.solved(course, "hw2")["late/b.py"] == b"".join(
        line for line in B.encode().splitlines(keepends=True) if b"STARTER" not in line and not line.startswith(b"# ")
    )


def test_answers_take_the_place_of_blanks(course):
    mine = trees.starter(course, "hw2", {"hw1/a": "x = 'mine'\n", "hw9/other": "?"})
    assert b"x = 'mine'" in mine["a.py"] and b"z = None" in mine["late/b.py"]
    assert trees.answers_in(mine) == {"hw1/a": "x = 'mine'\n", "hw2/a": "x = 'mine'\n"}


def test_a_tree_runs_its_stages_arrays_and_the_learners_kernels(course):
    for stage, backend in (("hw1", "np"), ("hw2", "nd")):
        names: dict = {}
        exec(trees.starter(course, stage)[trees.DEFAULTS], names)
        assert (names["BACKEND"], names["KERNELS"]) == (backend, "course")


def test_a_bundle_hands_out_what_was_released_and_solves_nothing(course, tmp_path):
    bundle = tmp_path / "bundle"
    released = trees.starter(course, "hw1")
    trees.write({stages.MANIFEST: MANIFEST.encode(), **{f"starters/hw1/{k}": v for k, v in released.items()}}, bundle)
    published = stages.load(bundle)
    assert published.kind == "bundle" and trees.starter(published, "hw1") == released
    with pytest.raises(UserError, match="a bundle holds no solutions"):
        trees.solved(published, "hw1")
    with pytest.raises(UserError, match=r"hw2: not found; the bundle is not whole"):
        trees.starter(published, "hw2")


def test_a_tree_is_written_whole_or_not_at_all(tmp_path):
    out = tmp_path / "näedle a"
    with pytest.raises(UserError, match="cannot be written"):
        trees.write({"a": b"1", "a/b": b"2"}, out)  # a file and a folder of one name
    assert list(tmp_path.iterdir()) == []
    trees.write({"a": b"1", "b/c": b"2"}, out)
    assert (out / "b/c").read_bytes() == b"2" and [path.name for path in tmp_path.iterdir()] == [out.name]
    with pytest.raises(UserError, match="is there already"):
        trees.write({"a": b"3"}, out)
    assert (out / "a").read_bytes() == b"1"


def test_an_empty_folder_may_take_a_tree(tmp_path):
    trees.write({"a": b"1"}, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"1"
