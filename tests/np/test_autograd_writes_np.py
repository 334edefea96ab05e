"""The tests of writes again, on NumPy arrays."""

from tests.unit.test_autograd_writes import *  # noqa: F403
