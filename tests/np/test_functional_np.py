"""The tests of test_functional again, on NumPy arrays."""

from tests.unit.test_functional import *  # noqa: F403
