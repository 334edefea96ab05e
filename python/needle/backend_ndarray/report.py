"""Which devices there are, which build runs them, and if one is missing, why."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import native
from .devices import BackendDevice, cpu, cpu_numpy, cuda, cuda_emu


class DeviceRow(NamedTuple):
    """What there is to say of one device: whether it works, and what runs it or what is missing."""

    name: str
    usable: bool
    detail: str


class DeviceReport(tuple[DeviceRow, ...]):
    """A row for each device; str() is a table for people, to_json() for programs."""

    def __str__(self) -> str:
        return "\n".join(f"{row.name:<12} {'yes' if row.usable else 'no':<4} {row.detail}" for row in self)

    def to_json(self) -> str:
        """The rows as JSON: a list of objects with name, usable and detail."""
        return json.dumps([row._asdict() for row in self])


def device_report() -> DeviceReport:
    """Try every device with a small computation, and say what runs it or why it cannot be used."""
    details = {cpu: _cpu_detail, cpu_numpy: _numpy_detail, cuda: _cuda_detail, cuda_emu: _cuda_detail}
    return DeviceReport(_row(device(), detail) for device, detail in details.items())


def _row(device: BackendDevice, detail: Callable[[BackendDevice], str]) -> DeviceRow:
    try:
        works = bool((device.ones(3) + 1 == 2).numpy().all())
    except Exception as error:  # whatever a driver throws belongs in the report
        reason = " ".join(str(error).split()).rpartition(f"{device}: ")[2]  # without the names of who asked
        return DeviceRow(str(device), False, reason)
    return DeviceRow(str(device), works, detail(device) if works else "1 + 1 is not 2 on it; run 'make lib' again")


def _cpu_detail(device: BackendDevice) -> str:
    typed = native.load("kernels_cpu")
    if typed is None:
        return "the course's kernels, float32 alone"
    return f"the course's and the library's kernels, {typed.num_threads()} threads"


def _numpy_detail(device: BackendDevice) -> str:
    return f"NumPy {np.__version__}"


def _cuda_detail(device: BackendDevice) -> str:
    """The card and what was built for it; of the emulator, that it is none."""
    build = device.__device_name__
    if "emulated" in repr(device) and "emulated" not in build:  # a kernel file with bindings of its own names itself
        build += " (emulated)"
    # a kernel file with bindings of its own has no such function
    facts: dict = getattr(device.mod, "device_facts", dict)()
    if "emulated" not in build and facts:
        build = f"{facts['name']}, {facts['memory'] / 2**30:.0f} GiB, compute capability {facts['capability']}"
    kind = device.mod.__name__.rpartition("ndarray_backend_")[2] if device.mod else ""
    typed = native.load(f"kernels_{kind}")
    return f"{build}; {'the course' if typed is None else 'the course and the library'}'s kernels"
