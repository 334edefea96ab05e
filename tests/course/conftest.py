"""The small course that tests of the tools work with, and a learner's tree of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from needle_course import starter
from needle_course.stages import Course

from tests.course import small_course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return small_course.write(tmp_path / "coürse of three")


@pytest.fixture
def learner(course: Course, tmp_path: Path) -> Path:
    """A fresh hw1 tree, below a folder with a blank and an umlaut."""
    out = tmp_path / "my Drive" / "näedle a"
    starter.make(course, "hw1", out)
    return out
