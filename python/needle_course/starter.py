"""Learner's trees: everything a stage needs, its questions blank, in a folder of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, files, notebook, regions, stages, tree, trees
from .errors import UserError
from .tree import LearnerTree

TEMPLATES = "hw/tree"  # of a checkout: what a learner's tree has instead of the checkout's own
BUNDLED = "starters"  # of a bundle: a starter per stage


@dataclass(frozen=True)
class Started:
    """A tree that was made."""

    stage: str
    path: Path
    files: list[str]
    kept: list[str] = field(default_factory=list)  # tags that hold the learner's own answer
    blank: list[str] = field(default_factory=list)  # tags of earlier stages that nobody answered

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path), "backup": None}


def make(course: Any, stage: str, out: Path, own: Path | None = None) -> Started:
    """Write the starter of a stage into a new folder; earlier stages are solved, or answered as in the tree `own`.

    UserError if the folder is there already and holds anything.
    """
    course.stage(stage)
    refuse_what_is_there(out)
    new = given(course, stage)
    bodies = own_answers(course, stage, own) if own is not None else {}
    contents = {path: answers.poured(path, content, bodies) for path, content in new.items()}
    earlier = [tag for name in course.present(stage)[:-1] for tag in course.stage(name).tags]
    solved = set(earlier) - set(bodies) - set(answers.blank_tags(new, earlier))
    record = tree.record(stage, source(course), new, blanks(course, stage, new), solved)
    trees.write({**contents, **record}, out)
    kept = sorted(set(bodies) & set(answers.bodies_in(new)))
    return Started(stage, out.resolve(), sorted(contents), kept, answers.blank_tags(contents, earlier))


def refuse_what_is_there(out: Path) -> None:
    if out.is_dir() and (out / tree.RECORD).is_file():
        raise UserError(
            f"{out}: is a learner's tree already; to go on in it: needle-course advance --dir {shlex.quote(str(out))}"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: is there already and not empty; name a new folder")


def own_answers(course: Any, stage: str, own: Path) -> dict[str, str]:
    """What the learner answered, in the tree `own`, to questions of stages before this one."""
    root = files.existing_folder(own)
    before = LearnerTree.read(root) if (root / tree.RECORD).is_file() else LearnerTree(root, stage)
    found = answers.collect(root, before.starter(), before.solved)
    for message in found.damaged.values():
        raise UserError(f"{root}/{message}")
    earlier = set(course.present(stage)[:-1])
    bodies = {tag: body for tag, body in found.bodies.items() if course.stage_of(tag) in earlier}
    if not bodies:
        raise UserError(f"{root}: no answer to an earlier stage than {stage} in it; is it the right folder?")
    return bodies


# ---- what a starter holds -------------------------------------------------------------------------------------------


def given(course: Any, stage: str) -> dict[str, bytes]:
    """{path: content} of all that the course gives at a stage, without anybody's answers to it.

    UserError for a learner's tree in place of a course: it holds no other stage.
    """
    if course.kind == "tree":
        raise UserError(f"{course.root}: is a learner's tree; name the course's checkout or bundle: --course PATH")
    if course.kind == "checkout":
        stages.check_sources(course)
    sources = trees.starter(course, stage)
    return sources if course.kind == "bundle" else furnished(course, stage, sources)


def furnished(course: Any, stage: str, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """A starter's sources with what a tree needs around them: pages, settings, notebooks."""
    made = {name: filled(course, stage, text) for name, text in templates(course.root).items()}
    written = [name for name in course.present(stage) if (course.root / course.stage(name).notebook).is_file()]
    books = {f"hw/{name}/{name}.ipynb": book(course, name) for name in written}
    return {**sources, **made, **books}


def book(course: Any, stage: str) -> bytes:
    return notebook.to_json(notebook.build(course, stage)).encode()


def templates(root: Path) -> dict[str, str]:
    """{path in the learner's tree: text} of hw/tree; two have other names there, which no tool mistakes for its own."""
    if not (root / TEMPLATES).is_dir():
        return {}
    names = {"gitignore": ".gitignore", "pyproject.template": "pyproject.toml"}
    paths = sorted(path for path in (root / TEMPLATES).iterdir() if path.is_file())
    return {names.get(path.name, path.name): path.read_text(encoding="utf-8") for path in paths}


def filled(course: Any, stage: str, text: str) -> bytes:
    """A template with its {{words}} replaced."""
    entry = course.stage(stage)
    project = (course.root / "pyproject.toml").read_text(encoding="utf-8")
    words = {
        "stage": stage,
        "title": entry.title,
        "first": entry.questions[0].id,
        "questions": "\n".join(f"| `{q.id}` | {q.title} | {q.points:g} |" for q in entry.questions),
        "tests": entry.tests[0],
        "dependencies": table_entry(project, "dependencies"),
        "full": table_entry(project, "full"),
        "course": table_entry(project, "course"),
        "notebook": table_entry(project, "notebook"),
        "pytest": section(project, "tool.pytest.ini_options"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: words[match[1]], text).encode()


def table_entry(project: str, name: str) -> str:
    """The list that pyproject.toml keeps under this name, as it is written there."""
    found = re.search(rf"^{name} = (\[.*?^\])", project, re.MULTILINE | re.DOTALL)
    if found is None:
        raise UserError(f"pyproject.toml: no list {name}; the learner's pyproject.toml is made from it")
    return found[1]


def section(project: str, name: str) -> str:
    """The lines of a table of pyproject.toml, without its head and without its testpaths."""
    body = project.split(f"[{name}]\n", 1)[1].split("\n\n", 1)[0]
    lines = [line for line in body.splitlines() if not line.startswith(("testpaths", "#"))]
    return "\n".join(lines)


def blanks(course: Any, stage: str, new: Mapping[str, bytes]) -> dict[str, str]:
    """{tag: what stands in its region while it is blank}, for every question up to this stage."""
    if course.kind != "checkout":  # a bundle's starters have nothing but blanks
        return answers.bodies_in(new)
    parts = [part for name in course.present(stage) for part in course.stage(name).parts]
    found = {path: regions.regions(regions.read(course.root / path), path) for path in {part.file for part in parts}}
    return {part.id: regions.blank_text(found[part.file][part.id], part.id) for part in parts}


def all_blank(contents: Mapping[str, bytes], blank_bodies: Mapping[str, str]) -> dict[str, bytes]:
    """A starter in which the questions of earlier stages are blank, too: nobody's answers are in it."""
    return {path: blanked(path, content, blank_bodies) for path, content in contents.items()}


def blanked(path: str, content: bytes, blank_bodies: Mapping[str, str]) -> bytes:
    filled = [region for region in answers.regions_of(path, content).values() if not regions.is_blank(region)]
    return answers.poured(path, content, {region.tags[0]: blank_bodies[region.tags[0]] for region in filled})


# ---- where a tree comes from ----------------------------------------------------------------------------------------


def source(course: Any, old: LearnerTree | None = None) -> str:
    """The folder of the course that a tree remembers, to find the next stage there."""
    return old.source if old is not None and course.kind == "tree" else str(Path(course.root).resolve())
