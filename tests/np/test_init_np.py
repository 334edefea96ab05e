"""tests/unit/test_init.py again, on NumPy arrays."""

from tests.unit.test_init import *  # noqa: F403
