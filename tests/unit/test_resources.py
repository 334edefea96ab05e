"""Memory that is kept for later, memory that is watched, and the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import needle as ndl
import numpy as np
import pytest
from needle import backend_ndarray as nd
from needle.backend_ndarray import kernels_cpu as kernels

CLASS = 5 << 18  # a size class of its own: 1.25 MiB
MIB = 1 << 20


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Nothing is kept at the start."""
    if os.environ.get("NEEDLE_CPU_CACHE") == "0":
        pytest.skip("memory is not kept here")
    ndl.empty_cache("cpu")


def run_python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ndl.__file__).parents[1]), **variables}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)


# ---- the cache -----------------------------------------------------------------------------------------------------


def test_freed_memory_serves_the_next_array_of_its_size() -> None:
    before = ndl.memory_stats("cpu")
    a = kernels.Buffer(CLASS, "uint8")
    address = a.ptr()
    stats = ndl.memory_stats("cpu")
    assert stats["live"] - before["live"] == CLASS
    assert stats["system_allocations"] == before["system_allocations"] + 1
    del a
    assert ndl.memory_stats("cpu")["cached"] == before["cached"] + CLASS
    a = kernels.Buffer(CLASS // 4 - 5, "float32")
    assert a.ptr() == address
    assert ndl.memory_stats("cpu") == {**stats, "cached": before["cached"]}


def test_float32_arrays_draw_from_the_same_cache() -> None:
    a = nd.cpu().Array(CLASS // 4)
    address = a.ptr()
    del a
    assert kernels.Buffer(CLASS // 8, "float64").ptr() == address


def test_peak_is_measured_from_its_reset_on() -> None:
    start = ndl.memory_stats("cpu")["live"]
    a = [kernels.Buffer(CLASS, "uint8") for _ in range(3)]
    del a
    assert ndl.memory_stats("cpu")["peak"] >= start + 3 * CLASS
    ndl.reset_peak_memory("cpu")
    a = [kernels.Buffer(CLASS, "uint8") for _ in range(2)]
    assert ndl.memory_stats("cpu")["peak"] == start + 2 * CLASS
    del a
    ndl.empty_cache("cpu")
    assert ndl.memory_stats("cpu")["cached"] == 0


def test_memory_is_aligned_to_64_bytes() -> None:
    handles = [kernels.Buffer(size, "uint8") for size in (0, 1, 63, 64, 65, 81, 1000, 4097, MIB - 1, MIB, 3 * MIB + 1)]
    handles += [nd.cpu().Array(size) for size in (0, 1, 17, 1001)]
    assert [handle.ptr() % 64 for handle in handles] == [0] * len(handles)
    assert len({handle.ptr() for handle in handles}) == len(handles)


def test_an_array_of_nothing_has_an_address_and_no_elements() -> None:
    for handle in (kernels.Buffer(0, "float32"), nd.cpu().Array(0)):
        assert handle.ptr() and np.asarray(handle).size == 0


def test_wrapped_memory_is_neither_counted_nor_freed() -> None:
    memory = np.arange(CLASS // 4, dtype="float32")
    live = ndl.memory_stats("cpu")["live"]
    for wrap in (nd.cpu().wrap, kernels.wrap):
        handle = wrap(memory)
        assert ndl.memory_stats("cpu")["live"] == live
        del handle
    assert ndl.memory_stats("cpu")["cached"] == 0
    assert memory[-1] == CLASS // 4 - 1


def test_threads_share_the_cache() -> None:
    def work(seed: int) -> None:
        for size in np.random.default_rng(seed).integers(1, 5000, 200):
            array = nd.array(np.full(size, seed), device=nd.cpu())
            assert (array + array).numpy().min() == 2 * seed

    live = ndl.memory_stats("cpu")["live"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))  # which raises what a thread raised
    assert ndl.memory_stats("cpu")["live"] == live


def test_a_forked_child_may_allocate() -> None:
    program = """
import os, threading
from needle.backend_ndarray import kernels_cpu as k
stop = threading.Event()
def work():
    while not stop.is_set():
        k.Buffer(100, "float32")
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):  # a mutex that another thread holds would stay locked in the child
    child = os.fork()
    if child == 0:
        k.Buffer(100, "float32")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("most", "cached"), [("2", 2), ("1", 0), ("0", 0), ("", 2), ("-5", 0)])
def test_the_environment_bounds_the_cache(most: str, cached: int) -> None:
    program = f"""
from needle.backend_ndarray import kernels_cpu as k
a = k.Buffer({2 * MIB}, "uint8")
del a
print(k.memory_stats()["cached"])
"""
    assert run_python(program, NEEDLE_CPU_CACHE=most).stdout.strip() == str(cached * MIB)


def test_no_more_is_held_than_was_once_live_and_16_mib() -> None:
    program = f"""
import needle as ndl
from needle.backend_ndarray import kernels_cpu as k
for size in range({MIB}, {20 * MIB}, {MIB // 3}):  # each of another size class, or nearly so
    k.Buffer(size, "uint8")
    stats = ndl.memory_stats("cpu")
    assert stats["live"] + stats["cached"] <= stats["peak"] + {16 * MIB}, stats
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


# ---- debugging -----------------------------------------------------------------------------------------------------

WATCHED = """
import ctypes
import numpy as np
import needle as ndl
from needle.backend_ndarray import kernels_cpu as k
assert np.isnan(k.Buffer(5, "float64")).all() and np.isnan(ndl.cpu().Array(7)).all()
assert k.Buffer(5, "float32").ptr() % 64 == 0

def overwrite(make, size, start):
    handle = make(size)
    ctypes.memset(handle.ptr() + start, 0, 3)
    del handle
    try:
        make(size)
    except RuntimeError as error:
        print(error)

overwrite(ndl.cpu().Array, 6, 24)
overwrite(ndl.cpu().Array, 6, -3)
overwrite(lambda size: k.Buffer(size, "float64"), 100, 799)
overwrite(lambda size: k.Buffer(size, "float64"), 100, 797)
print(ndl.memory_stats("cpu")["cached"])
"""


def test_watched_memory_is_nan_and_tells_who_wrote_around_it() -> None:
    done = run_python(WATCHED, NEEDLE_MEMORY_DEBUG="1")
    told = "of the 64 bytes {} a piece of {} bytes were overwritten before it was freed; "
    told += "a kernel's index is out of bounds"
    assert done.stdout.splitlines() == [
        "memory: 3 " + told.format("after", 24),
        "memory: 3 " + told.format("before", 24),
        "memory: 2 " + told.format("after", 800),
        "0",
    ], done.stderr


def test_what_nobody_was_told_is_told_at_the_end() -> None:
    program = """
import ctypes
from needle.backend_ndarray import kernels_cpu as k
handle = k.Buffer(2, "float32")
ctypes.memset(handle.ptr() + 8, 0, 4)
del handle
"""
    assert "4 of the 64 bytes after a piece of 8 bytes" in run_python(program, NEEDLE_MEMORY_DEBUG="1").stderr
    assert not run_python(program, NEEDLE_MEMORY_DEBUG="0").stderr


# ---- devices that keep nothing, and threads ------------------------------------------------------------------------


def test_what_is_not_ours_holds_nothing() -> None:
    nothing = {"live": 0, "cached": 0, "peak": 0, "system_allocations": 0}
    assert ndl.memory_stats("cpu_numpy") == nothing
    ndl.empty_cache("cpu_numpy"), ndl.reset_peak_memory("cpu_numpy")
    if not nd.cuda().enabled():
        assert ndl.memory_stats("cuda") == nothing
    with pytest.raises(ndl.errors.DeviceError, match="device: got str 'gpu'"):
        ndl.memory_stats("gpu")


def test_np_mode_has_nothing_to_tell() -> None:
    program = """
import needle as ndl
print(ndl.memory_stats(), ndl.num_threads())
ndl.set_num_threads(3), ndl.empty_cache(), ndl.reset_peak_memory()
print(ndl.num_threads())
"""
    told = run_python(program, NEEDLE_BACKEND="np").stdout.split("\n")
    assert told[:2] == ["{'live': 0, 'cached': 0, 'peak': 0, 'system_allocations': 0} 1", "1"]


@pytest.fixture
def threads() -> Iterator[None]:
    before = ndl.num_threads()
    yield
    ndl.set_num_threads(before)


def test_threads_are_bounded(threads: None) -> None:
    ndl.set_num_threads(np.int64(3))
    assert ndl.num_threads() == kernels.num_threads() == 3
    for bad in (0, -1, 1025, 2.5, "2", None):
        with pytest.raises((ndl.errors.ArgumentError, ndl.errors.ArgumentTypeError), match="set_num_threads: got"):
            ndl.set_num_threads(bad)
    assert ndl.num_threads() == 3
