"""What all tests share: how Hypothesis draws, and where real data may lie."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# derandomize: a red run is red again. No deadline: a time is never a test, and machines differ.
hypothesis.settings.register_profile("short", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("long", derandomize=True, deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("NEEDLE_HYPOTHESIS", "short"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets (mnist/, cifar10/, shakespeare/) that NEEDLE_DATA_DIR names; skips without one."""
    folder = os.environ.get("NEEDLE_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no real data here: set NEEDLE_DATA_DIR to a folder with mnist/, cifar10/, shakespeare/")
    return Path(folder)
