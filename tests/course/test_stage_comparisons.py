"""How the checks of the stages compare: what rounding may do passes, what an error does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

STAGES = Path(__file__).resolve().parents[1] / "stages.py"


@pytest.fixture(scope="module")
def stages():
    """tests/stages.py, under a name of its own."""
    spec = importlib.util.spec_from_file_location("stages_of_tests", STAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("rows, terms", [(3, 4), (20, 64), (5, 1000)])
def test_another_type_and_another_order_of_sums_pass_and_one_percent_does_not_U093(stages, rows, terms):
    random = np.random.RandomState(terms)
    A, B = random.randn(rows, terms), random.randn(terms, 7)
    wanted = A @ B
    order = random.permutation(terms)
    for dtype in (np.float64, np.float32):
        a, b = A.astype(dtype), B.astype(dtype)
        stages.assert_close(a @ b, wanted, terms)
        stages.assert_close(a[:, order] @ b[order], wanted, terms)
        one_by_one = np.zeros((rows, 7), dtype)
        for k in range(terms):
            one_by_one += np.outer(a[:, k], b[k])
        stages.assert_close(one_by_one, wanted, terms)
        with pytest.raises(AssertionError, match=r"1\.01 times what it should be"):
            stages.assert_close(1.01 * (a @ b), wanted, terms)


def test_a_shape_that_would_broadcast_does_not_pass(stages):
    for got, want in ((np.ones((3, 1)), np.ones((3, 4))), (np.ones(1), np.float64(1)), (1.0, np.ones(1))):
        for compare in (stages.assert_close, stages.assert_same, stages.assert_within):
            with pytest.raises(AssertionError, match="shape"):
                compare(got, want)


def test_nan_passes_for_nan_alone(stages):
    stages.assert_same([np.nan, 1], [np.nan, 1])
    for got, want in (([np.nan], [1.0]), ([1.0], [np.nan])):
        with pytest.raises(AssertionError):
            stages.assert_within(got, want, rtol=1e9, atol=1e9)


def test_what_is_compared_is_named(stages):
    with pytest.raises(AssertionError, match=r"^the bias: 1 of 2 entries"):
        stages.assert_same([1, 2], [1, 3], "the bias")


def test_upstream_gradients_have_no_two_entries_alike(stages):
    for shape in ((), (3,), (4, 5), (2, 3, 4)):
        weights = stages.upstream(shape)
        assert weights.shape == shape and len(np.unique(np.abs(weights))) == weights.size
        assert np.abs(weights).min(initial=1) >= 0.5


def test_numerical_gradients_of_a_known_function(stages):
    a, b = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    weights = np.array([[2.0]])
    got = stages.numerical_gradients(lambda a, b: a @ b, [a, b], weights)
    np.testing.assert_allclose(got[0], 2 * b.T, rtol=1e-8)
    np.testing.assert_allclose(got[1], 2 * a.T, rtol=1e-8)
