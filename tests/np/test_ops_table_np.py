"""The table of operators again, on NumPy arrays."""

from needle.backend_selection import BACKEND

from tests.unit.test_ops_table import *  # noqa: F403


def test_these_tests_run_on_numpy() -> None:
    assert BACKEND == "np"
