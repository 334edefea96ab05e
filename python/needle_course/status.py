"""How far a learner is: questions and points, from what the last checks recorded or from checks made now."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, files, results
from .regions import Region, is_blank
from .tree import RECORD, LearnerTree

RESULTS = ".needle/results"
UNCHECKED = "unchecked"  # filled, but not checked since it was last edited
GIVEN = "given"  # the course has solved it for whoever joins late: not the learner's, so it does not count


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
    def counted(self) -> list[Progress]:
        """The learner's own questions."""
        return [question for question in self.questions if question.status != GIVEN]

    @property
    def passed(self) -> int:
        return sum(question.status == results.PASSED for question in self.counted)

    @property
    def earned(self) -> float:
        return sum(question.earned for question in self.counted)

    @property
    def points(self) -> float:
        return sum(question.points for question in self.counted)

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "path": str(self.path),
            "source": self.source,
            "passed": self.passed,
            "total": len(self.counted),
            "earned": self.earned,
            "points": self.points,
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
    given = {tag: body for tag, body in answers.bodies_in(learner.starter()).items() if tag in learner.solved}
    stages = {name: progress_of(root, course.stage(name), given) for name in present}
    return Status(root, learner.stage, "checked now" if check_now else "recorded", stages)


def progress_of(root: Path, stage: Any, given: Mapping[str, str]) -> list[Progress]:
    found, last = regions_in(root, stage), recorded(root, stage.id)
    return [progress(question, found, given, last) for question in stage.questions]


def check_stages(course: Any, root: Path, names: list[str]) -> None:
    from . import check, console

    for name in console.track(names, "checking each stage"):
        record(root, check.run(course, name).to_json(), course)


def untouched(question: Any) -> Progress:
    return Progress(question.id, question.title, results.NOT_IMPLEMENTED, 0, question.points)


def progress(
    question: Any, found: Mapping[str, Region], given: Mapping[str, str], last: Mapping[str, dict]
) -> Progress:
    """A question's status from its parts; a part that changed since its last check is unchecked."""
    if was_given(question, found, given):
        return Progress(question.id, question.title, GIVEN, 0, question.points)
    statuses = [status_of(part.id, found.get(part.id), last.get(part.id)) for part in question.parts]
    status = next((one for one in (*results.STATUSES[:-1], UNCHECKED) if one in statuses), results.PASSED)
    earned = round(question.points * statuses.count(results.PASSED) / len(statuses), 2)
    when = max((last[part.id]["checked"] for part in question.parts if part.id in last), default="")
    return Progress(question.id, question.title, status, earned, question.points, when)


def was_given(question: Any, found: Mapping[str, Region], given: Mapping[str, str]) -> bool:
    """Whether every region of a question is as the course solved it for the learner ({tag: body})."""
    mine = {part.id: found.get(part.id) for part in question.parts}
    return all(region and not is_blank(region) and given.get(tag) == region.body for tag, region in mine.items())


def status_of(tag: str, region: Region | None, last: Mapping[str, str] | None) -> str:
    if last and last["answer"] == answer_digest(region):
        return last["status"]
    return results.NOT_IMPLEMENTED if region is not None and is_blank(region) else UNCHECKED


# ---- what checks leave behind ---------------------------------------------------------------------------------------


def record(root: Path, report: dict[str, Any], course: Any) -> None:
    """Keep what a check said about each part, for a later `status`."""
    stage = report["stage"]
    known, found = recorded(root, stage), regions_in(root, course.stage(stage))
    for part in (part for question in report["questions"] for part in question["parts"]):
        known[part["id"]] = {
            "status": part["status"],
            "checked": time.strftime("%Y-%m-%d %H:%M"),
            "answer": answer_digest(found.get(part["id"])),
        }
    files.write_whole(root / RESULTS / f"{stage}.json", json.dumps(known, indent=1).encode())


def recorded(root: Path, stage: str) -> dict[str, dict[str, str]]:
    """{part: what its last check said}, of what can be read."""
    try:
        entries = json.loads((root / RESULTS / f"{stage}.json").read_bytes()).items()
    except (OSError, ValueError, AttributeError):
        return {}
    return {part: entry for part, entry in entries if {"status", "checked", "answer"} <= set(entry)}


def answer_digest(region: Region | None) -> str:
    return files.digest(region.body.encode("utf-8", "surrogateescape")) if region else "no region"


def regions_in(root: Path, stage: Any) -> dict[str, Region]:
    """{tag: region} of the files that a stage's questions are in."""
    contents = {path: (root / path).read_bytes() for path in stage.files if (root / path).is_file()}
    return {tag: region for path, data in contents.items() for tag, region in answers.regions_of(path, data).items()}
