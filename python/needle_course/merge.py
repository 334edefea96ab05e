"""Three-way merging of one file: what the course gave, what the learner made of it, what the course gives now."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

BOM = "\ufeff"
YOURS, MIDDLE, COURSE = "<<<<<<< yours", "=======", ">>>>>>> course"


@dataclass(frozen=True)
class Merged:
    """The learner's file as it should become; or, where both changed the same lines, the text that shows both."""

    content: bytes
    conflict: bytes | None = None


@dataclass(frozen=True)
class Text:
    """A text as lines without their ends, and how its ends were written."""

    lines: list[str]
    ends: list[str]
    bom: str = ""

    @classmethod
    def of(cls, content: bytes) -> Text:
        text = content.decode("utf-8", "surrogateescape")  # whatever is no UTF-8 comes back as it was
        bom = BOM if text.startswith(BOM) else ""
        pieces = re.findall(r"[^\n]*\n|[^\n]+", text[len(bom) :])
        ends = ["\r\n" if piece.endswith("\r\n") else piece[len(piece.rstrip("\n")) :] for piece in pieces]
        return cls([piece[: len(piece) - len(end)] for piece, end in zip(pieces, ends)], ends, bom)

    @property
    def plain(self) -> str:
        """The text with '\\n' at the end of each line."""
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def usual_end(self) -> str:
        return Counter(end for end in self.ends if end).most_common(1)[0][0] if any(self.ends) else "\n"

    def written_alike(self, lines: list[str]) -> bytes:
        """Other lines with this text's byte order mark and line ends; a last line that lacked its end still does."""
        ends = {line: end for line, end in zip(self.lines, self.ends) if end}
        text = "".join(line + ends.get(line, self.usual_end) for line in lines)
        open_end = bool(self.ends) and not self.ends[-1] and lines[-1:] == self.lines[-1:]
        if open_end:
            text = text.removesuffix("\n").removesuffix("\r")
        return (self.bom + text).encode("utf-8", "surrogateescape")


def is_text(content: bytes) -> bool:
    return b"\0" not in content


def three_way(given: Text, mine: Text, new: Text) -> Merged:
    """Merge line by line; where both changed the same lines, the learner's text stays and a conflict shows both."""
    from merge3 import Merge3

    merge = Merge3(given.lines, mine.lines, new.lines)
    clean = all(kind != "conflict" for kind, *_ in merge.merge_regions())
    if clean:
        lines = list(merge.merge_lines())
        if not lost_lines(given, mine, lines):
            return Merged(mine.written_alike(lines))
    return Merged(mine.written_alike(mine.lines), mine.written_alike(shown(given, mine, new, clean)))


def shown(given: Text, mine: Text, new: Text, clean: bool) -> list[str]:
    """The merged lines with both sides of each conflict; both texts whole where a clean merge would lose a line."""
    from merge3 import Merge3

    if clean:
        return [YOURS, *mine.lines, MIDDLE, *new.lines, COURSE]
    lines: list[str] = []
    for kind, *place in Merge3(given.lines, mine.lines, new.lines).merge_regions():
        if kind == "conflict":
            _, _, start, end, other_start, other_end = place
            lines += [YOURS, *mine.lines[start:end], MIDDLE, *new.lines[other_start:other_end], COURSE]
        else:
            source = {"unchanged": given, "a": mine, "same": mine, "b": new}[kind]
            lines += source.lines[place[0] : place[1]]
    return lines


def lost_lines(given: Text, mine: Text, merged: list[str]) -> list[str]:
    """The lines that the learner added to what was given and that merged lacks."""
    added = Counter(map(str.strip, mine.lines)) - Counter(map(str.strip, given.lines))
    missing = added - Counter(map(str.strip, merged))
    return sorted(line for line in missing if line)


def has_conflict_marks(content: bytes) -> bool:
    """Whether a file still holds lines that a conflict's text brought in."""
    lines = set(Text.of(content).lines) if is_text(content) else set()
    return YOURS in lines and COURSE in lines
