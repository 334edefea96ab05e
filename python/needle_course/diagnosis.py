"""Says how a result differs from what was wanted, and which mistake usually looks like that.

The checks of all stages compare through `difference`, so plain pytest shows the same text as `needle-course check`.
A pattern below is a function that gives a sentence when the numbers show it, else None; the first sentence is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

LOOKS_LIKE = "looks like: "
LARGEST_FACTOR = 10_000  # of a single number: to six digits, every ratio of a million is a whole one
WRONG_TYPE = "a number or an array of another type came in on the way: keep the type of the inputs"


def difference(got: Any, want: Any, bound: Any = 0.0, dtype: Any = None) -> str | None:
    """None if got has want's shape and is nowhere further from it than `bound`, else a few lines on how it differs.

    got and want are arrays, numbers, or anything with a `numpy()` method; two NaN, or two equal infinities, agree.
    The bound is a number, or an array of one for every entry. With a dtype, got must be of that type, too.
    """
    got, want = as_array(got), as_array(want)
    if got.shape != want.shape:
        head = f"got shape {got.shape} ({got.dtype}), wanted shape {want.shape}"
        return told(head, first(SHAPE_PATTERNS, Pair(got, want, bound)))
    if dtype is not None and got.dtype != np.dtype(dtype):
        return told(f"got dtype {got.dtype}, wanted {np.dtype(dtype)}; shape {got.shape} is right", WRONG_TYPE)
    if got.dtype.kind not in "biuf" or want.dtype.kind not in "biuf":
        return None if np.array_equal(got, want) else f"got {got!r}, wanted {want!r}"
    pair = Pair(got.astype(np.float64), want.astype(np.float64), bound)
    if pair.right.all():
        return None
    head = f"{count_of_wrong(pair)}; shape {got.shape}, {got.dtype}\n{worst_entry(pair)}"
    return told(head, first(VALUE_PATTERNS, pair))


def as_array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


class Pair(NamedTuple):
    """What came and what was wanted, of the same shape where values are compared, and how far apart they may be."""

    got: np.ndarray
    want: np.ndarray
    bound: Any

    @property
    def right(self) -> np.ndarray:
        """Where the two agree."""
        with np.errstate(invalid="ignore"):
            near = np.abs(self.got - self.want) <= self.bound
        return near | (self.got == self.want) | (np.isnan(self.got) & np.isnan(self.want))

    def alike(self, got: np.ndarray, want: np.ndarray) -> bool:
        """Whether two arrays agree well enough to recognise a pattern by: to the bound, or to 4 digits."""
        if got.shape != want.shape or got.size == 0:
            return False
        with np.errstate(invalid="ignore"):
            return bool(np.all(np.abs(got - want) <= max(np.max(self.bound), 1e-4 * np.abs(want).max())))


def told(head: str, suspicion: str | None) -> str:
    return f"{head}\n{LOOKS_LIKE}{suspicion}" if suspicion else head


def first(patterns: list[Callable[[Pair], str | None]], pair: Pair) -> str | None:
    with np.errstate(all="ignore"):
        return next((sentence for pattern in patterns if (sentence := pattern(pair))), None)


def count_of_wrong(pair: Pair) -> str:
    wrong, size = int((~pair.right).sum()), pair.got.size
    return f"{wrong} of {size} {'entries' if size != 1 else 'entry'} off by more than {np.max(pair.bound):.2g}"


def worst_entry(pair: Pair) -> str:
    """The entry that is furthest off, with its index; what is not a number counts as infinitely far."""
    with np.errstate(invalid="ignore"):
        distance = np.where(pair.right, 0.0, np.nan_to_num(np.abs(pair.got - pair.want), nan=np.inf, posinf=np.inf))
    index = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))
    got, want = float(pair.got[index]), float(pair.want[index])
    place = f"worst at [{', '.join(map(str, index))}]" if index else "it"
    ratio = f", ratio {got / want:.4g}" if want != 0 and np.isfinite(got) and np.isfinite(want) else ""
    return f"{place}: got {got:.7g}, wanted {want:.7g}{ratio}"


# ---- patterns of shapes ---------------------------------------------------------------------------------------------


def summed_too_little(pair: Pair) -> str | None:
    """The gradient still has axes that a broadcast made."""
    got, want = pair.got, pair.want
    axes = stretched_axes(want.shape, got.shape)
    if not axes or got.size <= want.size:
        return None
    right = pair.alike(got.sum(axis=axes).reshape(want.shape).astype(float), want.astype(float))
    return (
        f"a sum over axes {axes} is missing: they were broadcast on the way forward, so they are added up on the way "
        f"back" + (" (summed, your values are right)" if right else "")
    )


def stretched_axes(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of `large` along which an array of shape `small` would be copied; () if it cannot be broadcast so."""
    if len(small) > len(large):
        return ()
    padded = (1,) * (len(large) - len(small)) + small
    if any(a not in (1, b) for a, b in zip(padded, large)):
        return ()
    return tuple(i for i, (a, b) in enumerate(zip(padded, large)) if a != b or i < len(large) - len(small))


