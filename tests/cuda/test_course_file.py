"""The course's CUDA file, emulated: every kernel equals NumPy, and wrong arguments never reach a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import pytest

BINARY = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "eq": np.equal,
    "ge": np.greater_equal,
}
UNARY = {"log": np.log, "exp": np.exp, "tanh": np.tanh}
SIZES = (1, 31, 256, 257, 1000)  # one thread, less than a warp, a block, one more, several blocks with threads to spare
FEW_ULPS = 8 * np.finfo(np.float32).eps  # the device's library is allowed a few units in the last place

params = pytest.mark.parametrize


@pytest.fixture(params=["fast", pytest.param("check", marks=pytest.mark.slow)])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return request.getfixturevalue("emulator" if request.param == "fast" else "checking_emulator")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats with a nan and infinities among them."""
    array = np.random.RandomState(seed).randint(-8, 9, shape).astype(np.float32) / 4
    array.flat[:3] = [np.nan, np.inf, -np.inf]
    return array


def finite(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(0.5, 2, shape).astype(np.float32)


def up(module: ModuleType, array: np.ndarray) -> object:
    handle = module.Array(array.size)
    module.from_numpy(np.ascontiguousarray(array), handle)
    return handle


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def down(module: ModuleType, handle: object, shape: Sequence[int]) -> np.ndarray:
    return module.to_numpy(handle, tuple(shape), strides_of(shape), 0)


# ---- element by element ---------------------------------------------------------------------------------------------


@params("size", SIZES)
@params("name", BINARY)
def test_binary_and_scalar_kernels(module: ModuleType, name: str, size: int) -> None:
    a, b, out = finite(size, seed=1), finite(size, seed=2), module.Array(size)
    b[::3] = a[::3]
    getattr(module, f"ewise_{name}")(up(module, a), up(module, b), out)
    np.testing.assert_allclose(down(module, out, (size,)), BINARY[name](a, b), rtol=FEW_ULPS)
    getattr(module, f"scalar_{name}")(up(module, a), float(a[0]), out)
    np.testing.assert_allclose(down(module, out, (size,)), BINARY[name](a, a[0]), rtol=FEW_ULPS)


@params("name", UNARY)
def test_unary_kernels(module: ModuleType, name: str) -> None:
    a, out = finite(1000), module.Array(1000)
    getattr(module, f"ewise_{name}")(up(module, a), out)
    np.testing.assert_allclose(down(module, out, (1000,)), UNARY[name](a.astype(np.float64)), rtol=FEW_ULPS, atol=1e-7)


def test_scalar_power(module: ModuleType) -> None:
    a, out = finite(1000), module.Array(1000)
    module.scalar_power(up(module, a), -2.5, out)
    np.testing.assert_allclose(down(module, out, (1000,)), a.astype(np.float64) ** -2.5, rtol=4 * FEW_ULPS)


def test_nan_wins_a_maximum_from_either_side(module: ModuleType) -> None:
    a, b, out = np.float32([np.nan, 1, np.nan, 3]), np.float32([0, np.nan, np.nan, 2]), module.Array(4)
    module.ewise_maximum(up(module, a), up(module, b), out)
    np.testing.assert_array_equal(down(module, out, (4,)), np.maximum(a, b))
    module.reduce_max(up(module, np.float32([1, np.nan, 2, 3, 4, 5])), largest := module.Array(2), 3)
    np.testing.assert_array_equal(down(module, largest, (2,)), np.float32([np.nan, 5]))


def test_an_operand_may_be_the_result(module: ModuleType) -> None:
    a = up(module, np.arange(600, dtype=np.float32))
    module.ewise_add(a, a, a)
    np.testing.assert_array_equal(down(module, a, (600,)), 2 * np.arange(600))


# ---- strided views --------------------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda a: a.transpose(2, 0, 1),
    "reversed": lambda a: a[::-1, ::-1, ::-1],
    "steps": lambda a: a[1::2, ::-2, 1:4],
    "repeated": lambda a: np.broadcast_to(a[:, None, :1, 3:4], (4, 3, 1, 2)),
    "one element": lambda a: a[2:3, 1:2, 0:1],
    "a number": lambda a: a[2, 1, 0, ...],
    "eight axes": lambda a: a[None, :, None, ::-1, None, :, None, None],
}


