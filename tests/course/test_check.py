"""Checks of a tree: every status, what fails closed, what ends a process, and the forms a report has."""

from __future__ import annotations

import json
import os
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from needle_course import check, report, results, stages, testrun
from needle_course.errors import UserError

from tests.course.small_course import put

MANIFEST = """
[stages.hw1]
title = "Small"
backend = "np"
notebook = "hw/hw1/hw1.py"
tests = ["tests/hw1"]
points = 10

[[stages.hw1.questions]]
id = "hw1/first"
title = "First"
points = 4
select = "first"
file = "python/needle/__init__.py"
test_file = "tests/hw1/test_small.py"
parts = [
  { id = "hw1/double", title = "double", tests = ["test_double"], items = 2 },
  { id = "hw1/half", title = "half", tests = ["test_half"], items = 1 },
]

[[stages.hw1.questions]]
id = "hw1/second"
title = "Second"
points = 6
select = "second"
needs = ["hw1/first"]
file = "python/needle/__init__.py"
test_file = "tests/hw1/test_small.py"
parts = [
  { id = "hw1/quadruple", title = "quadruple", tests = ["test_quadruple"], items = 1 },
]
"""

SOURCE = '''
"""A very small library."""
import os, signal, subprocess, sys, time


def double(x):
    ### BEGIN YOUR SOLUTION hw1/double
    {double}
    ### END YOUR SOLUTION hw1/double


def half(x):
    ### BEGIN YOUR SOLUTION hw1/half
    {half}
    ### END YOUR SOLUTION hw1/half


def quadruple(x):
    ### BEGIN YOUR SOLUTION hw1/quadruple
    {quadruple}
    ### END YOUR SOLUTION hw1/quadruple
'''

TESTS = """
import needle
import pytest


@pytest.mark.parametrize("x", [1, 5])
def test_double(x):
    assert needle.double(x) == 2 * x


def test_half():
    assert needle.half(6) == 3


def test_quadruple():
    assert needle.quadruple(3) == 12
"""

RIGHT = {"double": "return x + x", "half": "return x / 2", "quadruple": "return double(double(x))"}


def blank(part: str) -> str:
    return f'raise NotImplementedError("hw1/{part} is not implemented yet")'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A learner's tree with everything right, below a folder with a blank and an umlaut."""
    root = tmp_path / "näedle a"
    contents = {
        "hw/stages.toml": MANIFEST,
        ".needle/tree.toml": 'stage = "hw1"\n',
        "tests/hw1/test_small.py": TESTS,
        "hw/hw1/hints.toml": '["hw1/half"]\nhints = ["an idea", "shapes", "x / 2"]\n',
    }
    write(put(root, contents))
    return root


def write(root: Path, **answers: str) -> None:
    put(root, {"python/needle/__init__.py": SOURCE.format(**{**RIGHT, **answers})})


def checked(root: Path, question: str | None = None, **settings) -> results.Report:
    return check.run(stages.load(root), "hw1", question, **settings)


def statuses(report: results.Report) -> dict[str, str]:
    return {part.id.partition("/")[2]: part.status for part in report.parts()}


# ---- statuses -------------------------------------------------------------------------------------------------------


def test_all_right(tree):
    report = checked(tree)
    assert report.passed and report.passed_count == 2
    assert (report.earned, report.points) == (10, 10)
    assert [case.name for case in report.part("hw1/double").cases] == ["test_double[1]", "test_double[5]"]


def test_blanks_are_not_implemented_and_run_nothing(tree, monkeypatch):
    write(tree, **{name: blank(name) for name in RIGHT})
    monkeypatch.setattr(testrun, "run_once", lambda *_: pytest.fail("a blank was run"))
    report = checked(tree)
    assert set(statuses(report).values()) == {"not_implemented"}
    assert report.earned == 0 and not report.passed
    assert "NotImplementedError: hw1/half is not implemented yet" in report.part("hw1/half").message
    assert "python/needle/__init__.py:" in report.part("hw1/half").message


