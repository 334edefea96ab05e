"""The tests of test_gradients_check again, on NumPy arrays."""

from tests.unit.test_gradients_check import *  # noqa: F403
