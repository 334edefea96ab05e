"""Build the native modules in place, beside ndarray.py, with the interpreter that runs this.

    python tools/build_native.py [cpu] [cuda] [cuda_emu] [cuda_emu_check] [cuda_here]

Without a name: the CPU's modules; those for a GPU, where there are nvcc and a GPU; what CUDA=1, CUDA_EMU=1 and
CUDA_EMU_CHECK=1 in the environment ask for; and whatever was built before, so that nothing there is ever stale. With
names: these alone, where cuda_here stands for cuda on a machine with nvcc and a GPU, else for cuda_emu.

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
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}

# what can be built apart: cmake's option for it, and the environment's wish; the target is needle_<name>
GROUPS = {"cpu": "", "cuda": "CUDA", "cuda_emu": "CUDA_EMU", "cuda_emu_check": "CUDA_EMU_CHECK"}
CUDA_FILE = ROOT / "src" / "ndarray_backend_cuda.cu"  # which the trees of early stages lack


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in (*GROUPS, "cuda_here")]
    if unknown:
        print(f"build: there is no {unknown[0]!r}; wanted some of {', '.join(GROUPS)}, cuda_here", file=sys.stderr)
        return 2
    names = [("cuda" if nvcc() and has_gpu() else "cuda_emu") if name == "cuda_here" else name for name in names]
    BUILD.parent.mkdir(exist_ok=True)
    with open(BUILD.parent / f"{BUILD.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once would write the same files
        try:
            stale = [group for group in names or usual_groups() if not is_up_to_date(group)]
            if stale:
                build(stale, asked=[*names, *wishes()])
        except Problem as problem:
            print(f"build: {problem}", file=sys.stderr)
            return 1
    return 0


# ---- what to build --------------------------------------------------------------------------------------------------


def usual_groups() -> list[str]:
    wanted = {"cpu", *wishes(), *filter(modules, GROUPS)}
    if "cuda" not in wanted and CUDA_FILE.exists() and nvcc() and has_gpu():
        wanted.add("cuda")
    return [group for group in GROUPS if group in wanted]


def wishes() -> list[str]:
    # exactly 1: on some machines CUDA is the folder where it lies
    return [group for group, wish in GROUPS.items() if wish and os.environ.get(wish) == "1"]


def nvcc() -> str | None:
    """The CUDA compiler: what CUDACXX names, what PATH has, or what lies where CUDA is usually installed."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return os.environ.get("CUDACXX") or shutil.which("nvcc") or shutil.which("nvcc", path=str(Path(home, "bin")))


