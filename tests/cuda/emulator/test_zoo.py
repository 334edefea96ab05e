"""The bug zoo: each mistake is reported in words that name the kernel, the line, the block and the thread."""

from __future__ import annotations

import platform
import re

import pytest

from tests.cuda.emulator.building import IS_CLANG, Emulated, emulated, python

ONE_BLOCK = "block (0, 0, 0)"

# name, what the report says, the marked line it names, whether the fast build reports it too
ZOO = [
    (
        "read_past_the_end",
        "out-of-bounds read of 4 bytes at `a[1000]`, but `a` has 1000 elements of 4 bytes",
        "read",
        True,
    ),
    ("write_past_the_end", "out-of-bounds write of 4 bytes at `out[1000]`, but `out` has 1000 elements", "write", True),
    ("negative_index", "out-of-bounds read of 4 bytes at `a[-1]`, but `a` has 256 elements", "negative", False),
    (
        "past_the_end_of_doubles",
        "read of 8 bytes at `from[100]`, but `from` has 100 elements of 8 bytes",
        "doubles",
        True,
    ),
    ("wrong_stride", "out-of-bounds write of 4 bytes at `out[192]`, but `out` has 192 elements", "transposed", False),
    ("atomic_past_the_end", "out-of-bounds atomic update of 4 bytes at `total[1]`", "atomic", False),
    ("use_after_free", "use after free: read of 4 bytes at `a[0]`", "read", True),
    ("host_pointer_in_kernel", "(`a` points there); a kernel can use device memory only", "read", False),
    ("null_pointer", "null pointer: read of 4 bytes at address 0x0", "read", True),
    ("local_variable_of_another_thread", "read of another thread's local variable", "local", False),
    ("copy_too_long", "cudaMemcpy: the source, 2048 bytes from element 0", None, True),
    ("copy_in_elements_from_the_middle", "the destination, 400 bytes from element 200", None, True),
    (
        "copy_in_the_wrong_direction",
        "the destination is host memory, but the direction of the copy says device",
        None,
        True,
    ),
    ("copy_in_no_direction", "there is no direction 7", None, True),
    ("copy_to_null", "cudaMemcpy: the destination is a null pointer", None, True),
    ("rows_wider_than_their_pitch", "rows of 32 bytes are wider than a pitch (16, 32)", None, True),
    ("set_too_much", "cudaMemset: the destination, 2048 bytes", None, True),
    ("free_twice", "cudaFree: the same pointer a second time", None, True),
    ("free_of_a_part", "cudaFree: a pointer that cudaMalloc did not return", None, True),
    ("free_of_host_memory", "cudaFree: a pointer that cudaMalloc did not return", None, True),
    ("constant_too_small", "cudaMemcpyToSymbol: 32 bytes at offset 0 of a variable of 16 bytes", None, True),
    ("no_such_device", "cudaSetDevice: 1", None, True),
    ("out_of_memory", "out of memory", None, True),
    ("block_too_large", "the block (2048, 1, 1) has 2048 threads; at most 1024 are allowed", None, True),
    ("block_too_deep", "blockDim.z is 128; at most 64", None, True),
    ("empty_grid", "the grid (0, 1, 1) is empty", None, True),
    ("grid_too_high", "gridDim.y and gridDim.z may be at most 65535", None, True),
    ("unwritten_array", "uninitialised device memory: read of `a[0]`", "read", False),
    (
        "unwritten_shared",
        "uninitialised shared memory: read of `half[255]` (`__shared__ float half[256]`)",
        "half",
        False,
    ),
    ("missing_barrier", "data race on `s[128]`", "reverse write", False),
    ("missing_barrier_in_a_reduction", "data race on `s[1]`", "sum", False),
    ("missing_second_barrier_of_a_loop", "data race on `tile[63]`", "tile read", False),
    ("warp_without_syncwarp", "data race on `s[1]`", None, False),
    (
        "missing_atomic",
        "data race on `total[0]`: read by thread (1, 0, 0), and write by thread (0, 0, 0)",
        "total",
        False,
    ),
    ("atomic_and_plain", "one of them is atomic, the other is not", None, False),
    ("race_between_blocks", "and read by thread (0, 0, 0) of block (0, 0, 0)", "neighbours", False),
    ("stencil_in_place", "data race on `a[1]`", "smooth", False),
    ("missing_barrier_with_dynamic_memory", "data race on dynamic shared memory, byte 128", None, False),
    ("return_before_a_barrier", "barrier not reached by all: 56 threads of the block's 256", "early", True),
    ("different_barriers", "divergent barrier: 32 threads, (0, 0, 0) among them", "second of two", True),
    ("barrier_in_an_if", "barrier not reached by all: 32 threads of the block's 64", "in if", True),
    ("barriers_of_different_number", "barrier not reached by all: 32 threads", "in loop", True),
    ("shuffle_in_an_if", "deadlock: __shfl_down_sync()", "shuffle in if", True),
    ("shuffle_from_a_lane_that_is_not_there", "lane 8 of warp 0 reads lane 24, which does not exist", "too far", True),
    ("mask_without_the_lane_itself", "mask 0x0000ffff, which leaves out the lane itself", "without me", True),
    ("masks_that_differ", "passes the mask 0xffffffff, but lanes of the same warp wait", "masks", True),
    ("shuffle_from_a_thread_that_has_ended", "lane 16 of warp 0 reads lane 0, whose thread has ended", "gone", True),
    ("shuffle_from_outside_the_mask", "reads lane 20, which the mask 0x0000ffff leaves out", "outside", True),
    ("half_a_tile", "deadlock: __shfl_sync()", "tile", True),
    ("no_dynamic_memory", "dynamic shared memory; the launch asked for none", "use dynamic", True),
    ("dynamic_memory_in_elements", "of dynamic shared memory; the launch asked for 256 bytes", "use dynamic", True),
    ("much_dynamic_memory", "65536 bytes of dynamic shared memory; at most 49152 are allowed without", None, True),
    ("too_much_dynamic_memory", "307200 bytes of dynamic shared memory; at most 232448 are allowed", None, True),
    ("inner_index", "index 16 of an array of type 'float [16]'; `s` is such an array", "inner", False),
    ("past_the_end_of_shared", "out-of-bounds write of 4 bytes at `s[256]`, but the variable is", "past shared", True),
    ("too_much_shared", "too much shared memory: with `__shared__ float s[128][128]`", "big", True),
    ("misaligned_float4", "misaligned", "four", False),
    ("division_by_zero", "integer division by zero", "divide", True),
    ("endless_loop", "the kernel ran for more than 0.5 seconds", "endless", True),
    ("failed_assertion", 'assertion failed: n > 0 && "n must be positive"', "assert", True),
    ("trap", "__trap()", None, True),
    ("stack_overflow", "stack overflow: a thread used more than 64 KB", None, True),
    ("exception_in_a_kernel", "the same type came out", None, True),
]
# where the fast build sees the mistake otherwise than the check build
FAST_WORDS = {
    "read_past_the_end": "out-of-bounds access at `a[1000]`",
    "write_past_the_end": "out-of-bounds access at `out[1000]`",
    "past_the_end_of_doubles": "out-of-bounds access at `from[100]`",
    "use_after_free": "use after free: access at `a[0]`",
    "null_pointer": "null pointer: access to address 0x0",
    "no_dynamic_memory": "but the launch asked for none",
    "dynamic_memory_in_elements": "the launch asked for 256 bytes",
    "past_the_end_of_shared": "wrote 0 bytes past the end of `__shared__ float s[256]`",
}


