"""What this machine and this tree have, and what to do about what they lack."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import answers
from .errors import UserError
from .tree import RECORD, LearnerTree

OLDEST_PYTHON, OLDEST_NUMPY, OLDEST_CMAKE = (3, 10), (1, 26), (3, 24)
PACKAGES = ("pytest", "typer", "rich", "merge3", "jupytext", "nbformat", "nbclient", "ipykernel")
DEVICES = """
import json
import needle as ndl
if hasattr(ndl, "device_report"):
    print(ndl.device_report().to_json())
else:
    rows = [{"name": str(device), "usable": device.enabled(), "detail": "NumPy arrays"} for device in ndl.all_devices()]
    print(json.dumps(rows))
"""
DATA = {"mnist": ("mnist",), "cifar10": ("cifar-10-batches-py",), "ptb": ("ptb", "shakespeare")}  # folders


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: fine, worth knowing, or in the way."""

    what: str
    state: str  # "ok", "note" or "bad"
    seen: str
    next: str = ""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def run(course: Any, root: Path) -> list[Finding]:
    """Everything worth knowing before one asks for help. `root` is a learner's tree, a checkout or any folder."""
    findings = [python(), numpy(), *packages(), compiler(), cmake(), headers()]
    findings += [*tree(root), *devices(root)]
    return [*findings, *(data(name, root) for name in datasets(course))]


# ---- the machine ----------------------------------------------------------------------------------------------------


def python() -> Finding:
    seen = f"{platform.python_version()} ({platform.machine()}) at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("Python", "bad", seen, f"install Python {dotted(OLDEST_PYTHON)} or newer")
    return Finding("Python", "ok", seen)


def numpy() -> Finding:
    version = version_of("numpy")
    if version is None:
        return Finding("NumPy", "bad", "missing", f"{sys.executable} -m pip install numpy")
    if numbers(version) < OLDEST_NUMPY:
        return Finding("NumPy", "bad", version, "pip install 'numpy>=1.26', then restart Jupyter's kernel")
    return Finding("NumPy", "ok", version)


def packages() -> Iterator[Finding]:
    missing = [name for name in PACKAGES if version_of(name) is None]
    if missing:
        yield Finding("packages", "bad", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    else:
        yield Finding("packages", "ok", ", ".join(f"{name} {version_of(name)}" for name in PACKAGES[:4]))


def compiler() -> Finding:
    found = next((path for name in compilers() if (path := shutil.which(name))), None)
    if found is None:
        advice = "install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)"
        return Finding("C++ compiler", "bad", "none found", advice)
    first = (output([found, "--version"]).splitlines() or ["says nothing about its version"])[0]
    return Finding("C++ compiler", "ok", f"{first} at {found}")


def compilers() -> list[str]:
    named = os.environ.get("CXX", "").split()
    return named[:1] or ["c++", "g++", "clang++"]


def cmake() -> Finding:
    beside = Path(sys.executable).with_name("cmake")
    found = str(beside) if beside.exists() else shutil.which("cmake")
    version = output([found, "--version"]).partition("version ")[2].split("\n")[0] if found else ""
    if not found or numbers(version) < OLDEST_CMAKE:
        return Finding("cmake", "bad", version or "missing", f"{sys.executable} -m pip install cmake")
    return Finding("cmake", "ok", f"{version} at {found}")


def headers() -> Finding:
    if importlib.util.find_spec("pybind11") is None:
        return Finding("pybind11", "bad", "missing", f"{sys.executable} -m pip install pybind11")
    return Finding("pybind11", "ok", version_of("pybind11") or "")


# ---- the tree -------------------------------------------------------------------------------------------------------


def tree(root: Path) -> Iterator[Finding]:
    """What became of a learner's tree since it was made."""
    if not (root / RECORD).is_file() and (root / "hw" / "stages.toml").is_file():
        yield Finding("tree", "ok", f"{root}, the course itself")
        return
    if not (root / RECORD).is_file():
        yield Finding("tree", "note", f"{root} is no learner's tree", "make one: needle-course starter hw0 --out DIR")
        return
    try:
        learner = LearnerTree.read(root)
    except UserError as error:
        what, _, advice = str(error).partition("; ")
        yield Finding("tree", "bad", what, advice)
        return
    yield Finding("tree", "ok", f"{root}, at {learner.stage}, release {learner.version}")
    missing = [path for path in learner.given if not (root / path).is_file()]
    if missing:
        yield Finding("files", "bad", f"missing: {short(missing)}", f"needle-course advance {learner.stage}")
    for problem in answers.collect(root, learner.starter()).damaged.values():
        yield Finding("marks", "bad", problem, "put the line back as it is in .needle/starter")
    for path in learner.conflicts():
        yield Finding("conflict", "bad", path, f"take what you want from {path}.conflict, then delete it")


def devices(root: Path) -> Iterator[Finding]:
    """What needle itself says, in a process of its own."""
    if not (root / "python" / "needle").is_dir():
        return
    environment = {**os.environ, "PYTHONPATH": str(root / "python")}
    done = subprocess.run([sys.executable, "-c", DEVICES], cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        yield Finding("needle", "bad", last, "mend the file that the error names; `make lib` builds what is compiled")
    for row in json.loads(done.stdout) if done.returncode == 0 else ():
        yield device(**row)


def device(name: str, usable: bool, detail: str) -> Finding:
    """What needle says of a device; only the CPU is needed."""
    if usable:
        return Finding(f"device {name}", "ok", detail)
    if "cuda" in name:
        return Finding(f"device {name}", "note", detail, "no GPU is needed: CUDA questions run on the emulator")
    return Finding(f"device {name}", "bad", detail, "make lib")


# ---- data -----------------------------------------------------------------------------------------------------------


def datasets(course: Any) -> list[str]:
    return list(dict.fromkeys(name for stage in course.stages.values() for name in stage.data)) if course else []


def data(name: str, root: Path) -> Finding:
    """Whether a data set lies where needle looks for it."""
    chosen = os.environ.get("NEEDLE_DATA_DIR")
    places = [Path(chosen)] if chosen else [root / "data"]
    found = [place / folder for place in places for folder in DATA.get(name, (name,)) if (place / folder).is_dir()]
    if found:
        return Finding(f"data {name}", "ok", f"in {found[0]}")
    seen = f"not in {places[0]}" + ("" if chosen else ", and NEEDLE_DATA_DIR is not set")
    return Finding(f"data {name}", "note", seen, "checks use small built-in data; the real set is for training on it")


# ---- small helpers --------------------------------------------------------------------------------------------------


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def short(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
