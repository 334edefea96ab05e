"""The contract's statements as tests; run once per backend: `NEEDLE_BACKEND=np pytest tests/contract`, then `nd`.

Files test_np_* and test_nd_* hold what the contract says of one backend alone.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

BACKEND = os.environ.setdefault("NEEDLE_BACKEND", "nd")
collect_ignore_glob = ["test_nd_*.py" if BACKEND == "np" else "test_np_*.py"]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """NumPy's global generator starts every test in the same state."""
    np.random.seed(0)
