"""tests/unit/test_nn_module.py again, on NumPy arrays."""

from tests.unit.test_nn_module import *  # noqa: F403
