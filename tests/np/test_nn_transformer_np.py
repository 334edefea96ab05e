"""tests/unit/test_nn_transformer.py again, on NumPy arrays."""

from tests.unit.test_nn_transformer import *  # noqa: F403
