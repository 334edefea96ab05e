"""tests/unit/test_nn_sequence.py again, on NumPy arrays."""

from tests.unit.test_nn_sequence import *  # noqa: F403