def summed_too_much(pair: Pair) -> str | None:
    if pair.got.size < pair.want.size and stretched_axes(pair.got.shape, pair.want.shape):
        return "an axis is gone or has become 1: reduced over too many axes, or not broadcast back"
    return None


def axes_turned_round(pair: Pair) -> str | None:
    shape, want = pair.got.shape, pair.want.shape
    if sorted(shape) != sorted(want):
        return None
    for i, j in itertools.combinations(range(len(shape)), 2):
        if pair.want.swapaxes(i, j).shape == shape:
            same = pair.alike(pair.got.astype(float), pair.want.swapaxes(i, j).astype(float))
            return f"axes {i} and {j} are swapped: transposed" + (" (the values are right)" if same else "")
    return "the axes are in another order"


def not_reshaped(pair: Pair) -> str | None:
    if pair.got.size != pair.want.size:
        return None
    same = pair.alike(pair.got.reshape(pair.want.shape).astype(float), pair.want.astype(float))
    return (
        "the values are right, only the shape is not: reshape them" if same else "as many entries, arranged otherwise"
    )


def one_too_few_or_many(pair: Pair) -> str | None:
    if pair.got.ndim != pair.want.ndim:
        return f"{pair.got.ndim} axes instead of {pair.want.ndim}"
    off = [axis for axis, (a, b) in enumerate(zip(pair.got.shape, pair.want.shape)) if a != b]
    if len(off) == 1 and abs(pair.got.shape[off[0]] - pair.want.shape[off[0]]) == 1:
        return f"one too {'few' if pair.got.shape < pair.want.shape else 'many'} along axis {off[0]}: off by one"
    return None


SHAPE_PATTERNS: list[Callable[[Pair], str | None]] = [
    summed_too_little,
    axes_turned_round,
    not_reshaped,
    summed_too_much,
    one_too_few_or_many,
]


# ---- patterns of values ---------------------------------------------------------------------------------------------


def not_a_number(pair: Pair) -> str | None:
    bad = ~np.isfinite(pair.got) & np.isfinite(pair.want)
    if not bad.any():
        return None
    where = "all entries are" if bad.all() else f"{int(bad.sum())} of {bad.size} entries are"
    return f"{where} nan or inf: exp of a large number overflows (take the largest off first), log or 1/x of 0 too"


def all_zero(pair: Pair) -> str | None:
    if pair.got.any() or not pair.want.any():
        return None
    return "all entries are 0: nothing was written, or nothing flows back"


def constant_factor(pair: Pair) -> str | None:
    got, want = pair.got, pair.want
    if got.size < 2 or not want.any() or not got.any():
        return None
    ratio = float((got * want).sum() / (want * want).sum())
    if not np.isfinite(ratio) or abs(ratio) < 1e-9 or not pair.alike(got / ratio, want):
        return None
    if abs(ratio + 1) < 1e-3:
        return "every sign is flipped: a minus is missing or one too many"
    return f"every entry is {ratio:.4g} times what it should be{origin_of(ratio, got.shape)}"


