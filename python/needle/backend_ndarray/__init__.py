"""Arrays on devices: NDArray, the devices, and functions with NumPy's names.

The module itself is the array library of nd mode (`array_api`): code that calls NumPy's functions by their names runs
on NDArrays when this module stands in for numpy.
"""

from . import devices, functions
from .devices import (
    BackendDevice,
    all_devices,
    as_device,
    cpu,
    cpu_numpy,
    cuda,
    cuda_emu,
    default_device,
    device,
)
from .functions import *
from .ndarray import NDArray

__all__ = [
    "BackendDevice",
    "NDArray",
    "all_devices",
    "as_device",
    "cpu",
    "cpu_numpy",
    "cuda",
    "cuda_emu",
    "default_device",
    "device",
    *functions.__all__,
]
