"""Checks one question of a tree, or a stage: what is blank, what is right, and why not.

A part whose region is still blank is `not_implemented` without running anything. The tests of the others run in one
process per stage (testrun.py). Whatever is missing makes a part red: a test that was not collected, a case too few, a
needle from another tree. A part that is red while something it needs is red, too, is `blocked` and names that.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

from . import hints as hint_files
from . import regions, stages, testrun
from .errors import UserError
from .results import BLOCKED, ERROR, FAILED, NOT_IMPLEMENTED, PASSED, SKIPPED, Case, PartResult, QuestionResult, Report

BLANK_OF = re.compile(r"([a-z]\w*/\w+) is not implemented yet")
TEST = re.compile(r"(?P<file>[^:]+)::(?P<function>\w+)(?:\[(?P<piece>.*)\])?")


def run(
    course: stages.Course,
    stage_id: str,
    question: str | None = None,
    hints: int = 0,
    case_seconds: float = testrun.CASE_SECONDS,
) -> Report:
    """Check a stage of the tree at course.root, or one question or part of it.

    question      an id with or without its stage: "hw1/backward" or "backward", or a part's, "hw1/matmul_backward"
    hints         how many of the three hints a red part is to show
    case_seconds  how long one test may take

    Raises UserError for a stage, question or part that there is not.
    """
    started = time.monotonic()
    stage = course.stage(stage_id)
    wanted = chosen(course, stage, question)
    report = Report(stage_id, course.root)
    results = check_parts(course, stage, [part for _, parts in wanted for part in parts], case_seconds, report.notes)
    name_what_blocks(course, results, case_seconds)
    for asked, parts in wanted:
        report.questions.append(question_result(asked, [results[part.id] for part in parts]))
    for part in report.parts():
        if part.status != PASSED:
            part.hint = hint_files.of_part(course.root, stage_id, part.id, hints)
    report.seconds = time.monotonic() - started
    return report


def verdict_of(tree: Path, part: str, course: stages.Course | None = None) -> str:
    """The status of one part of a tree, from one process of tests; `blocked` is not looked for."""
    course = course or stages.load(tree)
    stage = course.stage(part.partition("/")[0])
    [(_, parts)] = chosen(course, stage, part)
    return check_parts(course, stage, parts, testrun.CASE_SECONDS, [])[part].status


# ---- what is asked for ----------------------------------------------------------------------------------------------


def chosen(
    course: stages.Course, stage: stages.Stage, question: str | None
) -> list[tuple[stages.Question, list[stages.Part]]]:
    """The questions that are asked for, each with its parts; of a part, its question with that part alone."""
    if question is None:
        return [(asked, list(asked.parts)) for asked in stage.questions]
    name = question if "/" in question else f"{stage.id}/{question}"
    for asked in stage.questions:
        if asked.id == name:
            return [(asked, list(asked.parts))]
    for asked in stage.questions:
        if found := [part for part in asked.parts if part.id == name]:
            return [(asked, found)]
    other = name.partition("/")[0]
    if other != stage.id and other in course.order:
        raise UserError(f"{question}: is of {other}, and {stage.id} is asked for; name {other} (with make: HW={other})")
    known = ", ".join(asked.id for asked in stage.questions)
    raise UserError(f"{question}: {stage.id} has no such question or part; its questions are {known}")


def question_result(asked: stages.Question, parts: list[PartResult]) -> QuestionResult:
    """The question with these of its parts, and the points that they are worth."""
    share = len(parts) / len(asked.parts)
    seconds = sum(case.seconds for part in parts for case in part.cases)
    return QuestionResult(asked.id, asked.title, round(asked.points * share, 2), parts, seconds)


# ---- parts ----------------------------------------------------------------------------------------------------------


def check_parts(
    course: stages.Course, stage: stages.Stage, parts: list[stages.Part], case_seconds: float, notes: list[str]
) -> dict[str, PartResult]:
    """{part: its result}, for parts of one stage."""
    blank = blank_parts(course.root, parts, notes)
    results = {part.id: PartResult(part.id, part.title, NOT_IMPLEMENTED, blank.get(part.id, "")) for part in parts}
    filled = [part for part in parts if part.id not in blank]
    if not filled:
        return results
    unbuilt = what_does_not_build(course.root, filled) if stage.needs_build else {}
    for part in filled:
        if part.id in unbuilt:
            results[part.id] = PartResult(part.id, part.title, ERROR, unbuilt[part.id])
    filled = [part for part in filled if part.id not in unbuilt]
    tests = {part.id: [parsed(test) for test in part.tests] for part in filled}
    outcome = testrun.run_tests(course.root, tests, case_seconds)
    foreign = from_elsewhere(course.root, outcome.imported)
    order = [part.id for part in stage.parts]
    for part in filled:
        wait_for_later_parts(outcome.cases[part.id], order[order.index(part.id) + 1 :])
        results[part.id] = part_result(part, outcome, foreign)
    return results


def wait_for_later_parts(cases: list[Case], later: list[str]) -> None:
    """A case that runs into the blank of a later part waits for it: what comes later is never needed.

    Unless no case is green: then nothing is known of this part yet, and that blank blocks it.
    """
    if not any(case.status == PASSED for case in cases):
        return
    for number, case in enumerate(cases):
        tag = BLANK_OF.search(case.message) if case.status == NOT_IMPLEMENTED else None
        if tag and tag[1] in later:
            cases[number] = Case(case.name, SKIPPED, f"waits for {tag[1]}", case.seconds)


def what_does_not_build(root: Path, parts: list[stages.Part]) -> dict[str, str]:
    """{part: message} of those whose native modules do not compile: an old module must not be judged in their place."""
    on_cuda = [part.id for part in parts if not all("cpu" in parsed(test)[2] for test in part.tests)]
    for group, wanting in (("cpu", [part.id for part in parts]), ("cuda_here", on_cuda)):
        if wanting and (trouble := testrun.build(root, group)):
            return dict.fromkeys(wanting, f"the native modules do not build:\n{trouble}")
    return {}


def parsed(test: str) -> tuple[str, str, str]:
    """ "path::function[piece]" → (path, function, piece)"""
    match = TEST.fullmatch(test)
    if match is None:
        raise UserError(f"hw/stages.toml: {test!r} names no test; write it as path::function or path::function[piece]")
    return match["file"], match["function"], match["piece"] or ""


def blank_parts(root: Path, parts: Iterable[stages.Part], notes: list[str]) -> dict[str, str]:
    """{part: message} of those whose region is blank. A file whose marks are damaged is noted, and its tests decide."""
    blank: dict[str, str] = {}
    texts: dict[str, dict[str, regions.Region]] = {}
    for part in parts:
        if part.file and part.file not in texts:
            texts[part.file] = regions_of(root, part.file, notes)
        region = texts.get(part.file, {}).get(part.id)
        if region is not None and regions.is_blank(region):
            place = f"{part.file}:{region.line}"
            blank[part.id] = f"NotImplementedError: {part.id} is not implemented yet (at {place})"
    return blank


def regions_of(root: Path, file: str, notes: list[str]) -> dict[str, regions.Region]:
    try:
        return regions.regions(regions.read(root / file), file)
    except FileNotFoundError:
        notes.append(f"{file}: is missing; restore it from the starter")
    except UserError as error:
        notes.append(str(error))
    return {}


def from_elsewhere(root: Path, imported: dict[str, str | None]) -> str:
    """ "" if all that was imported lies in the tree, else what does not."""
    for module, file in imported.items():
        if not file:
            return f"the tests imported {module} from a folder without __init__.py; restore it from the starter"
        if not Path(file).resolve().is_relative_to(root.resolve()):
            return f"the tests imported {module} from {file}, not from {root}; use this tree's own environment"
    return ""


def part_result(part: stages.Part, outcome: testrun.Outcome, foreign: str) -> PartResult:
    """The part's status, from its cases and from what is missing."""
    cases = outcome.cases[part.id]
    result = PartResult(part.id, part.title, PASSED, "", "", cases)
    bad = next((case for case in cases if case.status not in (PASSED, SKIPPED)), None)
    if foreign:
        result.status, result.message = ERROR, foreign
    elif bad is not None:
        result.status, result.message = status_from(part.id, bad), told(bad, cases)
    elif missing := what_is_missing(part, cases, outcome):
        result.status, result.message = ERROR, missing
    return result


