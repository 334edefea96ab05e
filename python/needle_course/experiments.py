"""Experiments of the notebooks that need a compiler or a clock."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        _run([_compiler(), "-std=c++17", "-O3", *flags, str(path), "-o", program], "compiling", seconds)
        print(_run([program], "running", seconds), end="")


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


def run_cuda(
    source: str, *, check: bool = False, profile: bool = False, order: str = "forward", seconds: float = 120
) -> None:
    """Run the function `void Experiment()` of a CUDA source on the emulator, and print what it prints.

    check=True watches every access to memory, and prints what it finds; profile=True counts how much of the memory that
    is fetched is used.  order: in which order the threads of a block run, forward, reverse or random.
    UserError if the source cannot be compiled.
    """
    check = check or profile
    emulator = Path(__file__).resolve().parents[2] / "src" / "cuda_emu"
    if not emulator.is_dir():
        raise UserError(f"experiment: the CUDA emulator is not in this tree; expected {emulator}")
    runtime = _emulator(emulator, check)
    environment = {"NEEDLE_CUDA_EMU_ORDER": order, "CUEMU_PROFILE": str(int(profile))}
    with tempfile.TemporaryDirectory() as folder:
        source_file, main = Path(folder, "experiment.cu"), Path(folder, "main.cc")
        source_file.write_text(source.strip("\n") + "\n", encoding="utf-8")
        main.write_text(MAIN, encoding="utf-8")
        rewritten, program = Path(folder, "rewritten", "experiment.cu"), str(Path(folder, "experiment"))
        _run([sys.executable, str(emulator / "rewrite.py"), str(source_file), str(rewritten)], "reading", seconds)
        common = [_compiler(), "-std=c++17", "-g1", f"-I{emulator / 'include'}"]
        watched = CHECKED if check else ["-O3"]
        _run([*common, *watched, "-x", "c++", "-c", str(rewritten), "-o", f"{program}.o"], "compiling", seconds)
        found_there = f"-Wl,-rpath,{runtime.parent}"
        _run([*common, f"{program}.o", str(main), str(runtime), found_there, "-o", program], "linking", seconds)
        print(_run([program], "running", seconds, environment).replace(folder + os.sep, ""), end="")


# compiled with, but not linked with, ThreadSanitizer: the emulator brings what its calls lead to
CHECKED = ["-O1", "-DCUDA_EMU_CHECK", "-fsanitize=thread,bounds,alignment", "-fno-sanitize-recover=bounds,alignment"]


def _emulator(folder: Path, check: bool) -> Path:
    """The emulator's runtime as a shared library, built once for what its sources say now."""
    sources = sorted(path for path in folder.glob("runtime/*.cc") if check or not path.name.startswith("check"))
    texts = [path.read_bytes() for path in sorted([*sources, *folder.rglob("*.h")])]
    version = hashlib.sha256(b"".join(texts) + _compiler().encode()).hexdigest()[:12]
    library = folder.parents[1] / "build" / "experiments" / version / f"libcuda_emu{'_check' if check else ''}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c++17", "-O2", "-g1", "-shared", "-fPIC", "-pthread", f"-I{folder / 'include'}"]
        flags += ["-DCUDA_EMU_CHECK"] if check else []
        unfinished = str(library.with_suffix(f".{os.getpid()}"))
        _run([_compiler(), *flags, *map(str, sources), "-ldl", "-o", unfinished], "building the emulator", 300)
        os.replace(unfinished, library)
    return library


# ---- what both share -------------------------------------------------------------------------------------------------


def _compiler() -> str:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise UserError("experiment: no C++ compiler on PATH; install g++ or clang++")


def _run(command: list[str], what: str, seconds: float, environment: dict[str, str] | None = None) -> str:
    environment = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"experiment: {what} took more than {seconds:g} s and was stopped") from None
    if done.returncode:
        raise UserError(f"experiment: {what} failed: {done.stdout.strip()}")
    return done.stdout
