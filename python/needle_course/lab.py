"""What a notebook has at hand: the map, sources and blanks, checks, graphs, timing, pictures.

`from needle_course.lab import *` in the set-up cell; then `setup("hw1")`.  Nothing here imports needle until a cell
asks for it, and checks run in processes of their own, so that what is tested is the file as it is saved now.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import listing, regions
from .errors import UserError
from .experiments import SMOKE, best_of, run_cpp, run_cuda
from .figures.graph import draw as draw_graph
from .figures.library_map import library_map
from .figures.plots import Plot, curves, images, panels, paths_on
from .figures.svg import Svg
from .listing import Listing, Listings
from .verdict import Verdict

__all__ = [
    "SMOKE",
    "Plot",
    "Red",
    "Svg",
    "best_of",
    "check",
    "curves",
    "digits",
    "fresh",
    "here",
    "images",
    "panels",
    "paths_on",
    "run_cpp",
    "run_cuda",
    "run_fresh",
    "setup",
    "show_blank",
    "show_graph",
    "show_source",
    "size",
]

CHECK_SECONDS = 600

# what checks and builds need, by the name to import and the name to install; NumPy is never among them
NEEDED = {
    "pytest": "pytest",
    "pybind11": "pybind11",
    "typer": "typer",
    "rich": "rich",
    "merge3": "merge3",
    "matplotlib": "matplotlib",
}
if sys.version_info < (3, 11):
    NEEDED["tomli"] = "tomli"


class _Place:
    """The tree and the stage of this notebook."""

    root = Path(__file__).resolve().parents[2]
    stage = ""


# ---- setting up -----------------------------------------------------------------------------------------------------


def setup(stage: str) -> None:
    """Make this kernel and its tree ready for a stage: packages, paths, backend, build.  Safe to run again.

    Prints at most five lines.  NumPy is left as it is: a kernel that has loaded it cannot take another.
    """
    _Place.root, _Place.stage = _workable(_Place.root, stage), stage
    settings = _settings(stage)
    installed = _install_missing()
    _first_on_path(*(_Place.root / place for place in ("apps", f"hw/{stage}/src", "python")))
    os.environ["PYTHONPATH"] = str(_Place.root / "python")  # for processes that cells start
    if "needle" not in sys.modules:
        os.environ.update({"NEEDLE_BACKEND": settings["backend"], "NEEDLE_KERNELS": "course"})
    print(f"tree    {_Place.root}")
    print(f"python  {sys.version.split()[0]}, {_numpy_version()}, stage {stage}")
    if installed:
        print(f"new     {installed}")
    print(f"build   {_build()}")
    print("checks  run on the files as saved: edit, save, run the check cell; no restart needed")


def _workable(root: Path, stage: str) -> Path:
    """The tree to work in: this one or, where this one is a bundle, a learner's tree made from it beside it."""
    if (root / ".needle").is_dir() or _course(root).kind == "checkout":
        return root
    work = root.parent / "work" if root.name == "needle-course" else root / "work"
    if not work.is_dir():
        done = _course_command("starter", stage, "--out", str(work), root=root)
        if done.returncode:
            raise UserError(done.stderr.strip() or f"setup: the starter of {stage} could not be made in {work}")
    return work


def _course(root: Path) -> Any:
    from . import stages

    return stages.load(root)


def _settings(stage: str) -> dict[str, str]:
    course = _course(_Place.root)
    if stage not in course.stages:
        at = list(course.stages)[-1]
        raise UserError(f"setup: the tree {_Place.root} is at {at}; take it to {stage} with `needle-course advance`")
    return {"backend": course.stage(stage).backend}


def _first_on_path(*folders: Path) -> None:
    """Each folder at the front of sys.path, the last one first of all, once."""
    for folder in map(str, folders):
        sys.path[:] = [folder, *(path for path in sys.path if path != folder)]


def _numpy_version() -> str:
    import numpy

    old = tuple(map(int, numpy.__version__.split(".")[:2])) < (1, 26)
    return f"NumPy {numpy.__version__}" + (" (too old: install numpy>=1.26 and restart the kernel)" if old else "")


