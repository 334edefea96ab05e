"""What the allocator of a CUDA device holds, and how to make it let go."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..errors import DeviceError
from . import cuda_presence, native
from .devices import as_device


def memory_stats(device: Any = "cuda") -> dict[str, int]:
    """{"live", "cached", "peak": bytes in use, kept for later, and at most in use; "system_allocations": how many}.

    device: a CUDA device or its name.  DeviceError for any other, and for one without the library's kernels.
    """
    return _allocator(device).memory_stats()


def empty_cache(device: Any = "cuda") -> None:
    """Give the memory that is kept for later back to the system."""
    _allocator(device).empty_cache()


def reset_peak(device: Any = "cuda") -> None:
    """Measure the peak from now on."""
    _allocator(device).reset_peak()


def _allocator(device: Any) -> ModuleType:
    device = as_device(device)
    emulation = cuda_presence.emulation()
    kinds = {"cuda": f"_{emulation}" if emulation else "", "cuda_emu": f"_{emulation or 'emu'}"}
    module = native.load(f"kernels_cuda{kinds[device.name]}") if device.name in kinds and device.enabled() else None
    if module is None:
        raise DeviceError(f"memory_stats: got device {device}, wanted a CUDA device that works")
    return module
