"""What a check found: cases in parts in questions in a report, as data, as JSON and as JUnit's XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASSED, FAILED, NOT_IMPLEMENTED, BLOCKED, ERROR = "passed", "failed", "not_implemented", "blocked", "error"
SKIPPED = "skipped"  # of a case only: what it needs is not here, data mostly
STATUSES = (ERROR, FAILED, NOT_IMPLEMENTED, BLOCKED, PASSED)  # the first that a part has is its question's
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Case:
    """One named result: a test function with its parameters."""

    name: str
    status: str
    message: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "status": self.status, "message": self.message, "seconds": round(self.seconds, 3)}


@dataclass
class PartResult:
    """A part, that is a region, with the cases that look at it. `hint` holds as many hints as were asked for."""

    id: str
    title: str
    status: str
    message: str = ""
    hint: str = ""
    cases: list[Case] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        kept = {"id": self.id, "title": self.title, "status": self.status, "message": self.message, "hint": self.hint}
        return {**kept, "cases": [case.to_json() for case in self.cases]}


@dataclass
class QuestionResult:
    """A question with its parts. `earned` is the share of `points` that its passed parts have."""

    id: str
    title: str
    points: float
    parts: list[PartResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def status(self) -> str:
        return worst(part.status for part in self.parts)

    @property
    def earned(self) -> float:
        passed = sum(part.status == PASSED for part in self.parts)
        return round(self.points * passed / len(self.parts), 2) if self.parts else 0.0

    @property
    def message(self) -> str:
        """The message of the part that decides the status."""
        return next((part.message for part in self.parts if part.status == self.status), "")

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status,
            "earned": self.earned,
            "points": self.points,
            "seconds": round(self.seconds, 3),
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass
class Report:
    """What a check of a stage, or of one question of it, found in the tree at `path`."""

    stage: str
    path: Path
    questions: list[QuestionResult] = field(default_factory=list)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether all that was asked for is green; never so if nothing was asked for."""
        return bool(self.questions) and all(question.status == PASSED for question in self.questions)

    @property
    def passed_count(self) -> int:
        return sum(question.status == PASSED for question in self.questions)

    @property
    def earned(self) -> float:
        return round(sum(question.earned for question in self.questions), 2)

    @property
    def points(self) -> float:
        return round(sum(question.points for question in self.questions), 2)

    def parts(self) -> Iterator[PartResult]:
        for question in self.questions:
            yield from question.parts

    def part(self, name: str) -> PartResult:
        """The result of the part of that tag; raises KeyError if it was not asked for."""
        return {part.id: part for part in self.parts()}[name]

    def to_json(self) -> dict[str, Any]:
        """The document that `check --json` prints; `passed` and `total` count questions."""
        return {
            "stage": self.stage,
            "path": str(self.path),
            "passed": self.passed_count,
            "total": len(self.questions),
            "seconds": round(self.seconds, 3),
            "questions": [question.to_json() for question in self.questions],
            "notes": self.notes,
        }


def worst(statuses: Iterable[str]) -> str:
    """The status that decides; what has no results at all is an error, so that nothing passes unseen."""
    found = set(statuses)
    return next((status for status in STATUSES if status in found), ERROR)


# ---- JUnit ----------------------------------------------------------------------------------------------------------


def to_junit(report: Report) -> str:
    """The report in the XML form that build servers read: a testcase per case, in a class per part."""
    cases = [(part, case) for part in report.parts() for case in part.cases or [Case(part.id, part.status)]]
    kinds = [junit_kind(part, case) for part, case in cases]
    suite = ET.Element(
        "testsuite",
        name=report.stage,
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time=f"{report.seconds:.3f}",
    )
    for (part, case), kind in zip(cases, kinds):
        element = ET.SubElement(
            suite,
            "testcase",
            classname=part.id.replace("/", "."),
            name=printable(case.name),
            time=f"{case.seconds:.3f}",
        )
        if kind:
            text = printable(case.message or part.message)
            ET.SubElement(element, kind, message=text.partition("\n")[0]).text = text
    root = ET.Element("testsuites")
    root.append(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def junit_kind(part: PartResult, case: Case) -> str:
    if case.status == PASSED and part.status not in (PASSED, FAILED, NOT_IMPLEMENTED, BLOCKED):
        return "error"  # the part is red for a reason that no case shows: results are missing
    return {PASSED: "", FAILED: "failure", NOT_IMPLEMENTED: "failure", SKIPPED: "skipped"}.get(case.status, "error")


def printable(text: str) -> str:
    """The text without what XML 1.0 cannot hold."""
    return NOT_IN_XML.sub("?", text)
