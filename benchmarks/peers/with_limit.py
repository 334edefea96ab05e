"""What the machine can do at most: probes in C++, compiled for it when they are first wanted."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from . import Absent, Work, in_turn

SOURCE = Path(__file__).with_name("probes.cc")
BUILT = Path(__file__).resolve().parents[2] / "build" / "benchmarks" / "probes.so"
FLAGS = (["-march=native", "-fopenmp"], ["-march=native"], ["-fopenmp"], [])  # the first that the compiler takes

threads = 1
probe = ""


def set_up(variant: str, count: int) -> None:
    global threads, probe
    threads, probe = count, variant
    library()


def facts() -> dict[str, str]:
    return {}


@functools.cache
def library() -> ctypes.CDLL:
    if not BUILT.exists() or BUILT.stat().st_mtime < SOURCE.stat().st_mtime:
        _compile()
    return ctypes.CDLL(str(BUILT))


def _compile() -> None:
    compiler = shutil.which(os.environ.get("CXX") or "c++")
    if compiler is None:
        raise Absent("no C++ compiler for the probes; set CXX")
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    new = BUILT.with_suffix(f".{os.getpid()}")
    for flags in FLAGS:
        command = [compiler, "-std=c++17", "-O3", *flags, "-shared", "-fPIC", str(SOURCE), "-o", str(new)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            new.replace(BUILT)  # at once, as another process may compile it too
            return
    raise Absent(f"{compiler} does not compile {SOURCE.name}")


def _aligned(n: int) -> np.ndarray:
    """Floats on a 64-byte boundary, all touched; n rounded up to whole blocks of the probe that reads."""
    n = -(-n // 4096) * 4096
    memory = np.ones(4 * n + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * n].view(np.float32)


def _call(name: str, *arrays: np.ndarray) -> Callable[[], None]:
    function = getattr(library(), name)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    n, count = ctypes.c_int64(len(arrays[0])), ctypes.c_int(threads)
    return functools.partial(_keeping, arrays, function, *pointers, n, count)


def _keeping(arrays: Sequence[np.ndarray], function: Callable, *arguments: object) -> None:
    """Call a function on pointers into arrays, which live as long as the caller may call."""
    function(*arguments)


# ---- kinds ----------------------------------------------------------------------------------------------------------


def operation(name: str, n: int, width: int) -> Work:
    """The same traffic as an operation has, and next to no arithmetic."""
    return traffic(probe, n)


def probe_task(what: str, n: int) -> Work:
    return fma(n) if what == "fma" else traffic(what, n)


def fma(n: int) -> Work:
    """As many multiply-adds on every thread as make up n for one thread with vectors of 16 floats."""
    function, out = library().ProbeFma, ctypes.c_float()
    function.restype = ctypes.c_double
    done = function(ctypes.c_int64(1), ctypes.c_int(threads), ctypes.byref(out))
    steps = ctypes.c_int64(max(1, int(16 * 16 * n / done)))
    return Work(lambda: function(steps, ctypes.c_int(threads), ctypes.byref(out)), dict)


def traffic(what: str, n: int) -> Work:
    if what == "read":
        return Work(in_turn(_read, "read", lambda: [_aligned(n)]), dict)
    arrays = [_aligned(n) for _ in range({"scale": 2, "add": 3, "triad": 3}[what])]
    ways = [_call(f"Probe{what.capitalize()}{how}", *arrays) for how in ("", "Stream")]
    return Work(min(ways, key=_seconds), dict)


def _read(array: np.ndarray) -> None:
    out, pointer = ctypes.c_float(), ctypes.c_void_p(array.ctypes.data)
    library().ProbeRead(pointer, ctypes.c_int64(len(array)), ctypes.c_int(threads), ctypes.byref(out))


def _seconds(run: Callable[[], None]) -> float:
    run()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
