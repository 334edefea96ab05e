"""The hand-in: a zip with the files of a stage that learners write, and nothing else."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, files
from .tree import LearnerTree

DATE = (1980, 1, 1, 0, 0, 0)  # the same for every file: the same work gives the same zip


@dataclass
class Packed:
    """What a hand-in holds."""

    stage: str
    path: Path
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # files of the stage that the tree lacks
    blank: list[str] = field(default_factory=list)  # parts that are not answered
    damaged: dict[str, str] = field(
        default_factory=dict
    )  # file: what is wrong with its marks; its parts are not judged

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path)}


def run(course: Any, folder: Path | None, stage: str | None = None, out: Path | None = None) -> Packed:
    """Write the hand-in of a stage, by default the tree's own, as `<stage>.zip` in the tree or at `out`.

    Only files that the manifest names for the stage go in. An older zip of that name is replaced: it can be made again.
    """
    learner = LearnerTree.open(folder)
    entry = course.stage(stage or learner.stage)
    out = (out or learner.root / f"{entry.id}.zip").resolve()
    contents = {path: (learner.root / path).read_bytes() for path in entry.files if (learner.root / path).is_file()}
    files.write_whole(out, archive(contents))
    damaged = answers.damage(contents)
    tags = [part.id for part in entry.parts if part.file not in damaged]
    missing = [path for path in entry.files if path not in contents]
    return Packed(entry.id, out, sorted(contents), missing, answers.blank_tags(contents, tags), damaged)


def archive(contents: dict[str, bytes]) -> bytes:
    """A zip of {path: content}; the same contents give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(contents):
            entry = zipfile.ZipInfo(path, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, contents[path])
    return stream.getvalue()
