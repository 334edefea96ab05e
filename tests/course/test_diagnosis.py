"""What a red check says: shapes, types, the worst entry, and the mistake that usually looks like that."""

from __future__ import annotations

import numpy as np
import pytest
from needle_course import diagnosis


def matrix(rows=3, columns=4, seed=0):
    return np.random.RandomState(seed).uniform(0.5, 2.0, (rows, columns)) * [1, -1, 1, -1, 1][:columns]


def suspicion(got, want, bound=1e-6):
    text = diagnosis.difference(got, want, bound)
    assert text is not None
    return text.partition(diagnosis.LOOKS_LIKE)[2]


def edited(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize("bound, off", [(0.0, 0.0), (1e-6, 5e-7), (0.1, -0.09)])
def test_within_the_bound_is_no_difference(bound, off):
    assert diagnosis.difference(matrix() + off, matrix(), bound) is None


def test_nan_and_infinity_agree_with_themselves_only():
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert diagnosis.difference(special, special) is None
    assert diagnosis.difference(special, [np.nan, np.inf, np.inf, 1.0], 1e9) is not None
    assert diagnosis.difference([np.nan], [1.0], 1e9) is not None
    assert diagnosis.difference([1.0], [np.nan], 1e9) is not None


def test_a_difference_names_counts_and_the_worst_entry():
    text = diagnosis.difference(edited(matrix(), (1, 2), 9.0).astype(np.float32), matrix(), 1e-5)
    assert "1 of 12 entries off by more than 1e-05" in text
    assert "(3, 4), float32" in text
    assert f"worst at [1, 2]: got 9, wanted {matrix()[1, 2]:.7g}, ratio {9 / matrix()[1, 2]:.4g}" in text


def test_a_number_is_compared_like_an_array():
    assert diagnosis.difference(1.0, 1.0) is None
    assert "got 2, wanted 1, ratio 2" in diagnosis.difference(2, 1.0)


def test_a_type_that_was_not_wanted():
    text = diagnosis.difference(matrix(), matrix(), dtype="float32")
    assert "got dtype float64, wanted float32" in text


@pytest.mark.parametrize("got, words", [
    (lambda a: np.ones((2, 3, 4)), "a sum over axes (0,) is missing"),
    (lambda a: np.broadcast_to(a / 2, (2, 3, 4)), "(summed, your values are right)"),
    (lambda a: a.T, "axes 0 and 1 are swapped: transposed (the values are right)"),
    (lambda a: a.T + 1, "axes 0 and 1 are swapped: transposed"),
    (lambda a: a.reshape(12), "the values are right, only the shape is not"),
    (lambda a: a.sum(axis=0), "reduced over too many axes"),
    (lambda a: a[:-1], "one too few along axis 0"),
    (lambda a: np.ones((3, 5)), "one too many along axis 1"),
])  # fmt: skip
def test_shapes_that_differ(got, words):
    text = diagnosis.difference(got(matrix()), matrix())
    assert text.startswith(f"got shape {got(matrix()).shape} (float64), wanted shape (3, 4)")
    assert words in text


@pytest.mark.parametrize("got, words", [
    (lambda a: a * 0, "all entries are 0"),
    (lambda a: edited(a, 0, np.nan), "4 of 12 entries are nan or inf: exp of a large number overflows"),
    (lambda a: a * np.inf, "all entries are nan or inf"),
    (lambda a: -a, "every sign is flipped"),
    (lambda a: 2 * a, "2 times what it should be: something is added twice"),
    (lambda a: a / 4, "which is 1/4 (the extent of axis 1): averaged where a sum is wanted"),
    (lambda a: a / 12, "1/12 (the number of entries): averaged"),
    (lambda a: 3 * a, "(the extent of axis 0): summed where a mean is wanted"),
    (lambda a: 0.7 * a, "0.7 times what it should be: a factor is missing"),
    (lambda a: a + 0.5, "off by the same +0.5"),
    (lambda a: a[::-1], "axis 0 runs the other way round"),
    (lambda a: a.T.reshape(3, 4), "strides were not followed"),
    (lambda a: np.roll(a, 1, axis=1), "shifted by one along axis 1"),
    (lambda a: edited(a, -1, 7.0), "right but for the last index along axis 0"),
    (lambda a: edited(a, (slice(None), -1), 7.0), "right but for the last index along axis 1"),
    (lambda a: edited(a, 0, 7.0), "right but for the first index along axis 0"),
    (lambda a: np.abs(a), "the sizes are right, some signs are not"),
    (lambda a: a**2, "the square of what is wanted"),
    (lambda a: 1 / a, "one over what is wanted"),
    (lambda a: a.ravel()[np.random.RandomState(1).permutation(12)].reshape(3, 4), "in the wrong places"),
    (lambda a: a * [[2.0], [3.0], [5.0]], "along axis 1 all entries are off by one factor"),
    (lambda a: a * (1 + 1e-3 * matrix(seed=9)), "nearly right"),
])  # fmt: skip
def test_values_that_differ(got, words):
    assert words in suspicion(got(matrix()), matrix())


def test_a_square_matrix_that_was_transposed():
    square = matrix(4, 4)
    assert "axes 0 and 1 are swapped: transposed" in suspicion(square.T, square)


def test_wrong_from_some_row_on():
    long = matrix(6, 4)
    wrong = edited(long, slice(4, None), matrix(2, 4, seed=3))
    assert "right up to index 3 along axis 0" in suspicion(wrong, long)


@pytest.mark.parametrize("factor, words", [
    (-1.0, "the sign is flipped"),
    (50.0, "50 times what it should be: a sum where a mean is wanted"),
    (1 / 32, "1/32 of what it should be: a mean where a sum is wanted"),
])  # fmt: skip
def test_a_number_off_by_a_factor(factor, words):
    assert words in suspicion(np.float64(4.6595 * factor), np.float64(4.6595))


@pytest.mark.parametrize("got", [1.7, 0.0, 49.99, 0.7, -2.0, 37123457.3, 1e-9])
def test_of_another_number_nothing_is_guessed(got):
    assert diagnosis.LOOKS_LIKE not in diagnosis.difference(got, 1.0) or got == 0.0


def test_no_pattern_says_nothing_more():
    assert diagnosis.LOOKS_LIKE not in diagnosis.difference([1.0, 5.0, -7.0, 3.0], [2.0, 1.0, 4.0, 9.0])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 1), (2, 2, 2, 2), (300, 7)])
def test_no_pattern_stumbles_over_a_shape(shape):
    random = np.random.RandomState(0)
    want = np.asarray(random.randn(*shape))
    for got in (want, want * 0, want + 1, random.randn(*shape), want * np.nan, want.astype(int), want > 0):
        text = diagnosis.difference(got, want)
        assert text is None or text.count("\n") <= 2
    for other in ((3,), (2, 0), (1, 1, 1), (), (2, 2)):
        if other != shape:
            assert diagnosis.difference(np.ones(other), want) is not None


def test_exceptions_have_meanings():
    assert "exp" in diagnosis.suspected_from_exception("RuntimeWarning", "overflow encountered in exp")
    assert "return" in diagnosis.suspected_from_exception("TypeError", "'NoneType' object is not subscriptable")
    assert diagnosis.suspected_from_exception("AssertionError", "'NoneType'") is None
    assert diagnosis.suspected_from_exception("KeyError", "x") is None