def test_a_wrong_answer_fails_and_the_rest_keeps_its_points_U031(tree):
    write(tree, half="return x / 3")
    report = checked(tree)
    assert statuses(report) == {"double": "passed", "half": "failed", "quadruple": "passed"}
    assert [(q.status, q.earned) for q in report.questions] == [("failed", 2), ("passed", 6)]
    assert "test_half" in report.part("hw1/half").message and "2.0 == 3" in report.part("hw1/half").message


def test_a_part_that_meets_a_blank_is_blocked_by_it_U030(tree):
    write(tree, double=blank("double"))
    report = checked(tree, "hw1/second")
    assert statuses(report) == {"quadruple": "blocked"}
    assert report.part("hw1/quadruple").message.startswith("blocked by hw1/double (not implemented)")
    assert not report.passed


def test_a_part_that_needs_something_wrong_is_blocked_by_it(tree):
    write(tree, double="return 3 * x")
    report = checked(tree, "hw1/second")
    assert statuses(report) == {"quadruple": "blocked"}
    assert report.part("hw1/quadruple").message.startswith("blocked by hw1/double (failed)")


def test_a_part_that_is_wrong_by_itself_is_not_blocked_by_an_unused_blank(tree):
    write(tree, half=blank("half"), quadruple="return 5 * x")
    assert statuses(checked(tree, "second")) == {"quadruple": "failed"}


def test_a_later_question_is_never_needed_U030(tree):
    write(tree, quadruple=blank("quadruple"))
    assert checked(tree, "hw1/first").passed
    assert not checked(tree).passed


def test_a_blank_that_was_moved_is_not_implemented_when_it_runs(tree):
    write(tree, half=f"y = x\n    {blank('half')}")
    part = checked(tree, "hw1/half").part("hw1/half")
    assert part.status == "not_implemented" and "NotImplementedError" in part.message


def test_one_part_is_asked_for_by_its_tag(tree):
    report = checked(tree, "hw1/half")
    assert [part.id for part in report.parts()] == ["hw1/half"]
    assert report.points == 2


def test_an_unknown_question_or_stage_is_one_line(tree):
    with pytest.raises(UserError, match=r"^hw1/nothing: .*hw1/first, hw1/second$"):
        checked(tree, "hw1/nothing")
    with pytest.raises(UserError, match="hw99"):
        check.run(stages.load(tree), "hw99")


def test_a_question_of_another_stage_names_that_stage(tree):
    manifest = tree / "hw/stages.toml"
    manifest.write_text(manifest.read_text() + manifest.read_text().replace("hw1", "hw2"))
    with pytest.raises(UserError, match=r"^hw2/half: is of hw2, and hw1 is asked for; .*HW=hw2"):
        checked(tree, "hw2/half")


def test_verdict_of_one_part(tree):
    write(tree, half="return x")
    assert check.verdict_of(tree, "hw1/half") == "failed"
    assert check.verdict_of(tree, "hw1/double") == "passed"


# ---- what is missing makes a part red -------------------------------------------------------------------------------


def edit_tests(tree: Path, old: str, new: str) -> None:
    path = tree / "tests/hw1/test_small.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_case_too_few_is_an_error(tree):
    edit_tests(tree, "[1, 5]", "[1]")
    report = checked(tree)
    assert statuses(report) == {"double": "error", "half": "passed", "quadruple": "passed"}
    assert "1 named results instead of 2" in report.part("hw1/double").message


def test_a_test_that_is_gone_is_an_error(tree):
    edit_tests(tree, "def test_half", "def another")
    assert statuses(checked(tree))["half"] == "error"


def test_cases_that_are_all_skipped_are_an_error(tree):
    edit_tests(tree, "def test_half():", "def test_half():\n    pytest.skip('no luck')")
    part = checked(tree).part("hw1/half")
    assert part.status == "error" and "no luck" in part.message


def test_no_test_file_is_an_error(tree):
    (tree / "tests/hw1/test_small.py").unlink()
    assert set(statuses(checked(tree)).values()) == {"error"}


