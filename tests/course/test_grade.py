"""Grading: what is taken in and what is refused, points, and the results for machines and people."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import stat
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from needle_course import grade, intake, report, stages
from needle_course.errors import UserError

from tests.course.small_course import put

ANSWERS = "python/needle/answers.py"
MANIFEST = """
[stages.hw1]
title = "Small & simple"
backend = "np"
notebook = "hw/hw1/hw1.py"
tests = ["tests/hw1"]
points = 10

[[stages.hw1.questions]]
id = "hw1/double"
title = "Double"
points = 4
select = "double"
file = "python/needle/answers.py"
test_file = "tests/hw1/test_small.py"
parts = [{ id = "hw1/double", title = "double", tests = ["test_double"], items = 1 }]

[[stages.hw1.questions]]
id = "hw1/half"
title = "Half"
points = 6
select = "half"
file = "python/needle/answers.py"
test_file = "tests/hw1/test_small.py"
parts = [{ id = "hw1/half", title = "half", tests = ["test_half"], items = 1 }]
"""
TESTS = """
from needle import answers

def test_double():
    assert answers.double(2) == 4

def test_half():
    assert answers.half(6) == 3
"""
SOURCE = """
def double(x):
    ### BEGIN YOUR SOLUTION hw1/double
    {double}
    ### END YOUR SOLUTION hw1/double

def half(x):
    ### BEGIN YOUR SOLUTION hw1/half
    {half}
    ### END YOUR SOLUTION hw1/half