def described(view: np.ndarray, base: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of a view, counted in elements."""
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    return view.shape, tuple(stride // base.itemsize for stride in view.strides), offset


@params("view", VIEWS)
def test_compact(module: ModuleType, view: str) -> None:
    a = numbers(4, 5, 6)
    wanted = VIEWS[view](a)
    out = module.Array(wanted.size)
    module.compact(up(module, a), out, *described(wanted, a))
    np.testing.assert_array_equal(down(module, out, wanted.shape), wanted)
    np.testing.assert_array_equal(module.to_numpy(up(module, a), *described(wanted, a)), wanted)


@params("view", [view for view in VIEWS if view != "repeated"])
def test_setitem(module: ModuleType, view: str) -> None:
    a = numbers(4, 5, 6)
    target = VIEWS[view](a)
    values, handle = finite(*target.shape, seed=3), up(module, a)
    where = described(target, a)
    module.ewise_setitem(up(module, values), handle, *where)
    target[...] = values
    np.testing.assert_array_equal(down(module, handle, a.shape), a)
    module.scalar_setitem(target.size, 7.0, handle, *where)
    target[...] = 7
    np.testing.assert_array_equal(down(module, handle, a.shape), a)


def test_setitem_from_itself_reads_before_it_writes(module: ModuleType) -> None:
    a = up(module, np.arange(600, dtype=np.float32))
    module.ewise_setitem(a, a, (600,), (-1,), 599)
    np.testing.assert_array_equal(down(module, a, (600,)), np.arange(600)[::-1])


# ---- products and reductions ----------------------------------------------------------------------------------------


@params("m, n, p", [(1, 1, 1), (16, 16, 16), (17, 33, 5), (5, 1, 40), (1, 70, 1), (2, 0, 3)])
def test_matmul(module: ModuleType, m: int, n: int, p: int) -> None:
    a, b, out = finite(m, n, seed=1), finite(n, p, seed=2), module.Array(m * p)
    module.fill(out, np.nan)  # whatever was there must not show
    module.matmul(up(module, a), up(module, b), out, m, n, p)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(down(module, out, (m, p)), wanted, rtol=(n + 1) * np.finfo(np.float32).eps)


@params("runs, length", [(1, 1), (1, 1000), (300, 7), (257, 1)])
def test_reductions(module: ModuleType, runs: int, length: int) -> None:
    a, out = finite(runs, length) - 1, module.Array(runs)
    module.reduce_sum(up(module, a), out, length)
    bound = length * np.finfo(np.float32).eps * np.abs(a).sum(1).max()
    np.testing.assert_allclose(down(module, out, (runs,)), a.astype(np.float64).sum(1), rtol=0, atol=bound)
    module.reduce_max(up(module, a), out, length)
    np.testing.assert_array_equal(down(module, out, (runs,)), a.max(1))


# ---- what never reaches a kernel ------------------------------------------------------------------------------------


def test_nothing_is_launched_for_no_elements(module: ModuleType) -> None:
    """A grid of no blocks is an error of CUDA's."""
    none, out = module.Array(0), module.Array(6)
    module.fill(none, 1.0)
    module.compact(none, none, (0, 3), (3, 1), 0)
    module.ewise_setitem(none, out, (2, 0), (3, 1), 0)
    module.scalar_setitem(0, 1.0, out, (0,), (1,), 0)
    module.ewise_add(none, none, none)
    module.scalar_mul(none, 2.0, none)
    module.ewise_exp(none, none)
    module.matmul(none, none, none, 0, 0, 0)
    module.reduce_sum(none, none, 5)
    module.reduce_max(none, none, 5)
    assert module.to_numpy(none, (0, 2), (2, 1), 0).shape == (0, 2)
    module.matmul(none, none, out, 2, 0, 3)
    np.testing.assert_array_equal(down(module, out, (6,)), np.zeros(6))


REFUSED: dict[str, Callable[[ModuleType], object]] = {
    "compact: 9 axes, wanted at most 8": lambda m: m.compact(m.Array(1), m.Array(1), (1,) * 9, (0,) * 9, 0),
    "ewise_setitem: 9 axes": lambda m: m.ewise_setitem(m.Array(1), m.Array(1), (1,) * 9, (0,) * 9, 0),
    "scalar_setitem: 9 axes": lambda m: m.scalar_setitem(1, 1.0, m.Array(1), (1,) * 9, (0,) * 9, 0),
    "Array: size -1 is negative": lambda m: m.Array(-1),
    "reach outside the storage of 4": lambda m: m.compact(m.Array(4), m.Array(4), (4,), (1,), 1),
    "offset 3 reach outside": lambda m: m.scalar_setitem(5, 0.0, m.Array(4), (5,), (-1,), 3),
    "ewise_mul: b has 3 elements, wanted 4": lambda m: m.ewise_mul(m.Array(4), m.Array(3), m.Array(4)),
    "matmul: a has 4 elements, wanted 6": lambda m: m.matmul(m.Array(4), m.Array(6), m.Array(4), 2, 3, 2),
    "matmul: out shares memory": lambda m: m.matmul(a := m.Array(4), m.Array(4), a, 2, 2, 2),
    "reduce_max: runs of 0": lambda m: m.reduce_max(m.Array(0), m.Array(2), 0),
    "from_numpy: the NumPy array has 3": lambda m: m.from_numpy(np.zeros(3, np.float32), m.Array(4)),
    "is too large": lambda m: m.compact(m.Array(1), m.Array(1), (2**62, 4), (0, 0), 0),
}


@params("message", REFUSED)
def test_wrong_arguments_are_refused(module: ModuleType, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        REFUSED[message](module)


@params("size", [2**40, 2**61, 2**63 - 1])
def test_too_much_memory_is_a_memory_error(module: ModuleType, size: int) -> None:
    with pytest.raises(MemoryError):
        module.Array(size)


def test_an_array_whose_init_never_ran_is_empty(module: ModuleType) -> None:
    assert module.Array.__new__(module.Array) is not None


# ---- large ----------------------------------------------------------------------------------------------------------


def test_a_view_of_more_than_2_to_the_31_elements_U060(emulator: ModuleType) -> None:
    """Sizes, positions and strides past 32 bits; by repeated elements, so that no memory is needed."""
    a = np.arange(8, dtype=np.float32)
    shape, strides = (2**31 + 8, 8), (0, 1)  # row 2^31 + 7 of it is still a
    with pytest.raises(MemoryError):
        emulator.Array(2**40 + 8)
    last = emulator.Array(8)
    emulator.compact(up(emulator, a), last, (1, 8), strides, 0)
    np.testing.assert_array_equal(emulator.to_numpy(last, (8,), (1,), 0), a)
    with pytest.raises(ValueError, match="out has 8 elements, wanted 17179869248"):
        emulator.compact(up(emulator, a), last, shape, strides, 0)


@pytest.mark.slow
def test_fill_and_read_past_2_to_the_31_U060(emulator: ModuleType) -> None:
    size = 2**31 + 8
    try:
        large = emulator.Array(size)
    except MemoryError:
        pytest.skip("no 8 GB here")
    emulator.scalar_setitem(8, 1.0, large, (8,), (1,), size - 8)
    eight = emulator.Array(8)
    emulator.compact(large, eight, (8,), (1,), size - 8)
    total = emulator.Array(1)
    emulator.reduce_sum(eight, total, 8)
    assert emulator.to_numpy(total, (1,), (1,), 0).tolist() == [8.0]