def test_a_syntax_error_is_an_error_with_its_line(tree):
    write(tree, half="return x /")
    report = checked(tree)
    assert set(statuses(report).values()) == {"error"}
    assert "SyntaxError" in report.part("hw1/double").message
    assert "__init__.py" in report.part("hw1/double").message
    assert "\nE " not in report.part("hw1/double").message  # pytest's own sign


def test_another_needle_is_an_error(tree, tmp_path):
    other = put(tmp_path / "other" / "needle", {"__init__.py": SOURCE.format(**RIGHT)})
    edit_tests(tree, "import needle", f"import sys\nsys.path.insert(0, {str(other.parent)!r})\nimport needle")
    report = checked(tree)
    assert set(statuses(report).values()) == {"error"}
    assert str(other) in report.part("hw1/half").message


def test_a_needle_that_is_not_used_is_an_error(tree):
    (tree / "tests/hw1/test_small.py").write_text(
        "import pytest\n@pytest.mark.parametrize('x', [1, 5])\ndef test_double(x): pass\n"
    )
    assert statuses(checked(tree, "hw1/double")) == {"double": "error"}


def test_damaged_marks_are_noted_and_the_tests_decide(tree):
    path = tree / "python/needle/__init__.py"
    path.write_text(path.read_text().replace("### END YOUR SOLUTION hw1/half\n", ""))
    report = checked(tree)
    assert report.passed
    assert any("hw1/half" in note and "__init__.py:" in note for note in report.notes)


def test_a_file_that_is_gone_is_noted_and_red(tree):
    (tree / "python/needle/__init__.py").unlink()
    report = checked(tree)
    assert set(statuses(report).values()) == {"error"}
    assert any("is missing" in note for note in report.notes)


# ---- what ends a process --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer, words", [
    ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
    ("os.abort()", "SIGABRT"),
    ("os._exit(0)", "left with status 0"),
])  # fmt: skip
def test_a_process_that_dies_fails_that_test_alone(tree, answer, words):
    write(tree, double=answer, quadruple="return 4 * x")
    report = checked(tree)
    assert statuses(report) == {"double": "failed", "half": "passed", "quadruple": "passed"}
    assert words in report.part("hw1/double").message and "test_double[1]" in report.part("hw1/double").message


def test_leaving_politely_and_printing_passes_is_no_pass(tree):
    write(tree, half='print("1 passed"); sys.exit(0)')
    assert statuses(checked(tree))["half"] == "failed"


def test_an_endless_loop_fails_U095(tree):
    write(tree, half="while True: pass")
    report = checked(tree, case_seconds=1)
    assert statuses(report) == {"double": "passed", "half": "failed", "quadruple": "passed"}
    assert "still running after 1 s" in report.part("hw1/half").message


def test_a_loop_that_hears_no_alarm_is_ended(tree, monkeypatch):
    monkeypatch.setattr(testrun, "SILENCE", 1.0)
    write(tree, half="signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: time.sleep(0.1)")
    report = checked(tree, case_seconds=1)
    assert statuses(report) == {"double": "passed", "half": "failed", "quadruple": "passed"}
    assert "without an answer" in report.part("hw1/half").message


@pytest.mark.parametrize("deaf", [False, True])
def test_of_a_loop_without_end_one_case_is_waited_for(tree, monkeypatch, deaf):
    monkeypatch.setattr(testrun, "SILENCE", 1.0)
    write(tree, double=("signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    " if deaf else "") + "while True: pass")
    first, second = checked(tree, "double", case_seconds=1).part("hw1/double").cases
    assert (first.status, second.status) == ("failed", "skipped")
    assert "a case of this part has used up its time" in second.message


@pytest.mark.parametrize("deaf", [False, True])
def test_after_a_loop_without_end_the_next_is_waited_for_less(tree, monkeypatch, deaf):
    monkeypatch.setattr(testrun, "HURRIED_SECONDS", 0.5)
    monkeypatch.setattr(testrun, "SILENCE", 1.0)
    loop = ("signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    " if deaf else "") + "while True: pass"
    write(tree, double=loop, half=loop, quadruple="return 4 * x")
    start = time.monotonic()
    report = checked(tree, case_seconds=4)
    assert statuses(report) == {"double": "failed", "half": "failed", "quadruple": "passed"}
    assert time.monotonic() - start < 2 * 4 + 1, "two loops, but not twice the time"
    said = report.part("hw1/half").message
    assert "stopped after 2 s" in said if deaf else "still running after 0.5 s" in said and "less time than" in said


