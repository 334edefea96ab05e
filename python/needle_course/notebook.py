"""Notebooks: from `hw/hwN/hwN.py`, which is kept, to `hwN.ipynb`, which is made, and running the latter.

A source is jupytext's percent format with two additions:

- a code cell of nothing but `setup("hw1")` becomes the whole set-up cell (`setup_cell.py`), and
- a line `hints("hw1/matmul_backward")` in a text cell becomes three folded hints from `hw/hw1/hints.toml`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import files
from .errors import UserError
from .hints import LEVELS

SETUP_LINE = re.compile(r'setup\("(\w+)"\)')
HINTS_LINE = re.compile(r'^hints\("([\w/]+)"\)$', re.MULTILINE)
WIDTH = 100  # columns; a wider cell scrolls sideways on a laptop
CELL_SECONDS = 300


# ---- from source to notebook ----------------------------------------------------------------------------------------


def build(course: Any, stage: str, source: str = "") -> Any:
    """The notebook of a stage as an nbformat object, validated.

    source: where the set-up cell fetches the project if it is not there, a git address or a zip file; "" for nowhere.
    Raises UserError, with file and line, for a source that does not hold together.
    """
    import jupytext
    import nbformat

    path = source_path(course, stage)
    text = path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    hints = read_hints(path.with_name("hints.toml"))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_hints(cell.source, hints, path)
        elif match := SETUP_LINE.fullmatch(cell.source.strip()):
            cell.source = setup_cell(match[1], source)
        cell.metadata = {}
    refuse_wide_lines(notebook, path)
    _name_cells(notebook, stage)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return notebook


def source_path(course: Any, stage: str) -> Path:
    """The percent source of a stage's notebook; UserError if the stage has none."""
    path = Path(course.root) / "hw" / stage / f"{stage}.py"
    if not path.is_file():
        raise UserError(f"{path}: the notebook of {stage} is not here; get it with `needle-course starter {stage}`")
    return path


def to_json(notebook: Any) -> str:
    """The text of the .ipynb file; the same notebook always gives the same text."""
    import nbformat

    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def write(course: Any, stage: str, out: Path | str, source: str = "") -> Path:
    """Write `STAGE.ipynb` into the folder `out` (or to the file, if `out` ends in .ipynb); returns its path."""
    out = Path(out)
    path = out if out.suffix == ".ipynb" else out / f"{stage}.ipynb"
    files.write_whole(path, to_json(build(course, stage, source)).encode())
    return path


def _name_cells(notebook: Any, stage: str) -> None:
    """Ids from what cells hold: an edit renames one cell, and the same source gives the same notebook."""
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = f"{stage.replace('_', '-')}-{digest}" + (f"-{seen[digest]}" if seen[digest] > 1 else "")


def refuse_wide_lines(notebook: Any, path: Path) -> None:
    """UserError for a line of code over WIDTH columns, or of text unless it is a table row, a formula or a link."""
    for number, cell in enumerate(notebook.cells, 1):
        for line in cell.source.splitlines():
            if len(line) > WIDTH and not line.lstrip().startswith(("|", "$", "<")):
                raise UserError(f"{path}: cell {number}: a line of {len(line)} columns, at most {WIDTH}: {line[:60]}…")


# ---- the set-up cell ------------------------------------------------------------------------------------------------


def setup_cell(stage: str, source: str = "") -> str:
    """The code of the first cell: finds the tree of this course, or unpacks it, and calls `lab.setup`."""
    code = Path(__file__).with_name("setup_cell.py").read_text(encoding="utf-8")
    body = code.split("# ---- the cell\n", 1)[1].strip()
    return body.replace('STAGE = "hw0"', f'STAGE = "{stage}"').replace(
        'SOURCE = ""', f"SOURCE = {json.dumps(source, ensure_ascii=False)}"
    )


# ---- hints ----------------------------------------------------------------------------------------------------------


def read_hints(path: Path) -> dict[str, list[str]]:
    """{part: its three hints} of a hints.toml; UserError if the file is missing or does not hold three for each."""
    try:
        tables = files.parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file, but the notebook asks for hints; write it") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}; mend the file") from None
    for part, table in tables.items():
        hints = table.get("hints", ())
        if len(hints) != len(LEVELS) or not all(isinstance(hint, str) and hint.strip() for hint in hints):
            raise UserError(f"{path}: {part} has {len(hints)} hints, wanted {len(LEVELS)}: {', '.join(LEVELS)}")
    return {part: [hint.strip() for hint in table["hints"]] for part, table in tables.items()}