def status_from(part: str, bad: Case) -> str:
    """A blank of another part that the tests ran into blocks this one."""
    other = BLANK_OF.search(bad.message) if bad.status == NOT_IMPLEMENTED else None
    return BLOCKED if other and other[1] != part else bad.status


def told(bad: Case, cases: list[Case]) -> str:
    """How many cases are red, and what the first of them says."""
    run = [case for case in cases if case.status != SKIPPED]
    red = sum(case.status != PASSED for case in run)
    count = f"{red} of {len(run)} cases" if len(run) > 1 else "its case"
    if bad.status == NOT_IMPLEMENTED:
        return bad.message
    return f"{count} red; {bad.name}:\n{bad.message}"


def what_is_missing(part: stages.Part, cases: list[Case], outcome: testrun.Outcome) -> str:
    """Why all that passed does not make the part green, or ""."""
    files = {parsed(test)[0] for test in part.tests}
    troubles = [message for file, message in outcome.troubles.items() if not cases or file.split("::")[0] in files]
    if troubles:
        return f"its tests cannot start: {troubles[0]}"
    if len(cases) != part.items:
        ended = f"; {outcome.ended}" if outcome.ended else "; restore the tests from the starter"
        return f"{len(cases)} named results instead of {part.items}{ended}"
    if all(case.status == SKIPPED for case in cases):
        return f"no case could run: {cases[0].message}" if cases else "it has no tests"
    if not outcome.imported:
        return "its tests imported nothing of this tree; restore them from the starter"
    return ""


