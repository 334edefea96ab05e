"""The manifest `hw/stages.toml`: which stages there are, what each asks, and which file comes when.

Everything that lists stages, questions or files reads it through `load`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from . import files, regions
from .errors import UserError

MANIFEST = "hw/stages.toml"
BACKENDS = ("np", "nd")
FULL_MARKS = 100  # what the questions of a stage share if none states its points
MARKED = {".py", ".cc", ".cpp", ".cu", ".h", ".cmake", ".txt", ".toml"}  # files that may hold marks
SPEAK_OF_MARKS = ("python/needle_course/", "tests/")  # files below these hold none
SKIPPED = {"__pycache__", ".pytest_cache", ".ipynb_checkpoints"}
BUILT = {".so", ".pyd", ".dylib", ".pyc", ".ipynb"}


@dataclass(frozen=True)
class Part:
    """One region of a question: what a check judges, with its tests."""

    id: str  # is the region's tag
    title: str
    file: str
    tests: tuple[str, ...]  # "path::function" or "path::function[fragment]", for `matches`
    items: int  # how many test items these name
    needs: tuple[str, ...] = ()  # parts and questions without which this one cannot be judged


@dataclass(frozen=True)
class Question:
    """What is graded as one: parts, points, and the selector that people know."""

    id: str
    title: str
    points: float
    parts: tuple[Part, ...]
    select: str  # pytest -k expression
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """One homework."""

    id: str
    title: str
    backend: str  # "np" or "nd"
    root: str  # the folder, relative to the course, in which its tests run
    notebook: str  # the notebook's source
    tests: tuple[str, ...]  # folders of its tests
    data: tuple[str, ...]  # data sets that it can use
    needs_build: bool  # does it need the native modules?
    questions: tuple[Question, ...]

    @property
    def points(self) -> float:
        """The points of all questions."""
        return sum(question.points for question in self.questions)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all questions, in order."""
        return tuple(part for question in self.questions for part in question.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a learner writes in, each once."""
        return tuple(dict.fromkeys(part.file for part in self.parts))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the regions that this stage asks for."""
        return tuple(part.id for part in self.parts)


@dataclass(frozen=True)
class FileRule:
    """From which stage on the files of a pattern are part of a learner's tree; "never" for none."""

    stage: str
    pattern: str


@dataclass(frozen=True)
class Course:
    """A course: its folder, what kind of folder that is, and its stages in order."""

    root: Path
    kind: str  # "checkout" (the solved source), "bundle" (made by release) or "tree" (a learner's)
    stages: dict[str, Stage]
    rules: tuple[FileRule, ...] = field(default=(), repr=False)

    @property
    def order(self) -> list[str]:
        """The ids of the stages, in order."""
        return list(self.stages)

    def stage(self, name: str) -> Stage:
        """The stage of that id.  UserError if there is none."""
        if name not in self.stages:
            raise UserError(f"{self.root / MANIFEST}: no stage {name!r}; wanted one of {', '.join(self.stages)}")
        return self.stages[name]

    def find(self, name: str, stage: str | None = None) -> Question | Part:
        """The question or part of that id, the question if both have it; in stage hw3, `matmul` will do for hw3/matmul.

        UserError if there is none.
        """
        names = [name, f"{stage}/{name}"] if stage else [name]
        candidates = [item for s in self.stages.values() for group in (s.questions, s.parts) for item in group]
        found = [item for wanted in names for item in candidates if item.id == wanted]
        if not found:
            where = f"stage {stage}" if stage else "the course"
            known = [q.id for s in self.stages.values() if stage in (None, s.id) for q in s.questions]
            raise UserError(
                f"{self.root / MANIFEST}: no question {name!r} in {where}; wanted one of {', '.join(known)}"
            )
        return found[0]

    def question_of(self, part: str) -> Question:
        """The question that a part belongs to."""
        return next(q for s in self.stages.values() for q in s.questions for p in q.parts if p.id == part)

    def parts_of(self, name: str, stage: str | None = None) -> tuple[Part, ...]:
        """The part of that id, or the parts of the question of that id; names are as `find` has them."""
        item = self.find(name, stage)
        return item.parts if isinstance(item, Question) else (item,)

    def needs_of(self, part: Part) -> tuple[Part, ...]:
        """All parts that this one needs, directly or by way of others, in the order of the course."""
        seen: dict[str, Part] = {}
        waiting = [part]
        while waiting:
            for name in (current := waiting.pop()).needs + self.question_of(current.id).needs:
                fresh = [p for p in self.parts_of(name) if p.id not in seen]
                seen.update({p.id: p for p in fresh})
                waiting += fresh
        return tuple(p for s in self.stages.values() for p in s.parts if p.id in seen and p.id != part.id)

    def present(self, stage: str) -> list[str]:
        """The stages that exist in a learner's tree of this stage: it and those before."""
        return self.order[: self.order.index(self.stage(stage).id) + 1]

    def first_stage(self, tags: tuple[str, ...]) -> str:
        """The stage that asks first for a region with these tags."""
        return min((self.stage_of(tag) for tag in tags), key=self.order.index)

    def stage_of(self, tag: str) -> str:
        """The stage that a tag, or the id of a question, belongs to."""
        return tag.partition("/")[0]

    def files(self) -> dict[str, str]:
        """{path relative to the course: the stage from which learners have it, or "never"}, for a checkout's files."""
        found: dict[str, str] = {}
        for rule in self.rules:
            for path in sorted(self.root.glob(rule.pattern)):
                if path.is_file() and path.suffix not in BUILT and not SKIPPED & set(path.parts):
                    found.setdefault(path.relative_to(self.root).as_posix(), rule.stage)
        return found


def matches(selector: str, node: str) -> bool:
    """Does a part's selector name this item of pytest's?  Paths are relative to the course.

    "path::function" names all items of the function, "path::function[fragment]" those whose id in brackets holds the
    fragment or, if it has a star, is like it.
    """
    function, _, fragment = selector.partition("[")
    base, _, item = node.partition("[")
    fragment, item = fragment.removesuffix("]"), item.removesuffix("]")
    return base == function and (fnmatchcase(item, fragment) if "*" in fragment else fragment in item)


# ---- reading --------------------------------------------------------------------------------------------------------


def load(root: str | Path) -> Course:
    """The course in a folder: a checkout, a bundle or a learner's tree.

    UserError, with file and line, for a manifest that is missing, is no TOML, or does not add up.
    """
    root = Path(root)
    path = root / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: not found; name the course's folder, or a learner's tree") from None
    reader = _Reader(path, text)
    course = Course(root, _kind(root), reader.stages(), reader.rules())
    _check(course, reader)
    return course


def _kind(root: Path) -> str:
    if (root / ".needle" / "tree.toml").is_file():
        return "tree"
    return "bundle" if (root / "starters").is_dir() else "checkout"


class _Reader:
    """Makes stages of a manifest's text, and knows the line of each entry."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        try:
            self.data: dict[str, Any] = files.parse_toml(text)
        except ValueError as error:
            line = re.search(r"line (\d+)", str(error))
            raise self.fail(int(line[1]) if line else 1, f"no TOML: {error}") from None

    def fail(self, line: int, message: str) -> UserError:
        return UserError(f"{self.path}:{line}: {message}")

    def line_of(self, what: str) -> int:
        """The line in which an id or a name first stands in quotes or brackets."""
        found = re.search(rf'(?<=")(?:{re.escape(what)})(?=")|^\[+stages\.{re.escape(what)}[\].]', self.text, re.M)
        return self.text.count("\n", 0, found.start()) + 1 if found else 1

    def value(self, table: Any, key: str, kind: type | tuple[type, ...], where: str, default: Any = None) -> Any:
        if key not in table and default is not None:
            return default
        value = table.get(key)
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise self.fail(self.line_of(where), f"{where}: {key} is {value!r}, wanted {_kinds(kind)}")
        return value

    def names(self, table: Any, key: str, where: str) -> tuple[str, ...]:
        value = self.value(table, key, list, where, [])
        if not all(isinstance(name, str) for name in value):
            raise self.fail(self.line_of(where), f"{where}: {key} is {value!r}, wanted a list of names")
        return tuple(value)

    def stages(self) -> dict[str, Stage]:
        tables = self.data.get("stages")
        if not isinstance(tables, dict) or not tables:
            raise self.fail(1, "no stages; add a table [stages.hw1]")
        return {name: self.stage(name, table) for name, table in tables.items()}

    def stage(self, name: str, table: dict[str, Any]) -> Stage:
        backend = self.value(table, "backend", str, name)
        if backend not in BACKENDS:
            raise self.fail(self.line_of(name), f"{name}: backend is {backend!r}, wanted one of {BACKENDS}")
        rows = self.value(table, "questions", list, name)
        questions = tuple(self.question(name, row) for row in rows)
        stated = table.get("points")
        questions = _with_points(questions, FULL_MARKS if stated is None else stated)
        total = sum(question.points for question in questions)
        if stated is not None and total != stated:
            raise self.fail(self.line_of(name), f"{name}: points is {stated}, but its questions add up to {total:g}")
        return Stage(
            id=name,
            title=self.value(table, "title", str, name),
            backend=backend,
            root=self.value(table, "root", str, name, "."),
            notebook=self.value(table, "notebook", str, name),
            tests=self.names(table, "tests", name),
            data=self.names(table, "data", name),
            needs_build=self.value(table, "needs_build", bool, name, False),
            questions=questions,
        )

    def question(self, stage: str, table: dict[str, Any]) -> Question:
        name = self.value(table, "id", str, stage)
        rows = self.value(table, "parts", list, name)
        if not rows:
            raise self.fail(self.line_of(name), f"{name}: no parts; a question has at least one")
        return Question(
            id=name,
            title=self.value(table, "title", str, name),
            points=self.value(table, "points", (int, float), name, -1),
            parts=tuple(self.part(table, row) for row in rows),
            select=self.value(table, "select", str, name),
            needs=self.names(table, "needs", name),
        )

    def part(self, question: dict[str, Any], table: dict[str, Any]) -> Part:
        name = self.value(table, "id", str, question["id"])
        file = self.value({**question, **table}, "file", str, name)
        test_file = question.get("test_file", "")
        tests = tuple(test if "::" in test else f"{test_file}::{test}" for test in self.names(table, "tests", name))
        items = self.value(table, "items", int, name)
        if not tests or items < 1:
            raise self.fail(
                self.line_of(name), f"{name}: {len(tests)} tests and {items} items; a part has at least one"
            )
        return Part(name, self.value(table, "title", str, name), file, tests, items, self.names(table, "needs", name))

    def rules(self) -> tuple[FileRule, ...]:
        """The rules of the table [files], in order; the first that fits a file counts."""
        table = self.data.get("files", {})
        return tuple(FileRule(stage, pattern) for stage in table for pattern in self.names(table, stage, "files"))


def _kinds(kind: type | tuple[type, ...]) -> str:
    names = {str: "text", int: "a whole number", float: "a number", list: "a list", bool: "true or false"}
    return " or ".join(names[k] for k in (kind if isinstance(kind, tuple) else (kind,)))


def _with_points(questions: tuple[Question, ...], total: float) -> tuple[Question, ...]:
    """Questions that state no points share, in whole numbers, what the others leave of the total."""
    open_ = [q for q in questions if q.points < 0]
    rest = int(total - sum(q.points for q in questions if q.points >= 0)) if open_ else 0
    each, more = divmod(max(rest, 0), len(open_) or 1)
    shares = {q.id: each + (i < more) for i, q in enumerate(open_)}
    return tuple(Question(q.id, q.title, shares.get(q.id, q.points), q.parts, q.select, q.needs) for q in questions)


def _check(course: Course, reader: _Reader) -> None:
    """UserError for ids that come twice or belong elsewhere, unknown or circular needs, unknown stages of files."""
    questions = [(s.id, q) for s in course.stages.values() for q in s.questions]
    order = [p.id for _, q in questions for p in q.parts]
    for kind, ids in (("question", [q.id for _, q in questions]), ("part", order)):
        for name in ids:
            if ids.count(name) > 1:
                raise reader.fail(reader.line_of(name), f"{name}: two {kind}s have this id; rename one")
    for stage, question in questions:
        for name in (question.id, *(part.id for part in question.parts)):
            if not regions.TAG.fullmatch(name) or course.stage_of(name) != stage:
                raise reader.fail(reader.line_of(name), f"{name}: no id of stage {stage}; write {stage}/name")
        if question.id in order and [p.id for p in question.parts] != [question.id]:
            raise reader.fail(
                reader.line_of(question.id), f"{question.id}: also a part; only its sole part may share its id"
            )
        items: list[Question | Part] = [question, *question.parts]
        for item in items:
            _check_needs(course, reader, item, order)
    for rule in course.rules:
        if rule.stage not in (*course.stages, regions.NEVER):
            wanted = f"wanted one of {', '.join(course.stages)} or never"
            raise reader.fail(reader.line_of(rule.pattern), f"files: no stage {rule.stage!r}; {wanted}")


def _check_needs(course: Course, reader: _Reader, item: Question | Part, order: list[str]) -> None:
    """What an item needs has to be there, and to come before it, so that nothing is circular."""
    first = item.parts[0].id if isinstance(item, Question) else item.id
    for name in item.needs:
        try:
            needed = course.parts_of(name)
        except UserError:
            raise reader.fail(reader.line_of(item.id), f"{item.id}: needs {name!r}, which is not there") from None
        late = [part.id for part in needed if order.index(part.id) >= order.index(first)]
        if late:
            raise reader.fail(
                reader.line_of(item.id), f"{item.id}: needs {late[0]}, which comes later; change the order"
            )


# ---- does the source add up with it? --------------------------------------------------------------------------------


def sources(course: Course) -> Iterator[tuple[str, str]]:
    """(path, text) of the checkout's files that may hold marks: those of the rules, as far as they are text."""
    for name, stage in course.files().items():
        has_text = PurePosixPath(name).suffix in MARKED | {""}
        if stage != regions.NEVER and has_text and not name.startswith(SPEAK_OF_MARKS):
            yield name, regions.read(course.root / name)


def check_sources(course: Course) -> None:
    """UserError, with file and line, unless every part has its region in its file, and every block a stage."""
    parts = {part.id: part for stage in course.stages.values() for part in stage.parts}
    seen: dict[str, str] = {}
    for name, text in sources(course):
        for stage, line in regions.stages_of_blocks(text, name):
            if stage not in (*course.stages, regions.NEVER):
                raise UserError(
                    f"{name}:{line}: a block of {stage!r}; wanted one of {', '.join(course.stages)} or never"
                )
        for tag, region in regions.regions(text, name).items():
            if tag not in parts:
                raise UserError(
                    f"{name}:{region.line}: {tag} is no part in {MANIFEST}; add it there, or rename the tag"
                )
            if parts[tag].file != name:
                raise UserError(f"{name}:{region.line}: {MANIFEST} has {tag} in {parts[tag].file}; make them agree")
            if tag in seen:
                raise UserError(f"{name}:{region.line}: {tag} has a region in {seen[tag]}, too; rename one")
            seen[tag] = name
    missing = [part for part in parts.values() if part.id not in seen]
    if missing:
        text = (course.root / MANIFEST).read_text(encoding="utf-8")
        line = text[: text.index(f'"{missing[0].id}"')].count("\n") + 1
        raise UserError(f"{MANIFEST}:{line}: {missing[0].id} has no region in {missing[0].file}; mark it there")
