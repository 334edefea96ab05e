"""NDArray: the cases that went wrong elsewhere, and what the course promises of it."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from needle import backend_ndarray as nd
from needle import kernels
from needle.backend_ndarray import indexing
from needle.errors import DTypeError, ShapeError

from tests.chosen_device import devices

DEVICES = devices()


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


def same(got: nd.NDArray, want: Any) -> None:
    np.testing.assert_array_equal(got.numpy(), np.asarray(want))
    assert got.shape == np.shape(want)


# ---- indices and views ---------------------------------------------------------------------------------------------


def test_negative_and_clamped_indices_U053(device: Any) -> None:
    a = nd.arange(10, device=device)
    same(a[-2:], [8, 9])
    same(a[-1], [9])
    same(nd.arange(3, device=device)[1:9], [1, 2])
    same(a[7:3], np.empty(0))
    same(a[::-3], [9, 6, 3, 0])
    for outside in (10, -11):
        with pytest.raises(IndexError, match=f"index {outside} .* axis 0 of size 10"):
            a[outside]


def test_an_integer_keeps_its_axis(device: Any) -> None:
    a = nd.arange(12, device=device).reshape((3, 4))
    assert a[1, 2].shape == (1, 1)
    assert a[1].shape == (1, 4)
    assert a[..., -1].shape == (3, 1)
    assert a[:, None, 2].shape == (3, 1, 1)


@pytest.mark.parametrize("index", [(0, 0, 0), (..., 0, ...), 1.5, "a", True, [0, 1], slice(None, None, 0), slice("a")])
def test_other_indices_are_refused_by_name(device: Any, index: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="getitem: "):
        nd.zeros((2, 3), device=device)[index]


def test_slices_pass_through_process_slice(device: Any) -> None:
    class Spying(nd.NDArray):
        def process_slice(self, sl: slice, dim: int) -> slice:
            seen.append((sl, dim))
            return super().process_slice(sl, dim)

    seen: list = []
    a = Spying(np.zeros((4, 5)), device=device)
    assert a[1:-1, ::2].shape == (2, 3)
    assert seen == [(slice(1, -1), 0), (slice(None, None, 2), 1)]
    assert a.process_slice(slice(None, None, -2), 1) == slice(4, -1, -2)
    assert a.process_slice(slice(-2, 99), 0) == slice(2, 4, 1)


def test_views_share_memory_and_know_their_strides() -> None:
    a = nd.array(np.arange(24).reshape(2, 3, 4), device=DEVICES[0])
    views = [
        (a.permute((2, 0, 1)), (1, 12, 4)),
        (a.reshape((6, 4)), (4, 1)),
        (a[:, 1:, ::-2], (12, 4, -2)),
        (a[:1].broadcast_to((5, 3, 4)), (0, 4, 1)),
    ]
    for view, strides in views:
        assert view._handle.ptr() == a._handle.ptr()
        assert view.strides == strides


def test_a_view_of_a_transposed_array_multiplies_right_U056(device: Any) -> None:
    b = nd.arange(12, device=device).reshape((3, 4))
    same((b.T @ b)[0], [[80, 92, 104, 116]])


def test_reshape_of_any_view_and_minus_one_U058(device: Any) -> None:
    b = nd.arange(12, device=device).reshape((3, 4))
    same(b.T.reshape(12), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])
    assert b.reshape((-1, 2)).shape == (6, 2)
    assert nd.zeros((0, 3), device=device).reshape((-1, 3)).shape == (0, 3)
    for wrong in ((5, -1), (-1, -1), (7,), (-2, -6), (0, -1)):
        with pytest.raises(ValueError, match="reshape: cannot give 12 elements"):
            b.reshape(wrong)


def test_index_arithmetic_does_not_overflow_U060() -> None:
    """Two billion elements and more, on a stub that has no memory: only the numbers are looked at."""

    class Endless:
        size, dtype = 2**33 + 8, "float32"

    rows = 2**31 + 2
    a = nd.NDArray.make((rows, 4), device=nd.cpu_numpy(), handle=Endless())
    last = a[-2:, ::-1]
    assert a.is_compact() and a.size == 2**33 + 8
    assert last._offset == (rows - 2) * 4 + 3 and last.strides == (4, -1)
    assert a.reshape(-1).shape == (2**33 + 8,)
    assert a.permute((1, 0)).reshape((2, 2, rows)).strides == (2, 1, 4)
    assert indexing.compact_strides((2**20, 2**21, 2**22)) == (2**43, 2**22, 1)


def test_flat_writes_through_where_the_elements_are_evenly_spaced(device: Any) -> None:
    a = nd.zeros((4, 3), device=device)
    a.flat[5] += 7
    a[2:].flat[1] = 8
    same(a, [[0, 0, 0], [0, 0, 7], [0, 8, 0], [0, 0, 0]])


def test_compact_up_to_seven_axes(device: Any) -> None:
    a = np.arange(2**5 * 24, dtype="float32").reshape(2, 2, 2, 2, 2, 4, 6)
    b = nd.array(a, device=device).permute((6, 4, 2, 0, 1, 3, 5))
    assert not b.is_compact() and b.compact().is_compact()
    same(b.compact(), a.transpose((6, 4, 2, 0, 1, 3, 5)))


# ---- writing -------------------------------------------------------------------------------------------------------


def test_setitem_counts_elements_and_keeps_the_memory(device: Any) -> None:
    a = nd.zeros((3, 4), device=device)
    address = a._handle.ptr()
    a[1:3, ::2] = nd.arange(4, device=device)  # four elements, in order
    a[0] = [9, 8, 7, 6]
    same(a, [[9, 8, 7, 6], [0, 0, 1, 0], [2, 0, 3, 0]])
    assert a._handle.ptr() == address
    with pytest.raises(ShapeError, match=r"setitem: got an array of shape \(3,\) for \(3, 4\)"):
        a[...] = nd.ones((3,), device=device)


def test_setitem_reads_before_it_writes(device: Any) -> None:
    a = nd.arange(5, device=device)
    a[::-1] = a
    same(a, [4, 3, 2, 1, 0])
    a[1:] = a[:-1]
    same(a, [4, 4, 3, 2, 1])


@pytest.mark.parametrize("device", [device for device in DEVICES if device.wrappers], ids=str)
def test_setitem_reads_before_it_writes_through_other_handles(device: Any) -> None:
    memory = np.arange(6, dtype="float32")
    whole, part = nd.from_numpy(memory, device=device), nd.from_numpy(memory[2:], device=device)
    part[...] = whole[:4]
    same(whole, [0, 1, 0, 1, 2, 3])


# ---- element types -------------------------------------------------------------------------------------------------


def test_integer_division_and_powers_U065(device: Any) -> None:
    one = nd.array([1], dtype="int32", device=device)
    same(one / 2, np.array([0.5], "float32"))
    same(one / nd.array([2], dtype="int64", device=device), [0.5])
    same(nd.array([-7], dtype="int64", device=device) // 2, [-4])
    same(nd.array([-7], dtype="int64", device=device) % 4, [1])
    for attempt in (lambda: 2 ** nd.array([-1], dtype="int64", device=device), lambda: (one + one) ** -1):
        with pytest.raises(ValueError, match="negative integer powers"):
            attempt()


@pytest.mark.parametrize("dtype", ["float16", "complex64", object, "U3", "int8"])
def test_other_dtypes_are_refused_and_the_six_named(device: Any, dtype: Any) -> None:
    for attempt in (
        lambda: nd.array([1], dtype=dtype, device=device),
        lambda: nd.zeros((1,), dtype=dtype, device=device),
        lambda: nd.zeros((1,), device=device).astype(dtype),
        lambda: nd.from_numpy(np.ones(1).astype(dtype), device=device),
    ):
        with pytest.raises(DTypeError, match="bool, float32, float64, int32, int64, uint8"):
            attempt()


@pytest.mark.parametrize("values", [[2**24 + 1], [-(2**53) - 1], [2**63 - 1], np.array([2**64 - 1], "uint64")])
def test_integers_that_float32_would_blur_are_refused(device: Any, values: Any) -> None:
    with pytest.raises(ValueError, match="dtype="):
        nd.array(values, device=device)


def test_integers_that_float32_holds_become_float32(device: Any) -> None:
    a = nd.array([2**24, -(2**40), 3], device=device)
    assert a.dtype == "float32"
    assert a.tolist() == [2.0**24, -(2.0**40), 3.0]
    assert nd.array([2**24 + 1], dtype="int64", device=device).tolist() == [2**24 + 1]
    assert nd.array(nd.array([1], dtype="uint8", device=device)).dtype == "uint8"  # an NDArray keeps its type


def test_a_number_never_widens(device: Any) -> None:
    a = nd.ones((2,), device=device)
    for number in (2, 2.0, True, np.float64(2), np.int64(2), np.array(2.0)):
        assert (a * number).dtype == (number * a).dtype == "float32"
    small = nd.ones((2,), dtype="uint8", device=device)
    assert (small + 3).dtype == "uint8"
    assert (small + 3.0).dtype == "float32"
    for too_big in (256, -1):
        with pytest.raises(ValueError, match=f"add: {too_big} is out of range for uint8"):
            small + too_big


def test_bool_arithmetic_is_numpys(device: Any) -> None:
    a, b = (
        nd.array([True, True, False], dtype=bool, device=device),
        nd.array([True, False, False], dtype=bool, device=device),
    )
    assert (a + b).dtype == "bool" and (a + b).tolist() == [True, True, False]
    assert (a * b).tolist() == [True, False, False]
    assert (a + 1).dtype == "int64" and (a + 1).tolist() == [2, 2, 1]
    assert a.sum().dtype == "int64" and a.sum().tolist() == [2]
    assert a.mean().dtype == "float32"
    for attempt in (lambda: a - b, lambda: -a, lambda: a - True, lambda: True - a):
        with pytest.raises(TypeError, match="truth values"):
            attempt()


def test_a_float_is_compared_in_the_arrays_own_precision(device: Any) -> None:
    a = np.random.default_rng(0).random(20)
    assert (nd.array(a, device=device)[7] == a[7]).item() == 1.0


def test_nan_is_neither_less_nor_greater(device: Any) -> None:
    a = nd.array([1, math.nan, 2], device=device)
    same(a > 1, [0, 0, 1])
    same(a < 2, [1, 0, 0])
    same(a >= 1, [1, 0, 1])
    same(a <= a, [1, 0, 1])
    same(a != a, [0, 1, 0])


def test_max_and_argmax_of_nan_and_of_the_smallest_integer_U076(device: Any) -> None:
    a = nd.array([1, math.nan, 2], device=device)
    assert math.isnan(a.max().item()) and math.isnan(a.min().item())
    assert a.argmax().item() == a.argmin().item() == 1
    low = np.iinfo("int32").min
    assert nd.array([low, low], dtype="int32", device=device).max().item() == low
    assert nd.array([-5.0, -5.0], device=device).max().item() == -5.0
    assert nd.array([-math.inf], device=device).max().item() == -math.inf


# ---- reductions and products ---------------------------------------------------------------------------------------


def test_reduction_over_no_axes_is_the_input_U046(device: Any) -> None:
    a = nd.arange(6, device=device).reshape((2, 3))
    for reduced in (a.sum(axis=()), a.max(axis=()), a.mean(axis=())):
        same(reduced, a.numpy())


def test_full_reductions_have_shape_one(device: Any) -> None:
    a = nd.ones((2, 3), device=device)
    for reduce in ("sum", "max", "min", "mean", "prod", "argmax", "argmin", "any", "all", "var"):
        assert getattr(a, reduce)().shape == (1,)
        assert getattr(a, reduce)(keepdims=True).shape == (1, 1)
    assert nd.array(2.0, device=device).sum().shape == (1,)


def test_reductions_of_nothing(device: Any) -> None:
    a = nd.zeros((0, 3), device=device)
    same(a.sum(axis=0), [0, 0, 0])
    same(a.prod(axis=0), [1, 1, 1])
    assert a.max(axis=1).shape == (0,)
    for reduce in (a.max, a.min, a.argmax):
        with pytest.raises(ValueError, match=r"nothing to choose from in an array of shape \(0, 3\)"):
            reduce(axis=0)
    for axis in (2, -3, (0, 0)):
        with pytest.raises(ShapeError, match="sum: ax"):
            a.sum(axis=axis)


def test_a_long_sum_stays_accurate(device: Any) -> None:
    n = 2**22
    a = nd.full((n,), 0.1, device=device)
    assert abs(a.sum().item() - n * float(np.float32(0.1))) < 1e-5 * n  # one accumulator in float32 is off by 2e-2 n


@pytest.mark.parametrize("mode", kernels.MODES)
@pytest.mark.parametrize("m", [1, 7, 8, 9, 63, 65])
def test_products_of_every_size_in_both_modes_U061(device: Any, m: int, mode: str) -> None:
    rng = np.random.default_rng(m)
    for n, p in ((7, 8), (8, 16), (9, 65), (64, 64)):
        a, b = rng.standard_normal((m, n)), rng.standard_normal((n, p))
        with kernels.use(mode):
            got = nd.array(a, device=device) @ nd.array(b, device=device)
        np.testing.assert_allclose(got.numpy(), a @ b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("mode", kernels.MODES)
def test_batched_products_in_both_modes_U068(device: Any, mode: str) -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5)), rng.standard_normal((4, 5))
    with kernels.use(mode):
        for left, right in ((a, b), (a, c), (a[:1], b), (a[0], b), (a[:, None], b)):
            got = nd.array(left, device=device) @ nd.array(right, device=device)
            assert got.shape == np.matmul(left, right).shape
            np.testing.assert_allclose(got.numpy(), np.matmul(left, right), rtol=0, atol=1e-5)


def test_course_mode_multiplies_by_tiles_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    if not nd.cpu().enabled():
        pytest.skip("the native cpu backend is not built")
    tile = nd.cpu().__tile_size__
    sizes = []
    plain = kernels.device_kernel("matmul_tiled", "cpu", "float32")
    monkeypatch.setitem(
        kernels._plain, ("matmul_tiled", "cpu", "float32"), lambda *args: (sizes.append(args[3:]), plain(*args))
    )
    a = np.random.default_rng(0).standard_normal((2 * tile, tile))
    with kernels.use("course"):
        got = nd.array(a, device="cpu") @ nd.array(a.T, device="cpu")
        nd.ones((tile + 1, tile), device="cpu") @ nd.ones((tile, tile), device="cpu")
    with kernels.use("fast"):
        nd.array(a, device="cpu") @ nd.array(a.T, device="cpu")
    np.testing.assert_allclose(got.numpy(), a @ a.T, rtol=0, atol=1e-5)
    assert sizes == [(2 * tile, tile, 2 * tile)]


def test_a_wrong_product_names_both_shapes_U068(device: Any) -> None:
    for a, b in (
        ((2, 1), (3, 4)),
        ((2, 3), (2, 3)),
        ((2, 3, 4), (2, 3, 4)),
        ((3,), (4,)),
        ((2, 3, 4), (3, 4, 5)),
        ((), (2,)),
    ):
        with pytest.raises(ShapeError) as caught:
            nd.ones(a, device=device) @ nd.ones(b, device=device)
        assert str(caught.value).startswith(f"matmul: {a} @ {b}: ")


# ---- operands ------------------------------------------------------------------------------------------------------


def test_unequal_shapes_name_the_operator_and_both(device: Any) -> None:
    a, b = nd.ones((2, 3), device=device), nd.ones((1, 3), device=device)
    for name, attempt in (
        ("add", lambda: a + b),
        ("div", lambda: a / b),
        ("ge", lambda: a >= b),
        ("maximum", lambda: a.maximum(b)),
    ):
        with pytest.raises(ShapeError, match=rf"{name}: shapes \(2, 3\) and \(1, 3\)") as caught:
            attempt()
        assert isinstance(caught.value, AssertionError) and isinstance(caught.value, ValueError)


def test_a_numpy_array_on_either_side(device: Any) -> None:
    a, b = nd.arange(3, device=device), np.array([4, 5, 6], "float32")
    for got, want in ((a - b, [-4, -4, -4]), (b - a, [4, 4, 4]), (b / (a + 1), [4, 2.5, 2]), (b > a, [1, 1, 1])):
        assert isinstance(got, nd.NDArray) and got.device == device and got.dtype == "float32"
        same(got, want)
    same(b @ a, 17)
    assert (a + np.ones(3)).dtype == "float64"  # a NumPy array keeps its type
    with pytest.raises(ShapeError):
        a + np.ones(4)


@pytest.mark.parametrize("other", [None, "a", [1, 2, 3], {}, object()])
def test_other_operands_are_refused(device: Any, other: Any) -> None:
    a = nd.arange(3, device=device)
    for attempt in (lambda: a + other, lambda: other - a, lambda: a**other, lambda: a @ other, lambda: a > other):
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(TypeError, match="maximum: got"):
        a.maximum(other)
    assert (a == other) is False and (a != other) is True


def test_reflected_operators(device: Any) -> None:
    a = nd.array([1, 2], device=device)
    same(5 - a, [4, 3])
    same(1 / a, [1, 0.5])
    same(2**a, [2, 4])
    same(7 // a, [7, 3])
    same(-7 % a, [0, 1])


def test_a_negative_base_with_a_fraction_is_nan(device: Any) -> None:
    assert math.isnan((nd.array([-2.0], device=device) ** 0.5).item())


WRONG = {
    "array": [("a",), ([[1], [2, 3]],), (None,), (object(),), ([1], "float16"), ([1], None, "gpu")],
    "zeros": [("a",), (2.5,), ((-1,),), (10**30,), ((2,), "x"), (b"ab",), ({1: 2},)],
    "arange": [("a",), (0, 1, 0)],
    "linspace": [(0, "a"), (0, 1, -1), (0, 1, 2.5)],
    "eye": [("a",), (-1,)],
    "reshape": [("a",), (7,), (None,), ((2.0, 3.0),), (b"\x02\x03",), ({2, 3},)],
    "broadcast_to": [("a",), (None,), ((3, 2),), ((2,),)],
    "permute": [((0,),), ((0, 0),), (3,), ("ab",)],
    "swapaxes": [(0, 2), (0, "a"), (0, None)],
    "expand_dims": [(5,), ("a",), ((0, 0),)],
    "squeeze": [(0,), (9,)],
    "as_strided": [((2,), (1, 1)), (3.5, 1), ((2,), "a")],
    "sum": [(2,), ("a",), ((0, 0),), (1.5,), (b"\x00",)],
    "max": [(2,), ("a",)],
    "mean": [(2,)],
    "argmax": [(2,)],
    "var": [(0, False, "a")],
    "maximum": [("a",), (None,), ([1, 2],)],
    "add": [("a",), (None,)],
    "matmul": [(3,), (None,)],
    "concatenate": [(0,)],
    "split": [(4,), ("a",), (0,)],
    "tile": [("a",), (-1,)],
    "repeat": [("a",), (-1,), (1.5,)],
    "flip": [(2,), ("a",)],
    "pad": [(1,), (((1, 1),),), (((1, -1), (0, 0)),), (((0, 0), (0, 0)), "reflect")],
    "take": [("a",), ([0.5],), ([9], 1), ([0], 2)],
    "scatter_add": [([0], 3.0), ([0, 9], None)],
    "clip": [("a",)],
}
MAKERS = ("array", "zeros", "arange", "linspace", "eye")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_in_the_functions_name_U090(device: Any, name: str) -> None:
    a = nd.ones((2, 3), device=device)
    for arguments in WRONG[name]:
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            getattr(nd, name)(*(arguments if name in MAKERS else (a, *arguments)))
        assert str(caught.value).startswith(f"{name}: ") and "\n" not in str(caught.value), arguments


def test_nothing_is_cut_into_few_parts_only(device: Any) -> None:
    assert [part.shape for part in nd.split(nd.zeros((0,), device=device), 3)] == [(0,)] * 3
    with pytest.raises(ShapeError, match="split"):
        nd.split(nd.zeros((0,), device=device), 2**62)


def test_too_little_memory_says_how_much_was_wanted(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(size: int) -> None:
        raise MemoryError

    monkeypatch.setitem(device._storage, "float32", full)
    with pytest.raises(MemoryError, match="no memory for 6 elements of float32"):
        nd.empty((2, 3), device=device)


# ---- Python's protocols --------------------------------------------------------------------------------------------


def test_one_element_is_a_number(device: Any) -> None:
    a = nd.full((1, 1), 2.5, device=device)
    assert float(a) == a.item() == 2.5 and int(a) == 2 and bool(a)
    assert not nd.zeros((1,), device=device)
    assert type(nd.array([True], dtype=bool, device=device).item()) is bool
    for attempt in (bool, float, int, nd.NDArray.item):
        with pytest.raises(ValueError, match=r"an array of shape \(2,\) has 2 elements"):
            attempt(nd.ones((2,), device=device))


def test_length_rows_and_lists(device: Any) -> None:
    a = nd.arange(6, device=device).reshape((3, 2))
    assert len(a) == 3 and [row.tolist() for row in a] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(TypeError, match="rank 0"):
        len(nd.array(1.0, device=device))


def test_an_array_is_no_key(device: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(nd.ones((1,), device=device))


def test_repr_says_values_device_and_dtype(device: Any) -> None:
    assert repr(nd.arange(2, device=device)) == f"NDArray([0., 1.], device={device}, dtype=float32)"
    assert str(nd.arange(2, device=device)) == "[0. 1.]"


def test_copies_and_pickles(device: Any) -> None:
    a = nd.arange(6, dtype="int64", device=device)[::2]
    for twin in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
        same(twin, [0, 2, 4])
        assert twin.device == device and twin.dtype == "int64"


# ---- the course's own device ---------------------------------------------------------------------------------------


def test_a_device_with_the_courses_kernels_alone() -> None:
    """What a learner has in the NDArray stage: one module, float32, the contract's names and nothing else."""
    from types import ModuleType

    from needle.backend_ndarray import native, ndarray_backend_numpy

    module = ModuleType("bare")
    for name in ("Array", *(set(native.COURSE_KERNELS) - {"matmul_tiled"})):
        setattr(module, name, getattr(ndarray_backend_numpy, name))
    native.register_course("bare", module)
    bare = nd.BackendDevice("bare", module)
    a = nd.array([[1, math.nan], [3, 4]], device=bare)
    b = nd.array([[1, 1], [4, 4]], device=bare)
    for compare in ("__eq__", "__ne__", "__ge__", "__gt__", "__le__", "__lt__"):
        same(getattr(a, compare)(b), getattr(a.numpy(), compare)(b.numpy()))
        same(getattr(a, compare)(3), getattr(a.numpy(), compare)(3))
    same((a[1:] @ b.T).sum(axis=1), [35])
    same((a - 2 * b).flip((1,)).max(axis=1, keepdims=True), [[math.nan], [-4]])
    with pytest.raises(NotImplementedError, match=r"ewise_sqrt: bare\(\) has no kernel for float32"):
        a.sqrt()
    with pytest.raises(NotImplementedError, match="no storage for int64"):
        nd.zeros((2,), dtype="int64", device=bare)
