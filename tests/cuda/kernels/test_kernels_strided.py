"""Copies between device storage and views equal NumPy's, over layouts and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, some
from tests.kernel_reference import DTYPES, as_view, assert_close

params = pytest.mark.parametrize

# of a storage of 120 elements: (shape, strides, offset)
VIEWS = {
    "rank 0": ((), (), 7),
    "all": ((120,), (1,), 0),
    "compact": ((4, 5, 6), (30, 6, 1), 0),
    "transposed": ((6, 5, 4), (1, 6, 30), 0),
    "stepped": ((2, 3, 2), (60, 12, 3), 4),
    "reversed": ((4, 5, 6), (-30, -6, -1), 119),
    "extents of 1": ((1, 6, 1, 20), (999, 20, -999, 1), 0),
    "nothing": ((2, 0, 3), (5, 5, 5), 0),
    "six axes": ((2, 2, 2, 2, 2, 2), (1, 2, 4, 8, 16, 32), 3),
    "eight axes": ((1, 2, 1, 3, 1, 2, 1, 2), (0, 60, 0, -7, 0, 2, 0, 20), 30),
}
LARGE = [  # transposed by tiles of 32 x 32
    ((70, 33), (1, 0)),
    ((32, 64), (1, 0)),
    ((3, 40, 50), (0, 2, 1)),
    ((40, 3, 35), (2, 1, 0)),
    ((2, 33, 5, 34), (3, 2, 0, 1)),
]
REPEATING = {"broadcast": ((3, 4, 6), (0, 6, 1), 10), "windows": ((5, 3), (1, 1), 2)}


@params("dtype", DTYPES)
@params("layout", [*VIEWS, *REPEATING])
def test_reads(kernels: Kernels, layout: str, dtype: str) -> None:
    storage, view = some(120, dtype), (VIEWS | REPEATING)[layout]
    wanted = as_view(storage, *view).copy()
    assert_close(kernels.run("compact", storage, *view, out=(view[0], dtype)), wanted)
    assert_close(kernels.to_numpy(kernels.up(storage), *view), wanted)


@params("dtype", DTYPES)
@params("layout", VIEWS)
def test_writes(kernels: Kernels, layout: str, dtype: str) -> None:
    view, storage, wanted = VIEWS[layout], kernels.up(some(120, dtype)), some(120, dtype)
    values = some(view[0], dtype, seed=1)
    kernels.ewise_setitem(kernels.up(values), storage, *view)
    as_view(wanted, *view)[...] = values
    assert_close(kernels.down(storage), wanted)
    kernels.scalar_setitem(values.size, 1, storage, *view)
    as_view(wanted, *view)[...] = 1
    assert_close(kernels.down(storage), wanted)


@params("dtype", ["float32", "float64", "bool"])
@params(
    ("shape", "axes"),
    [
        ((70, 33), (1, 0)),
        ((32, 64), (1, 0)),
        ((3, 40, 50), (0, 2, 1)),
        ((40, 3, 35), (2, 1, 0)),
        ((2, 33, 5, 34), (3, 2, 0, 1)),
    ],
)
def test_large_transposed_views(kernels: Kernels, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    a = some(shape, dtype)
    view = a.transpose(axes)
    strides = tuple(stride // a.itemsize for stride in view.strides)
    assert_close(kernels.run("compact", a, view.shape, strides, 0, out=(view.shape, dtype)), view)
    flipped, last = view[..., ::-1], (view.shape[-1] - 1) * strides[-1]
    got = kernels.run("compact", a, view.shape, (*strides[:-1], -strides[-1]), last, out=(view.shape, dtype))
    assert_close(got, flipped)


@params("layout", REPEATING)
def test_of_writes_to_one_element_the_last_wins(kernels: Kernels, layout: str) -> None:
    view, storage, wanted = REPEATING[layout], kernels.up(some(120, "float32")), some(120, "float32")
    values = some(view[0], "float32", seed=1)
    kernels.ewise_setitem(kernels.up(values), storage, *view)
    for place, position in zip(np.ndindex(view[0]), as_view(np.arange(120), *view).ravel()):
        wanted[position] = values[place]
    assert_close(kernels.down(storage), wanted)
    kernels.scalar_setitem(values.size, 5, storage, *view)
    wanted[np.unique(as_view(np.arange(120), *view))] = 5
    assert_close(kernels.down(storage), wanted)


def test_an_array_set_to_itself_reversed_is_read_before_it_is_written(kernels: Kernels) -> None:
    a = some(1000, "int64")
    storage = kernels.up(a)
    kernels.ewise_setitem(storage, storage, (1000,), (-1,), 999)
    assert_close(kernels.down(storage), a[::-1])


def test_axes_that_one_stride_serves_count_as_one(kernels: Kernels) -> None:
    """A kernel takes eight axes; 64 that eight can describe are no more than eight."""
    a = np.arange(6, dtype="float32")
    shape, strides = (1,) * 61 + (2, 1, 3), (7,) * 61 + (1, 0, 2)
    assert kernels.run("compact", a, shape, strides, 0, out=((6,), "float32")).tolist() == [0, 2, 4, 1, 3, 5]
    storage, nine = kernels.Buffer(2 * 3**9, "uint8"), (2,) * 9
    with pytest.raises(
        ValueError,
        match=r"compact: a view of shape .* wanted one that 8 axes can describe; reorder fewer axes at a time",
    ):
        kernels.compact(storage, kernels.Buffer(512, "uint8"), nine, tuple(3**axis for axis in range(9)), 0)


def test_views_that_reach_outside_are_refused(kernels: Kernels) -> None:
    storage, out = kernels.up(some(12, "float32")), kernels.Buffer(6, "float32")
    for view in [((6,), (3,), 0), ((6,), (1,), 7), ((6,), (-1,), 4), ((6,), (2**61,), 0), ((2, 3), (1,), 0)]:
        with pytest.raises(ValueError, match="compact: shape"):
            kernels.compact(storage, out, *view)
        with pytest.raises(ValueError, match="ewise_setitem: shape"):
            kernels.ewise_setitem(out, storage, *view)
        with pytest.raises(ValueError, match="scalar_setitem: shape"):
            kernels.scalar_setitem(6, 0, storage, *view)


@params("dtype", ["float32", "bool"])
@params("size", [10, 1 << 14, (9 << 20) + 3])
def test_copies_through_pinned_chunks_keep_every_byte(kernels: Kernels, dtype: str, size: int) -> None:
    a = np.arange(size).astype("uint8").astype(dtype)
    assert np.array_equal(kernels.down(kernels.up(a)), a)
