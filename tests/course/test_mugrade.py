"""The offline submission client: what it takes, what it compares, its command, and the answers of the reference."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mugrade
import numpy as np
import pytest
from mugrade import __main__ as command
from mugrade.values import condensed, difference, encode_json

from tests.course.small_course import put

ROOT = Path(__file__).resolve().parents[2]
STAGES = {"hw0": 6, "hw1": 6, "hw2": 19, "hw3": 9, "hw4": 10, "hw4_extra": 4}  # how many submissions each has

# ---- values ---------------------------------------------------------------------------------------------------------


def agrees(got, want) -> str:
    """What is wrong with `got`, after `want` has been through a file."""
    kept = json.loads(json.dumps(condensed(encode_json(want))))
    return difference(encode_json(got), kept)


VALUES = [
    3, -2.5, "text", None, True, float("nan"), np.float32(1.5), np.int64(7), (1, [2.0, "x"]), int, np.dtype("float32"),
    np.arange(6.0).reshape(2, 3), np.random.RandomState(0).randn(5, 4), np.zeros((3, 0)), np.array(2.5),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_agrees_with_itself(value):
    assert agrees(value, value) == ""


def test_rounding_is_no_difference():
    array = np.random.RandomState(0).randn(30, 20)
    assert agrees(array.astype(np.float32), array) == ""
    assert agrees(array * (1 + 1e-6), array) == ""
    assert agrees(1.0 + 1e-7, 1.0) == ""


@pytest.mark.parametrize("change", [
    lambda a: a * 1.01, lambda a: -a, lambda a: a.T.reshape(a.shape), lambda a: a[::-1], lambda a: a + 0.01,
    lambda a: a * 0, lambda a: np.where(a == a.max(), np.nan, a), lambda a: np.where(a == a.max(), 0, a),
], ids=range(8))  # fmt: skip
@pytest.mark.parametrize("shape", [(2, 3), (6, 5), (40, 30)])
def test_a_wrong_array_is_told(change, shape):
    array = np.random.RandomState(0).randn(*shape)
    assert agrees(change(array), array) != ""


@pytest.mark.parametrize(
    "got, want",
    [(1, 2), (True, 1), ("a", "b"), (None, 0), ((1, 2), (1, 2, 3)), (1.0, np.ones(3)), (np.ones(3), 1.0),
     (np.ones((10, 1)), np.ones(10)),
     (float, int), (np.ones(9), (1, 2)), (np.dtype("float64"), np.dtype("float32"))],
)  # fmt: skip
def test_another_kind_of_value_is_told(got, want):
    assert agrees(got, want) != ""


def test_answers_hold_no_large_array():
    kept = json.dumps(condensed(encode_json(np.random.RandomState(0).randn(50, 50))))
    assert len(kept) < 200


def test_a_tensor_is_refused_with_what_to_do():
    class Tensor:
        def numpy(self): ...

    with pytest.raises(TypeError, match=r"cannot take a .*Tensor; give it x\.numpy\(\)"):
        mugrade.submit(Tensor())
    with pytest.raises(TypeError, match="a number, a NumPy array"):
        mugrade.submit(object())


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, homework, rest", [
    (["submit", "KEY", "hw1", "-k", "forward"], "hw1", ["-k", "forward"]),
    (["submit", "KEY", "-k", "init", "-s"], "", ["-k", "init", "-s"]),
    (["submit", "", "", "-k", "conv_forward"], "", ["-k", "conv_forward"]),
    (["submit", "KEY", "hw4extra", "--server", "https://there", "-k", "x"], "hw4extra", ["-k", "x"]),
    (["publish", "KEY", "hw0", "--server=there"], "hw0", []),
])  # fmt: skip
def test_forms_of_the_command(arguments, homework, rest):
    assert command.parse(arguments) == (arguments[0], homework, rest)


@pytest.mark.parametrize("arguments", [[], ["submit"], ["send", "KEY", "hw1"]])
def test_a_wrong_command_is_one_line(arguments, capsys):
    assert command.main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("expression, homework", [
    ("forward", "hw1"), ("init", "hw2"), ("nn_linear", "hw2"), ("ndarray_cpu_ops", "hw3"), ("nd_backend", "hw4"),
    ("attention_layer", "hw4_extra"), ("softmax_regression_epoch and not cpp", "hw0"),
])  # fmt: skip
def test_a_homework_that_is_not_named_is_found(expression, homework):
    assert command.guess(ROOT, ["-k", expression]) == homework
    assert command.tests_of(ROOT, homework) == command.folders(ROOT)[homework]


SUBMISSIONS = """
import mugrade