def _install_missing() -> str:
    """Install what checks need and this Python lacks; pip may not touch NumPy meanwhile.  Returns what came."""
    missing = [package for name, package in NEEDED.items() if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    constraint = _Place.root / ".needle-constraints.txt"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    try:
        if importlib.util.find_spec("numpy") is not None:
            import numpy

            constraint.write_text(f"numpy=={numpy.__version__}\n", encoding="utf-8")
            pip += ["--constraint", str(constraint)]
        done = subprocess.run([*pip, *missing], capture_output=True, text=True)
    finally:
        constraint.unlink(missing_ok=True)
    importlib.invalidate_caches()
    if done.returncode:
        return f"could not install {', '.join(missing)} (no network?): pictures and checks that need them will say so"
    return f"installed {', '.join(missing)}"


def _build() -> str:
    """Build the native modules of this tree, if it has any; one line that says how it went."""
    script = _Place.root / "tools" / "build_native.py"
    if not script.is_file() or not _course(_Place.root).stage(_Place.stage).needs_build:
        return "nothing to build in this stage"
    start = time.monotonic()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=_environment())
    if done.returncode:
        return "FAILED: " + (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
    seconds = time.monotonic() - start
    return f"native modules built in {seconds:.0f} s" if seconds > 3 else "native modules are up to date"


def _environment() -> dict[str, str]:
    """For processes on the tree's files: its python/ first; backend and kernels as its own files say."""
    ours = ("NEEDLE_BACKEND", "NEEDLE_KERNELS", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PYTHONPATH": str(_Place.root / "python")}


def _course_command(*words: str, root: Path | None = None) -> subprocess.CompletedProcess:
    root = root or _Place.root
    environment = {**_environment(), "PYTHONPATH": str(root / "python")}
    command = [sys.executable, "-m", "needle_course", *words]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=CHECK_SECONDS)


# ---- where we are, and what stands there ----------------------------------------------------------------------------


def here(place: str) -> Svg:
    """The map of the library with the room of `place` lit: "ops/BroadcastTo.gradient"."""
    return library_map(place, _Place.stage or "hw4_extra")


def show_source(name: str) -> Listing:
    """A class or function of the tree as it is saved now: "ops/EWiseMul", "autograd/Value", "src/EwiseAdd"."""
    return listing.find(_Place.root, name)


def show_blank(*tags: str) -> Listing | Listings:
    """The blanks of parts, with the definitions around them, as they are saved now: "hw1/broadcast_to_backward".

    In the course's own checkout, where they are filled, they show as a learner gets them.
    """
    blanks = tuple(map(_blank, tags))
    return blanks[0] if len(blanks) == 1 else Listings(blanks)


def _blank(tag: str) -> Listing:
    course = _course(_Place.root)
    path = _Place.root / course.parts_of(tag)[0].file
    text = path.read_text(encoding="utf-8-sig")
    if course.kind == "checkout":
        text = regions.blank(text, str(path), [tag])
    region = regions.regions(text, str(path))[tag]
    first, last = listing.around(text, region.line, region.end_line)
    lines = textwrap.dedent("\n".join(text.splitlines()[first - 1 : last]))
    return Listing(path.relative_to(_Place.root).as_posix(), region.line, lines, "open it, fill it, save it")


def show_graph(*tensors: Any, names: Mapping[str, Any] | None = None, notes: Mapping[Any, object] | None = None) -> Svg:
    """The graph that computed some tensors, drawn.  names={"x": x} names nodes; notes={x: "first"} writes on them."""
    return draw_graph(tensors, names, notes)


# ---- running what the files say now ---------------------------------------------------------------------------------


def fresh(name: str = "needle") -> Any:
    """Import a module of the tree (needle, or an app) again, from the files as they are saved now.

    Python keeps what it imported first.  Tensors made before belong to the old needle: make new ones.
    Compiled modules cannot be imported twice: after `make lib` use run_fresh, or restart the kernel.
    """
    top = name.split(".")[0]
    ours = {"needle", top, *(path.stem for path in (_Place.root / "apps").glob("*.py"))}
    for module in [m for m in sys.modules if m.split(".")[0] in ours and not _is_compiled(sys.modules[m])]:
        del sys.modules[module]
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _is_compiled(module: Any) -> bool:
    return str(getattr(module, "__file__", "") or "").endswith((".so", ".pyd"))


def run_fresh(code: str, seconds: float = 300) -> None:
    """Run code in a process of its own, with the tree's files and modules as they are now, and print what it prints."""
    settings = {name: value for name, value in os.environ.items() if name in ("NEEDLE_BACKEND", "NEEDLE_KERNELS")}
    done = subprocess.run([sys.executable, "-c", code], cwd=_Place.root, env={**_environment(), **settings},
                          capture_output=True, text=True, timeout=seconds)  # fmt: skip
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"run_fresh: it ended with status {done.returncode}:\n{done.stderr.strip()[-2000:]}")


# ---- checks ---------------------------------------------------------------------------------------------------------


class Red(Exception):
    """A check is not green yet: the notebook stops here, and the box above says why."""

    def _render_traceback_(self) -> list[str]:  # IPython shows these lines in place of a traceback
        return [f"Not green yet: {self}"]


def check(question: str) -> Any:
    """Check one question or part, or a whole stage ("hw1"), on the saved files, in a process of its own.

    Shows every case and, for a red one, what differs.  Raises Red unless all is green, so that "run all" stops here.
    """
    stage = question.split("/")[0]
    words = ["--question", question] if "/" in question else []
    done = _course_command("check", stage, *words, "--dir", str(_Place.root), "--json")
    try:
        verdict = Verdict(question, json.loads(done.stdout))
    except ValueError:
        raise Red(f"check: {done.stderr.strip() or done.stdout.strip() or 'the check printed nothing'}") from None
    _display(verdict)
    if done.returncode or not verdict.green:
        raise Red(verdict.first_trouble())
    return None


def _display(thing: Any) -> None:
    """Show a thing as a notebook does; as text where there is no notebook."""
    if "ipykernel" in sys.modules:
        from IPython.display import display

        display(thing)
    else:
        print(repr(thing))


# ---- small tools ----------------------------------------------------------------------------------------------------


def size(full: int, smoke: int) -> int:
    """`full`, or `smoke` where notebooks are only tested (NEEDLE_SMOKE=1)."""
    return smoke if SMOKE else full


def digits() -> tuple[Any, Any, Any, Any]:
    """Handwritten digits that come with the course: train images, train labels, test images, test labels.

    float32 (n, 64) in [0, 1], images of 8 x 8 pixels, and uint8 (n,); 1438 and 359 of them (Alpaydin, Kaynak 1998).
    """
    import numpy as np

    with np.load(_Place.root / "python/needle/data/digits/digits.npz", allow_pickle=False) as pack:
        pixels, labels = pack["images"], pack["labels"]
    images = pixels.reshape(len(pixels), -1).astype(np.float32) / 16
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[2::5]] = True  # the third of every five: classes stay balanced
    return images[~test], labels[~test], images[test], labels[test]
