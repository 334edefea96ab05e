"""Notebooks: made from their sources, readable, and run: of the reference, of starters, and as a learner works."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from needle_course import lab, listing, notebook, stages, starter
from needle_course.errors import UserError
from needle_course.figures.library_map import library_map, open_rooms
from needle_course.stages import Course
from needle_course.verdict import Verdict

from tests.course import notebook_walk
from tests.course.small_course import put

ROOT = Path(__file__).resolve().parents[2]
COURSE = stages.load(ROOT)
STAGES = COURSE.order
SECTIONS = ("First, watch it happen", "The contract", "Yours")
BLANK = re.compile(r"show_blank\(([^)]*)\)")
LATER = re.compile(r"\b(?:Homework |hw)(\d)")


@pytest.fixture(scope="module", params=STAGES)
def stage(request: pytest.FixtureRequest) -> Any:
    return COURSE.stage(request.param)


@pytest.fixture(scope="module")
def book(stage: Any) -> Any:
    return notebook.build(COURSE, stage.id)


def texts(book: Any, kind: str) -> list[str]:
    return [cell.source for cell in book.cells if cell.cell_type == kind]


def small(tmp_path: Path, source: str, hints: str = "") -> Course:
    """A course of one stage, as far as a notebook needs one."""
    return Course(put(tmp_path, {"hw/hw1/hw1.py": source, "hw/hw1/hints.toml": hints}), "checkout", {})


# ---- from source to notebook ----------------------------------------------------------------------------------------


def test_a_notebook_is_valid_and_always_the_same(stage, book):
    nbformat.validate(book)
    ids = [cell.id for cell in book.cells]
    assert len(set(ids)) == len(ids)
    assert notebook.to_json(notebook.build(COURSE, stage.id)) == notebook.to_json(book)
    assert not any(cell.get("outputs") for cell in book.cells)


def test_an_edit_renames_one_cell_only(tmp_path):
    before = small(tmp_path / "a", "# %% [markdown]\n# one\n\n# %%\n1\n\n# %%\n1\n")
    after = small(tmp_path / "b", "# %% [markdown]\n# two\n\n# %%\n1\n\n# %%\n1\n")
    ids = [[cell.id for cell in notebook.build(course, "hw1").cells] for course in (before, after)]
    assert ids[0][0] != ids[1][0] and ids[0][1:] == ids[1][1:]


def test_hints_are_folded_and_keep_their_markdown(tmp_path):
    hints = '["hw1/add"]\nhints = ["first", "with $x$", """\n```\n' + "x" * 99 + '\n```\n"""]\n'
    course = small(tmp_path, '# %% [markdown]\n# Try.\n#\n# hints("hw1/add")\n', hints)
    text = notebook.build(course, "hw1").cells[0].source
    assert text.count("<details>") == text.count("</details>") == 3
    assert "<summary>Hint 1 · the idea</summary>\n\nfirst\n" in text
    assert "```\n" + "x" * 99 + "\n```" in text and 'hints("' not in text


@pytest.mark.parametrize(
    "source, hints, complaint",
    [
        ('# %% [markdown]\n# hints("hw1/nothing")\n', "", "no \\['hw1/nothing'\\]"),
        ("# %% [markdown]\n# text\n", '["hw1/add"]\nhints = ["one", "two"]\n', "2 hints, wanted 3"),
        ("# %% [markdown]\n# text\n", '["hw1/add"\n', "mend the file"),
        ("# %%\nx = '" + "x" * 100 + "'\n", "", "a line of 106 columns"),
        ("# %% [markdown]\n# " + "x" * 101 + "\n", "", "a line of 101 columns"),
    ],
)
def test_what_does_not_hold_together_is_named(tmp_path, source, hints, complaint):
    with pytest.raises(UserError, match=complaint):
        notebook.build(small(tmp_path, source, hints), "hw1")


def test_writing_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    course = small(tmp_path, "# %%\n1\n")
    path = notebook.write(course, "hw1", tmp_path / "out")
    path.write_text("edited", encoding="utf-8")
    assert notebook.write(course, "hw1", tmp_path / "out") == path
    assert nbformat.read(path, 4).cells[0].source == "1"
    assert [file.name for file in path.parent.iterdir()] == ["hw1.ipynb"]


def test_a_stage_without_a_source_is_named(tmp_path):
    with pytest.raises(UserError, match="hw9"):
        notebook.build(Course(tmp_path, "checkout", {}), "hw9")


# ---- what a reader finds --------------------------------------------------------------------------------------------


def test_every_question_shows_a_blank_and_every_part_has_hints_and_a_check(stage, book):
    shown = set(re.findall(r'"([\w/]+)"', " ".join(BLANK.findall("\n".join(texts(book, "code"))))))
    parts = {part.id for part in stage.parts}
    for question in stage.questions:
        assert shown & {part.id for part in question.parts}, f"no show_blank of {question.id}"
    hints = notebook.read_hints(ROOT / "hw" / stage.id / "hints.toml")
    assert parts == set(hints), f"hints.toml differs from the manifest in {parts ^ set(hints)}"
    source = (ROOT / "hw" / stage.id / f"{stage.id}.py").read_text(encoding="utf-8")
    assert all(f'hints("{part}")' in source for part in parts)
    checks = {notebook_walk.checked(cell) for cell in book.cells} - {None, stage.id}
    covered = {part.id for check in checks for part in COURSE.parts_of(check)}
    assert covered >= parts, f"no check of {parts - covered}"


def test_every_section_is_there(stage, book):
    prose = "\n".join(texts(book, "markdown"))
    for section in SECTIONS:
        assert section in prose
    assert prose.count("that want a measurement") >= 3
    assert any(source.startswith("here(") for source in texts(book, "code"))
    assert (ROOT / "hw" / stage.id / "answers.md").is_file()


def test_the_first_code_comes_within_three_cells(book):
    assert "code" in [cell.cell_type for cell in book.cells[:3]]


def test_nothing_is_mentioned_that_comes_later(stage, book):
    own = int(re.search(r"\d", stage.id)[0])
    prose = re.sub(r"<details>.*?</details>", "", "\n".join(texts(book, "markdown")), flags=re.DOTALL)
    assert not [number for number in LATER.findall(prose) if int(number) > own]
    for word in ("you will see later", "in a later", "in the next homework", "will be explained"):
        assert word not in prose


def test_code_is_plain_python_without_network_or_magics_U020(book):
    for number, source in enumerate(texts(book, "code")):
        ast.parse(source)  # a line that starts with % or ! is no Python
        if number:  # the set-up cell may fetch the project, if somebody says from where
            assert not re.search(r"urllib|requests|pip install|fetch\(|https?://", source)


def test_answers_to_the_measurements_stay_with_the_staff(stage):
    assert COURSE.files().get(f"hw/{stage.id}/answers.md", "never") == "never"


# ---- what a notebook has at hand ------------------------------------------------------------------------------------


def test_the_map_shows_what_is_open_and_lights_one_room():
    picture = library_map("ops/BroadcastTo.gradient", "hw1")
    assert "BroadcastTo.gradient" in picture.svg() and "ops/" in picture.alt
    assert {room.name for room in open_rooms("hw1")} == {"numpy", "autograd", "init", "ops", "apps"}
    assert {"nn", "optim", "data"} <= {room.name for room in open_rooms("hw2")}
    with pytest.raises(ValueError, match="no room for 'kitchen'"):
        library_map("kitchen", "hw1")


def test_rooms_of_the_map_exist():
    for name in STAGES:
        for room in open_rooms(name):
            places = [ROOT / room.path, ROOT / "python/needle" / room.path, ROOT / "hw/hw0" / room.path]
            assert any(place.exists() for place in places), room.path


def test_sources_are_shown_without_the_course_s_marks():
    shown = listing.find(ROOT, "ops/Negate")
    assert "return -out_grad" in shown.text and "SOLUTION" not in shown.text
    assert shown.path == "python/needle/ops/ops_mathematic.py"
    assert "class" not in listing.find(ROOT, "ops/Negate.gradient").text
    assert "softmax_regression_epoch_cpp(" in listing.find(ROOT, "hw0/softmax_regression_epoch_cpp").text
    with pytest.raises(UserError, match="no 'Nothing'"):
        listing.find(ROOT, "ops/Nothing")


@pytest.mark.parametrize("tag", [part.id for name in STAGES for part in COURSE.stage(name).parts])
def test_a_blank_shows_as_a_learner_gets_it(tag):
    shown = lab.show_blank(tag)
    assert f"BEGIN YOUR SOLUTION {tag}" in shown.text or f" {tag}" in shown.text
    assert f"{tag} is not implemented yet" in shown.text or tag in shown.text.split("BEGIN YOUR SOLUTION")[1]
    assert shown.text[0] != " "


def test_a_graph_is_drawn_with_every_node_below_its_inputs():
    class Node:
        shape, requires_grad = (2,), True

        def __init__(self, *inputs):
            self.inputs, self.op = inputs, (object() if inputs else None)

    leaf = Node()
    middle = Node(leaf, leaf)
    top = Node(middle, leaf)
    picture = lab.show_graph(top, names={"x": leaf}, notes={top: "the end"})
    heights = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)" text-anchor', picture.svg())]
    assert picture.alt == "graph of 2 operators and 1 given tensors"
    assert picture.svg().count("<path") == 8  # two for each of four edges
    assert len(heights) == 7 and "the end" in picture.svg()


def test_pictures_have_words():
    plot = lab.curves({"loss": [3.0, 1.0]}, xlabel="epoch")
    assert plot.alt == "loss over epoch: loss goes from 3 to 1"
    assert 'alt="loss over epoch' in plot._repr_html_()


def verdict(*parts: dict) -> Verdict:
    return Verdict("hw1/forward", {"seconds": 1.0, "questions": [{"id": "hw1/forward", "parts": list(parts)}]})


def test_a_verdict_says_in_words_what_is_red_and_why():
    red = {
        "id": "hw1/exp_forward",
        "status": "failed",
        "message": "got <3>, wanted 4",
        "hint": "twice?",
        "cases": [
            {"name": "test_exp[1]", "status": "failed", "message": "off by 2"},
            {"name": "b", "status": "passed"},
        ],
    }
    shown = verdict({"id": "hw1/log_forward", "status": "passed", "cases": []}, red)
    assert not shown.green and shown.first_trouble() == "hw1/exp_forward: got <3>, wanted 4"
    page, text = shown._repr_html_(), repr(shown)
    assert "got &lt;3&gt;, wanted 4" in page and "✗ failed" in page and "✓ passed" in page
    for line in ("hw1/exp_forward · 1 of 2 cases", "got <3>, wanted 4", "twice?", "test_exp[1]", "off by 2"):
        assert line in text


@pytest.mark.parametrize("status", ["failed", "not_implemented", "blocked", "error", "a new one"])
def test_only_passed_is_green(status):
    assert verdict({"id": "hw1/exp_forward", "status": "passed"}).green
    assert not verdict({"id": "hw1/exp_forward", "status": status, "message": "no"}).green
    assert not verdict().green  # nothing was checked


def test_a_check_that_says_nothing_is_red(monkeypatch):
    silent = subprocess.CompletedProcess([], 0, stdout="", stderr="")
    monkeypatch.setattr(lab, "_course_command", lambda *words: silent)
    with pytest.raises(lab.Red, match="printed nothing"):
        lab.check("hw1/forward")


def test_code_runs_in_a_process_of_its_own(capsys):
    lab.run_fresh("import needle, sys; print(needle.__file__)")
    assert str(ROOT / "python" / "needle") in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="status 1"):
        lab.run_fresh("raise ValueError('no')")


def test_digits_are_split_with_balanced_classes():
    train, train_labels, test, test_labels = lab.digits()
    assert train.shape == (1438, 64) and test.shape == (359, 64) and train.min() >= 0 and train.max() == 1
    assert all(34 <= (test_labels == digit).sum() <= 37 for digit in range(10))
    assert len(train_labels) == 1438


def test_set_up_never_installs_numpy_U021():
    assert "numpy" not in {*lab.NEEDED, *lab.NEEDED.values()}


def test_set_up_says_what_it_did_in_five_lines_and_may_run_again(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(lab._Place, "stage", "")
    said = []
    for _ in range(2):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            lab.setup("hw1")
        said.append(stream.getvalue())
    assert said[0] == said[1] and len(said[0].splitlines()) <= 5
    assert str(ROOT) in said[0]
    assert sys.path[0] == str(ROOT / "python") and sys.path.count(str(ROOT / "python")) == 1


# ---- in a learner's tree --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A fresh tree of hw1, in a folder with blanks and letters that are not ASCII, as Drive has them."""
    out = tmp_path_factory.mktemp("My Drive") / "Übung a b"
    starter.make(COURSE, "hw1", out)
    return stages.load(out)


