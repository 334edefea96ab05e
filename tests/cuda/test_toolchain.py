"""The build on machines of every kind: what is wrong with CUDA is one line, and never stops the CPU's modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.programs import pretend

pytest.importorskip("pybind11")
ROOT = Path(__file__).resolve().parents[2]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CMAKE = """
cmake_minimum_required(VERSION 3.24...4.0)
project(small LANGUAGES CXX)
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
set(NEEDLE_OUTPUT_DIR "${PROJECT_SOURCE_DIR}/python/needle/backend_ndarray")
Python_add_library(small MODULE WITH_SOABI src/small.cc)
set_target_properties(small PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${NEEDLE_OUTPUT_DIR}")
include(cmake/cuda.cmake)
"""
SMALL = """
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "small", "", -1, NULL};
PyMODINIT_FUNC PyInit_small(void) { return PyModule_Create(&definition); }
"""
HIDDEN = ("nvcc", "nvidia-smi")  # of the machine that runs these tests


class Machine:
    """A checkout with one small module for the CPU, and a PATH with this machine's programs but those of CUDA."""

    def __init__(self, root: Path) -> None:
        self.tree, self.path = root / "My Drive" / "näedle a", root / "bin"
        self.modules = self.tree / "python" / "needle" / "backend_ndarray"
        for folder in ("tools", "src", "cmake"):
            (self.tree / folder).mkdir(parents=True)
        self.modules.mkdir(parents=True)
        for file in ("tools/setup_environment.py", "tools/build_native.py", "cmake/cuda.cmake"):
            shutil.copy(ROOT / file, self.tree / file)
        (self.tree / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
        (self.tree / "src" / "small.cc").write_text(SMALL, encoding="utf-8")
        (self.tree / "src" / "ndarray_backend_cuda.cu").write_text("// kernels\n", encoding="utf-8")
        self.path.mkdir()
        for folder in (Path("/usr/bin"), Path("/bin")):
            for program in folder.iterdir() if folder.is_dir() else []:
                if program.name not in HIDDEN and not (self.path / program.name).exists():
                    (self.path / program.name).symlink_to(program)

    def has(self, program: str, script: str) -> None:
        pretend(self.path, program, script)

    def build(self, **variables: str) -> subprocess.CompletedProcess:
        gone = dict.fromkeys(("CUDACXX", "CUDAARCHS", "CUDA", "CUDA_EMU", "CUDA_EMU_CHECK", "CUDAHOSTCXX"), "")
        environment = {**os.environ, **gone, "PATH": str(self.path), "CUDA_HOME": "/nowhere", **variables}
        environment = {name: value for name, value in environment.items() if value}
        command = [sys.executable, "tools/build_native.py"]
        return subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, text=True)

    def has_cpu_module(self) -> bool:
        return (self.modules / f"small{SUFFIX}").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not shutil.which("c++", path="/usr/bin:/bin"):
        pytest.skip("no C++ compiler in /usr/bin")
    return Machine(tmp_path)


def test_without_nvcc_nothing_is_said_of_cuda(machine: Machine) -> None:
    done = machine.build()
    assert done.returncode == 0 and machine.has_cpu_module(), done.stderr
    assert "cuda" not in (done.stdout + done.stderr).lower()


def test_without_nvcc_a_wish_for_cuda_fails_after_the_cpu_was_built(machine: Machine) -> None:
    done = machine.build(CUDA="1")
    assert done.returncode == 1 and machine.has_cpu_module()
    assert done.stderr == "build: CUDA: no nvcc on PATH; to build for a GPU, install the CUDA toolkit\n"


def test_nvcc_without_a_gpu_is_left_alone(machine: Machine) -> None:
    machine.has("nvcc", 'touch "$0.was-run"; exit 1')
    machine.has("nvidia-smi", "echo 'NVIDIA-SMI has failed' ; exit 9")
    done = machine.build()
    assert done.returncode == 0 and machine.has_cpu_module(), done.stderr
    assert "cuda" not in (done.stdout + done.stderr).lower()
    assert not (machine.path / "nvcc.was-run").exists()


def test_a_gpu_with_a_broken_nvcc_is_told_in_one_line(machine: Machine) -> None:
    machine.has("nvcc", "echo broken >&2; exit 1")
    machine.has("nvidia-smi", "echo 'GPU 0: Some Card (UUID: GPU-0)'")
    done = machine.build()
    assert done.returncode == 0 and machine.has_cpu_module(), done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "CUDA" in line]
    assert line.startswith("build: CUDA: ") and "nvcc cannot compile" in line
    assert done.stderr == ""


def test_a_gpu_without_nvcc_is_no_error(machine: Machine) -> None:
    machine.has("nvidia-smi", "echo 'GPU 0: Some Card (UUID: GPU-0)'")
    done = machine.build()
    assert done.returncode == 0 and machine.has_cpu_module() and not done.stderr


def test_an_unknown_name_is_refused(machine: Machine) -> None:
    command = [sys.executable, "tools/build_native.py", "gpu"]
    done = subprocess.run(command, cwd=machine.tree, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("build: there is no 'gpu'; wanted some of cpu, cuda, cuda_emu")


def test_a_tree_of_an_early_stage_has_no_cuda(machine: Machine) -> None:
    (machine.tree / "src" / "ndarray_backend_cuda.cu").unlink()
    machine.has("nvcc", "exit 1")
    machine.has("nvidia-smi", "echo 'GPU 0: Some Card (UUID: GPU-0)'")
    done = machine.build()
    assert done.returncode == 0 and machine.has_cpu_module() and not done.stderr
