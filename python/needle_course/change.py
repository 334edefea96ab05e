"""Changing a learner's tree all at once: prepared beside, written down, then moved into place.

A command that is killed half way leaves a journal; the next command that opens the tree finishes what it says. Until
the journal is whole, nothing of the tree has changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import files
from .console import note
from .errors import UserError

PENDING = ".needle/pending"


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep other commands out of a tree, and finish what one before was killed at."""
    (root / ".needle").mkdir(exist_ok=True)
    with open(root / ".needle" / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{root}: another needle-course command works here; wait until it is through") from None
        finish(root)
        yield


def apply(root: Path, writes: Mapping[str, bytes], removals: Collection[str] = ()) -> None:
    """Write and remove these files below root, all or, if killed too early, none of them."""
    refuse_what_is_in_the_way(root, writes)
    pending = root / PENDING
    shutil.rmtree(pending, ignore_errors=True)
    pending.mkdir(parents=True)
    steps = [prepared(root, number, path, content) for number, (path, content) in enumerate(sorted(writes.items()))]
    steps += [{"path": path, "before": digest_of(root / path), "after": None} for path in sorted(removals)]
    files.write_whole(pending / "journal.json", json.dumps(steps).encode())
    finish(root)


def prepared(root: Path, number: int, path: str, content: bytes) -> dict:
    staged = root / PENDING / str(number)
    staged.write_bytes(content)
    if (root / path).exists():
        staged.chmod((root / path).stat().st_mode & 0o777 | 0o200)
    return {"path": path, "before": digest_of(root / path), "after": files.digest(content), "staged": staged.name}


def finish_interrupted(root: Path) -> None:
    """Finish what a command was killed at, for commands that only look at the tree."""
    if (root / PENDING / "journal.json").is_file():
        note(f"{root}: finishing what was interrupted")
        with alone(root):
            pass


def finish(root: Path) -> None:
    """Do the steps of a journal that are not done yet; without a journal, throw away what was being prepared."""
    pending = root / PENDING
    if not pending.is_dir():
        return
    if (pending / "journal.json").is_file():
        for step in json.loads((pending / "journal.json").read_bytes()):
            take(root, step)
    shutil.rmtree(pending)


def take(root: Path, step: dict) -> None:
    """One step. A file that the learner edited after the kill stays; what the course has for it stands beside."""
    path = root / step["path"]
    now = digest_of(path)
    if now == step["after"]:
        return
    if now != step["before"]:
        note(f"{step['path']}: you changed it while a command was interrupted, so it stays")
        path = path.with_name(path.name + ".conflict") if step["after"] else None
    if path is None:
        return
    if step["after"] is None:
        path.unlink(missing_ok=True)
        remove_empty_folders(root, path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(root / PENDING / step["staged"], path)


def digest_of(path: Path) -> str | None:
    return files.digest(path.read_bytes()) if path.is_file() else None


def refuse_what_is_in_the_way(root: Path, writes: Collection[str]) -> None:
    """A folder where a file must go, or a link that leads out of the tree, is the learner's to sort out."""
    for path in writes:
        target = root / path
        if target.is_dir():
            raise UserError(f"{target}: is a folder, but the course has a file of this name; rename the folder")
        above = next(parent for parent in target.parents if parent.exists())
        if not above.is_dir():
            raise UserError(f"{above}: is a file, but the course has a folder of this name; rename the file")
        if not above.resolve().is_relative_to(root.resolve()):
            raise UserError(f"{above}: leads out of this tree; replace the link by a folder")


def remove_empty_folders(root: Path, folder: Path) -> None:
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
