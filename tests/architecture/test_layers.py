"""Imports inside needle run downhill only, in no circle, and quietly."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2] / "python" / "needle"

FLOORS = [  # ground first; a file may import only from floors below its own, or from its own folder
    ["errors", "defaults"],
    ["own_tree", "write_log"],
    ["kernels"],
    ["backend_ndarray", "backend_numpy", "backend_comm"],
    ["backend_selection", "execution"],
    ["autograd"],
    ["init"],
    ["ops"],
    ["functional"],
    ["core"],
    ["optimizers"],
    ["nn", "optim", "data", "compiler", "testing", "visualize", "serialize", "profile", "resources"],
    ["distributed"],
    ["__init__"],
]
FLOOR = {room: n for n, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: pathlib.Path, tree: ast.AST) -> Iterator[tuple[list[str], str]]:
    """Yield (path from needle's root as a list of names, the statement) for every needle module that the code names."""
    here = path.relative_to(ROOT).parts
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            target = [*here[: len(here) - node.level], *(node.module.split(".") if node.module else [])]
            for name in node.names:
                yield [*target, name.name], ast.unparse(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            for absolute in names:
                if absolute.split(".")[0] == "needle":
                    yield ["__init__"], ast.unparse(node)


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(path) for path in FILES}
    assert not rooms - set(FLOOR), "new rooms: give each its floor above"


def test_imports_run_downhill() -> None:
    uphill = []
    for path in FILES:
        room = room_of(path)
        for (target, *_), text in imports(path, ast.parse(path.read_text(encoding="utf-8"))):
            if target != room and FLOOR[target] >= FLOOR[room]:
                uphill.append(f"{path.relative_to(ROOT)}: `{text}` (floor {FLOOR[room]} imports floor {FLOOR[target]})")
    assert not uphill, "\n".join(uphill)


def test_the_layer_test_sees_an_import_that_runs_up() -> None:
    seen = list(imports(ROOT / "ops" / "ops_mathematic.py", ast.parse("from ..nn import Linear\nimport needle.optim")))
    assert [target[0] for target, _ in seen] == ["nn", "__init__"]


def module_of(parts: list[str]) -> pathlib.Path | None:
    """The file that `needle.<parts>` names; the last part may be a name inside a module."""
    for names in (parts, parts[:-1]):
        for file in (ROOT.joinpath(*names).with_suffix(".py"), ROOT.joinpath(*names, "__init__.py")):
            if names and file in FILES:
                return file
    return None


def needs(path: pathlib.Path) -> set[pathlib.Path]:
    """The files whose code runs first when this one is imported: imports at the top, not those in functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
    return {file for target, _ in imports(path, top) if (file := module_of(target)) and file != path}


def test_no_file_imports_itself_in_a_circle() -> None:
    graph = {path: needs(path) for path in FILES}
    while free := [path for path, wanted in graph.items() if not wanted & graph.keys()]:
        for path in free:
            del graph[path]
    assert not graph, "in a circle, or above one: " + ", ".join(str(path.relative_to(ROOT)) for path in graph)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds this tree's needle and nothing of the caller's settings."""
    clean = {"PYTHONPATH": str(ROOT.parent), "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run([sys.executable, "-W", "error", "-c", code], env=clean, capture_output=True, text=True)


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_import_is_silent(backend: str) -> None:
    done = python("import needle", NEEDLE_BACKEND=backend)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_import_needs_only_numpy(backend: str) -> None:
    optional = ["rich", "matplotlib", "safetensors", "pooch", "torch", "pytest", "hypothesis", "scipy"]
    done = python(f"import needle, sys; print([m for m in {optional} if m in sys.modules])", NEEDLE_BACKEND=backend)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_public_names_resolve(backend: str) -> None:
    code = "import needle\nprint([n for n in needle.__all__ if not hasattr(needle, n)], len(set(needle.__all__)))"
    done = python(code, NEEDLE_BACKEND=backend)
    missing, count = done.stdout.rsplit(maxsplit=1)
    assert missing == "[]", done.stderr
    assert int(count) > 50


def test_both_backends_offer_the_same_names() -> None:
    code = "import needle; print(*sorted(needle.__all__))"
    assert python(code, NEEDLE_BACKEND="np").stdout == python(code, NEEDLE_BACKEND="nd").stdout
