"""Whether CUDA can be used here, and if not, why: in words that name the next step.

Nothing in here runs before somebody asks for a CUDA device.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from ..errors import ArgumentError

OLDEST_TOOLKIT = (11, 0)  # the first that compiles C++17
EMULATE = "or emulate a GPU with NEEDLE_CUDA_EMU=1"


@cache  # one process has one meaning of cuda()
def emulation() -> str:
    """What NEEDLE_CUDA_EMU asks for: "" (a GPU), "emu", or "emu_check", where every access is checked."""
    wish = os.environ.get("NEEDLE_CUDA_EMU", "")
    if wish not in ("", "0", "1", "check"):
        raise ArgumentError(f"NEEDLE_CUDA_EMU is {wish!r}; wanted 1 (emulate), check (and check every access) or 0")
    return {"": "", "0": "", "1": "emu", "check": "emu_check"}[wish]


def emulator_not_built(kind: str) -> str:
    """What to do about a module of the emulator, "emu" or "emu_check", that nobody has built."""
    wish = "CUDA_EMU=1" if kind == "emu" else "CUDA_EMU_CHECK=1"
    return f"the CUDA emulator is not built; run 'make lib {wish}'"


def not_built() -> str:
    """Why there is no module for a GPU."""
    return f"the cuda backend is not built: {_why_not_built()}, {EMULATE}"


def _why_not_built() -> str:
    compiler = find_nvcc()
    if compiler is None:
        return "there is no nvcc; install the CUDA toolkit and run 'make lib'"
    version = toolkit_version(compiler)
    if version is None:
        return f"{compiler} does not run; install the CUDA toolkit anew"
    if version < OLDEST_TOOLKIT:
        found, oldest = (".".join(map(str, numbers)) for numbers in (version, OLDEST_TOOLKIT))
        return f"CUDA {found} is too old; install {oldest} or newer"
    if not gpus():
        return "there is nvcc, but no GPU; run 'make lib CUDA=1' to build it all the same"
    return "run 'make lib'"


def not_usable(error: RuntimeError) -> str:
    """Why a module that is built finds no GPU; "" if the error is about something else."""
    said = str(error)
    if "driver version is insufficient" in said:
        if shutil.which("nvidia-smi") is None:
            return f"this machine has no NVIDIA driver; install it, {EMULATE}"
        return "the NVIDIA driver is older than the CUDA toolkit that built the module; update the driver"
    if "no CUDA-capable device" in said:
        return f"the NVIDIA driver finds no GPU; see what nvidia-smi says, {EMULATE}"
    return ""


def find_nvcc() -> str | None:
    """The CUDA compiler: what CUDACXX names, what PATH has, or what lies where CUDA is usually installed."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return os.environ.get("CUDACXX") or shutil.which("nvcc") or shutil.which("nvcc", path=str(Path(home, "bin")))


def toolkit_version(compiler: str) -> tuple[int, ...] | None:
    """(13, 0) from what a compiler says of itself, or None."""
    found = re.search(r"release (\d+)\.(\d+)", _printed(compiler, "--version"))
    return tuple(map(int, found.groups())) if found else None


def gpus() -> list[str]:
    """The GPUs that the driver's own tool lists, by their names."""
    return re.findall(r"^GPU \d+: (.*?)(?: \(UUID.*)?$", _printed("nvidia-smi", "-L"), re.MULTILINE)


def _printed(*command: str) -> str:
    """What a program prints; nothing if it fails, hangs or is not there."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return done.stdout if done.returncode == 0 else ""
