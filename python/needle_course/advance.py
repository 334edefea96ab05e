"""Bringing a learner's tree to the next stage, or to a newer release of the same, without losing a line of it.

The next starter gets the learner's answers by their tags. What the learner changed elsewhere is merged three-way: the
starter that they got, their file, the next starter, with the answers poured into all three first. Where both changed
the same lines, the learner's file stays, and the merged text with its marks stands beside it as NAME.conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, backup, change, files, regions, starter, tree
from .answers import Answers
from .console import note, shortened
from .errors import UserError
from .merge import Merged, Text, is_text, three_way
from .merge_notebook import merge_notebooks
from .tree import LearnerTree


@dataclass
class Plan:
    """What an advance does to a tree, file by file."""

    writes: dict[str, bytes] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # files with work of the learner's in them
    conflicts: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)  # deleted or renamed by the learner, and given again
    retired: list[str] = field(default_factory=list)  # no longer the course's, but changed by the learner

    @property
    def changed(self) -> list[str]:
        return [path for path in self.writes if path not in self.new]


@dataclass(frozen=True)
class Outcome:
    """What an advance did."""

    tree: LearnerTree
    plan: Plan
    answers: Answers
    saved: backup.Backup | None
    solved: list[str]  # tags that the learner left blank and that the next starter has solved

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.tree.stage,
            "path": str(self.tree.root),
            "files": sorted([*self.plan.writes, *self.plan.removals]),
            "kept": self.plan.kept,
            "backup": str(self.saved.folder) if self.saved else None,
            "conflicts": self.plan.conflicts,
            "returned": self.plan.returned,
            "retired": self.plan.retired,
            "solved": self.solved,
            "damaged": self.answers.damaged,
        }


def run(course: Any, folder: Path | None, stage: str | None = None) -> Outcome:
    """Bring the tree at a folder to a stage of this course; by default to the one after its own.

    UserError for a folder that is no learner's tree, a stage that lies before its own, or conflicts not settled yet.
    """
    old = LearnerTree.open(folder)
    with change.alone(old.root):
        old = LearnerTree.read(old.root)  # a change that was cut short may just have been finished
        wanted = target_stage(course, old, stage)
        if open_conflicts := old.conflicts():
            return Outcome(old, Plan(conflicts=open_conflicts), Answers(), None, [])
        return carry_out(course, old, wanted)


def carry_out(course: Any, old: LearnerTree, stage: str) -> Outcome:
    new, before = starter.given(course, stage), old.starter()
    found = answers.collect(old.root, before, old.solved)
    fresh = newly_solved(course, stage, before, new, found)
    solved = [*(tag for tag in old.solved if tag not in found.bodies), *fresh]
    found.bodies.update(solved_before(before, new, found, asked_since(course, old.stage, stage)))
    plan = make_plan(old, before, new, found)
    record = tree.record(stage, starter.source(course, old), new, starter.blanks(course, stage, new), solved)
    stale = [f"{tree.STARTER}/{path}" for path in old.given if path not in new]
    updates = {path: data for path, data in {**plan.writes, **record}.items() if files.differs(old.root / path, data)}
    removals = [path for path in (*plan.removals, *stale) if (old.root / path).is_file()]
    saved = None
    if set(updates) - {tree.RECORD, tree.BLANKS} or removals:
        why = f"advance from {old.stage} to {stage}"
        saved = backup.make(old.root, why, also=[*plan.writes, *plan.removals])
    change.apply(old.root, updates, removals)
    plan.writes = {path: data for path, data in updates.items() if path in plan.writes}
    return Outcome(LearnerTree.read(old.root), plan, found, saved, fresh)


def target_stage(course: Any, old: LearnerTree, stage: str | None) -> str:
    """The stage to go to; the learner's own counts as asking for a newer release of it."""
    order = list(course.order)
    if old.stage not in order:
        raise UserError(f"{old.root}: is at {old.stage}, which the course at {course.root} does not have; name another")
    if stage is None:
        return order[min(order.index(old.stage) + 1, len(order) - 1)] if has_begun(old) else old.stage
    course.stage(stage)  # refuses what is no stage
    if order.index(stage) < order.index(old.stage):
        raise UserError(f"{stage}: {old.root} is past it, at {old.stage}; needle-course restore goes back in time")
    return stage


def has_begun(old: LearnerTree) -> bool:
    """Whether the learner answered anything of their stage; if not, a second bare `advance` must not skip it."""
    found = answers.collect(old.root, old.starter(), old.solved)
    return bool(found.damaged) or any(tag.startswith(f"{old.stage}/") for tag in found.firsts)


def asked_since(course: Any, old: str, new: str) -> set[str]:
    """The tags of the stages that a tree comes to."""
    earlier = course.present(old)
    return {tag for name in course.present(new) if name not in earlier for tag in course.stage(name).tags}


def solved_before(
    before: Mapping[str, bytes], new: Mapping[str, bytes], found: Answers, asked: set[str]
) -> dict[str, str]:
    """{tag: body} of what the course once solved for the learner, and what a bundle, which solves nothing, has blank.

    What the new stage asks for again is blank, as in every fresh starter of it.
    """
    given, wanted = answers.regions_in(before), answers.regions_in(new)
    return {
        tag: region.body
        for tag, region in given.items()
        if tag in wanted and tag not in found.bodies
        if not regions.is_blank(region) and regions.is_blank(wanted[tag]) and not asked & set(wanted[tag].tags)
    }


