"""What the library takes of a machine: memory, which its allocators keep for later, and threads.

Where the library's kernels are not in use, as in np mode, there is nothing to tell and nothing to change.
"""

from __future__ import annotations

from numbers import Integral
from types import ModuleType
from typing import Any

from .backend_selection import as_device, cpu
from .errors import ArgumentError, ArgumentTypeError, describe

MOST_THREADS = 1024


def memory_stats(device: Any = None) -> dict[str, int]:
    """What the allocator of a device holds, the default device's unless one is named: four numbers.

    "live", "cached", "peak": bytes in use, kept for later, and at most in use; "system_allocations": how often the
    system was asked for memory.  All are 0 where the memory is NumPy's, and on a device that is not there.
    DeviceError for what is no device.
    """
    module = _kernels(device)
    return module.memory_stats() if module else dict.fromkeys(("live", "cached", "peak", "system_allocations"), 0)


def empty_cache(device: Any = None) -> None:
    """Give the memory that a device keeps for later back to the system."""
    if module := _kernels(device):
        module.empty_cache()


def reset_peak_memory(device: Any = None) -> None:
    """Measure the "peak" of `memory_stats` from now on."""
    if module := _kernels(device):
        module.reset_peak()


def num_threads() -> int:
    """At most so many threads work on one operation on the CPU."""
    module = _kernels(cpu())
    return module.num_threads() if module else 1


def set_num_threads(threads: int) -> None:
    """Let at most so many threads work on one operation on the CPU.  ArgumentError unless it is from 1 to 1024.

    At the start it is NEEDLE_NUM_THREADS, else OMP_NUM_THREADS, else the number of processors.  The bits of a result
    do not depend on it.
    """
    if not isinstance(threads, Integral):
        raise ArgumentTypeError(f"set_num_threads: got {describe(threads)}, wanted a number from 1 to {MOST_THREADS}")
    if not 1 <= threads <= MOST_THREADS:
        raise ArgumentError(f"set_num_threads: got {threads}, wanted a number from 1 to {MOST_THREADS}")
    if module := _kernels(cpu()):
        module.set_num_threads(int(threads))


def _kernels(device: Any) -> ModuleType | None:
    """The library's kernels for a device; None where there are none."""
    return getattr(as_device(device), "typed", None)