def origin_of(ratio: float, shape: tuple[int, ...]) -> str:
    """Where a factor may come from: an extent of the result, or a number that is often forgotten."""
    for number, name in extents(shape):
        if abs(ratio * number - 1) < 1e-3:
            return f", which is 1/{number} ({name}): averaged where a sum is wanted, or divided twice"
        if abs(ratio / number - 1) < 1e-3:
            return f" ({name}): summed where a mean is wanted, or counted once per entry"
    if abs(ratio - 2) < 1e-3:
        return ": something is added twice"
    if abs(ratio - 0.5) < 1e-3:
        return ": half of it is missing, or a 2 was divided out"
    return ": a factor is missing or one too many"


def extents(shape: tuple[int, ...]) -> Iterator[tuple[int, str]]:
    for axis, extent in enumerate(shape):
        if extent > 2:
            yield extent, f"the extent of axis {axis}"
    if len(shape) > 1 and np.prod(shape) > 2:
        yield int(np.prod(shape)), "the number of entries"


def constant_offset(pair: Pair) -> str | None:
    offset = pair.got - pair.want
    if offset.size < 3 or not pair.alike(offset, np.full_like(offset, offset.flat[0])):
        return None
    return f"every entry is off by the same {offset.flat[0]:+.4g}: a term is missing, or one too many"


def transposed(pair: Pair) -> str | None:
    for i, j in itertools.combinations(range(pair.got.ndim), 2):
        other = pair.want.swapaxes(i, j)
        if other.shape == pair.got.shape and pair.alike(pair.got, other) and not pair.alike(other, pair.want):
            return f"axes {i} and {j} are swapped: transposed"
    return None


def read_in_another_order(pair: Pair) -> str | None:
    other = pair.want.T.reshape(pair.got.shape)
    if pair.got.ndim > 1 and pair.alike(pair.got, other):
        return "rows and columns are mixed up: the numbers were read in storage order; strides were not followed"
    return None


def reversed_along(pair: Pair) -> str | None:
    for axis in range(pair.got.ndim):
        if pair.alike(pair.got, np.flip(pair.want, axis)):
            return f"axis {axis} runs the other way round"
    return None


def shifted_by_one(pair: Pair) -> str | None:
    for axis, extent in enumerate(pair.got.shape):
        got, want = np.moveaxis(pair.got, axis, 0), np.moveaxis(pair.want, axis, 0)
        if extent > 2 and (pair.alike(got[1:], want[:-1]) or pair.alike(got[:-1], want[1:])):
            return f"everything is shifted by one along axis {axis}: off by one"
    return None


def only_one_end(pair: Pair) -> str | None:
    """Wrong at the first or the last index of an axis only: the bound of a loop."""
    for axis, extent in enumerate(pair.got.shape):
        right = np.moveaxis(pair.right, axis, 0)
        if extent > 2 and right[:-1].all():
            return f"right but for the last index along axis {axis}: the bound of a loop, or a short last batch"
        if extent > 2 and right[1:].all():
            return f"right but for the first index along axis {axis}: where a loop or a state begins"
    return None


def from_some_index_on(pair: Pair) -> str | None:
    for axis, extent in enumerate(pair.got.shape):
        wrong = np.asarray(~np.moveaxis(pair.right, axis, 0).reshape(extent, -1).all(axis=1))
        start = int(wrong.argmax())
        if extent > 3 and start > 0 and wrong[start:].all():
            return (
                f"right up to index {start - 1} along axis {axis}, wrong from there on: the end of a loop, or a state"
            )
    return None


def signs_of_some(pair: Pair) -> str | None:
    if pair.alike(np.abs(pair.got), np.abs(pair.want)):
        return "the sizes are right, some signs are not"
    return None