def has_gpu() -> bool:
    """Whether the driver's own tool finds a GPU: a toolkit alone says nothing."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and b"GPU 0" in listed.stdout


def is_up_to_date(group: str) -> bool:
    """Whether the group's last build was made from what is here now, and its modules are still there untouched."""
    try:
        stamp = json.loads(stamp_of(group).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp == state(group) and bool(modules(group))


def stamp_of(group: str) -> Path:
    return BUILD / f"needle.{group}.stamp"


def state(group: str) -> dict[str, object]:
    return {"sources": sources(group), "configuration": configuration(), "modules": modules(group)}


def sources(group: str) -> str:
    """A digest of everything that is compiled. Contents, not times: git changes times without changing a file."""
    digest = hashlib.sha256()
    for path in [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").rglob("*")), *sorted((ROOT / "src").rglob("*"))]:
        name = str(path.relative_to(ROOT))
        if path.is_file() and path.suffix != ".pyc" and not (group == "cpu" and "cuda" in name):
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()


def configuration() -> dict[str, str]:
    """What cmake keeps in a build folder and cannot change in it afterwards."""
    names = ("CXX", "CXXFLAGS", "CMAKE_GENERATOR", "CMAKE_ARGS", "CUDACXX", "CUDAARCHS", "NEEDLE_CUDA_ARCHITECTURES")
    return {"tree": str(ROOT), "python": sys.executable, **{name: os.environ.get(name, "") for name in names}}


def modules(group: str) -> dict[str, int]:
    """The group's built files with their times."""
    built = [*MODULES.glob(f"*{SUFFIX}"), *MODULES.glob("libcuda_emu*")]
    return {path.name: path.stat().st_mtime_ns for path in sorted(built) if group_of(path.name) == group}


def group_of(file: str) -> str:
    name = file.split(".")[0]
    if "cuda" not in name:
        return "cpu"
    return next(group for group in ("cuda_emu_check", "cuda_emu", "cuda") if name.endswith(group))


# ---- building -------------------------------------------------------------------------------------------------------


def build(groups: list[str], asked: list[str]) -> None:
    """Build the groups, the CPU's first; what is wrong with CUDA is told last, and is an error only if asked for."""
    cmake = tools()
    forget_stale_folder()
    why_no_cuda = configure(cmake, groups)
    for group in groups:
        if group == "cuda" and why_no_cuda:
            continue
        try:
            build_group(cmake, group)
        except ToolkitProblem as problem:
            why_no_cuda = str(problem)
    if "cuda" in groups and why_no_cuda:
        if "cuda" in asked:
            raise Problem(f"CUDA: {why_no_cuda}")
        print(f"build: CUDA: {why_no_cuda}; the CPU's modules are not touched by that", flush=True)


def build_group(cmake: str, group: str) -> None:
    start = time.monotonic()
    what = "the native modules" if group == "cpu" else f"the {group} modules"
    print(f"build: compiling {what} for {BUILD.name} ({jobs()} jobs)", flush=True)
    target = [] if group == "cpu" else ["--target", f"needle_{group}"]
    compiled = sources(group)  # as they are now: what changes while the compiler runs may not be in the modules
    run([cmake, "--build", str(BUILD), "--parallel", str(jobs()), *target])
    stamp_of(group).write_text(json.dumps({**state(group), "sources": compiled}), encoding="utf-8")
    names = ", ".join(name.removesuffix(SUFFIX) for name in modules(group))
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


def configure(cmake: str, groups: list[str]) -> str:
    """Make the build folder ready for the groups, and for those that are there; returns why CUDA cannot be built."""
    wanted = {*groups, *filter(modules, GROUPS)} if CUDA_FILE.exists() else set()
    options = [f"-DNEEDLE_{option}={'ON' if group in wanted else 'OFF'}" for group, option in GROUPS.items() if option]
    wishes = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    command = [cmake, "-S", str(ROOT), "-B", str(BUILD), *this_python(), "-DNEEDLE_CUDA_APART=ON", *options, *wishes]
    had_cache = (BUILD / "CMakeCache.txt").exists()
    try:
        return configured(command)
    except Problem:
        if not had_cache and "cuda" not in wanted:
            raise
    shutil.rmtree(BUILD)  # an old cache can spoil a configure that works from nothing
    forget_stale_folder()
    try:
        return configured(command)
    except Problem:
        if "cuda" not in wanted:
            raise
    configured([*command, "-DNEEDLE_CUDA=OFF"])
    return f"{nvcc()} is there, but cmake cannot work with it; install the CUDA toolkit anew, or use CUDA_EMU=1"


def configured(command: list[str]) -> str:
    """Configure; returns what cmake has to say against CUDA."""
    said = run(command)
    lines = [line.partition("needle: CUDA: ")[2] for line in said.splitlines() if "needle: CUDA: " in line]
    return "" if not lines or lines[-1].startswith("nvcc ") else lines[-1]


def this_python() -> list[str]:
    """The options that keep cmake from looking for another Python, and for pybind11, by itself."""
    from pybind11 import get_cmake_dir

    return [f"-DPython_EXECUTABLE={sys.executable}", f"-Dpybind11_DIR={get_cmake_dir()}"]


class ToolkitProblem(Problem):
    """The CUDA toolkit, not the source, is at fault."""


def run(command: list[str]) -> str:
    """Run quietly and return what was printed; where it fails, show that."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    if compiler := nvcc():
        environment.setdefault("CUDACXX", compiler)
    done = subprocess.run(command, env=environment, **QUIET)
    printed = done.stdout.decode(errors="replace")
    if done.returncode:
        sys.stderr.write(printed)
        fatal = next((line for line in printed.splitlines() if line.startswith(("nvcc fatal", "ptxas fatal"))), "")
        if fatal:
            raise ToolkitProblem(f"{nvcc()} gives up ({fatal}); update the CUDA toolkit, or set CUDAARCHS")
        raise Problem(f"cmake failed with status {done.returncode}; what it said stands above")
    return printed


def jobs() -> int:
    if "CMAKE_BUILD_PARALLEL_LEVEL" in os.environ:
        return int(os.environ["CMAKE_BUILD_PARALLEL_LEVEL"])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
