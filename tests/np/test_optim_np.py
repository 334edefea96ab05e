"""tests/unit/test_optim.py again, on NumPy arrays."""

from tests.unit.test_optim import *  # noqa: F403
