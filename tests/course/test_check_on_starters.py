"""Checks of real starters: what selectors collect, that plain pytest agrees, and that no part needs a later one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from needle_course import check, regions, stages, starter, trees

ROOT = Path(__file__).resolve().parents[2]
COURSE = stages.load(ROOT)

# what a selector collects besides its parts: operations that are given, of which others are made
GIVEN = {
    "hw3/cpu_elementwise": {"test_ewise_fn[add]"},
    "hw3/cuda_elementwise": {"test_ewise_fn[add]"},
    "hw4/nd_backend": {
        f"test_{kind}_fn{way}[{name}]"
        for way in ("", "_backward")
        for kind, name in (("ewise", "add"), ("ewise", "multiply"), ("scalar", "subtract"), ("scalar", "multiply"))
    },
}


def outside() -> dict[str, str]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("NEEDLE", "PYTEST"))}
    return {**ours, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ""}


# ---- selectors ------------------------------------------------------------------------------------------------------


def collected(stage: stages.Stage) -> dict:
    """{"all": every test, "selected": {expression: tests}} of a stage."""
    selects = [question.select for question in stage.questions]
    command = [sys.executable, str(Path(__file__).with_name("selected.py")), stage.tests[0], *selects]
    done = subprocess.run(command, cwd=ROOT, env=outside(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def family(node: str) -> str:
    """tests/x.py::test_ewise_fn[add-shape0-cpu] → test_ewise_fn[add]"""
    name, _, parameters = node.rpartition("::")[2].partition("[")
    return f"{name}[{parameters.removesuffix(']').split('-')[0]}]"


@pytest.mark.parametrize("stage", COURSE.order)
def test_a_selector_collects_what_its_question_has_and_no_more_U096(stage):
    stage = COURSE.stage(stage)
    found = collected(stage)
    for question in stage.questions:
        wanted = {n for n in found["all"] for p in question.parts for test in p.tests if stages.matches(test, n)}
        selected = set(found["selected"][question.select])
        assert not wanted - selected, question.id
        assert {family(node) for node in selected - wanted} == GIVEN.get(question.id, set()), question.id
    for part in stage.parts:
        items = sum(any(stages.matches(test, node) for test in part.tests) for node in found["all"])
        assert items == part.items, f"{part.id}: hw/stages.toml says {part.items} items, there are {items}"


# ---- plain pytest ---------------------------------------------------------------------------------------------------


def answers_of(stage: str) -> dict[str, str]:
    return trees.answers_in(trees.solved(COURSE, stage))


def fill(tree: Path, answers: dict[str, str]) -> None:
    for tag, body in answers.items():
        path = tree / stages.load(tree).parts_of(tag)[0].file
        path.write_bytes(regions.pour(regions.read(path), path, {tag: body}).encode())


def pytest_says(tree: Path, stage: str, select: str) -> tuple[dict[str, str], str]:
    """{test: "PASSED" or another word} of plain pytest in the tree, and all that it printed."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"tests/{stage}", "-k", select]
    done = subprocess.run(command, cwd=tree, env=outside(), capture_output=True, text=True)
    found = re.findall(r"::(test_\S+) (PASSED|FAILED|ERROR|SKIPPED)", done.stdout)
    assert found, done.stdout + done.stderr
    return dict(found), done.stdout


def test_plain_pytest_agrees_with_the_check(tmp_path):
    """A tree in which one question is right, one has a wrong part and blank ones, one is blank."""
    tree = tmp_path / "my tree"
    starter.make(COURSE, "hw1", tree)
    answers = answers_of("hw1")
    fill(tree, {tag: answers[tag] for tag in COURSE.stage("hw1").tags if tag.endswith("_forward")})
    fill(
        tree,
        {
            "hw1/negate_backward": answers["hw1/negate_backward"],
            "hw1/log_backward": "        return -(out_grad / node.inputs[0])\n",
        },
    )
    course = stages.load(tree)

    forward = check.run(course, "hw1", "forward")
    words, _ = pytest_says(tree, "hw1", "forward")
    assert forward.passed and set(words.values()) == {"PASSED"}
    assert {case.name for part in forward.parts() for case in part.cases} == set(words)

    backward = check.run(course, "hw1", "backward")
    words, printed = pytest_says(tree, "hw1", "backward")
    status = {part.id.partition("/")[2]: part.status for part in backward.parts()}
    assert status.pop("negate_backward") == "passed" and words["test_negate_backward"] == "PASSED"
    assert status.pop("log_backward") == "failed" and words["test_log_backward"] == "FAILED"
    assert set(status.values()) == {"not_implemented"}
    assert "hw1/matmul_backward is not implemented yet" in printed
    for text in (printed, backward.part("hw1/log_backward").message):
        assert "looks like: every sign is flipped" in text

    sort = check.run(course, "hw1", "topo_sort")
    words, printed = pytest_says(tree, "hw1", "topo_sort")
    assert [part.status for part in sort.parts()] == ["not_implemented"]
    assert set(words.values()) == {"FAILED"} and "NotImplementedError" in printed


# ---- one part after the other ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stage", [stage for stage in COURSE.order if not COURSE.stage(stage).needs_build])
def test_a_part_needs_nothing_that_comes_later_U030(stage, tmp_path):
    tree = tmp_path / "tree"
    starter.make(COURSE, stage, tree)
    course, answers = stages.load(tree), answers_of(stage)
    for part in course.stage(stage).parts:
        assert check.verdict_of(tree, part.id, course) == "not_implemented"
        fill(tree, {part.id: answers[part.id]})
        assert check.verdict_of(tree, part.id, course) == "passed", part.id
