"""Regions and stage blocks: the marks that say what of the reference a learner writes, and what comes later.

This is the only file that knows a mark.

A *region* is what a learner writes.  Its markers, tags included, stay in what a learner gets:

    ### BEGIN YOUR SOLUTION hw1/matmul_forward hw4/nd_matmul
    …
    ### END YOUR SOLUTION hw1/matmul_forward hw4/nd_matmul

A second tag says that a later stage asks for the same code again.  A blank region raises:
`raise NotImplementedError("hw1/matmul_forward is not implemented yet")`, in C++ `throw NotImplemented("hw3/compact");`.
Where that does not do, the region brings a starter text of its own: comments below its code, of which a starter has
what stands after `# `, its indentation included.  Code in it that only keeps the file compiling says `to be written`.

    ### STARTER
    #     raise NotImplementedError("hw1/topo_sort is not implemented yet")
    #
    # def topo_sort_dfs(node, visited, topo_order):
    #     raise NotImplementedError("hw1/topo_sort is not implemented yet")

A *stage block* is what does not exist before a stage, or in no starter at all; its marks never reach a learner.

    # >>> hw4                    # >>> never                        # >>> hw4
    …                            …                                  # isort: split
    # <<< hw4                    # <<< never                        from .nn_conv import Conv
                                                                    # <<< hw4

C++ has the same with slashes: `/// BEGIN YOUR SOLUTION hw3/compact`, `// >>> hw4`.  Regions may stand inside blocks and
blocks inside blocks, but nothing stands inside a region.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from .errors import UserError

TAG = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")

# public material varies: ### BEGIN YOUR SOLUTION, ### BEGIN YOUR CODE, /// BEGIN SOLUTION, with a colon or more behind
MARKER = re.compile(r"(?P<indent>[ \t]*)(?P<comment>#{2,}|/{3,})[ \t]*(?P<end>BEGIN|END)[ \t]+(?:YOUR[ \t]+)?"
                    r"(?:SOLUTION|CODE)\b[ \t]*:?(?P<rest>[^\n]*)")  # fmt: skip
STARTER = re.compile(r"[ \t]*(?:#{2,}|/{3,})[ \t]*STARTER\b")
BLOCK = re.compile(r"[ \t]*(?:#|//)[ \t]*(?P<mark>>>>|<<<)[ \t]+(?P<stage>[a-z]\w*)[ \t]*")
RAISES = re.compile(
    r"(?:raise\s+NotImplementedError|throw\s+(?:\w+::)*NotImplemented|PyErr_SetString\(PyExc_NotImplementedError)\b"
    r"|.*\bBlank\("
)
HEAD = re.compile(r"^[ \t]*(?!(?:for|if|while|switch)\b)[\w:&*<> ]+\([^;{}]*\)\s*\{", re.M)  # of a function in C++
SCAFFOLD = re.compile(r"(?:def|class|template)\b.*|\}.*|.*(?:#|//) to be written\b.*")

ISORT = "# isort: split"  # below a block's first mark: part of it, so that the imports of a block stay in it

NEVER = "never"  # the stage of what no starter has


@dataclass(frozen=True)
class Text:
    """Lines without a mark."""

    text: str


@dataclass(frozen=True)
class Region:
    """What a learner writes.  `body` and `starter` end their lines with \\n, whatever the file does."""

    tags: tuple[str, ...]
    body: str
    starter: str | None  # what a blank holds instead of the raising line; None: that line
    path: str
    line: int  # of BEGIN, counted from 1
    end_line: int
    indent: str
    comment: str  # "#" or "//"
    begin: str  # the marker lines as they stand, line ends included
    end: str
    starter_lines: str = ""  # the STARTER marker and what follows, as it stands
    newline: str = "\n"
    raw: str = ""  # the body as it stands


@dataclass(frozen=True)
class StageBlock:
    """What exists from a stage on, or never in a starter."""

    stage: str
    pieces: tuple[Piece, ...]
    line: int
    end_line: int
    begin: str
    end: str


Piece = Text | Region | StageBlock


def read(path: Path) -> str:
    """The text of a file, its line ends and its byte order mark kept."""
    return decode(path.read_bytes(), path)


def decode(content: bytes, path: str | PurePath) -> str:
    """Text of a file's content, line ends and byte order mark kept.  UserError for what is no UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


