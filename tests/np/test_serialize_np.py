"""tests/unit/test_serialize.py again, on NumPy arrays."""

from tests.unit.test_serialize import *  # noqa: F403
