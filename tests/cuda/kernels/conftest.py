"""The library's CUDA kernels as the emulator runs them: fast, and with every access checked."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels


@pytest.fixture(params=["fast", pytest.param("check", marks=pytest.mark.slow)])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """The module; the fixtures that build it lie one folder up."""
    request.getfixturevalue("emulator" if request.param == "fast" else "checking_emulator")
    suffix = "" if request.param == "fast" else "_check"
    return Kernels(importlib.import_module(f"needle.backend_ndarray.kernels_cuda_emu{suffix}"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What NumPy, the reference, thinks of overflow and of nan is not the matter here."""
    with np.errstate(all="ignore"):
        yield
