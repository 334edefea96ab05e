"""A learner's walk: a fresh tree, questions filled one by one from the reference, stage after stage in one tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from needle_course import advance, check, pack, regions, stages, starter, status
from needle_course.results import NOT_IMPLEMENTED, PASSED
from needle_course.stages import Course, Part

from tests.course.notebook_walk import fill

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference() -> Course:
    return stages.load(ROOT)


def verdicts(tree: Path, stage: str, question: str | None = None) -> dict[str, str]:
    """{part: its status}, as `check` says in that tree."""
    report = check.run(stages.load(tree), stage, question)
    return {part.id: part.status for part in report.parts()}


def unasked(tree: Path, part: Part) -> str:
    """What a check says before the walk comes to a part: blank, unless an earlier stage asked for the same code."""
    found = regions.regions(regions.read(tree / part.file), part.file)[part.id]
    return NOT_IMPLEMENTED if regions.is_blank(found) else PASSED


def walk(reference: Course, tree: Path, stage: str) -> None:
    """Fill a stage's questions in order; after each, its parts are green and what is still blank is not."""
    questions = reference.stage(stage).questions
    for number, question in enumerate(questions):
        tags = tuple(part.id for part in question.parts)
        fill(reference, tree, question.id)
        got = verdicts(tree, stage, question.id)
        assert got == dict.fromkeys(tags, PASSED), (question.id, got)
        if number + 1 < len(questions):
            after = verdicts(tree, stage, questions[number + 1].id)
            assert after == {part.id: unasked(tree, part) for part in questions[number + 1].parts}, question.id


def test_in_hw0_exactly_what_was_filled_turns_green_U030(reference: Course, tmp_path: Path) -> None:
    tree = tmp_path / "my näedle"
    starter.make(reference, "hw0", tree)
    parts = [part.id for part in reference.stage("hw0").parts]
    assert verdicts(tree, "hw0") == dict.fromkeys(parts, NOT_IMPLEMENTED)
    for number, part in enumerate(parts[:-1], 1):  # the last is C++, which takes its time: the whole walk has it
        fill(reference, tree, part)
        expected = {**dict.fromkeys(parts, NOT_IMPLEMENTED), **dict.fromkeys(parts[:number], PASSED)}
        assert verdicts(tree, "hw0") == expected
    assert pack.run(stages.load(tree), tree).blank == parts[-1:]


@pytest.mark.slow
def test_the_whole_course_in_one_tree_U030(reference: Course, tmp_path: Path) -> None:
    tree = tmp_path / "my näedle"
    starter.make(reference, "hw0", tree)
    for stage in reference.order:
        if stage != "hw0":
            outcome = advance.run(reference, tree)
            assert (outcome.tree.stage, outcome.plan.conflicts, outcome.solved) == (stage, [], [])
        walk(reference, tree, stage)
        assert advance.run(reference, tree, stage).plan.writes == {}  # nothing new in the same release
    for stage in reference.order:  # what was green stays green in the grown tree
        got = verdicts(tree, stage)
        assert set(got.values()) == {PASSED}, {part: verdict for part, verdict in got.items() if verdict != PASSED}
        status.record(tree, check.run(stages.load(tree), stage).to_json(), stages.load(tree))
    found = status.run(stages.load(tree), tree)
    assert found.passed == len(found.counted) == sum(len(stage.questions) for stage in reference.stages.values())
