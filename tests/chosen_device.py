"""The devices that the unit tests run on.

Usually cpu() and cpu_numpy(). With NEEDLE_TEST_DEVICE=cuda_emu (or cuda) in the environment the same tests run on that
device, which is then also the one that arrays and tensors are made on when nobody says.
"""

from __future__ import annotations

import os

import hypothesis
from needle import backend_ndarray as nd

CHOSEN = os.environ.get("NEEDLE_TEST_DEVICE", "")
EXAMPLES = 25  # of a property: what is the same for all devices was tried a hundred times on the usual ones


def devices() -> list[nd.BackendDevice]:
    """The device that the environment names, or the usual ones that are enabled."""
    if CHOSEN:
        return [nd.as_device(CHOSEN)]
    return [device for device in (nd.cpu(), nd.cpu_numpy()) if device.enabled()]


def choose() -> None:
    """Make the device that the environment names the default of this process. DeviceError if it is not there."""
    if CHOSEN:
        nd.zeros((1,), device=CHOSEN)
        nd.device(CHOSEN).__enter__()
        hypothesis.settings.register_profile("device", hypothesis.settings(), max_examples=EXAMPLES)
        hypothesis.settings.load_profile("device")
