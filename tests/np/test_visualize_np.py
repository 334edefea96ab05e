"""tests/unit/test_visualize.py again, on NumPy arrays."""

from tests.unit.test_visualize import *  # noqa: F403
