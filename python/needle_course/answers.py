"""A learner's answers: the regions that they filled, found by tag wherever in their tree the text now lies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import files, regions, trees
from .errors import UserError
from .merge import Text, is_text


@dataclass
class Answers:
    """What was found in a tree: the bodies that the learner wrote, and the files whose marks can no longer be read."""

    bodies: dict[str, str] = field(default_factory=dict)  # tag -> the learner's text, line ends \n
    firsts: set[str] = field(default_factory=set)  # of each of those regions, the tag that asked for it first
    damaged: dict[str, str] = field(default_factory=dict)  # file -> what is wrong with its marks


def collect(root: Path, given: Mapping[str, bytes], solved: Collection[str] = ()) -> Answers:
    """The regions below root that the learner wrote.

    given   the starter as the course gave it, {path: content}
    solved  the tags that the course solved in it for the learner

    A file that the learner made counts only for tags that no file of the course's has any longer: one was renamed.
    """
    answers, started = Answers(), bodies_in(given)
    seen: set[str] = set()
    for path in sorted(source_files(root), key=lambda path: (path not in given, path)):
        try:
            found = regions.regions(Text.of((root / path).read_bytes()).plain, path)
        except UserError as error:
            if path in given:
                answers.damaged[path] = str(error)
                seen |= set(regions_of(path, given[path]))
            continue
        for tag, region in found.items():
            if tag not in seen and is_answer(region, started.get(tag), solved):
                answers.bodies[tag] = region.body
                answers.firsts.add(region.tags[0])
        seen |= set(found)
    answers.damaged.update(without_marks(root, given, seen))
    return answers


def without_marks(root: Path, given: Mapping[str, bytes], seen: set[str]) -> dict[str, str]:
    """{file: what is wrong} of the course's files that are here, but whose regions are nowhere."""
    gone = {path: sorted(set(regions_of(path, given[path])) - seen) for path in given if (root / path).is_file()}
    advice = "put the BEGIN and END lines back as they are in .needle/starter"
    return {path: f"{path}: no marks of {', '.join(tags)}; {advice}" for path, tags in gone.items() if tags}


def is_answer(region: regions.Region, started: str | None, solved: Collection[str]) -> bool:
    """Whether the learner wrote this; `started` is the body that the course gave, None where it is not known.

    What differs from that is theirs, if it is only a note in a blank. So is what is alike, if the course did not solve
    it for them: short answers are alike.
    """
    if started is not None and region.body.split() != started.split():
        return True
    return not regions.is_blank(region) and not set(region.tags) & set(solved)


def source_files(root: Path) -> list[str]:
    return [path for path in files.listing(root) if trees.is_marked(path)]


def bodies_in(tree: Mapping[str, bytes]) -> dict[str, str]:
    """{tag: body} of every region in a tree that the course made; nothing of files that it cannot read."""
    return {tag: region.body for tag, region in regions_in(tree).items()}


def regions_in(tree: Mapping[str, bytes]) -> dict[str, regions.Region]:
    """{tag: region} of every region in a tree; nothing of files that cannot be read."""
    return {tag: region for path, content in tree.items() for tag, region in regions_of(path, content).items()}


def regions_of(path: str, content: bytes) -> dict[str, regions.Region]:
    """{tag: region} of one file; empty for what is no source, or whose marks are damaged."""
    if not trees.is_marked(path) or not is_text(content):
        return {}
    try:
        return regions.regions(Text.of(content).plain, path)
    except UserError:
        return {}


def damage(tree: Mapping[str, bytes]) -> dict[str, str]:
    """{file: what is wrong with its marks} of those files of a tree whose regions cannot be told apart."""
    wrong = {}
    for path, content in tree.items():
        if trees.is_marked(path) and is_text(content):
            try:
                regions.regions(Text.of(content).plain, path)
            except UserError as error:
                wrong[path] = str(error)
    return wrong


def poured(path: str, content: bytes, bodies: Mapping[str, str]) -> bytes:
    """A file of the course's with these bodies in its regions; as it is if it has none of them."""
    wanted = {tag: bodies[tag] for tag in regions_of(path, content) if tag in bodies}
    if not wanted:
        return content
    text = content.decode("utf-8", "surrogateescape")  # a learner's text may hold bytes that are no UTF-8
    return regions.pour(text, path, wanted).encode("utf-8", "surrogateescape")


def blank_tags(tree: Mapping[str, bytes], tags: Iterable[str]) -> list[str]:
    """Those of the tags whose region in a tree is still blank, or not there at all."""
    found = regions_in(tree)
    return [tag for tag in tags if tag not in found or regions.is_blank(found[tag])]
