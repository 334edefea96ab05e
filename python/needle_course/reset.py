"""Making a question of a learner's tree blank again, to try it anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import answers, backup, change, regions
from .errors import UserError
from .merge import Text
from .tree import LearnerTree


def run(course: Any, folder: Path | None, name: str) -> tuple[backup.Backup, dict[str, list[str]]]:
    """Blank the regions of a question or part, after a backup; returns it and {file: tags that are blank now}.

    UserError if the tree has no such question, or if nothing of it is filled.
    """
    learner = LearnerTree.open(folder)
    tags, blanks = [part.id for part in course.parts_of(name, learner.stage)], learner.blanks()
    with change.alone(learner.root):
        writes, blanked = blank_files(learner.root, tags, blanks)
        if not writes:
            refuse_damaged(learner, tags)
            raise UserError(f"{name}: is blank already in {learner.root}; nothing to reset")
        saved = backup.make(learner.root, f"reset of {name}", also=writes)
        change.apply(learner.root, writes)
    return saved, blanked


def refuse_damaged(learner: LearnerTree, tags: list[str]) -> None:
    """UserError if the regions of these tags cannot be found, because the marks of their file are damaged."""
    homes = {path for path, content in learner.starter().items() if set(answers.regions_of(path, content)) & set(tags)}
    here = {path: (learner.root / path).read_bytes() for path in homes if (learner.root / path).is_file()}
    for message in answers.damage(here).values():
        raise UserError(message)


def blank_files(
    root: Path, tags: list[str], blanks: Mapping[str, str]
) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    """The files with the regions of these tags blank ({path: content}), and which of each were filled before."""
    writes: dict[str, bytes] = {}
    blanked: dict[str, list[str]] = {}
    for path in answers.source_files(root):
        content = (root / path).read_bytes()
        found = answers.regions_of(path, content)
        filled = [tag for tag in found if tag in tags and not regions.is_blank(found[tag])]
        if filled:
            text = Text.of(content)
            bodies = {tag: blanks.get(tag) or regions.blank_text(found[tag], tag) for tag in filled}
            blank = regions.pour(text.plain, path, bodies)
            writes[path] = text.written_alike(Text.of(blank.encode("utf-8", "surrogateescape")).lines)
            blanked[path] = filled
    return writes, blanked
