"""The tests of backward again, on NumPy arrays."""

from tests.unit.test_autograd_backward import *  # noqa: F403