def report(zoo: Emulated, name: str) -> str:
    with zoo.options(TIMEOUT=0.5):
        said = zoo.run(name)
    assert said is not None, f"{name} went by without a word"
    return said


def skip_what_is_never_seen(name: str) -> None:
    if name == "misaligned_float4" and IS_CLANG:
        pytest.skip("Clang looks at no address from which it copies a whole struct")
    if name == "division_by_zero" and platform.machine() in ("aarch64", "arm64"):
        pytest.skip("this processor, too, divides by zero without a word")


def is_about_a_kernel(said: str) -> bool:
    return "\n  launched at " in said


@pytest.mark.parametrize(("name", "words", "marker", "_"), ZOO, ids=[row[0] for row in ZOO])
def test_check_build_reports(name: str, words: str, marker: str | None, _: bool) -> None:
    skip_what_is_never_seen(name)
    zoo = emulated("zoo.cu", check=True)
    said = report(zoo, name).replace("'float[", "'float [")  # as Clang writes the type
    assert words in said
    if marker is not None:
        assert f" at zoo.cu:{zoo.line(marker)}, block (" in said
    if is_about_a_kernel(said):
        where = r"( at zoo\.cu:\d+)?" if name == "stack_overflow" else r" at zoo\.cu:\d+"  # it may end in the emulator
        thread = r"block \(\d+, \d+, \d+\), thread \(\d+, \d+, \d+\)"
        assert re.search(rf"\n  in kernel \w+{where}, {thread}\n", said)
        assert re.search(r"\n  launched at zoo\.cu:\d+ with grid \(\d+, \d+, \d+\) and block \(\d+, \d+, \d+\)\n", said)


@pytest.mark.parametrize(("name", "words", "marker", "seen"), ZOO, ids=[row[0] for row in ZOO])
def test_fast_build_reports_what_costs_nothing(name: str, words: str, marker: str | None, seen: bool) -> None:
    """Guard pages, barriers and warps are watched in the fast build too; a missed mistake may go by, but not crash."""
    skip_what_is_never_seen(name)
    zoo = emulated("zoo.cu", check=False)
    with zoo.options(TIMEOUT=0.5):
        said = zoo.run(name)
    if seen:
        assert said is not None and FAST_WORDS.get(name, words) in said


def test_at_least_35_kinds_and_every_function_of_the_zoo() -> None:
    names = re.findall(r"TEST_FUNCTION\((\w+)\)", (emulated("zoo.cu", check=True).source).read_text())
    assert sorted(names) == sorted([row[0] for row in ZOO] + ["device_pointer_on_host"])
    assert len(ZOO) >= 35


@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_host_code_that_uses_a_device_pointer_ends_with_a_message(check: bool) -> None:
    zoo = emulated("zoo.cu", check)
    done = python(f"emulated('zoo.cu', {check}).run('device_pointer_on_host')\nprint('went on')")
    assert done.returncode < 0 and "went on" not in done.stdout
    assert "[cuda_emu] code of the host touches device memory" in done.stderr
    assert f"zoo.cu:{zoo.line('host')}" in done.stderr and "copy with cudaMemcpy" in done.stderr


def test_without_strictness_a_thread_may_return_before_a_barrier() -> None:
    zoo = emulated("zoo.cu", check=True)
    with zoo.options(STRICT=0):
        assert zoo.run("return_before_a_barrier") is None


def test_the_same_report_every_time() -> None:
    zoo = emulated("zoo.cu", check=True)
    assert {report(zoo, "missing_atomic") for _ in range(3)} == {report(zoo, "missing_atomic")}


def test_what_an_earlier_kernel_wrote_to_shared_memory_does_not_count() -> None:
    zoo = emulated("zoo.cu", check=True)
    report(zoo, "inner_index")  # writes 1024 bytes
    assert "read of `half[255]`" in report(zoo, "unwritten_shared")