def submit_easy():
    mugrade.submit(1 + 1)
    mugrade.submit([1.5, "x"])

def submit_other():
    mugrade.submit("a")
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    contents = {
        "hw/stages.toml": "",
        "tests/hw7/test_submit.py": SUBMISSIONS,
        "tests/hw7/answers.json": '{"easy": [2, [1.5, "x"]], "other": ["a"]}',
    }
    return put(tmp_path, contents)


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "mugrade", *arguments], cwd=tree, env=env, capture_output=True, text=True
    )


def test_right_answers_pass_and_it_says_what_it_is(tree):
    result = run(tree, "submit", "KEY", "hw7", "-k", "easy")
    assert result.returncode == 0, result.stdout
    for line in (
        "Submitting easy...",
        "Grader test 1 passed",
        "Grader test 2 passed",
        "self-check",
        "nothing was sent",
    ):
        assert line in result.stdout
    assert "other" not in result.stdout


@pytest.mark.parametrize("old, new", [
    ("1 + 1", "3"), ('mugrade.submit("a")', "pass"), ('mugrade.submit("a")', "raise ValueError"),
    ('"a")', '"a"); mugrade.submit(1)'), ("submit_other", "submit_unknown"),
])  # fmt: skip
def test_whatever_goes_wrong_is_not_0(tree, old, new):
    path = tree / "tests/hw7/test_submit.py"
    path.write_text(path.read_text().replace(old, new))
    assert run(tree, "submit", "KEY", "hw7").returncode == 1


def test_nothing_selected_is_not_0(tree):
    result = run(tree, "submit", "KEY", "hw7", "-k", "nothing")
    assert result.returncode != 0 and "no submission of hw7" in result.stderr


def test_an_unknown_homework_is_one_line(tree):
    result = run(tree, "submit", "KEY", "hw8")
    assert result.returncode == 2 and result.stderr == "mugrade: hw8: unknown here; wanted one of hw7\n"


def test_publish_keeps_the_answers_of_what_ran(tree):
    path = tree / "tests/hw7/test_submit.py"
    path.write_text(path.read_text().replace("1 + 1", "5"))
    assert run(tree, "publish", "KEY", "hw7", "-k", "easy").returncode == 0
    assert json.loads((tree / "tests/hw7/answers.json").read_text()) == {"easy": [5, [1.5, "x"]], "other": ["a"]}
    assert run(tree, "submit", "KEY", "hw7").returncode == 0


def test_a_learner_publishes_nothing(tree):
    (tree / ".needle").mkdir()
    result = run(tree, "publish", "KEY", "hw7")
    assert result.returncode == 2 and "learner's tree" in result.stderr


# ---- the answers of the course --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_the_reference_agrees_with_the_answers(stage):
    folder = command.folders(ROOT)[stage]
    names = re.findall(r"^def submit_(\w+)", (folder / command.SUBMISSIONS).read_text(), re.M)
    assert len(names) == STAGES[stage]
    assert sorted(json.loads((folder / "answers.json").read_text())) == sorted(names)
    result = run(ROOT, "submit", "KEY", stage)
    assert result.returncode == 0, result.stdout[-2000:]
