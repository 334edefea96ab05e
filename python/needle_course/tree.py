"""A learner's tree: which stage it is at, what the course gave, and what `.needle/` remembers of it.

.needle/tree.toml          stage, version and place of the course, what it solved, a digest of each given file
.needle/starter/           the given files as they were, for three-way merges
.needle/blanks.json        what stands in each region while it is blank, for reset
.needle/backups/<name>/    the tree as it was before a command changed it
.needle/results/           what the last checks said
.needle/pending/           a change that is being made
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import change, files
from .errors import UserError
from .merge import has_conflict_marks

RECORD = ".needle/tree.toml"
STARTER = ".needle/starter"
BLANKS = ".needle/blanks.json"


@dataclass(frozen=True)
class LearnerTree:
    """What .needle/tree.toml says about a tree."""

    root: Path
    stage: str
    version: str = ""
    source: str = ""  # where the course lay that made it; it may have moved since
    given: dict[str, str] = field(default_factory=dict)  # path -> digest of what the course gave
    solved: tuple[str, ...] = ()  # the tags that the course solved for the learner

    @classmethod
    def open(cls, folder: Path | None) -> LearnerTree:
        """The tree at a folder, or at or above the current one."""
        root = files.existing_folder(folder) if folder is not None else above_here()
        if not (root / RECORD).is_file():
            raise UserError(f"{root}: no learner's tree (no {RECORD}); make one: needle-course starter hw1 --out DIR")
        change.finish_interrupted(root)
        return cls.read(root)

    @classmethod
    def read(cls, root: Path) -> LearnerTree:
        try:
            record = files.parse_toml((root / RECORD).read_text(encoding="utf-8"))
            names = (record[name] for name in ("stage", "version", "source"))
            return cls(root, *names, dict(record["given"]), tuple(record["solved"]))
        except (ValueError, KeyError, TypeError) as error:
            what = f"no entry {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise UserError(f"{root / RECORD}: damaged ({what}); bring one back: needle-course restore") from None

    def starter(self) -> dict[str, bytes]:
        """{path: content} of what the course gave, as far as its copy is untouched."""
        kept = {path: self.root / STARTER / path for path in self.given}
        contents = {path: copy.read_bytes() for path, copy in kept.items() if copy.is_file()}
        return {path: content for path, content in contents.items() if files.digest(content) == self.given[path]}

    def blanks(self) -> dict[str, str]:
        """{tag: what stands in its region while it is blank}."""
        path = self.root / BLANKS
        return json.loads(path.read_bytes()) if path.is_file() else {}

    def conflicts(self) -> list[str]:
        """The given files whose conflict is not settled: NAME.conflict is still there, or its marks are in the file."""
        return [path for path in sorted(self.given) if self.is_unsettled(path)]

    def is_unsettled(self, path: str) -> bool:
        here = self.root / path
        if here.with_name(here.name + ".conflict").exists():
            return True
        return here.is_file() and has_conflict_marks(here.read_bytes())


def record(
    stage: str, source: str, given: Mapping[str, bytes], blanks: Mapping[str, str], solved: Iterable[str]
) -> dict[str, bytes]:
    """The files below .needle/ of a tree that a course at `source` made of these given files.

    blanks  {tag: what stands in its region while it is blank}
    solved  the tags that the course solved for the learner
    """
    digests = {path: files.digest(content) for path, content in sorted(given.items())}
    version = files.digest(json.dumps(digests).encode())[:12]  # the same release gives the same
    head = {"stage": stage, "version": version, "source": source}
    lines = [f"{name} = {quoted(value)}" for name, value in head.items()]
    lines += [
        f"solved = {json.dumps(sorted(solved))}",
        "",
        "[given]",
        *(f"{quoted(path)} = {quoted(digest)}" for path, digest in digests.items()),
    ]
    copies = {f"{STARTER}/{path}": content for path, content in given.items()}
    return {RECORD: "\n".join([*lines, ""]).encode(), BLANKS: json.dumps(blanks, indent=1).encode(), **copies}


def above_here() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / RECORD).is_file():
            return folder
    raise UserError(f"{here}: not inside a learner's tree (no {RECORD} here or above); name it with --dir DIR")


def quoted(text: str) -> str:
    """A TOML string: JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False)
