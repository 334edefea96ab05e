"""Builds the emulator and small .cu files with the compiler alone, once for what the sources say now."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
EMULATOR = ROOT / "src" / "cuda_emu"
BUILD = ROOT / "build" / "cuda_emu_tests"

CXX = next(
    (found for found in map(shutil.which, (os.environ.get("CXX") or "c++", "c++", "g++", "clang++")) if found), ""
)
IS_CLANG = bool(CXX) and "clang" in subprocess.run([CXX, "--version"], capture_output=True, text=True).stdout
# the same as in cmake/cuda_emu.cmake
COMMON = ["-std=c++17", "-fPIC", "-gdwarf-4", "-g1", "-fvisibility=hidden", f"-I{EMULATOR / 'include'}"]
FAST = ["-O3"]
CHECK = [
    "-O1",
    "-DCUDA_EMU_CHECK",
    "-fsanitize=thread,bounds,alignment",
    "-fno-sanitize-recover=bounds,alignment",
    *(["-mllvm", "-tsan-instrument-read-before-write"] if IS_CLANG else []),
]


def run(command: list[str | Path]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed\n{done.stdout}{done.stderr}")


def digest(*paths: Path) -> str:
    texts = [path.read_bytes() for path in paths]
    return hashlib.sha256(b"\0".join([CXX.encode(), *texts])).hexdigest()[:12]


@contextlib.contextmanager
def made_once(target: Path) -> Iterator[Path | None]:
    """Gives a temporary path to make the target at, or None if it is there; processes take turns."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        unfinished = target.with_suffix(".unfinished")
        yield unfinished
        os.replace(unfinished, target)


@functools.cache
def runtime_version() -> str:
    return digest(*sorted(path for path in EMULATOR.rglob("*") if path.suffix in (".cc", ".h")))


def runtime(check: bool) -> Path:
    """The runtime as a shared library, in a folder named after what its sources say."""
    folder = BUILD / runtime_version()
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"libcuda_emu{'_check' if check else ''}.so"
    sources = sorted(EMULATOR.glob("runtime/*.cc"))
    with made_once(library) as unfinished:
        if unfinished is not None:
            objects = [_object(path) for path in sources if check or not path.name.startswith("check_")]
            own = [] if sys.platform == "darwin" else ["-Wl,-Bsymbolic"]
            run([CXX, "-shared", *own, *objects, "-o", unfinished, "-pthread", "-ldl"])
    return library


def _object(source: Path) -> Path:
    headers = sorted(EMULATOR.rglob("*.h"))
    made = BUILD / "objects" / f"{source.stem}.{digest(source, *headers)}.o"
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        run([CXX, *COMMON, "-O2", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", made])
    return made


def rewrite(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EMULATOR / "rewrite.py"), str(source), str(output)]
    return subprocess.run(command, capture_output=True, text=True)


def library(source: Path, check: bool, folder: Path | None = None) -> Path:
    """A .cu file as a shared library that ctypes can load."""
    runtime_library = runtime(check)
    folder = folder or runtime_library.parent
    name = f"{source.stem}.{digest(source, EMULATOR / 'rewrite.py')}{'.check' if check else ''}"
    target = folder / f"{name}.so"
    with made_once(target) as unfinished:
        if unfinished is not None:
            made = folder / f"{name}.cc"
            done = rewrite(source, made)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            run([CXX, *COMMON, *(CHECK if check else FAST), "-c", made, "-o", f"{made}.o"])
            found_there = f"-Wl,-rpath,{runtime_library.parent}"
            run([CXX, "-shared", f"{made}.o", runtime_library, found_there, "-o", unfinished])
    return target


def module_of(path: Path) -> ModuleType:
    """A script of the emulator's, which lies in no package, as a module."""
    spec = importlib.util.spec_from_file_location(f"cuda_emu_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(program: str, timeout: float | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, with the emulator's test files at hand."""
    program = "from tests.cuda.emulator.building import emulated, library\n" + program
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=timeout)


class Emulated:
    """A .cu file with testing.h: its functions by name."""

    def __init__(self, source: Path, check: bool) -> None:
        self.source, self.check = source, check
        self.path = library(source, check)
        self.runtime = ctypes.CDLL(str(runtime(check)))
        self.runtime.cuda_emu_set_option.restype = ctypes.c_bool
        self.library = ctypes.CDLL(str(self.path))
        self.library.run.restype = ctypes.c_char_p

    def run(self, name: str) -> str | None:
        said = self.library.run(name.encode())
        return None if said is None else said.decode()

    @contextlib.contextmanager
    def options(self, **values: object) -> Iterator[None]:
        """Options of the emulator for a while: options(ORDER="reverse")."""
        defaults = {
            "ORDER": "forward",
            "STRICT": 1,
            "UNINIT": 1,
            "RACES": 1,
            "STICKY": 0,
            "TIMEOUT": 20,
            "SEED": 1,
            "WORKERS": 0,
        }
        for name, value in values.items():
            assert self.runtime.cuda_emu_set_option(name.encode(), str(value).encode()), f"{name}={value}"
        try:
            yield
        finally:
            for name in values:
                self.runtime.cuda_emu_set_option(name.encode(), str(defaults[name]).encode())

    def line(self, marker: str) -> int:
        """The line that ends with `// here: marker`."""
        lines = self.source.read_text(encoding="utf-8").splitlines()
        return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"// here: {marker}"))


@functools.cache
def emulated(name: str, check: bool) -> Emulated:
    return Emulated(HERE / name, check)
