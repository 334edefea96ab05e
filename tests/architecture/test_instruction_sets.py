"""What is compiled once for each instruction set shares nothing that the linker could take in the wrong version."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
OBJECTS = sorted(ROOT.glob("build/*/CMakeFiles/needle_kernels_*.dir/src/kernels/simd/*.o"))


@pytest.mark.skipif(not shutil.which("nm"), reason="there is no nm to list symbols")
@pytest.mark.skipif(not OBJECTS, reason="nothing is built")
def test_symbols_stand_in_the_namespace_of_their_instruction_set() -> None:
    outside = []
    for path in OBJECTS:
        isa = path.parents[3].name.removeprefix("needle_kernels_").removesuffix(".dir")
        listed = subprocess.run(["nm", "-C", "-g", str(path)], capture_output=True, text=True, check=True).stdout
        defined = [line.split(maxsplit=2) for line in listed.splitlines() if " U " not in line]
        outside += [f"{path.name} for {isa}: {words[-1]}" for words in defined if f"needle::{isa}::" not in words[-1]]
    assert not outside, "\n".join(outside)
