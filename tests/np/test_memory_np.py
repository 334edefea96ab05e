"""tests/unit/test_memory.py again, on NumPy arrays."""

from tests.unit.test_memory import *  # noqa: F403
