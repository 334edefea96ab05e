"""What a number must not be read without: the machine, its compiler, the versions of what ran."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path


def facts() -> dict[str, str]:
    """One line each."""
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "caches": caches(),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "compiler": compiler(),
        "commit": commit(),
        "load before": load(),
    }


def processor() -> str:
    names = [line.split(":", 1)[1].strip() for line in lines("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def caches() -> str:
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (" ".join(lines(index / name)) for name in ("level", "type", "size"))
        found += [f"L{level} {size}"] if kind != "Instruction" else []
    return ", ".join(found) or "unknown"


def memory() -> str:
    sizes = [int(line.split()[1]) for line in lines("/proc/meminfo") if line.startswith("MemTotal")]
    return f"{sizes[0] / 2**20:.0f} GiB" if sizes else "unknown"


def compiler() -> str:
    path = shutil.which(os.environ.get("CXX") or "c++")
    return said([path, "--version"]) if path else "none"


def commit() -> str:
    return said(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"])


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def said(command: list[str]) -> str:
    """The first line that a program prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0]


def lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