"""
BLANK = {name: f'raise NotImplementedError("hw1/{name} is not implemented yet")' for name in ("double", "half")}
RIGHT = {"double": "return 2 * x", "half": "return x / 2"}


def source(**answers: str) -> bytes:
    return SOURCE.format(**{**RIGHT, **answers}).encode()


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> stages.Course:
    """A bundle of one small stage."""
    root = put(tmp_path / "course", {"hw/stages.toml": MANIFEST})
    (root / "starters").mkdir()
    pristine = {
        "hw/stages.toml": MANIFEST.encode(),
        "python/needle/__init__.py": b"",
        ANSWERS: source(**BLANK),
        "tests/hw1/test_small.py": TESTS.encode(),
    }
    monkeypatch.setattr(grade, "pristine_tree", lambda *_: dict(pristine))
    return stages.load(root)


def handed_in(folder: Path, content: bytes, name: str = ANSWERS) -> Path:
    return put(folder, {name: content})


def zipped(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def graded(course: stages.Course, *paths: Path, out: Path | None = None) -> grade.Grades:
    return grade.run(course, "hw1", list(paths), out or course.root.parent / "out")


# ---- points ---------------------------------------------------------------------------------------------------------


def test_points_of_a_tree(course, tmp_path):
    grades = graded(course, handed_in(tmp_path / "ada", source(half="return x")))
    document = grades.to_json()
    assert (document["stage"], document["self_check"]) == ("hw1", True)
    [one] = document["submissions"]
    assert {"id", "score", "max_score", "status", "questions"} <= set(one)
    assert (one["id"], one["score"], one["max_score"], one["status"]) == ("ada", 4, 10, "graded")
    keys = {"id", "status", "verdict", "score", "max_score", "seconds", "limit_s", "message"}
    assert all(keys <= set(question) for question in one["questions"])
    assert [(q["status"], q["verdict"], q["score"]) for q in one["questions"]] == [
        ("passed", "OK", 4),
        ("failed", "WA", 0),
    ]


def test_the_starter_earns_nothing_and_the_right_answers_all(course, tmp_path):
    assert graded(course, handed_in(tmp_path / "none", source(**BLANK))).submissions[0].score == 0
    assert graded(course, handed_in(tmp_path / "all", source())).submissions[0].score == 10


def test_the_tests_of_the_course_judge_not_those_handed_in(course, tmp_path):
    tree = handed_in(tmp_path / "sly", source(half="return 0"))
    handed_in(tree, b"def test_double(): pass\ndef test_half(): pass\n", "tests/hw1/test_small.py")
    handed_in(tree, b"raise SystemExit", "tests/hw1/conftest.py")
    assert graded(course, tree).submissions[0].score == 4


def test_a_message_that_is_no_utf_8_is_written_with_a_sign_in_its_place(course, tmp_path):
    tree = handed_in(tmp_path / "ada", source(half=r"raise ValueError('M\udcfcller')"))
    [one] = graded(course, tree, out=tmp_path / "out").submissions
    assert one.score == 4 and "M\udcfcller" in one.report.questions[1].message
    assert all("M?ller" in (tmp_path / "out" / name).read_text("utf-8") for name in ("results.json", "report.html"))


def test_a_zip_with_a_top_folder(course, tmp_path):
    path = zipped(tmp_path / "my work.zip", {f"work/{ANSWERS}": source(), "__MACOSX/x": b"", "work/.git/y": b"\0"})
    [one] = graded(course, path).submissions
    assert (one.id, one.score) == ("my_work", 10)


def test_a_folder_of_submissions(course, tmp_path):
    folder = tmp_path / "class"
    handed_in(folder / "ada", source())
    folder.joinpath("b").mkdir()
    zipped(folder / "=bob.zip", {ANSWERS: source(half="return x")})
    zipped(folder / "holiday.zip", {"beach.txt": b"sun"})
    grades = graded(course, folder, out=tmp_path / "out")
    assert {one.id: one.score for one in grades.submissions} == {"ada": 10, "b": 0, "bob": 4, "holiday": 0}
    assert {one.id for one in grades.submissions if one.refused} == {"b", "holiday"}
    for name in ("ada", "bob", "holiday"):
        assert json.loads((tmp_path / "out" / name / "results.json").read_text())["score"] == grades_of(grades)[name]
    rows = list(csv.reader((tmp_path / "out" / "grades.csv").read_text().splitlines()))
    assert rows[0] == ["submission", "hw1/double", "hw1/half", "score", "note"]
    assert {row[0]: float(row[3]) for row in rows[1:]} == grades_of(grades)


def grades_of(grades: grade.Grades) -> dict[str, float]:
    return {one.id: one.score for one in grades.submissions}


def test_one_submission_leaves_nothing_to_the_next(course, tmp_path):
    first, second = handed_in(tmp_path / "a", source()), handed_in(tmp_path / "b", source(**BLANK))
    assert [one.score for one in graded(course, first, second).submissions] == [10, 0]
    assert [one.id for one in graded(course, first, first).submissions] == ["a", "a-1"]


def test_one_unpacked_tree_among_zips_is_not_all_that_is_graded(course, tmp_path):
    handed_in(tmp_path / "all/ada", source())
    zipped(tmp_path / "all/bob.zip", {ANSWERS: source(half="return x")})
    assert grades_of(graded(course, tmp_path / "all")) == {"ada": 10, "bob": 4}


@pytest.mark.parametrize("name, text", [
    ("tests/hw1/test_small.py", "def test_double(): pass\\ndef test_half(): pass\\n"),
    ("tests/hw1/conftest.py", "raise SystemExit(3)"),
    ("python/needle/__init__.py", "raise SystemExit(3)"),
])  # fmt: skip
def test_what_one_submission_writes_into_the_tree_is_gone_for_the_next(course, tmp_path, name, text):
    write = f"import pathlib; pathlib.Path(__file__).parents[2].joinpath({name!r}).write_text('{text}'); return 2 * x"
    first, second = handed_in(tmp_path / "a", source(double=write)), handed_in(tmp_path / "b", source(half="return x"))
    assert [one.score for one in graded(course, first, second, second).submissions][1:] == [4, 4]


def test_earlier_answers_are_taken_where_the_course_has_none():
    checkout = stages.load(Path(__file__).resolve().parents[2])
    hw2 = checkout.stage("hw2")
    assert grade.names_taken(checkout, hw2) == hw2.files
    taken = grade.names_taken(dataclasses.replace(checkout, kind="bundle"), hw2)
    assert set(taken) == {*checkout.stage("hw0").files, *checkout.stage("hw1").files, *hw2.files}


# ---- what is refused ------------------------------------------------------------------------------------------------


def bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ANSWERS, b"#" * (9 << 20))
    return stream.getvalue()


def link_in_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo(ANSWERS)
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return stream.getvalue()


def zip_of(*entries: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


ZIPS = {
    "other files": (zip_of(("beach.txt", b"sun")), "holds none of the files"),
    "broken": (b"PK\x03\x04" + bytes(range(256)) * 9, "cannot be read as a zip"),
    "no zip": (b"hello", "cannot be read as a zip"),
    "empty": (b"", "cannot be read as a zip"),
    "parent path": (zip_of((ANSWERS, b""), ("../evil.py", b"")), "leaves its folder"),
    "absolute path": (zip_of((ANSWERS, b""), ("/etc/evil", b"")), "leaves its folder"),
    "backslashes": (zip_of((ANSWERS, b""), ("..\\..\\evil", b"")), "leaves its folder"),
    "drive": (zip_of((ANSWERS, b""), ("c:evil", b"")), "leaves its folder"),
    "two of a name": (zip_of((ANSWERS, b""), (ANSWERS.upper(), b"")), "more than once"),
    "bomb": (bomb(), "suspiciously small"),
    "link": (link_in_zip(), "is a link"),
    "too large": (zip_of((ANSWERS, b"#" * ((10 << 20) + 1))), "larger than 10 MiB"),
    "not UTF-8": (zip_of((ANSWERS, b"x = '\xff'")), "not UTF-8 at byte 5"),
    "NUL": (zip_of((ANSWERS, b"x = 1\0")), "NUL byte"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_that_is_refused_is_one_line(course, tmp_path, name):
    content, words = ZIPS[name]
    path = tmp_path / "hand in.zip"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        graded(course, path)
    assert words in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_link_in_a_folder_is_refused(course, tmp_path):
    tree = handed_in(tmp_path / "tree", b"", "python/needle/other.py")
    (tree / ANSWERS).symlink_to(handed_in(tmp_path / "secret", source()) / ANSWERS)
    with pytest.raises(UserError, match="is a link"):
        graded(course, tree)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "python").symlink_to(tmp_path / "secret" / "python")
    with pytest.raises(UserError, match="is a link"):
        intake.take(tmp_path / "linked", [ANSWERS])


def test_a_missing_path_and_a_folder_without_code_are_one_line(course, tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        graded(course, tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds none of the files"):
        graded(course, tmp_path / "empty")


# ---- results --------------------------------------------------------------------------------------------------------


def test_results_for_gradescope(course, tmp_path):
    graded(course, handed_in(tmp_path / "ada", source(half="return x")), out=tmp_path / "out")
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert document["score"] == 4 and document["extra_data"]["self_check"] is True
    assert [(test["score"], test["max_score"], test["status"]) for test in document["tests"]] == [
        (4, 4, "passed"),
        (0, 6, "failed"),
    ]
    assert "test_half" in document["tests"][1]["output"]
    assert "self-check" in document["output"]


class Page(HTMLParser):
    """Collects what a page fetches or runs, and whether its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.fetched += [value for key, value in attributes if key in ("src", "srcset") or key.startswith("on")]
        self.fetched += [tag] if tag in ("script", "link", "iframe", "img", "object") else []
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_and_shows_no_markup_of_the_learner(course, tmp_path):
    evil = "assert False, '<script>alert(1)</script>'"
    graded(course, handed_in(tmp_path / "ada", source(half=evil)), out=tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.fetched == []
    assert "&lt;script&gt;" in text and "Small &amp; simple" in text
    assert "4 of 10 points" in text and "self-check" in text
    assert "prefers-color-scheme: dark" in text and "default-src 'none'" in text


def test_the_table_on_a_terminal(course, tmp_path, capsys):
    grades = graded(course, handed_in(tmp_path / "ada", source(half="return x")))
    grade.show(grades)
    printed = capsys.readouterr().out
    for words in ("hw1/double", "4 / 4", "0 / 6", "4 / 10", "self-check"):
        assert words in printed
    report.show(grades.submissions[0].report)
    assert "hw1/half" in capsys.readouterr().out


def test_cells_are_no_formulas():
    assert [grade.defused(text) for text in ("=cmd()", "+1", "@x", "ada")] == ["'=cmd()", "'+1", "'@x", "ada"]
