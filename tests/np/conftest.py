"""The tests of this folder run on plain NumPy arrays, so they want a process of their own."""

from __future__ import annotations

import os
import sys

import pytest

os.environ["NEEDLE_BACKEND"] = "np"
if "needle" in sys.modules and sys.modules["needle.backend_selection"].BACKEND != "np":
    pytest.exit("tests/np: needle is already there with another backend; run this folder alone", returncode=4)