def test_endless_output_does_not_fill_the_disk(tree):
    write(tree, half="import os\n    while True: os.write(1, bytes(1 << 24))")
    assert "File too large" in checked(tree, "half").part("hw1/half").message


def test_memory_is_bounded(tree):
    write(tree, half="return len(bytearray(1 << 40))")
    part = checked(tree).part("hw1/half")
    assert part.status == "failed" and "MemoryError" in part.message


def test_no_process_is_left(tree):
    write(
        tree,
        half="subprocess.Popen(['sleep', '60']); return x / 2",
        double="open('here', 'w').write(str(os.getpid())); return 2 * x",
    )
    assert checked(tree).passed
    group = int((tree / "here").read_text())
    for _ in range(50):  # what was killed may take a moment to be gone
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process that the check started is still there")


def test_the_environment_chooses_nothing(tree, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("NEEDLE_BACKEND", "nonsense")
    write(tree, half="assert 'NEEDLE_BACKEND' not in os.environ; return x / 2")
    assert checked(tree).passed


# ---- forms of a report ----------------------------------------------------------------------------------------------


def test_json_of_a_report(tree):
    write(tree, half="return x")
    document = json.loads(json.dumps(checked(tree).to_json()))
    assert {"stage", "path", "passed", "total", "seconds", "questions"} <= set(document)
    assert (document["passed"], document["total"]) == (1, 2)
    first = document["questions"][0]
    assert {"id", "title", "status", "earned", "points", "seconds", "parts"} <= set(first)
    assert (first["id"], first["earned"], first["points"]) == ("hw1/first", 2, 4)
    half = first["parts"][1]
    assert {"id", "status", "message", "hint", "cases"} <= set(half)
    assert [set(case) >= {"name", "status", "message"} for case in half["cases"]] == [True]


def test_hints_come_as_asked_for_and_only_for_what_is_red(tree):
    write(tree, half="return x")
    assert checked(tree).part("hw1/half").hint == ""
    assert checked(tree, hints=1).part("hw1/half").hint == "hint 1 (the idea): an idea"
    all_three = checked(tree, hints=3)
    assert all_three.part("hw1/half").hint.splitlines()[2] == "hint 3 (nearly code): x / 2"
    assert all_three.part("hw1/double").hint == ""


def test_junit_of_a_report(tree):
    write(tree, half="return '\\x00'", quadruple=blank("quadruple"))
    suite = ET.fromstring(results.to_junit(checked(tree)))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds["test_half"] == ["failure"] and kinds["test_double[1]"] == []
    assert kinds["hw1/quadruple"] == ["failure"]


def test_a_report_of_nothing_is_not_green():
    assert not results.Report("hw1", Path(".")).passed
    assert results.QuestionResult("hw1/x", "x", 5).status == "error"


def test_damaged_hints_are_one_line_that_names_the_file(tree):
    write(tree, half="return x")
    (tree / "hw/hw1/hints.toml").write_text('["hw1/half"\nhints = [')
    assert checked(tree).part("hw1/half").hint == ""  # nobody asked
    with pytest.raises(UserError, match=r"hints\.toml: .*restore the file") as caught:
        checked(tree, hints=1)
    assert "\n" not in str(caught.value)


def test_the_report_on_a_terminal(tree, capsys):
    write(tree, half="return x", quadruple=blank("quadruple"))
    path = tree / "python/needle/__init__.py"
    path.write_text(path.read_text().replace("### END YOUR SOLUTION hw1/double\n", ""))
    report.show(checked(tree, hints=1))
    printed = capsys.readouterr().out
    for words in ("0 of 2 questions, 2 of 10 points", "✗ hw1/first", "○ hw1/second", "test_half", "assert 6 == 3",
                  "hint 1 (the idea): an idea", "note: ", "hw1/quadruple is not implemented yet"):  # fmt: skip
        assert words in printed