# ---- what blocks ----------------------------------------------------------------------------------------------------


def name_what_blocks(course: stages.Course, results: dict[str, PartResult], case_seconds: float) -> None:
    """Parts that are red because of something they need become `blocked`, with its name in front of their message.

    A blank shows by its NotImplementedError wherever it is used, so only what is filled can spoil a result unseen.
    """
    red = [result for result in results.values() if result.status in (FAILED, ERROR, BLOCKED)]
    blanks = {result.id: blank_met(result) for result in red}
    needs = {result.id: course.needs_of(course.parts_of(result.id)[0]) for result in red}
    known = dict(results)
    open_ends = [part for result in red if not blanks[result.id] for part in needs[result.id]]
    learn_about(course, known, open_ends, case_seconds)
    for result in red:
        wrong = [part.id for part in needs[result.id] if part.id in known and known[part.id].status == FAILED]
        blocker = blanks[result.id] or next(iter(wrong), None)
        if blocker and blocker != result.id:
            state = "not implemented" if blanks[result.id] else known[blocker].status
            result.message = f"blocked by {blocker} ({state}); get that green first\n{result.message}"
            result.status = BLOCKED


def blank_met(result: PartResult) -> str:
    """The other part whose blank a case ran into, or ""."""
    for case in result.cases:
        tag = BLANK_OF.search(case.message) if case.status == NOT_IMPLEMENTED else None
        if tag and tag[1] != result.id:
            return tag[1]
    return ""


def learn_about(
    course: stages.Course, known: dict[str, PartResult], parts: Iterable[stages.Part], case_seconds: float
) -> None:
    """Check those of the parts that nothing is known about yet, stage by stage."""
    unknown = {part.id: part for part in parts if part.id not in known}
    for stage_id in dict.fromkeys(name.partition("/")[0] for name in unknown):
        mine = [part for part in unknown.values() if part.id.startswith(f"{stage_id}/")]
        known.update(check_parts(course, course.stage(stage_id), mine, case_seconds, []))