def test_a_starter_s_notebook_runs_up_to_its_first_red_check_U025(learner):
    run = notebook.run(learner, "hw1")
    assert run.stopped_at is not None
    assert notebook_walk.checked(run.notebook.cells[run.stopped_at]) == "hw1/negate_forward"
    assert run.error.startswith("Red:") and "hw1/negate_forward is not implemented yet" in run.error
    shown = run.notebook.cells[run.stopped_at].outputs
    assert any("not implemented" in str(output.get("data", {}).get("text/html", "")) for output in shown)
    assert str(learner.root) in run.notebook.cells[1].outputs[0].text


def in_tree(learner: Course, code: str, *, cwd: Path | None = None, stage: str = "hw1") -> subprocess.CompletedProcess:
    """Run code as a notebook of that tree would, after its set-up cell."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NEEDLE_", "PYTHONPATH"))}
    program = notebook.setup_cell(stage) + "\n" + code
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd or learner.root / "hw" / "hw1", env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_an_edited_file_is_what_runs_U026(learner):
    code = """
import numpy as np
ndl = fresh()
path = show_blank("hw1/exp_forward").path
try:
    ndl.exp(ndl.Tensor([0.0]))
except NotImplementedError as error:
    print(error)
import pathlib
file = _root / path
text = file.read_text(encoding="utf-8")
blank = 'raise NotImplementedError("hw1/exp_forward is not implemented yet")'
file.write_text(text.replace(blank, "return array_api.exp(a)"), encoding="utf-8")
try:
    check("hw1/exp_forward")
    print("green")
    ndl = fresh()
    print(ndl.exp(ndl.Tensor([0.0])))
