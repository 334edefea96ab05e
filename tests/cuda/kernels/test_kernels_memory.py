"""Device memory: what is freed is kept for the next one, statistics tell, and handles that do not fit are refused."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, some

PYTHON = Path(__file__).parents[3] / "python"
CLASS = 1 << 20  # a size class of the allocator


@pytest.fixture
def caching(kernels: Kernels) -> Kernels:
    """A module that keeps memory; the checking build does not, so that it sees the end of every allocation."""
    gc.collect()
    kernels.empty_cache()
    kernel_buffer = kernels.Buffer(1, "uint8")
    del kernel_buffer
    if kernels.memory_stats()["cached"] == 0:
        pytest.skip("the checking build keeps no memory")
    kernels.empty_cache()
    return kernels


def test_freed_memory_is_handed_on(caching: Kernels) -> None:
    before = caching.memory_stats()
    a = caching.Buffer(CLASS, "uint8")
    address = a.ptr()
    del a
    assert caching.memory_stats()["cached"] == CLASS
    b = caching.Buffer((CLASS - 100) // 4, "float32")  # of the same class
    assert b.ptr() == address
    stats = caching.memory_stats()
    assert stats["cached"] == 0
    assert stats["live"] == before["live"] + CLASS
    assert stats["system_allocations"] == before["system_allocations"] + 1


def test_the_peak_is_remembered_until_it_is_reset(caching: Kernels) -> None:
    caching.reset_peak()
    start = caching.memory_stats()["live"]
    a, b = caching.Buffer(CLASS, "uint8"), caching.Buffer(3 * CLASS, "uint8")
    del a, b
    assert caching.memory_stats()["peak"] == start + 4 * CLASS
    caching.reset_peak()
    assert caching.memory_stats()["peak"] == start
    caching.empty_cache()
    assert caching.memory_stats()["cached"] == 0


def test_size_classes_waste_a_fifth_at_most(caching: Kernels) -> None:
    live = caching.memory_stats()["live"]
    for size in [1, 512, 513, 600, 1025, 10_000, 12_345, 99_999, 1_048_577]:
        a = caching.Buffer(size, "uint8")
        reserved = caching.memory_stats()["live"] - live
        assert size <= reserved <= max(512, 1.25 * size)
        del a


def test_buffers_may_be_made_and_dropped_by_many_threads(kernels: Kernels) -> None:
    def work(seed: int) -> None:
        for size in np.random.default_rng(seed).integers(1, 5000, 40):
            a = some(size, "float32", seed)
            assert np.array_equal(kernels.down(kernels.up(a)), a)

    live = kernels.memory_stats()["live"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # which raises what a thread raised
    gc.collect()
    assert kernels.memory_stats()["live"] == live


def test_live_bytes_are_counted(kernels: Kernels) -> None:
    gc.collect()
    before = kernels.allocated_bytes()
    a, view = kernels.Buffer(1000, "float64"), None
    assert kernels.allocated_bytes() == before + 8000
    view = kernels._view(a.ptr(), 500, "float64", a)
    del a
    assert kernels.allocated_bytes() == before + 8000  # the view shares in it
    assert view.size == 500
    del view
    assert kernels.allocated_bytes() == before


def test_sizes_that_make_no_sense_are_refused(kernels: Kernels) -> None:
    with pytest.raises(ValueError, match="Buffer: size -1 is negative"):
        kernels.Buffer(-1, "float32")
    with pytest.raises(ValueError, match="dtype 'float16', wanted"):
        kernels.Buffer(1, "float16")
    for size in (2**40, 2**61, 2**63 - 1):
        with pytest.raises(MemoryError):
            kernels.Buffer(size, "float64")
    assert kernels.Buffer(0, "bool").size == 0


def test_the_cpus_buffers_are_no_arguments(kernels: Kernels) -> None:
    """A host address in a kernel would end the process."""
    from needle.backend_ndarray import kernels_cpu

    host, device = kernels_cpu.Buffer(4, "float32"), kernels.Buffer(4, "float32")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kernels.ewise_exp(host, device)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kernels_cpu.ewise_exp(device, host)


def test_from_numpy_takes_the_right_array_alone(kernels: Kernels) -> None:
    out = kernels.Buffer(6, "float32")
    with pytest.raises(TypeError, match="from_numpy: out is float32, wanted float64"):
        kernels.from_numpy(np.zeros(6), out)
    with pytest.raises(ValueError, match="from_numpy: the NumPy array has 5 elements, wanted 6"):
        kernels.from_numpy(np.zeros(5, "float32"), out)
    kernels.from_numpy(np.arange(12, dtype="float32").reshape(2, 6)[:, ::2].T, out)
    assert kernels.down(out).tolist() == [0, 6, 2, 8, 4, 10]


SHARING = """
from needle.backend_ndarray import kernels_cuda_emu as kernels, ndarray_backend_cuda_emu as course
early = course.Array(1000)  # from CUDA itself
course._set_memory_source(*kernels._memory_source())
a, nothing = course.Array(2**18), course.Array(0)
assert kernels.memory_stats()["live"] == 2**20 + 512
address = a.ptr()
del a, nothing, early
assert kernels.memory_stats()["live"] == 0
assert kernels.memory_stats()["cached"] == 2**20 + 512
assert kernels.Buffer(2**17, "float64").ptr() == address
"""


def test_the_courses_arrays_can_share_the_cache(emulator: object) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run([sys.executable, "-c", SHARING], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", [0, 1])
def test_no_argument_crashes_a_kernel_or_leads_it_astray(kernels: Kernels, seed: int) -> None:
    module = kernels.__name__.rsplit(".", 1)[1]
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), module, str(seed), "6000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PYTHON), str(PYTHON.parent)])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    assert done.stdout.strip() == "never answered:", (
        done.stdout
    )  # so that every kernel was reached, not only its checks
