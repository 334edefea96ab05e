"""The tests of graphs again, on NumPy arrays."""

from tests.unit.test_autograd_graph import *  # noqa: F403
