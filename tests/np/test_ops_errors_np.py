"""The tests of errors again, on NumPy arrays."""

from tests.unit.test_ops_errors import *  # noqa: F403
