"""Backups of a learner's tree, made before a command changes it, and bringing one back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from . import change, files
from .errors import UserError
from .tree import BLANKS, RECORD, STARTER, LearnerTree

BACKUPS = ".needle/backups"
NOTE = ".needle/backup.json"  # inside a backup: what it is


@dataclass(frozen=True)
class Backup:
    """A copy of a tree below .needle/backups/NAME."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def why(self) -> str:
        return json.loads((self.folder / NOTE).read_text(encoding="utf-8"))["why"]


def make(root: Path, why: str, also: Collection[str] = ()) -> Backup:
    """Copy what the learner's tree holds, sources and record, and the files of `also`, however large they are.

    Built, downloaded and very large files stay out. The copy gets its name when it is whole.
    """
    folder = root / BACKUPS / unused_name(root)
    unfinished = folder.with_name(f".{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    kept = {path for path in (*files.listing(root), *also, RECORD, BLANKS) if (root / path).is_file()}
    for path in sorted(kept):
        target = unfinished / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, target)
    if (root / STARTER).is_dir():
        shutil.copytree(root / STARTER, unfinished / STARTER, dirs_exist_ok=True)
    files.write_whole(unfinished / NOTE, json.dumps({"why": why}).encode())
    unfinished.rename(folder)
    return Backup(folder)


def unused_name(root: Path) -> str:
    """The time of day, with a number behind if two backups fall into one second."""
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    names = [now, *(f"{now}_{number}" for number in range(2, 1000))]
    return next(name for name in names if not (root / BACKUPS / name).exists())


def every(root: Path) -> list[Backup]:
    """The backups of a tree, oldest first."""
    folders = (root / BACKUPS).glob("*") if (root / BACKUPS).is_dir() else []
    whole = [folder for folder in folders if (folder / NOTE).is_file() and not folder.name.startswith(".")]
    return [Backup(folder) for folder in sorted(whole, key=order)]


def order(folder: Path) -> tuple[str, int]:
    """By time, then by number: the tenth backup of a second comes after the ninth."""
    *time, last = folder.name.split("_")
    return ("_".join(time), int(last)) if len(time) == 2 else (folder.name, 1)


def find(root: Path, name: str | None) -> Backup:
    """The backup of this name, by default the newest."""
    backups = every(root)
    if not backups:
        raise UserError(f"{root}: no backup yet; advance, reset and restore make one before they change anything")
    if name is None:
        return backups[-1]
    found = [backup for backup in backups if backup.name == name]
    if not found:
        raise UserError(f"{name}: no backup of this name in {root / BACKUPS}; needle-course restore --list shows them")
    return found[0]


def restore(root: Path, name: str | None = None) -> tuple[Backup, Backup, list[str]]:
    """Bring a tree back to a backup, after a backup of how it is now; returns both and the paths that changed.

    Files that the course has given since are taken away again; files that the learner made since stay.
    """
    with change.alone(root):
        wanted = find(root, name)
        content = {path: data for path, data in files.read_tree(wanted.folder).items() if path != NOTE}
        since = given_since(root, content)
        changed = {path: data for path, data in content.items() if files.differs(root / path, data)}
        before = make(root, f"restore of {wanted.name}", also=[*changed, *since])
        change.apply(root, changed, since)
    return wanted, before, sorted([*changed, *since])


def given_since(root: Path, content: Collection[str]) -> list[str]:
    """What the course gave after the backup was made: files, and their copies in .needle/starter."""
    copies = {f"{STARTER}/{path}" for path in files.read_tree(root / STARTER)} if (root / STARTER).is_dir() else set()
    try:
        given = set(LearnerTree.read(root).given)
    except (UserError, OSError):  # the record is what may have to be brought back
        given = {copy.removeprefix(f"{STARTER}/") for copy in copies}
    return [path for path in sorted(given | copies) if path not in content and (root / path).is_file()]
