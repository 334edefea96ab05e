"""Works through a starter's notebook without building or checking anything: REFERENCE TREE STAGE are its arguments.

Cells run in this process, one after the other, on the tree; where the notebook checks a question, its answers are
poured in from the reference.  So a cell that needs what comes later fails here, in seconds.  Cells that need compiled
code are left out, as is the set-up.  Exits with 1 and says which cells failed.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

COMPILED = ("run_cpp(", "run_cuda(", "nd.cpu()", "nd.cuda()", "setup(")


def main(reference: Path, tree: Path, stage: str) -> int:
    os.chdir(tree / "hw" / stage)
    sys.path[:0] = [str(tree / "hw" / stage / "src"), str(tree / "apps"), str(tree / "python")]
    from needle_course import answers, lab, notebook, regions, stages

    solved, course = stages.load(reference), stages.load(tree)
    settings = {"NEEDLE_BACKEND": course.stage(stage).backend or "np", "NEEDLE_KERNELS": "course"}
    os.environ.update(settings, PYTHONPATH=str(tree / "python"))
    lab._Place.root, lab._Place.stage = tree, stage

    def pour(question: str) -> None:
        """Take the place of a check; a check of the whole stage finds all answers there."""
        for part in solved.parts_of(question) if "/" in question else ():
            body = regions.regions(regions.read(reference / part.file), part.file)[part.id].body
            path = tree / part.file
            path.write_bytes(answers.poured(part.file, path.read_bytes(), {part.id: body}))

    names = {**vars(lab), "check": pour}
    code = [(n, cell.source) for n, cell in enumerate(notebook.build(course, stage).cells) if cell.cell_type == "code"]
    return sum(failed(number, source, names) for number, source in code)


def failed(number: int, source: str, names: dict[str, Any]) -> bool:
    """Whether a cell raises; it runs as in a notebook, where the value of its last line is shown."""
    if any(word in source for word in COMPILED):
        return False
    module = ast.parse(source)
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    try:
        exec(compile(module, f"cell {number}", "exec"), names)
        if last is not None:
            show(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    except Exception:
        print(f"cell {number}:\n{source[:400]}\n{traceback.format_exc(limit=-3)}", file=sys.stderr)
        return True
    return False


def show(value: Any) -> None:
    """What a notebook would make of a value, so that drawing is tried, too."""
    for form in ("_repr_html_", "_repr_svg_", "_repr_markdown_", "__repr__"):
        if hasattr(value, form) and not isinstance(value, (type, ModuleType)):
            getattr(value, form)()
            return


if __name__ == "__main__":
    os.environ["NEEDLE_SMOKE"] = "1"
    sys.exit(1 if main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]) else 0)
