"""Grades submissions by the checks of a stage: points per question, results for machines and a page for people.

A submission's files of the stage are put into a pristine tree, so that it is judged by the course's tests and not by
its own. Its code runs in a process with limits but not behind a fence: whoever wants to can cheat, so every result
says that it is a self-check. `Judge` is the seam behind which a sandboxed one will stand.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from . import check, files, intake, stages, starter, testrun, tree, trees
from . import report as pages
from .console import track
from .errors import UserError
from .results import BLOCKED, ERROR, FAILED, NOT_IMPLEMENTED, PASSED, QuestionResult, Report

SELF_CHECK = "self-check: the submission ran without a fence, so this proves nothing about who wrote it or what it did"
VERDICTS = {PASSED: "OK", FAILED: "WA", NOT_IMPLEMENTED: "MISSING", BLOCKED: "BLOCKED", ERROR: "EXC"}
NO_FENCE = "E"  # the lowest rung of the sandbox ladder: limits on time and memory, nothing else


@dataclass
class Submission:
    """What was handed in, and what came of it."""

    id: str
    path: Path
    contents: dict[str, bytes] = field(default_factory=dict)
    refused: str = ""
    report: Report | None = None

    @property
    def questions(self) -> list[QuestionResult]:
        return self.report.questions if self.report else []

    @property
    def score(self) -> float:
        return self.report.earned if self.report else 0.0


class Judge(Protocol):
    """Says what a submission's files are worth; how far the answer can be trusted is its rung."""

    rung: str
    self_check: bool

    def report(self, contents: dict[str, bytes]) -> Report: ...


class SelfCheck:
    """The checks of `needle-course check`, in a pristine tree that takes one submission after the other."""

    rung = NO_FENCE
    self_check = True

    def __init__(self, stage: stages.Stage, names: Sequence[str], pristine: dict[str, bytes], folder: Path) -> None:
        self.stage, self.names, self.pristine, self.folder = stage, names, pristine, folder
        trees.write(pristine, folder)

    def is_disturbed(self) -> bool:
        """Whether a submission wrote into the tree: changed what is not a submission's, or left a module behind."""
        given = {self.folder / name: content for name, content in self.pristine.items() if name not in self.names}
        if any(files.differs(path, content) for path, content in given.items()):
            return True
        known = {*given, *(self.folder / name for name in self.names)}
        return any(path not in known for path in self.folder.rglob("*.py"))

    def report(self, contents: dict[str, bytes]) -> Report:
        """Only files that differ are written: so a native module that did not change is not built again."""
        if self.is_disturbed():
            shutil.rmtree(self.folder, ignore_errors=True)
            trees.write(self.pristine, self.folder)
        for name in self.names:
            content = contents.get(name, self.pristine.get(name))
            path = self.folder / name
            if content is not None and files.differs(path, content):
                files.write_whole(path, content)
        return check.run(stages.load(self.folder), self.stage.id)


@dataclass
class Grades:
    """All submissions of a run, and where the results lie."""

    stage: stages.Stage
    out: Path
    judge: Judge
    submissions: list[Submission] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage.id,
            "rung": self.judge.rung,
            "self_check": self.judge.self_check,
            "out": str(self.out),
            "submissions": [submission_as_json(one, self.stage) for one in self.submissions],
        }


def run(course: stages.Course, stage_id: str, paths: Sequence[Path], out: Path) -> Grades:
    """Grade each path (a tree, a zip, or a folder of them) and write the results into the folder `out`.

    One submission: out/results.json (Gradescope's keys) and out/report.html. Several: a folder for each, and a page
    and a table of all. Raises UserError for a path that is none of these and, if it is the only one, for what cannot be
    taken; among several, such a one gets 0 points and its reason.
    """
    stage = course.stage(stage_id)
    submissions = list(expanded(course, stage, paths))
    prepare(out, submissions, stage)
    with tempfile.TemporaryDirectory(prefix="needle-grade-") as folder:
        judge = SelfCheck(stage, names_taken(course, stage), pristine_tree(course, stage_id), Path(folder, "tree"))
        grades = Grades(stage, out, judge, submissions)
        for one in track(submissions, f"grading {stage_id}") if len(submissions) > 1 else submissions:
            if not one.refused:
                one.report = judge.report(one.contents)
            write_one(place_of(one, grades), one, grades)
    if len(submissions) > 1:
        write_all(grades)
    return grades


