"""Runs a notebook as a learner works through it: at each red check the answer is filled in, and the check run again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from needle_course import answers, notebook, regions
from needle_course.stages import Course

CHECK = re.compile(r'check\("([\w/]+)"\)')


def checked(cell: Any) -> str | None:
    """What a cell checks, if that is all it does."""
    found = CHECK.fullmatch(cell.source.strip())
    return found[1] if found else None


def fill(reference: Course, tree: Path, question: str) -> None:
    """Put the reference's answers to a question's parts, or to one part, into a learner's tree."""
    for part in reference.parts_of(question):
        body = regions.regions(regions.read(reference.root / part.file), part.file)[part.id].body
        path = tree / part.file
        path.write_bytes(answers.poured(part.file, path.read_bytes(), {part.id: body}))


class Walker(NotebookClient):
    """Executes a notebook; a red check calls `answer` with what it checks, and must be green the second time."""

    answer: Callable[[str], None]
    reds: list[str]

    async def async_execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        try:
            return await super().async_execute_cell(cell, cell_index, **options)
        except CellExecutionError as error:
            question = checked(cell)
            if question is None or error.ename != "Red":
                raise
            self.reds.append(question)
            self.answer(question)
            cell.outputs = []
            return await super().async_execute_cell(cell, cell_index, **options)


def walk(reference: Course, learner: Course, stage: str) -> list[str]:
    """Work through the starter's notebook of a stage; what was red at first, in order."""
    book, folder = notebook.build(learner, stage), learner.root / "hw" / stage
    walker = notebook.client_for(Walker, book, folder)
    walker.reds, walker.answer = [], lambda question: fill(reference, learner.root, question)
    notebook.start(walker, smoke=True)
    return walker.reds
