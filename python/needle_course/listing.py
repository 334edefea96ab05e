"""Finds a class, function or blank in the files of a tree and shows it, with its file and line, in a notebook."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from . import regions
from .errors import UserError

# where the files are that the first word of a name like "hw0/add" stands for; other words are of the library
PLACES = {"apps": "apps", "hw0": "hw/hw0/src", "src": "src"}
LIBRARY = "python/needle"


@dataclass(frozen=True)
class Listing:
    """Lines of a file; in a notebook they show in colour, elsewhere as text."""

    path: str
    line: int
    text: str
    note: str = ""

    def _repr_markdown_(self) -> str:
        language = "cpp" if self.path.endswith((".cc", ".cpp", ".cu", ".h")) else "python"
        head = f"`{self.path}`, line {self.line}" + (f" · {self.note}" if self.note else "")
        return f"{head}\n\n```{language}\n{self.text}\n```"

    def __repr__(self) -> str:
        return f"# {self.path}, line {self.line}" + (f" · {self.note}" if self.note else "") + f"\n{self.text}"


@dataclass(frozen=True)
class Listings:
    """Several, one below the other."""

    parts: tuple[Listing, ...]

    def _repr_markdown_(self) -> str:
        return "\n\n".join(part._repr_markdown_() for part in self.parts)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.parts))


def find(root: Path, name: str) -> Listing:
    """The class, method or function called `name`: "ops/EWiseMul", "autograd/Value.is_leaf", "src/EwiseAdd".

    Raises UserError if it is in no file of that place.
    """
    place, _, wanted = name.rpartition("/")
    for path in files_of(root, place):
        text = path.read_text(encoding="utf-8-sig")
        span = _python_span(text, wanted) if path.suffix == ".py" else _c_span(text, wanted)
        if span:
            first, last = span
            marked, numbered = marked_lines(text), enumerate(text.splitlines(), 1)
            lines = [line for number, line in numbered if first <= number <= last and number not in marked]
            return Listing(path.relative_to(root).as_posix(), first, textwrap.dedent("\n".join(lines)))
    raise UserError(f"show_source: no {wanted!r} in the files of {place!r}; is its name spelt as in the library?")


def files_of(root: Path, place: str) -> list[Path]:
    """The sources that the first word of a name stands for: a folder of the library or of the tree, or one file."""
    if place.startswith("src/"):
        return [path for path in [root / place] if path.is_file()]
    base = root / PLACES[place] if place in PLACES else root / LIBRARY / place
    if base.is_dir():
        kinds = ("*.py", "*.cc", "*.cpp", "*.cu", "*.h") if place in PLACES else ("*.py",)
        return sorted(path for kind in kinds for path in base.rglob(kind))
    file = base.with_suffix(".py")
    return [file] if file.is_file() else []


def marked_lines(text: str) -> set[int]:
    """The numbers of lines that are marks of the course rather than code."""
    marked = {number for number, line in enumerate(text.splitlines(), 1) if regions.BLOCK.fullmatch(line)}
    for region in regions.all_regions(text):
        marked |= {region.line, *range(region.end_line - len(region.starter_lines.splitlines()), region.end_line + 1)}
    return marked


def _python_span(text: str, wanted: str) -> tuple[int, int] | None:
    """First and last line of the definition with a dotted name."""
    body: list[ast.stmt] = ast.parse(text).body
    node: ast.AST | None = None
    for part in wanted.split("."):
        named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        node = next((n for n in body if isinstance(n, named) and n.name == part), None)
        if node is None:
            return None
        body = node.body
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return first, node.end_lineno


def _c_span(text: str, wanted: str) -> tuple[int, int] | None:
    """First and last line of a C++ function, with the comment above it; or of a macro's statement that names it."""
    lines = text.splitlines()
    head = re.compile(rf"^(?!\s|//|#).*\b{re.escape(wanted)}\b\s*[(,<]")
    start = next((i for i, line in enumerate(lines) if head.match(line)), None)
    if start is None:
        return None
    end, depth, opened = start, 0, False
    for end in range(start, len(lines)):
        depth += lines[end].count("{") - lines[end].count("}")
        opened = opened or "{" in lines[end]
        if (opened and depth == 0) or (not opened and lines[end].rstrip().endswith(";")):
            break
    while start > 0 and lines[start - 1].lstrip().startswith(("//", "template")):
        start -= 1
    return start + 1, end + 1


def around(text: str, first: int, last: int) -> tuple[int, int]:
    """The lines of the definition (Python) in which a region begins, to its end or the region's; else the region's."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a learner's half-written file must still be shown
        return first, last
    spans = [
        (node.lineno, max(last, node.end_lineno or last))
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.lineno <= first <= (node.end_lineno or 0)
    ]
    return max(spans, default=(first, last))  # the innermost starts last
