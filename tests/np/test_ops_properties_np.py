"""The property tests of operators again, on NumPy arrays."""

from tests.unit.test_ops_properties import *  # noqa: F403
