"""Three-way merging of notebooks, cell by cell: outputs and execution counts are no edits."""

from __future__ import annotations

import json
from typing import Any

from .merge import Merged


def merge_notebooks(given: bytes, mine: bytes, new: bytes) -> Merged:
    """The learner's notebook with the course's changes; the course's own beside it where the same cells changed.

    A cell is known by its kind and its source. Cells that the course did not change keep the learner's outputs.
    """
    from merge3 import Merge3

    try:
        books = [json.loads(content) for content in (given, mine, new)]
        cells = [[key(cell) for cell in book["cells"]] for book in books]
    except (ValueError, KeyError, TypeError):
        return Merged(mine) if mine == new else Merged(mine, new)
    regions = list(Merge3(*cells).merge_regions())
    if any(kind == "conflict" for kind, *_ in regions):
        return Merged(mine, new)
    merged = [key for kind, start, end in regions for key in cells[source_of(kind)][start:end]]
    if merged == cells[1]:
        return Merged(mine)
    if not added(cells) <= set(merged):
        return Merged(mine, new)
    return Merged(written({**books[2], "cells": with_outputs(merged, books[1], books[2])}))


def key(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return json.dumps([cell["cell_type"], source if isinstance(source, str) else "".join(source)])


def source_of(kind: str) -> int:
    return {"unchanged": 0, "a": 1, "same": 1, "b": 2}[kind]


def added(cells: list[list[str]]) -> set[str]:
    """The cells that the learner wrote."""
    return set(cells[1]) - set(cells[0])


def with_outputs(merged: list[str], mine: dict, new: dict) -> list[dict]:
    """The cells themselves, the learner's where both have one of this source; each id once."""
    known = {key(cell): cell for book in (new, mine) for cell in book["cells"]}
    cells, ids = [], set()
    for name in merged:
        cell = dict(known[name])
        while cell.get("id") in ids:
            cell["id"] += "-2"
        ids.add(cell.get("id"))
        cells.append(cell)
    return cells


def written(book: dict) -> bytes:
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()
