"""Experiments of the notebooks that need a compiler or a clock."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import files
from .errors import UserError

SMOKE = bool(os.environ.get("NEEDLE_SMOKE"))  # small sizes: a notebook that is tested, not read


def best_of(function: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds that the fastest of some runs took: the others were disturbed by something."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def run_cpp(source: str, *flags: str, seconds: float = 120) -> None:
    """Compile a C++17 program with -O3 and the flags given, run it, and print what it prints.

    UserError if there is no compiler, if it finds a mistake, or if the program fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experiment.cc")
        path.write_text(source, encoding="utf-8")
        program = str(path.with_suffix(""))
        _run([_compiler(), "-std=c++17", "-O3", *flags, str(path), "-o", program], "compiling", seconds, folder)
        print(_run([program], "running", seconds, folder), end="")


# ---- CUDA, on the emulator ------------------------------------------------------------------------------------------

MAIN = """#include <cstdio>
#include <exception>
void Experiment();
int main() {
  try {
    Experiment();
  } catch (const std::exception& error) {
    std::printf("%s\\n", error.what());
  }
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(experiment CXX)
include("{root}/cmake/cuda_emu.cmake")
foreach(build "" CHECK)
  cuda_emu_sources(sources ${{build}} experiment.cu)
  add_executable(experiment${{build}} main.cc ${{sources}})
  cuda_emu_finish(experiment${{build}} ${{build}})
endforeach()
"""


def run_cuda(
    source: str, *, check: bool = False, profile: bool = False, order: str = "forward", seconds: float = 300
) -> None:
    """Run the function `void Experiment()` of a CUDA source on the emulator, and print what it prints.

    check=True watches every access to memory, and prints what it finds; profile=True counts how much of the memory that
    is fetched is used.  order: in which order the threads of a block run, forward, reverse or random.  The emulator
    itself is built at the first use.  UserError if the source cannot be compiled.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "cmake" / "cuda_emu.cmake").is_file():
        raise UserError(
            f"experiment: the CUDA emulator is not in this tree; expected it in {root / 'src' / 'cuda_emu'}"
        )
    program = "experimentCHECK" if check or profile else "experiment"
    environment = {"NEEDLE_CUDA_EMU_ORDER": order, "CUEMU_PROFILE": str(int(profile))}
    folder = root / "build" / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        for name, text in (
            ("experiment.cu", source.strip("\n") + "\n"),
            ("main.cc", MAIN),
            ("CMakeLists.txt", PROJECT.format(root=root.as_posix())),
        ):
            if files.differs(folder / name, text.encode()):  # else what is built from it is up to date, and stays so
                (folder / name).write_text(text, encoding="utf-8")
        if not (folder / "build" / "CMakeCache.txt").is_file():
            made_by = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=None"]
            _run([_cmake(), "-S", str(folder), "-B", str(folder / "build"), *made_by], "configuring", seconds, folder)
        _run([_cmake(), "--build", str(folder / "build"), "--target", program], "compiling", seconds, folder)
        said = _run([str(folder / "build" / program)], "running", seconds, folder, environment)
    print(said, end="")


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other notebook builds in the folder."""
    try:
        import fcntl
    except ImportError:  # Windows, where notebooks run in WSL, which has it
        yield
        return
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cmake() -> str:
    found = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if found is None:
        raise UserError("experiment: no cmake beside this Python or on PATH; run: pip install cmake")
    return found


# ---- what both share -------------------------------------------------------------------------------------------------


def _compiler() -> str:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise UserError("experiment: no C++ compiler on PATH; install g++ or clang++")


def _run(
    command: list[str],
    what: str,
    seconds: float,
    folder: Path | str,
    environment: dict[str, str] | None = None,
) -> str:
    """What a command says, in which files of the folder have no more than their names; UserError if it fails."""
    environment = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"experiment: {what} took more than {seconds:g} s and was stopped") from None
    said = done.stdout.replace(f"{folder}{os.sep}", "")
    if done.returncode:
        raise UserError(f"experiment: {what} failed: {said.strip()}")
    return said
