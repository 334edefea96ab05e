"""Build the native modules in place, beside ndarray.py, with the interpreter that runs this.

    python tools/build_native.py

Each Python has a build folder of its own, build/<ABI tag>. When neither a source nor the configuration has changed
since the last build, cmake is not even started. A build folder from another path, generator or compiler is made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from setup_environment import ROOT, Problem, find_cmake, find_compiler, why_not

MODULES = ROOT / "python" / "needle" / "backend_ndarray"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
BUILD = ROOT / "build" / str(sysconfig.get_config_var("SOABI"))
STAMP = BUILD / "needle.stamp"
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


def main() -> int:
    BUILD.parent.mkdir(exist_ok=True)
    with open(BUILD.parent / f"{BUILD.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once would write the same files
        try:
            if not is_up_to_date():
                build()
        except Problem as problem:
            print(f"build: {problem}", file=sys.stderr)
            return 1
    return 0


def is_up_to_date() -> bool:
    """Whether the last build was made from what is here now, and its modules are still there untouched."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp == {"sources": sources(), "configuration": configuration(), "modules": modules()} and bool(modules())


def sources() -> str:
    """A digest of everything that is compiled. Contents, not times: git changes times without changing a file."""
    digest = hashlib.sha256()
    for path in [ROOT / "CMakeLists.txt", *sorted((ROOT / "src").rglob("*"))]:
        if path.is_file():
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def configuration() -> dict[str, str]:
    """What cmake keeps in a build folder and cannot change in it afterwards."""
    named = {name: os.environ.get(name, "") for name in ("CXX", "CXXFLAGS", "CMAKE_GENERATOR", "CMAKE_ARGS", "CUDACXX")}
    return {"tree": str(ROOT), "python": sys.executable, **named}


def modules() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted(MODULES.glob(f"*{SUFFIX}"))}


def build() -> None:
    start = time.monotonic()
    cmake = tools()
    forget_stale_folder()
    print(f"build: compiling the native modules for {BUILD.name} ({jobs()} jobs)", flush=True)
    configure(cmake)
    run([cmake, "--build", str(BUILD), "--parallel", str(jobs())])
    stamp = {"sources": sources(), "configuration": configuration(), "modules": modules()}
    STAMP.write_text(json.dumps(stamp), encoding="utf-8")
    names = ", ".join(name.removesuffix(SUFFIX) for name in modules())
    print(f"build: {names} ready in {time.monotonic() - start:.0f} s", flush=True)


def tools() -> str:
    """The path of cmake, once all that the build needs is known to be there."""
    find_compiler()
    headers = Path(sysconfig.get_paths()["include"])
    if not (headers / "Python.h").exists():
        raise Problem(str(why_not({"version": sys.version_info[:3], "makes_venvs": True, "headers": str(headers)})))
    if importlib.util.find_spec("pybind11") is None:
        raise Problem(f"pybind11 is not installed; run: {sys.executable} -m pip install pybind11")
    cmake = find_cmake(sysconfig.get_paths()["scripts"])
    if cmake is None:
        raise Problem(f"no cmake 3.24 or newer; run: {sys.executable} -m pip install cmake")
    return cmake


def forget_stale_folder() -> None:
    kept = BUILD / "needle.configuration"
    mine = json.dumps(configuration())
    if BUILD.exists() and not (kept.is_file() and kept.read_text(encoding="utf-8") == mine):
        shutil.rmtree(BUILD)
    BUILD.mkdir(parents=True, exist_ok=True)
    kept.write_text(mine, encoding="utf-8")


def configure(cmake: str) -> None:
    wishes = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    command = [cmake, "-S", str(ROOT), "-B", str(BUILD), *this_python(), *wishes]
    had_cache = (BUILD / "CMakeCache.txt").exists()
    try:
        run(command)
    except Problem:
        if not had_cache:
            raise
        shutil.rmtree(BUILD)  # an old cache can spoil a configure that works from nothing
        forget_stale_folder()
        run(command)


def this_python() -> list[str]:
    """The options that keep cmake from looking for another Python, and for pybind11, by itself."""
    from pybind11 import get_cmake_dir

    return [f"-DPython_EXECUTABLE={sys.executable}", f"-Dpybind11_DIR={get_cmake_dir()}"]


def run(command: list[str]) -> None:
    """Run quietly; where it fails, show what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, env=environment, **QUIET)
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        raise Problem(f"cmake failed with status {done.returncode}; what it said stands above")


def jobs() -> int:
    if "CMAKE_BUILD_PARALLEL_LEVEL" in os.environ:
        return int(os.environ["CMAKE_BUILD_PARALLEL_LEVEL"])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
