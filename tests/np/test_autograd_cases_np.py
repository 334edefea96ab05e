"""The tests of cases again, on NumPy arrays."""

from tests.unit.test_autograd_cases import *  # noqa: F403