def pristine_tree(course: stages.Course, stage: str) -> dict[str, bytes]:
    """The starter of a stage. A learner's tree has no other than its own, as it was given."""
    if course.kind != "tree":
        return starter.given(course, stage)
    learner = tree.LearnerTree.read(course.root)
    if learner.stage != stage:
        raise UserError(
            f"{course.root}: is at {learner.stage}, so it grades no {stage}; name the course: --course PATH"
        )
    return learner.starter()


# ---- what is handed in ----------------------------------------------------------------------------------------------


def expanded(course: stages.Course, stage: stages.Stage, paths: Sequence[Path]) -> Iterator[Submission]:
    """The submissions that the paths name: themselves, or what a folder of them holds."""
    found: list[Path] = []
    for path in paths:
        found += in_folder(path, stage) if path.is_dir() else [path]
    names: set[str] = set()
    for path in found:
        one = Submission(unused(path.resolve().stem or "submission", names), path)
        try:
            one.contents = contents_of(course, stage, path)
        except UserError as error:
            if len(found) == 1:
                raise
            one.refused = str(error)
        yield one


def in_folder(folder: Path, stage: stages.Stage) -> list[Path]:
    """The folder itself if it is a submission, else the folders and zips in it."""
    inside = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    itself = any((folder / name).is_file() for name in stage.files)
    zips = any(entry.suffix == ".zip" for entry in inside)  # beside one folder they make it one submission of several
    if itself or (not zips and intake.holds_any(folder, stage.files)):
        return [folder]
    return [entry for entry in inside if entry.is_dir() or entry.suffix == ".zip"] or [folder]


def contents_of(course: stages.Course, stage: stages.Stage, path: Path) -> dict[str, bytes]:
    if is_checkout(path):  # the reference has later stages in the same files
        solved = trees.solved(stages.load(path), stage.id)
        return {name: solved[name] for name in stage.files}
    contents = intake.take(path, names_taken(course, stage))
    if not set(contents) & set(stage.files):
        raise UserError(
            f"{path}: holds none of the files of {stage.id} ({', '.join(stage.files[:3])}, …); hand in those"
        )
    return contents


def names_taken(course: stages.Course, stage: stages.Stage) -> tuple[str, ...]:
    """The files taken from a submission: those of the stage and, where the pristine tree is blank, of earlier ones.

    A checkout solves earlier stages, so a mistake in them costs nothing again; a bundle holds no solutions.
    """
    if course.kind == "checkout":
        return stage.files
    return tuple(dict.fromkeys(name for present in course.present(stage.id) for name in course.stage(present).files))


def is_checkout(path: Path) -> bool:
    return (path / stages.MANIFEST).is_file() and stages.load(path).kind == "checkout"


def unused(name: str, taken: set[str]) -> str:
    """A name for a folder: plain letters, and another than those before it."""
    plain = re.sub(r"[^\w.-]+", "_", name).strip("._-") or "submission"
    choices = (f"{plain}-{number}" if number else plain for number in range(10**6))
    fresh = next(choice for choice in choices if choice.casefold() not in taken)
    taken.add(fresh.casefold())
    return fresh


# ---- results --------------------------------------------------------------------------------------------------------


def submission_as_json(one: Submission, stage: stages.Stage) -> dict[str, Any]:
    return {
        "id": one.id,
        "score": one.score,
        "max_score": stage.points,
        "status": "refused" if one.refused else "graded",
        "message": one.refused,
        "questions": [question_as_json(question) for question in one.questions],
    }


def question_as_json(question: QuestionResult) -> dict[str, Any]:
    return {
        "id": question.id,
        "status": question.status,
        "verdict": "PARTIAL" if 0 < question.earned < question.points else VERDICTS[question.status],
        "score": question.earned,
        "max_score": question.points,
        "seconds": round(question.seconds, 3),
        "limit_s": testrun.CASE_SECONDS,
        "message": question.message,
    }


def gradescope(one: Submission, grades: Grades) -> dict[str, Any]:
    """The document that Gradescope reads: a test for each question."""
    document = submission_as_json(one, grades.stage)
    tests = [
        {
            "name": f"{question.id} {question.title}",
            "number": str(number),
            "score": question.earned,
            "max_score": question.points,
            "status": "passed" if question.status == PASSED else "failed",
            "output": "\n\n".join(f"{p.id}: {p.status}\n{p.message}".strip() for p in question.parts),
            "output_format": "text",
            "visibility": "visible",
        }
        for number, question in enumerate(one.questions, start=1)
    ]
    return {
        "score": one.score,
        "execution_time": round(one.report.seconds, 3) if one.report else 0,
        "output": one.refused or SELF_CHECK,
        "output_format": "text",
        "visibility": "visible",
        "tests": tests,
        "extra_data": {"stage": grades.stage.id, "rung": grades.judge.rung, "self_check": True, "needle": document},
    }


