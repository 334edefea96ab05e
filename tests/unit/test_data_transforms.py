"""Transforms: what they do to an image, and what they draw to do it."""

from __future__ import annotations

import needle as ndl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle.data import Compose, Normalize, RandomCrop, RandomErasing, RandomFlipHorizontal, ToCHW, ToHWC

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 9)


def picture(*shape: int, dtype: str = "float32") -> np.ndarray:
    """All entries different and none zero."""
    return np.arange(1, 1 + np.prod(shape)).astype(dtype).reshape(shape)


@given(SEEDS, st.floats(0, 1))
def test_flip_draws_one_number_and_mirrors_the_width(seed: int, p: float) -> None:
    image = picture(3, 4, 2)
    np.random.seed(seed)
    flipped = RandomFlipHorizontal(p)(image)
    state = np.random.get_state()
    np.random.seed(seed)
    np.testing.assert_array_equal(flipped, image[:, ::-1] if np.random.rand() < p else image)
    assert all(np.array_equal(a, b) for a, b in zip(state, np.random.get_state(), strict=True))


def test_flip_at_the_ends_of_p() -> None:
    np.random.seed(0)
    image = picture(3, 4, 1)
    for _ in range(20):
        np.testing.assert_array_equal(RandomFlipHorizontal(0)(image), image)
        np.testing.assert_array_equal(RandomFlipHorizontal(1.0)(image), image[:, ::-1])


@given(SEEDS, SIZES, SIZES, st.integers(0, 4), st.sampled_from(["float32", "uint8"]))
def test_crop_is_a_window_of_the_padded_image(seed: int, height: int, width: int, padding: int, dtype: str) -> None:
    image = picture(height, width, 2, dtype=dtype)
    np.random.seed(seed)
    cropped = RandomCrop(padding)(image)
    after = np.random.rand()
    np.random.seed(seed)
    shift_x, shift_y = np.random.randint(low=-padding, high=padding + 1, size=2)
    assert after == np.random.rand(), "one call of randint, nothing else"
    assert (cropped.shape, cropped.dtype) == (image.shape, image.dtype)
    for i in range(height):
        for j in range(width):
            row, column = i + shift_x, j + shift_y
            inside = 0 <= row < height and 0 <= column < width
            np.testing.assert_array_equal(cropped[i, j], image[row, column] if inside else 0)


def test_crop_leaves_the_image_itself_alone() -> None:
    np.random.seed(0)
    image = picture(4, 4, 1)
    cropped = RandomCrop(0)(image)
    np.testing.assert_array_equal(cropped, image)
    cropped[...] = 0
    assert image.min() == 1


def test_compose_applies_in_order() -> None:
    np.testing.assert_array_equal(Compose([lambda x: x + 1, lambda x: x * 10])(picture(1, 1, 1)), [[[20]]])


def test_normalize_works_by_channel_and_keeps_float32() -> None:
    image = picture(2, 3, 3, dtype="uint8")
    mean, std = [1.0, 2.0, 3.0], [0.5, 2.0, 4.0]
    result = Normalize(mean, std)(image)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, (image - np.array(mean)) / np.array(std), rtol=1e-6)
    np.testing.assert_allclose(Normalize(0.5, 0.25)(image), (image - 0.5) * 4, rtol=1e-6)


def test_axes_to_the_front_and_back() -> None:
    image = picture(2, 3, 4)
    assert ToCHW()(image)[1, 0, 2] == image[0, 2, 1]
    np.testing.assert_array_equal(ToHWC()(ToCHW()(image)), image)


@given(SEEDS, SIZES, SIZES)
def test_erasing_blanks_one_rectangle(seed: int, height: int, width: int) -> None:
    image = picture(height, width, 2)
    np.random.seed(seed)
    result = RandomErasing(p=1.0, value=-1)(image)
    after = np.random.rand()
    np.random.seed(seed)
    np.random.rand(5)
    assert after == np.random.rand(), "five numbers, no more"
    assert image.min() == 1, "the image itself stays"
    erased = (result == -1).all(axis=2)
    rows, columns = np.flatnonzero(erased.any(axis=1)), np.flatnonzero(erased.any(axis=0))
    assert erased[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
    assert erased.sum() == (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    np.testing.assert_array_equal(result[~erased], image[~erased])


def test_erasing_keeps_to_its_share_and_probability() -> None:
    np.random.seed(1)
    image = np.ones((40, 40, 1), np.float32)
    shares = np.array([1 - RandomErasing(p=0.3, area=(0.1, 0.2), ratio=(0.5, 2))(image).mean() for _ in range(500)])
    hits = shares[shares > 0]
    # sides are whole pixels: a side of at least 9 is off by half a pixel at most, so an area by about 1/9
    assert hits.min() > 0.1 * (1 - 1 / 8)
    assert hits.max() < 0.2 * (1 + 1 / 8)
    assert abs(len(hits) / 500 - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 500)


WRONG = [
    lambda: RandomFlipHorizontal(1.5),
    lambda: RandomCrop(-1),
    lambda: Normalize(0, 0),
    lambda: Normalize([0, 0], 1)(picture(2, 2, 3)),
    lambda: RandomErasing(p=2),
    lambda: RandomErasing(area=(0.5, 0.1)),
]


@pytest.mark.parametrize("call", WRONG)
def test_senseless_arguments_are_refused_in_one_line(call) -> None:
    with pytest.raises(
        ValueError, match=r"^(RandomFlipHorizontal|RandomCrop|Normalize|RandomErasing): .*wanted|channels last"
    ) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_transform_is_to_be_filled_in() -> None:
    with pytest.raises(NotImplementedError, match=r"Transform\.__call__"):
        ndl.data.Transform()(picture(1, 1, 1))
