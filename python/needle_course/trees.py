"""A learner's tree of a stage, derived from the solved source: which files, and what stands in them.

A tree is a dict {path relative to its root, with slashes: content}; `write` puts it into a folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from . import regions
from .errors import UserError
from .files import read_tree
from .stages import MANIFEST, MARKED, SPEAK_OF_MARKS, Course

Tree = dict[str, bytes]

DEFAULTS = "python/needle/defaults.py"


def solved(course: Course, stage: str) -> Tree:
    """The tree of a stage with everything solved: the source without later blocks, and without the marks of blocks.

    Only a checkout has it; UserError for a bundle or a learner's tree.
    """
    if course.kind != "checkout":
        raise UserError(f"{course.root}: a {course.kind} holds no solutions; name a checkout of the course")
    present = course.present(stage)
    tree = {name: _as_of(course, name, present) for name, first in course.files().items() if first in present}
    if DEFAULTS in tree:
        tree[DEFAULTS] = _with_defaults(tree[DEFAULTS], course.stage(stage).backend)
    tree[MANIFEST] = trimmed_manifest(course, stage).encode()
    return tree


def starter(course: Course, stage: str, answers: Mapping[str, str] | None = None) -> Tree:
    """The tree that a learner gets: what the stage asks for is blank, what earlier stages asked for is solved.

    answers {tag: body} take the place of both.  A bundle hands out the copy that was released.
    """
    tree = _released(course, stage) if course.kind == "bundle" else _blanked(course, solved(course, stage), stage)
    return filled(tree, answers) if answers else tree


def filled(tree: Mapping[str, bytes], answers: Mapping[str, str]) -> Tree:
    """The tree with the bodies {tag: body} in its regions."""
    return {
        name: regions.pour(regions.decode(content, name), name, answers).encode() if is_marked(name) else content
        for name, content in tree.items()
    }


def answers_in(tree: Mapping[str, bytes]) -> dict[str, str]:
    """{tag: body} of all regions of a tree that are not blank."""
    return {
        tag: region.body
        for name, content in tree.items()
        if is_marked(name)
        for tag, region in regions.regions(regions.decode(content, name), name).items()
        if not regions.is_blank(region)
    }


def is_marked(name: str) -> bool:
    """May a file of this name hold regions and blocks?  (Files of the tools and tests that speak of marks do not.)"""
    return PurePosixPath(name).suffix in MARKED and not name.startswith(SPEAK_OF_MARKS)


def trimmed_manifest(course: Course, stage: str) -> str:
    """The manifest of a learner's tree: the stages present, and no table of files."""
    text = regions.read(course.root / MANIFEST)
    parts = re.split(r"^(?=\[(?:files|stages\.\w+)\]\s*$)", text, flags=re.M)
    wanted = tuple(f"[stages.{name}]" for name in course.present(stage))
    return "".join([parts[0], *(part for part in parts[1:] if part.startswith(wanted))]).rstrip() + "\n"


def write(tree: Mapping[str, bytes], out: Path) -> None:
    """Make a folder of the tree, whole or not at all.  UserError if something is there already."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: is there already; name a new folder, or remove it")
    part = out.with_name(f".{out.name}.part-{os.getpid()}")
    try:
        for name, content in tree.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        part.mkdir(parents=True, exist_ok=True)
        part.replace(out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose another folder") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


# ---- how a file is derived -------------------------------------------------------------------------------------------


def _as_of(course: Course, name: str, present: list[str]) -> bytes:
    """A file as it is when these stages are present, all of it solved."""
    content = (course.root / name).read_bytes()
    if not is_marked(name):
        return content
    text = regions.without_blocks(regions.decode(content, name), name, present)
    return regions.blank(text, name, ()).encode()


def _blanked(course: Course, tree: Tree, stage: str) -> Tree:
    """The tree with what the stage asks for blank.  Starter texts are read from the source, since no tree has them."""
    tags, present = set(course.stage(stage).tags), course.present(stage)
    files = set(course.stage(stage).files)
    blanks = {}
    for name in files & set(tree):
        text = regions.without_blocks(regions.read(course.root / name), name, present)
        blanks[name] = regions.blank(text, name, tags).encode()
    return {**tree, **blanks}


def _with_defaults(content: bytes, backend: str) -> bytes:
    """The defaults that a starter's plain `python` and `pytest` run with: the stage's arrays, the learner's kernels."""
    chosen = {"BACKEND": backend, "KERNELS": "course"}
    text = content.decode()
    for name, value in chosen.items():
        text = re.sub(rf'^{name} = "\w+"', f'{name} = "{value}"', text, flags=re.M)
    return text.encode()


def _released(course: Course, stage: str) -> Tree:
    """The starter of a stage as it lies in a bundle."""
    root = course.root / "starters" / course.stage(stage).id
    if not root.is_dir():
        raise UserError(f"{root}: not found; the bundle is not whole, fetch it again")
    return read_tree(root)
