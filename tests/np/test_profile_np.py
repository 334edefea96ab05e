"""tests/unit/test_profile.py again, on NumPy arrays."""

from tests.unit.test_profile import *  # noqa: F403