# ---- file by file ---------------------------------------------------------------------------------------------------


def make_plan(old: LearnerTree, before: Mapping[str, bytes], new: Mapping[str, bytes], found: Answers) -> Plan:
    """What becomes of each file that the course gave or gives now."""
    plan = Plan()
    next_bodies = answers.bodies_in(new)
    for path in sorted({*old.given, *new}):
        here = old.root / path
        mine = here.read_bytes() if here.is_file() else None
        if path not in new:
            retire(plan, path, mine, old.given[path])
        elif mine is None:
            plan.writes[path] = answers.poured(path, new[path], found.bodies)
            (plan.returned if path in old.given else plan.new).append(path)
        elif path not in old.given:
            meet(plan, path, mine, answers.poured(path, new[path], found.bodies))
        else:
            given = before.get(path, mine if files.digest(mine) == old.given[path] else None)
            join(plan, path, merged(path, given, mine, new[path], found, next_bodies), mine, given)
    return plan


def retire(plan: Plan, path: str, mine: bytes | None, digest: str) -> None:
    """The course no longer has this file: it goes if the learner left it alone."""
    if mine is not None and files.digest(mine) == digest:
        plan.removals.append(path)
    elif mine is not None:
        plan.retired.append(path)


def meet(plan: Plan, path: str, mine: bytes, new: bytes) -> None:
    """The learner made a file where the course now has one: theirs stays."""
    if mine != new:
        join(plan, path, Merged(mine, new), mine, None)


def join(plan: Plan, path: str, result: Merged, mine: bytes, given: bytes | None) -> None:
    if result.conflict is not None:
        plan.conflicts.append(path)
        plan.writes[f"{path}.conflict"] = result.conflict
    elif result.content != mine:
        plan.writes[path] = result.content
    if mine != given:
        plan.kept.append(path)


def merged(
    path: str, given: bytes | None, mine: bytes, new: bytes, found: Answers, next_bodies: Mapping[str, str]
) -> Merged:
    """One file of the next stage, with what the learner made of it."""
    if given is None:  # its copy is lost: nothing tells the learner's lines from the course's
        new = answers.poured(path, new, found.bodies)
        return Merged(mine) if mine == new else Merged(mine, new)
    base, new = both_poured(path, given, new, found, next_bodies)
    if mine in (given, base):
        return Merged(new)
    if mine == new or base == new:
        return Merged(mine)
    if path.endswith(".ipynb"):
        return merge_notebooks(given, mine, new)
    if not (is_text(mine) and is_text(base) and is_text(new)):
        return Merged(mine, new)
    return three_way(Text.of(base), Text.of(mine), Text.of(new))


def both_poured(
    path: str, given: bytes, new: bytes, found: Answers, next_bodies: Mapping[str, str]
) -> tuple[bytes, bytes]:
    """The file as given and as it is next, the learner's answers in both, so that only other changes differ."""
    if path in found.damaged:  # its answers cannot be told apart: everything in it will count as an edit
        as_given = {tag: region.body for tag, region in answers.regions_of(path, given).items()}
        return given, answers.poured(path, new, {**found.bodies, **as_given})
    # an answer to what is no longer asked stays an edit, so that its end shows as a conflict
    lasting = {tag: body for tag, body in found.bodies.items() if tag in next_bodies}
    return answers.poured(path, given, lasting), answers.poured(path, new, found.bodies)


def newly_solved(
    course: Any, stage: str, before: Mapping[str, bytes], new: Mapping[str, bytes], found: Answers
) -> list[str]:
    """Parts of earlier stages that were blank, that the learner did not answer, and that the next starter answers."""
    earlier = [tag for name in course.present(stage)[:-1] for tag in course.stage(name).tags]
    legible = {path: content for path, content in before.items() if path not in found.damaged}
    were, are = answers.regions_in(legible), answers.regions_in(new)
    unanswered = [tag for tag in earlier if tag in were and tag in are and tag not in found.bodies]
    return [tag for tag in unanswered if regions.is_blank(were[tag]) and not regions.is_blank(are[tag])]


# ---- what people read -----------------------------------------------------------------------------------------------


def report(outcome: Outcome) -> None:
    """Say on standard error what changed, what stayed, and what the learner has to look at."""
    plan, root = outcome.plan, outcome.tree.root
    for word, paths in (("new", plan.new), ("changed", plan.changed), ("gone", plan.removals)):
        if paths:
            note(f"{word}: {shortened(paths)}")
    for message in outcome.answers.damaged.values():
        note(f"marks damaged: {message} (all you wrote there was kept)")
    if outcome.saved:
        note(f"backup of your tree: {outcome.saved.folder}")
    for path in plan.returned:
        note(f"{path}: was gone, and is here again as the course has it")
    for path in plan.retired:
        note(f"{path}: no longer part of the course; you changed it, so it stays")
    if outcome.solved:
        note(f"blank until now, and answered by the course: {shortened(outcome.solved)}")
        note(f"to try one yourself: needle-course reset {outcome.solved[0]}")
    for path in plan.conflicts:
        note(f"conflict: {root / path}: you and the course changed the same lines; see {Path(path).name}.conflict")
    if plan.conflicts:  # what to do about them stands last
        note("take what you want from each .conflict into your file, delete the .conflict, then run advance again")
