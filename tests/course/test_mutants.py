"""A few wrong answers of every part in Python of the first stages, each of which must turn its part's check red.

`make test-all` runs the same with more of them, and with C++ and CUDA: tools/mutate_answers.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "course" / "mutants"))

from cpp_mutants import elementwise  # noqa: E402  (the line above finds it)
from python_mutants import mutants  # noqa: E402

TOOL = [sys.executable, str(ROOT / "tools" / "mutate_answers.py")]


@pytest.mark.parametrize("stage", ["hw0", "hw1", "hw2"])
def test_a_wrong_answer_of_each_part_is_caught(stage):
    done = subprocess.run([*TOOL, stage, "--python", "--few", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 survive" in done.stdout


def test_what_no_check_can_see_survives(tmp_path):
    """The tool does tell: an answer that is only written differently is green, so it survives."""
    program = (
        "import mutate_answers as tool, sys\n"
        "tool.wrong_answers = lambda stage, part, tree, few, counts: [\n"
        "    tool.Mutant(part.id, 'the reference', part.file, tree[part.file].decode())]\n"
        "sys.argv = ['mutate_answers', 'hw0/add']\n"
        "sys.exit(tool.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "tools", capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "survives: hw0/add: the reference" in done.stdout


def names(body):
    text = f"def f(a, b):\n    {body}\n"
    return {mutant.name.partition(": ")[2] for mutant in mutants("hw1/f", "f.py", text, 2, 2)}


def test_the_mistakes_that_people_make_are_among_the_mutants():
    assert "a - b → b - a" in names("return a - b")
    assert "return a → return -a" in names("return a")
    assert "a.sum(0, keepdims=True) → a.sum(0)" in names("return a.sum(0, keepdims=True)")
    assert "a.sum(0) → a.mean(0)" in names("return a.sum(0)")
    assert "a < b → a <= b" in names("return a < b")
    assert "a -= b → a = a - b" in names("a -= b")


def test_messages_of_errors_are_no_answers():
    assert names('raise ValueError(f"{a + 1}")') == set()
    assert names('if a < b: raise ValueError("a")') == set()


def test_elementwise_kernels_have_six_wrong_formulas_and_more():
    line = 'NEEDLE_EWISE_SCALAR(Div,      "scalar_div",      a / val);'
    made = dict(elementwise(line))
    assert len(made) >= 6
    assert made["val / a"] == line.replace("a / val", "val / a")
    assert not dict(elementwise("for (;;) {}"))
