"""How far a learner is: questions and points, from what the last checks recorded or from checks made now."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, files
from .tree import RECORD, LearnerTree

RESULTS = ".needle/results"
UNCHECKED = "unchecked"  # filled, but not checked since it was last edited


@dataclass(frozen=True)
class Progress:
    """One question, and what is known about it."""

    id: str
    title: str
    status: str
    earned: float
    points: float
    checked: str = ""  # when; empty if never since the last edit

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Status:
    """All questions up to a tree's stage."""

    path: Path
    stage: str  # empty where there is no tree yet
    source: str  # "recorded" or "checked now"
    stages: dict[str, list[Progress]] = field(default_factory=dict)

    @property
    def questions(self) -> list[Progress]:
        return [question for questions in self.stages.values() for question in questions]

    @property
    def passed(self) -> int:
        return sum(question.status == "passed" for question in self.questions)

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "path": str(self.path),
            "source": self.source,
            "passed": self.passed,
            "total": len(self.questions),
            "earned": sum(question.earned for question in self.questions),
            "points": sum(question.points for question in self.questions),
            "stages": [
                {"stage": name, "questions": [question.to_json() for question in questions]}
                for name, questions in self.stages.items()
            ],
        }


def run(course: Any, folder: Path, check_now: bool = False) -> Status:
    """The status of a tree, or of a folder that holds none yet: nothing of the course's first stage is done there."""
    root = files.existing_folder(folder)
    if not (root / RECORD).is_file():
        first = course.order[0]
        return Status(root, "", "recorded", {first: [untouched(q) for q in course.stage(first).questions]})
    learner = LearnerTree.read(root)
    present = course.present(learner.stage)
    if check_now:
        check_stages(course, root, present)
    stages = {name: [progress(root, name, q) for q in course.stage(name).questions] for name in present}
    return Status(root, learner.stage, "checked now" if check_now else "recorded", stages)


def check_stages(course: Any, root: Path, names: list[str]) -> None:
    from . import check, console

    for name in console.track(names, "checking each stage"):
        record(root, check.run(course, name).to_json(), course)


def untouched(question: Any) -> Progress:
    return Progress(question.id, question.title, "not_implemented", 0, question.points)


def progress(root: Path, stage: str, question: Any) -> Progress:
    """What the last check said about a question, if nothing in its regions has changed since."""
    last = recorded(root, stage).get(question.id, {})
    if last and last["answers"] == digest_of(root, question):
        return Progress(question.id, question.title, last["status"], last["earned"], question.points, last["checked"])
    if all_blank(root, question):
        return untouched(question)
    return Progress(question.id, question.title, UNCHECKED, 0, question.points)


def all_blank(root: Path, question: Any) -> bool:
    tags = [part.id for part in question.parts]
    return answers.blank_tags(files_of(root, question), tags) == tags


# ---- what checks leave behind ---------------------------------------------------------------------------------------


def record(root: Path, report: dict[str, Any], course: Any) -> None:
    """Keep what a check said about whole questions, for a later `status`."""
    stage = report["stage"]
    known = recorded(root, stage)
    questions = {question.id: question for question in course.stage(stage).questions}
    for result in report["questions"]:
        question = questions[result["id"]]
        if len(result["parts"]) == len(question.parts):
            known[question.id] = {
                "status": result["status"],
                "earned": result["earned"],
                "checked": time.strftime("%Y-%m-%d %H:%M"),
                "answers": digest_of(root, question),
            }
    files.write_whole(root / RESULTS / f"{stage}.json", json.dumps(known, indent=1).encode())


def recorded(root: Path, stage: str) -> dict[str, dict[str, Any]]:
    path = root / RESULTS / f"{stage}.json"
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}


def digest_of(root: Path, question: Any) -> str:
    """Of what stands in the question's regions, or in its whole files where a region cannot be read."""
    contents = files_of(root, question)
    found = {tag: region for path, data in contents.items() for tag, region in answers.regions_of(path, data).items()}
    bodies = [found[part.id].body if part.id in found else repr(contents.get(part.file)) for part in question.parts]
    return files.digest("\0".join(bodies).encode("utf-8", "surrogateescape"))


def files_of(root: Path, question: Any) -> dict[str, bytes]:
    paths = dict.fromkeys(part.file for part in question.parts)
    return {path: (root / path).read_bytes() for path in paths if (root / path).is_file()}
