"""The runtime among others: threads, forks, faults of the host, two builds in one process, odd paths."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.cuda.emulator import building
from tests.cuda.emulator.building import HERE, emulated, library

python = functools.partial(building.python, timeout=120)


def test_as_a_gpu_does_errors_wait_for_the_next_call() -> None:
    zoo = emulated("zoo.cu", check=True)
    program = (
        "zoo = emulated('zoo.cu', True)\n"
        "print(zoo.run('read_past_the_end').splitlines()[0])\n"
        "print(zoo.run('block_too_large').splitlines()[0])"
    )
    done = python(program, NEEDLE_CUDA_EMU_STICKY="1")
    first, second = done.stdout.splitlines()
    assert first == (
        "an illegal memory access was encountered: out-of-bounds read of 4 bytes at `a[1000]`, "
        "but `a` has 1000 elements of 4 bytes"
    )
    assert second.startswith("an illegal memory access was encountered")  # all further work is refused
    assert zoo.run("free_twice") is not None  # this process goes on


def test_both_builds_in_one_process_do_not_disturb_each_other() -> None:
    program = (
        "fast, check = emulated('zoo.cu', False), emulated('zoo.cu', True)\n"
        "for zoo in (fast, check, fast, check):\n"
        "    print(zoo.run('read_past_the_end').split(' at ')[0])"
    )
    done = python(program)
    assert done.stdout.splitlines() == ["out-of-bounds access", "out-of-bounds read of 4 bytes"] * 2


def test_a_fault_of_the_host_still_reaches_faulthandler() -> None:
    program = (
        "import ctypes, faulthandler\nfaulthandler.enable()\n"
        "for check in (False, True):\n    assert emulated('correct.cu', check).run('reverse') is None\n"
        "faulthandler.enable()\nassert emulated('correct.cu', False).run('reverse') is None\n"
        "ctypes.string_at(16)"
    )
    done = python(program)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr and "string_at" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_launch_and_its_parent_too() -> None:
    program = (
        "import os\nkernels = emulated('correct.cu', False)\n"
        "kernels.runtime.cuda_emu_set_option(b'WORKERS', b'2')\n"
        "assert kernels.run('three_dimensions') is None and kernels.run('tiled_matmul') is None\n"
        "child = os.fork()\n"
        "said = [kernels.run(name) for name in ('reverse', 'tiled_matmul', 'histogram')]\n"
        "if child == 0: os._exit(said != [None] * 3)\n"
        "print(said, os.waitpid(child, 0)[1])"
    )
    assert python(program).stdout == "[None, None, None] 0\n"


def test_launches_of_many_threads_take_turns() -> None:
    kernels = emulated("correct.cu", check=False)
    said: list[str | None] = []
    names = ["tiled_matmul", "row_sums", "histogram", "prefix_sums"]
    threads = [
        threading.Thread(target=lambda name=name: said.extend(kernels.run(name) for _ in range(20))) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # `run` keeps one text for all, so only silence can be compared
    assert said == [None] * 80


def test_several_workers_share_the_blocks() -> None:
    kernels = emulated("api.cu", check=False)
    with kernels.options(WORKERS=4):
        assert [kernels.run("many_blocks") for _ in range(20)] == [None] * 20


def test_a_value_that_is_none_is_said_and_ignored() -> None:
    done = python("print(emulated('correct.cu', False).run('reverse'))", NEEDLE_CUDA_EMU_ORDER="sideways")
    assert done.stdout == "None\n"
    assert done.stderr.startswith("[cuda_emu] NEEDLE_CUDA_EMU_ORDER=sideways is no value of this variable")
    runtime = emulated("correct.cu", check=False).runtime
    assert not runtime.cuda_emu_set_option(b"ORDER", b"sideways") and not runtime.cuda_emu_set_option(b"COLOUR", b"1")


def test_paths_with_blanks_and_umlauts(tmp_path: Path) -> None:
    folder = tmp_path / "näedle a 'b'"
    folder.mkdir()
    for name in ("zoo.cu", "testing.h"):
        shutil.copy(HERE / name, folder / name)
    program = (
        f"import ctypes\nfrom pathlib import Path\nfolder = Path({str(folder)!r})\n"
        "zoo = ctypes.CDLL(str(library(folder / 'zoo.cu', True, folder)))\n"
        "zoo.run.restype = ctypes.c_char_p\nprint(zoo.run(b'negative_index').decode())"
    )
    done = python(program, timeout=None)
    assert f"in kernel Shift at zoo.cu:{emulated('zoo.cu', check=True).line('negative')}, block" in done.stdout, (
        done.stderr
    )


def test_without_addr2line_the_report_comes_without_a_line(tmp_path: Path) -> None:
    library(HERE / "zoo.cu", check=True)  # built with the usual PATH
    done = python("print(emulated('zoo.cu', True).run('negative_index'))", PATH=str(tmp_path), CXX=building.CXX)
    assert "at `a[-1]`" in done.stdout and "in kernel Shift, block (0, 0, 0), thread (0, 0, 0)" in done.stdout
