"""tests/unit/test_nn_layers.py again, on NumPy arrays."""

from tests.unit.test_nn_layers import *  # noqa: F403