def with_hints(text: str, hints: Mapping[str, list[str]], path: Path) -> str:
    """The text with each line `hints("part")` replaced by folded hints."""

    def folded(match: re.Match) -> str:
        if match[1] not in hints:
            raise UserError(f"{path}: hints({match[1]!r}), but hints.toml beside it has no [{match[1]!r}]; add it")
        return "\n".join(map(_folded, range(1, len(LEVELS) + 1), LEVELS, hints[match[1]]))

    return HINTS_LINE.sub(folded, text)


def _folded(number: int, level: str, hint: str) -> str:
    # the empty lines let Markdown and formulas inside be read as such
    return f"<details><summary>Hint {number} · {level}</summary>\n\n{_narrow(hint)}\n\n</details>"


def _narrow(text: str) -> str:
    """The text with its prose in lines of at most WIDTH columns; code, tables, lists and formulas stay as they are."""
    pieces = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    return "".join(piece if piece.startswith("```") else _wrapped(piece) for piece in pieces)


def _wrapped(text: str) -> str:
    head, tail = text[: len(text) - len(text.lstrip("\n"))], text[len(text.rstrip("\n")) :]
    paragraphs = text.strip("\n").split("\n\n")
    kept = ("|", "- ", "$$", "1.")
    return head + "\n\n".join(p if p.startswith(kept) else textwrap.fill(p, WIDTH) for p in paragraphs) + tail


# ---- running --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """How far a notebook ran: the cell that raised, None if it ran to its end, and what it raised."""

    notebook: Any
    stopped_at: int | None
    error: str
    seconds: float

    @property
    def passed(self) -> bool:
        return self.stopped_at is None


def run(course: Any, stage: str, *, smoke: bool = True, root: Path | None = None) -> Run:
    """Run a stage's notebook top to bottom in a fresh kernel of this Python; stops at the first cell that raises.

    smoke: small sizes, so that it takes a minute and not ten (NEEDLE_SMOKE=1).
    root: the tree that it runs in; by default the course's own.
    """
    return execute(build(course, stage), Path(root or course.root) / "hw" / stage, smoke=smoke)


def execute(notebook: Any, folder: Path, *, smoke: bool = True) -> Run:
    """Run a notebook with its current directory at `folder`, as Jupyter and VS Code do."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    began, error = time.monotonic(), ""
    try:
        start(client_for(NotebookClient, notebook, folder), smoke=smoke)
    except CellExecutionError as raised:
        error = f"{raised.ename}: {raised.evalue}"
    return Run(notebook, _first_error(notebook) if error else None, error, time.monotonic() - began)


def client_for(kind: Any, notebook: Any, folder: Path) -> Any:
    """An nbclient (of class `kind`) for a notebook in a folder, with a kernel of the Python that runs this."""
    resources = {"metadata": {"path": str(folder)}}
    return kind(notebook, km=_kernel_manager(), timeout=CELL_SECONDS, resources=resources)


def start(client: Any, *, smoke: bool) -> None:
    """Have a client execute its notebook, cut off from what the user's environment says."""
    with tempfile.TemporaryDirectory() as private:
        # stderr is where a kernel takes notes; cleanup_kc ends it and closes its sockets
        client.execute(env=_environment(smoke, private), stderr=subprocess.DEVNULL, cleanup_kc=True)


def _kernel_manager() -> Any:
    """A kernel of the Python that runs this, whatever kernels the user has installed."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="this Python", language="python")

    return AsyncKernelManager(kernel_spec_manager=ThisPython())


def _environment(smoke: bool, private: str) -> dict[str, str]:
    """The kernel's: nothing that points at another tree, and no start-up files of the user's."""
    ours = ("PYTHONPATH", "NEEDLE_BACKEND", "NEEDLE_KERNELS", "NEEDLE_SMOKE")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "IPYTHONDIR": private, "MPLBACKEND": "agg", **({"NEEDLE_SMOKE": "1"} if smoke else {})}


def _first_error(notebook: Any) -> int | None:
    for number, cell in enumerate(notebook.cells):
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            return number
    return None