def prepare(out: Path, submissions: list[Submission], stage: stages.Stage) -> None:
    """A result from the start, so that a container that is killed for its time still leaves one."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file, wanted a folder for the results; name another")
    out.mkdir(parents=True, exist_ok=True)
    if len(submissions) == 1:
        started = {"score": 0, "output": f"{stage.id}: grading has begun", "tests": []}
        write(out / "results.json", as_json(started))


def place_of(one: Submission, grades: Grades) -> Path:
    return grades.out if len(grades.submissions) == 1 else grades.out / one.id


def write_one(folder: Path, one: Submission, grades: Grades) -> None:
    write(folder / "results.json", as_json(gradescope(one, grades)))
    write(folder / "report.html", page_of(one, grades.stage))


def page_of(one: Submission, stage: stages.Stage) -> str:
    started = time.strftime("%Y-%m-%d %H:%M")
    body = [f"<p class=notice>{html.escape(SELF_CHECK)}</p>"]
    body.append(f"<p><strong>{one.score:g} of {stage.points:g} points</strong>, graded {started}</p>")
    body += [f"<pre>{html.escape(one.refused)}</pre>"] if one.refused else pages.questions_as_html(one.questions)
    return pages.page(f"{stage.id} {stage.title}: {one.id}", body)


def write_all(grades: Grades) -> None:
    """A page and two tables of all submissions."""
    write(grades.out / "grades.json", as_json(grades.to_json()))
    write(grades.out / "report.html", pages.page(f"{grades.stage.id}: all", class_table(grades)))
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(["submission", *(question.id for question in grades.stage.questions), "score", "note"])
    for one in grades.submissions:
        earned = [question.earned for question in one.questions] or [0] * len(grades.stage.questions)
        table.writerow([defused(one.id), *earned, one.score, defused(one.refused)])
    write(grades.out / "grades.csv", text.getvalue())


def as_json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False)


def write(path: Path, text: str) -> None:
    """Write a result whole. A learner's message or the name of a file may hold what is no UTF-8: a ? stands for it."""
    files.write_whole(path, text.encode("utf-8", "replace"))


def class_table(grades: Grades) -> Iterator[str]:
    yield f"<p class=notice>{html.escape(SELF_CHECK)}</p><table><thead><tr><th>submission</th>"
    yield "<th>note</th><th class=number>points</th></tr></thead><tbody>"
    for one in grades.submissions:
        link = f"<a href='{html.escape(one.id)}/report.html'>{html.escape(one.id)}</a>"
        points = f"{one.score:g} / {grades.stage.points:g}"
        yield f"<tr><td>{link}</td><td>{html.escape(one.refused)}</td><td class=number>{points}</td></tr>"
    yield "</tbody></table>"


def defused(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# ---- on a terminal --------------------------------------------------------------------------------------------------


def show(grades: Grades) -> None:
    """Print points per question and the total, or a line for each of several submissions."""
    from rich.table import Table

    console = pages.new_console()
    table = Table(title=f"{grades.stage.id}: {grades.stage.title}", box=None, pad_edge=False, title_justify="left")
    alone = len(grades.submissions) == 1
    for name in ("question", "title", "status") if alone else ("submission", "note"):
        table.add_column(name)
    table.add_column("points", justify="right")
    for row in rows_of(grades.submissions[0], grades.stage) if alone else class_rows(grades):
        table.add_row(*row)
    console.print(table)
    console.print(SELF_CHECK, style="dim", soft_wrap=True)
    console.print(f"written: {grades.out / 'report.html'}", highlight=False, soft_wrap=True, markup=False)


def rows_of(one: Submission, stage: stages.Stage) -> Iterator[list[Any]]:
    from rich.text import Text

    for question in one.questions:
        status = Text(question.status.replace("_", " "), style=pages.STYLES[question.status])
        yield [question.id, question.title, status, f"{question.earned:g} / {question.points:g}"]
    yield ["", "", "", ""]
    yield ["total", "", "", f"{one.score:g} / {stage.points:g}"]


def class_rows(grades: Grades) -> Iterator[list[Any]]:
    from rich.markup import escape

    for one in grades.submissions:
        yield [escape(one.id), escape(one.refused), f"{one.score:g} / {grades.stage.points:g}"]