def factor_per_slice(pair: Pair) -> str | None:
    """Each row (or column, …) has a factor of its own."""
    ratio = np.where(pair.want == 0, np.nan, pair.got / pair.want)
    for axis, extent in enumerate(ratio.shape):
        spread = np.nanmax(ratio, axis=axis) - np.nanmin(ratio, axis=axis) if not np.isnan(ratio).all() else np.inf
        if extent > 1 and ratio.ndim > 1 and np.all(np.abs(spread) < 1e-3 * np.nanmax(np.abs(ratio))):
            return (
                f"along axis {axis} all entries are off by one factor: a scale or a normalisation over the wrong axis"
            )
    return None


def another_function(pair: Pair) -> str | None:
    got, want = pair.got, pair.want
    if got.size < 2:
        return None
    functions = {
        "the square of": want**2,
        "the square root of": np.sqrt(want),
        "one over": 1 / want,
        "the exponential of": np.exp(want),
        "the logarithm of": np.log(want),
        "one minus": 1 - want,
        "the sizes without signs of": np.abs(want),
    }
    names = [name for name, value in functions.items() if np.isfinite(value).all() and pair.alike(got, value)]
    return f"it is {names[0]} what is wanted" if names else None


def in_other_places(pair: Pair) -> str | None:
    if pair.got.size > 2 and pair.alike(np.sort(pair.got, axis=None), np.sort(pair.want, axis=None)):
        return "the right numbers in the wrong places: an order, an index or a stride"
    return None


def nearly_right(pair: Pair) -> str | None:
    scale = np.abs(pair.want).max()
    if np.abs(pair.got - pair.want).max() > 1e-2 * scale:
        return None
    return "nearly right: a small constant (an eps), a missing correction, or a less precise type on the way"


def one_number(pair: Pair) -> str | None:
    """Of a single number only its ratio to the right one tells anything."""
    if pair.got.size != 1 or not pair.want.all() or not np.isfinite([*pair.got.flat, *pair.want.flat]).all():
        return None
    ratio = float(pair.got.flat[0] / pair.want.flat[0])
    whole = round(ratio)
    if abs(ratio + 1) < 1e-6:
        return "the sign is flipped: a minus is missing or one too many"
    if 1 < whole <= LARGEST_FACTOR and abs(ratio - whole) < 1e-6 * whole:
        return f"it is {whole} times what it should be: a sum where a mean is wanted, or something added {whole} times"
    if 1 / LARGEST_FACTOR <= ratio < 0.6 and abs(1 / ratio - round(1 / ratio)) < 1e-6 / ratio:
        return f"it is 1/{round(1 / ratio)} of what it should be: a mean where a sum is wanted, or divided twice"
    return None


VALUE_PATTERNS: list[Callable[[Pair], str | None]] = [
    not_a_number,
    all_zero,
    constant_factor,
    one_number,
    constant_offset,
    transposed,
    reversed_along,
    read_in_another_order,
    shifted_by_one,
    only_one_end,
    signs_of_some,
    from_some_index_on,
    another_function,
    in_other_places,
    factor_per_slice,
    nearly_right,
]


# ---- what an exception says -----------------------------------------------------------------------------------------

EXCEPTIONS = [  # a piece of the message, what it usually means
    ("overflow encountered", "an exp or a power grew beyond the type: take the largest number off before exp"),
    ("divide by zero", "a division by 0, or log of 0"),
    ("invalid value encountered", "0/0, inf - inf or log of a negative number on the way"),
    ("object is not callable", "a name means something else here: a value where a function is expected"),
    ("'NoneType'", "a function returns nothing: is its `return` missing?"),
    ("maximum recursion depth", "a recursion that does not end, or one too deep: use a stack of your own"),
    ("must be Tensors", "NumPy arrays where Tensors are wanted: use needle's operators in a gradient"),
    ("unexpected keyword argument", "the signature was changed: keep the one of the starter"),
]


def suspected_from_exception(kind: str, message: str) -> str | None:
    """What an exception of this class name and message usually comes from, or None."""
    if kind == "AssertionError":
        return None
    return next((meaning for piece, meaning in EXCEPTIONS if piece in message), None)