# ---- reading --------------------------------------------------------------------------------------------------------


def parse(text: str, path: str | PurePath = "<text>") -> list[Piece]:
    """The text in pieces, which `render` joins to the same text again.

    UserError, with file and line, for a region inside a region, one that is not closed, an END without BEGIN or with
    other tags, a word among the tags that is none, and for blocks that do not close in turn.
    """
    return _Parser(text, str(path)).pieces()


def render(pieces: Collection[Piece]) -> str:
    """The text of the pieces, marks included."""
    return "".join(_rendered(piece) for piece in pieces)


def _rendered(piece: Piece) -> str:
    if isinstance(piece, Text):
        return piece.text
    if isinstance(piece, StageBlock):
        return piece.begin + render(piece.pieces) + piece.end
    same = piece.body == piece.raw.replace("\r\n", "\n")  # then as it stands, though its line ends be mixed
    body = piece.raw if same else piece.body.replace("\n", piece.newline)
    return piece.begin + body + piece.starter_lines + piece.end


class _Parser:
    def __init__(self, text: str, path: str) -> None:
        self.lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)  # not splitlines(), to which form feeds are line ends, too
        self.path = path
        self.next = 0
        self.newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"

    def fail(self, line: int, message: str) -> UserError:
        return UserError(f"{self.path}:{line}: {message}")

    def pieces(self, inside: str | None = None, opened: int = 0) -> list[Piece]:
        """Everything up to the end of the text or, inside a block, up to its closing mark, which is left unread."""
        found: list[Piece] = []
        plain: list[str] = []
        while self.next < len(self.lines):
            line, number = self.lines[self.next], self.next + 1
            marker, block = _match(MARKER, line), _match(BLOCK, line)
            if marker is None and block is None:
                plain.append(line)
                self.next += 1
                continue
            if block and block["mark"] == "<<<" and inside is not None:
                break
            found += [Text("".join(plain))] if plain else []
            plain = []
            found.append(self.region(marker) if marker else self.block(block, number))  # type: ignore[arg-type]
        else:
            if inside is not None:
                raise self.fail(opened, f"the block of {inside} is not closed; add its `<<< {inside}`")
        return found + ([Text("".join(plain))] if plain else [])

    def block(self, mark: re.Match[str], opened: int) -> StageBlock:
        stage, begin = mark["stage"], self.lines[self.next]
        if mark["mark"] == "<<<":
            raise self.fail(opened, f"`<<< {stage}` closes a block that was not opened; remove it")
        self.next += 1
        if self.lines[self.next : self.next + 1] and self.lines[self.next].strip() == ISORT:
            begin += self.lines[self.next]
            self.next += 1
        pieces = self.pieces(stage, opened)
        end = self.lines[self.next]
        closed = _match(BLOCK, end)["stage"]  # type: ignore[index]
        if closed != stage:
            raise self.fail(self.next + 1, f"`<<< {closed}` inside the block of {stage} opened at :{opened}")
        self.next += 1
        return StageBlock(stage, tuple(pieces), opened, self.next, begin, end)

    def region(self, begin: re.Match[str]) -> Region:
        opened = self.next + 1
        if begin["end"] == "END":
            raise self.fail(opened, "END of a region that was not opened; put its BEGIN line back or remove this line")
        tags = self.tags(begin, opened)
        body, starter = self.body(opened, tags)
        end_line = self.next + 1
        end = _match(MARKER, self.lines[self.next])
        closing = self.tags(end, end_line)  # type: ignore[arg-type]
        if closing and closing != tags:
            raise self.fail(end_line, f"END of {' '.join(closing)} in the region {_name(tags)} opened at :{opened}")
        self.next += 1
        lines = self.lines
        return Region(
            tags=tags,
            body="".join(body).replace("\r\n", "\n"),
            starter=_uncommented(starter[1:]) if starter else None,
            path=self.path,
            line=opened,
            end_line=end_line,
            indent=begin["indent"].lstrip("\ufeff"),
            comment=begin["comment"][0] if begin["comment"][0] == "#" else "//",
            begin=lines[opened - 1],
            end=lines[end_line - 1],
            starter_lines="".join(starter),
            newline=self.newline,
            raw="".join(body),
        )

    def body(self, opened: int, tags: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """The lines up to END: the learner's, and from the STARTER marker on."""
        body: list[str] = []
        starter: list[str] = []
        self.next += 1
        while self.next < len(self.lines):
            line, number = self.lines[self.next], self.next + 1
            marker = _match(MARKER, line)
            if marker and marker["end"] == "END":
                return body, starter
            if marker:
                raise self.fail(number, f"BEGIN inside the region {_name(tags)} opened at :{opened}; close that first")
            if _match(BLOCK, line):
                raise self.fail(number, f"a block's mark inside the region {_name(tags)} opened at :{opened}")
            (starter if starter or STARTER.match(line) else body).append(line)
            self.next += 1
        raise self.fail(opened, f"the region {_name(tags)} is not closed; put its END line back")

    def tags(self, marker: re.Match[str], line: int) -> tuple[str, ...]:
        words = marker["rest"].split()
        for word in words:
            if "/" in word and not TAG.fullmatch(word):
                raise self.fail(line, f"{word!r} is no tag; write it as hw1/matmul_forward")
        return tuple(word for word in words if TAG.fullmatch(word))


def _match(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
    return pattern.fullmatch(line.rstrip("\r\n").removeprefix("\ufeff"))


def _name(tags: tuple[str, ...]) -> str:
    return " ".join(tags) or "without a tag"


def _uncommented(lines: list[str]) -> str:
    """The lines of a starter text without what makes them comments, and without the indentation of these."""
    return "".join(re.sub(r"^[ \t]*(?:#|//) ?", "", line).replace("\r\n", "\n") for line in lines)


# ---- what the other tools ask ---------------------------------------------------------------------------------------


def all_regions(text: str, path: str | PurePath = "<text>") -> list[Region]:
    """The regions in the order of the text, those inside blocks, too."""
    return list(_walk(parse(text, path)))


def regions(text: str, path: str | PurePath = "<text>") -> dict[str, Region]:
    """{tag: its region}; a region with two tags is there twice.  UserError for a tag that is missing or not unique."""
    found: dict[str, Region] = {}
    for region in all_regions(text, path):
        if not region.tags:
            raise UserError(
                f"{path}:{region.line}: BEGIN without a tag; put it back, as in BEGIN YOUR SOLUTION hw1/log"
            )
        for tag in region.tags:
            if tag in found:
                raise UserError(f"{path}:{region.line}: {tag} has a region already, at :{found[tag].line}; rename one")
            found[tag] = region
    return found


def is_blank(region: Region) -> bool:
    """Is there nothing yet but what the starter put there: is the first line of code the one that raises?

    What a starter text may have before it does not count: heads of functions, and code with a comment `to be written`.
    """
    code = _code_lines(region)
    return not code or RAISES.match(code[0]) is not None


def blank_text(region: Region, tag: str | None = None) -> str:
    """What stands in the region in a starter that asks for `tag`, which is by default the region's first."""
    tag = tag or region.tags[0]
    if region.starter is not None:
        return region.starter.replace(f'"{region.tags[0]}', f'"{tag}')
    if region.comment == "//":
        return f'{region.indent}throw NotImplemented("{tag}");\n'
    return f'{region.indent}raise NotImplementedError("{tag} is not implemented yet")\n'


def blank(text: str, path: str | PurePath, tags: Collection[str]) -> str:
    """The text with the regions that have one of these tags blank, and no region's starter text beside its code."""

    def change(region: Region) -> Region:
        asked = [tag for tag in region.tags if tag in tags]
        return replace(region, body=blank_text(region, asked[0]) if asked else region.body, starter_lines="")

    return render(_changed(parse(text, path), change))


def pour(text: str, path: str | PurePath, bodies: Mapping[str, str]) -> str:
    """The text with these bodies in the regions of their tags, in the text's own line ends.

    Of several tags of one region the first that has a body counts; tags that the text does not have are passed over.
    """

    def change(region: Region) -> Region:
        body = next((bodies[tag] for tag in region.tags if tag in bodies), region.body).replace("\r\n", "\n")
        return replace(region, body=body if not body or body.endswith("\n") else body + "\n")

    return render(_changed(parse(text, path), change))


def without_blocks(text: str, path: str | PurePath, present: Collection[str]) -> str:
    """The text as it reads at a stage: blocks of the stages present without their marks, all others gone."""
    pieces = parse(text, path)
    kept = ""
    for part in _runs(pieces, present):
        kept = _joined(kept, part)
    if pieces and isinstance(pieces[-1], StageBlock):  # what set it off
        kept = kept.rstrip("\r\n") + ("\r\n" if kept.endswith("\r\n") else "\n") if kept.strip() else ""
    return kept


def stages_of_blocks(text: str, path: str | PurePath = "<text>") -> list[tuple[str, int]]:
    """(stage, line) of all blocks in the text."""
    return [(block.stage, block.line) for block in _blocks(parse(text, path))]


def _walk(pieces: Collection[Piece]) -> Iterator[Region]:
    for piece in pieces:
        if isinstance(piece, Region):
            yield piece
        elif isinstance(piece, StageBlock):
            yield from _walk(piece.pieces)


def _blocks(pieces: Collection[Piece]) -> Iterator[StageBlock]:
    for piece in pieces:
        if isinstance(piece, StageBlock):
            yield piece
            yield from _blocks(piece.pieces)


def _changed(pieces: Collection[Piece], change: Callable[[Region], Region]) -> list[Piece]:
    """The pieces with change(region) in place of each region."""
    return [
        change(piece)
        if isinstance(piece, Region)
        else replace(piece, pieces=tuple(_changed(piece.pieces, change)))
        if isinstance(piece, StageBlock)
        else piece
        for piece in pieces
    ]


def _runs(pieces: Collection[Piece], present: Collection[str]) -> Iterator[str]:
    """The text of the pieces that are there at a stage, cut where a block's mark stood."""
    run: list[Piece] = []
    for piece in pieces:
        if not isinstance(piece, StageBlock):
            run.append(piece)
            continue
        yield render(run)
        run = []
        if piece.stage in present:
            yield from _runs(piece.pieces, present)
    yield render(run)


def _joined(above: str, below: str) -> str:
    """Two texts between which a mark stood, with as many blank lines between them as the one or the other has there."""
    if not above.strip("\r\n"):
        return above + below
    ends = len(re.search(r"(?:\r?\n)*\Z", above)[0].replace("\r", "")) - 1  # type: ignore[index]
    begins = re.match(r"(?:\r?\n)*", below)[0]  # type: ignore[index]
    lines = begins.splitlines(keepends=True)
    return above + "".join(lines[min(ends, len(lines)) :]) + below[len(begins) :]


def _code_lines(region: Region) -> list[str]:
    """The lines of the body that are neither blank nor comment nor docstring, nor what `is_blank` passes over."""
    body = re.sub(r'"""(?:.|\n)*?"""|/\*(?:.|\n)*?\*/', "", region.body)
    body = HEAD.sub("", body) if region.comment == "//" else body
    lines = (line.strip() for line in body.splitlines())
    code = [line for line in lines if line and not line.startswith(region.comment)]
    return [line for line in code if not SCAFFOLD.fullmatch(line)]