finally:
    file.write_text(text, encoding="utf-8")
"""
    done = in_tree(learner, code.replace("_root", f"pathlib.Path({str(learner.root)!r})"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "hw1/exp_forward is not implemented yet" in lines and "green" in lines
    assert "1." in lines[-1]


def test_a_check_looks_at_the_learner_s_file_U031(learner):
    path = learner.root / "python/needle/ops/ops_mathematic.py"
    text = path.read_text(encoding="utf-8")
    blank = 'raise NotImplementedError("hw1/negate_forward is not implemented yet")'
    assert blank in text
    try:
        path.write_text(text.replace(blank, "raise RuntimeError('the learner was here')"), encoding="utf-8")
        done = in_tree(learner, 'check("hw1/negate_forward")')
    finally:
        path.write_text(text, encoding="utf-8")
    assert done.returncode != 0 and "Red" in done.stderr and "the learner was here" in done.stdout + done.stderr


def test_without_a_tree_the_set_up_cell_says_what_to_do(tmp_path, learner):
    done = in_tree(learner, "", cwd=tmp_path)
    assert done.returncode != 0 and "no needle tree above" in done.stderr and "run this cell again" in done.stderr


def test_a_notebook_of_a_later_stage_asks_to_advance(learner):
    done = in_tree(learner, "", cwd=learner.root, stage="hw2")
    assert done.returncode != 0 and "is at hw1; take it to hw2 with `needle-course advance`" in done.stderr


def test_a_zip_beside_the_notebook_is_unpacked_once(tmp_path, learner):
    shutil.make_archive(str(tmp_path / "needle-hw1"), "zip", learner.root)
    for _ in range(2):
        done = in_tree(learner, "print(here('ops'))", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert str(tmp_path / "needle-course") in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["needle-course", "needle-hw1.zip"]


def test_the_set_up_cell_fetches_a_zip_from_an_address(tmp_path, learner):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    packed = Path(shutil.make_archive(str(tmp_path / "elsewhere/course"), "zip", learner.root))
    cell = notebook.setup_cell("hw1")
    assert cell.count('SOURCE = ""') == 1
    done = subprocess.run(
        [sys.executable, "-c", cell.replace('SOURCE = ""', f"SOURCE = {packed.as_uri()!r}")],
        cwd=tmp_path / "here", capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and str(tmp_path / "here/needle-course") in done.stdout, done.stderr


# ---- all of them, top to bottom -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_the_reference_s_notebook_runs_top_to_bottom(name):
    run = notebook.run(COURSE, name)
    assert run.passed, f"cell {run.stopped_at}: {run.notebook.cells[run.stopped_at].source[:300]}\n{run.error}"


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_learner_gets_through_in_order_U030(name, tmp_path):
    """Each check is red before its answer is there, green after, and no other cell needs what comes later."""
    tree = tmp_path / "a tree"
    starter.make(COURSE, name, tree)
    red = notebook_walk.walk(COURSE, stages.load(tree), name)
    assert len(red) == len(set(red)), "a check that turned green stays green"
    parts = {part.id for question in red for part in COURSE.parts_of(question)}
    assert parts == {part.id for part in COURSE.stage(name).parts}, "red at first: the check of each part"
