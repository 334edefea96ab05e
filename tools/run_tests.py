"""Run the tests, each group that needs a process of its own in one.

    python tools/run_tests.py [--all]

needle's backend is chosen once in a process, so what runs on plain NumPy arrays, and each stage of the course, is a
group for itself. `--all` adds the tests marked slow, the sanitizers, the mutated gradients and the mutated answers of
the course. The exit status is 0 only if everything passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# what also runs on the emulated GPU; the others ask nothing of a device
ON_EMULATOR = [
    f"tests/unit/test_{name}.py"
    for name in (
        *("ndarray_cases", "ndarray_interop", "ndarray_properties", "ops_table", "ops_errors", "ops_properties"),
        *("ops_whole", "gradients_check", "autograd_backward", "autograd_cases", "autograd_writes", "functional"),
        *("init", "nn_layers", "nn_module", "nn_sequence", "nn_transformer", "optim"),
    )
]
CHECKED_ON_EMULATOR = [f"tests/unit/test_{name}.py" for name in ("ndarray_cases", "gradients_check", "ops_whole")]
WORKERS = 2  # the tests are short: more processes than this cost more in starting than they save


class Group(NamedTuple):
    """Tests that share a process, or are shared out among a few that are alike."""

    name: str
    folders: list[str]
    backend: str = ""  # where the tests do not choose it themselves
    parallel: bool = False
    device: str = ""  # where not on the usual ones: see tests/chosen_device.py
    emulator: str = ""  # what NEEDLE_CUDA_EMU says


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also slow tests, sanitizers and mutants")
    everything = parser.parse_args().all

    build_emulator(everything)
    verdicts = [run(group.name, pytest(group, everything), variables(group)) for group in groups(everything)]
    if everything:
        verdicts += [run(name, [sys.executable, program], {}) for name, program in long_programs()]
    print("\n" + "\n".join(f"{verdict:22} {name}" for name, verdict in verdicts), flush=True)
    return 0 if all(verdict.startswith("passed") for _, verdict in verdicts) else 1


def build_emulator(everything: bool) -> None:
    """Make the emulated GPU ready, so that no test has to; where that fails, tests say so."""
    if (ROOT / "src" / "ndarray_backend_cuda.cu").exists():
        names = ["cuda_emu", "cuda_emu_check"] if everything else ["cuda_emu"]
        subprocess.run([sys.executable, "tools/build_native.py", *names], cwd=ROOT, stdin=subprocess.DEVNULL)


def groups(everything: bool) -> list[Group]:
    """The groups whose folders this tree has: a learner's tree has fewer."""
    found = [
        Group("core, own arrays", ["tests/unit", "tests/architecture"], parallel=True),
        Group("core, NumPy arrays", ["tests/np"], parallel=True),
        Group("contract, own arrays", ["tests/contract"], "nd", parallel=True),
        Group("contract, NumPy arrays", ["tests/contract"], "np", parallel=True),
        Group("CUDA and its emulator", ["tests/cuda"], parallel=True),
        Group("core on the emulated GPU", ON_EMULATOR, parallel=True, device="cuda_emu"),
        Group("the course's tools", ["tests/course"], parallel=True),
        Group("stage hw0", ["hw/hw0/tests"]),
        *(Group(f"stage {name}", [f"tests/{name}"]) for name in ("hw1", "hw2", "hw3", "hw4", "hw4_extra")),
    ]
    if everything:
        group = Group("core on the emulated GPU, checked", CHECKED_ON_EMULATOR, parallel=True, device="cuda_emu")
        found.append(group._replace(emulator="check"))
    return [group for group in found if any((ROOT / folder).exists() for folder in group.folders)]


def long_programs() -> list[tuple[str, str]]:
    return [
        ("sanitizers", "tools/sanitize.py"),
        ("mutated gradients", "tools/mutate_gradients.py"),
        ("mutated answers", "tools/mutate_answers.py"),
    ]


def pytest(group: Group, everything: bool) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q"]
    command += ["-n", str(WORKERS)] if group.parallel else []
    command += ["-m", ""] if everything else []  # instead of the "not slow" of pyproject.toml
    command += [] if group.folders[0].startswith("tests/") else ["-rs"]  # tests/conftest.py tells what was skipped
    return [*command, *group.folders]


def variables(group: Group) -> dict[str, str]:
    """Parallel processes with parallel kernels inside would wait for each other."""
    threads = ("NEEDLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if group.parallel else ()
    chosen = {
        "NEEDLE_BACKEND": group.backend,
        "NEEDLE_TEST_DEVICE": group.device,
        "NEEDLE_CUDA_EMU": group.emulator,
    }
    return {**dict.fromkeys(threads, "1"), **{name: value for name, value in chosen.items() if value}}


def outside() -> dict[str, str]:
    """The environment without what chooses a backend, and without what `make` tells a make that it starts."""
    ours = (
        "NEEDLE_BACKEND",
        "NEEDLE_KERNELS",
        "NEEDLE_TEST_DEVICE",
        "NEEDLE_CUDA_EMU",
        "MAKEFLAGS",
        "MAKELEVEL",
        "MFLAGS",
    )
    return {key: value for key, value in os.environ.items() if key not in ours}


def run(name: str, command: list[str], chosen: dict[str, str]) -> tuple[str, str]:
    """Run one group; returns its name and "passed in 12 s" or what went wrong."""
    print(f"\n==== {name}", flush=True)
    start = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env={**outside(), **chosen}, stdin=subprocess.DEVNULL).returncode
    verdict = "passed" if status == 0 else f"FAILED ({status})"
    return name, f"{verdict} in {time.monotonic() - start:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
