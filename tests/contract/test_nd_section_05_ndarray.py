"""Section 5: the array library, on the native and on the NumPy-backed device."""

from __future__ import annotations

import numpy as np
import pytest
from needle import backend_ndarray as nd

from .tools import close, normal

DEVICES = [nd.cpu(), nd.cpu_numpy()]


@pytest.fixture(params=DEVICES, ids=str)
def device(request):
    return request.param


def same(array: nd.NDArray, expected: np.ndarray) -> None:
    """Equal shapes and, to the bit, equal values."""
    assert array.shape == expected.shape
    np.testing.assert_array_equal(array.numpy(), expected)


def element_strides(a: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // a.itemsize for stride in a.strides)


def pair(device, *shape: int) -> tuple[np.ndarray, nd.NDArray]:
    a = normal(*shape).astype("float32")
    return a, nd.array(a, device=device)


# ---- 5.1 module functions --------------------------------------------------------------------------------------------


def test_array_is_float32_by_default(device) -> None:
    for source in (np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]):
        x = nd.array(source, device=device)
        assert x.dtype == "float32" and x.device == device
        same(x, np.arange(6, dtype="float32").reshape(2, 3))


def test_dtype_none_is_float32() -> None:
    assert nd.array(np.ones(2), dtype=None).dtype == "float32"
    assert nd.full((2,), 1.0, dtype=None).dtype == nd.empty((2,), dtype=None).dtype == "float32"


def test_functions_of_the_module(device) -> None:
    a, x = pair(device, 3, 4)
    close(nd.log(nd.exp(x)), a, 1e-4)
    close(nd.tanh(x), np.tanh(a))
    close(nd.maximum(x, 0.0), np.maximum(a, 0))
    close(nd.maximum(x, nd.array(a[::-1], device=device)), np.maximum(a, a[::-1]))
    close(nd.sum(x, axis=0), a.sum(0))
    close(nd.sum(x, axis=1, keepdims=True), a.sum(1, keepdims=True))
    close(nd.sum(x), [a.sum()])
    same(nd.reshape(x, (4, 3)), a.reshape(4, 3))
    same(nd.broadcast_to(nd.reshape(x, (1, 3, 4)), (2, 3, 4)), np.stack([a, a]))
    same(nd.flip(x, (0, 1)), np.flip(a, (0, 1)))
    same(nd.full((2, 3), 1.5, device=device), np.full((2, 3), 1.5, "float32"))
    assert nd.empty((2, 0), device=device).shape == (2, 0)


# ---- 5.2 construction ------------------------------------------------------------------------------------------------


def test_ndarray_of_an_ndarray_is_a_copy(device) -> None:
    _, x = pair(device, 2, 3)
    y = nd.NDArray(x)
    assert y.device == device
    y[0, 0] = 100.0
    assert x.numpy()[0, 0] != 100.0
    assert nd.NDArray(x, device=nd.cpu_numpy()).device == nd.cpu_numpy()


def test_ndarray_of_a_strided_numpy_array(device) -> None:
    a = normal(4, 6)
    same(nd.NDArray(a.T[::2], device=device), a.T[::2].astype("float32"))


def test_make(device) -> None:
    x = nd.NDArray.make((2, 3), device=device)
    assert (x.shape, x.strides, x._offset, x.is_compact()) == ((2, 3), (3, 1), 0, True)
    assert nd.NDArray.make([2, 3], device=device).shape == (2, 3)
    x.fill(2.0)
    alias = nd.NDArray.make((3,), strides=(1,), device=device, handle=x._handle, offset=3)
    alias[1] = 9.0
    same(x, np.array([[2, 2, 2], [2, 9, 2]], "float32"))


def test_compact_strides() -> None:
    assert nd.NDArray.compact_strides((2, 3, 4)) == (12, 4, 1)
    assert nd.NDArray.compact_strides((5,)) == (1,)


def test_properties(device) -> None:
    _, x = pair(device, 2, 3, 4)
    assert (x.shape, x.strides, x.dtype, x.ndim, x.size, x.device) == ((2, 3, 4), (12, 4, 1), "float32", 3, 24, device)
    assert isinstance(x.shape, tuple) and isinstance(x.strides, tuple)


def test_flat_is_a_view_that_can_be_written_through(device) -> None:
    a, x = pair(device, 2, 3)
    assert x.flat.shape == (6,)
    x.flat[4] += 2.0
    a.flat[4] += np.float32(2.0)
    same(x, a)


def test_fill_works_in_place(device) -> None:
    _, x = pair(device, 2, 3)
    handle = x._handle
    x.fill(3.0)
    assert x._handle is handle
    same(x, np.full((2, 3), 3, "float32"))


def test_to_the_same_device_is_itself(device) -> None:
    a, x = pair(device, 2, 3)
    assert x.to(device) is x
    for other in DEVICES:
        same(x.to(other), a)
        assert x.to(other).device == other


# ---- views -----------------------------------------------------------------------------------------------------------

VIEWS = {
    "permute": (lambda x: x.permute((2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "reshape": (lambda x: x.reshape((4, 15)), lambda a: a.reshape(4, 15)),
    "reshape by -1": (lambda x: x.reshape((-1, 5)), lambda a: a.reshape(-1, 5)),
    "slices": (lambda x: x[1:3, ::2, 1:4], lambda a: a[1:3, ::2, 1:4]),
    "stepped": (lambda x: x[::3, :, ::4], lambda a: a[::3, :, ::4]),
    "reversed": (lambda x: x[::-1, ::-2, 3:0:-1], lambda a: a[::-1, ::-2, 3:0:-1]),
    "negative": (lambda x: x[-2:, :-1, -3:-1], lambda a: a[-2:, :-1, -3:-1]),
    "clamped": (lambda x: x[1:99, -99:2, :], lambda a: a[1:99, -99:2, :]),
    "empty": (lambda x: x[2:2, :, 3:1], lambda a: a[2:2, :, 3:1]),
    "fewer indices": (lambda x: x[1:3], lambda a: a[1:3]),
    "ellipsis": (lambda x: x[..., 1:3], lambda a: a[..., 1:3]),
    "an int keeps its axis": (lambda x: x[2, :, 1:3], lambda a: a[2:3, :, 1:3]),
    "a negative int too": (lambda x: x[-1, 0, :], lambda a: a[-1:, 0:1, :]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_has_the_values_and_strides_of_numpy_and_shares_memory(device, name: str) -> None:
    a, x = pair(device, 4, 3, 5)
    view, expected = VIEWS[name][0](x), VIEWS[name][1](a)
    same(view, expected)
    if expected.size:
        assert view.strides == element_strides(expected)
    assert view._handle is x._handle
    if device == nd.cpu():
        assert view._handle.ptr() == x._handle.ptr()


def test_broadcast_to_is_a_view_with_stride_zero(device) -> None:
    a, x = pair(device, 4, 1, 5)
    view = x.broadcast_to((4, 3, 5))
    same(view, np.broadcast_to(a, (4, 3, 5)))
    assert view.strides == (5, 0, 1) and view._handle is x._handle
    same(x.broadcast_to([4, 2, 5]), np.broadcast_to(a, (4, 2, 5)))


def test_broadcast_to_refuses_what_does_not_stretch(device) -> None:
    _, x = pair(device, 4, 1, 5)
    with pytest.raises(AssertionError, match=r"\(4, 1, 5\).*\(4, 3, 6\)|\(4, 3, 6\).*\(4, 1, 5\)"):
        x.broadcast_to((4, 3, 6))


def test_as_strided_is_a_view(device) -> None:
    a, x = pair(device, 3, 4)
    view = x.as_strided((2, 2), (8, 2))
    assert view._handle is x._handle
    same(view, a[::2, ::2])
    with pytest.raises(AssertionError):
        x.as_strided((2, 2), (8,))


def test_reshape_of_a_view_copies_when_it_must(device) -> None:
    a, x = pair(device, 3, 4)
    same(x.permute((1, 0)).reshape((12,)), a.T.reshape(12))
    with pytest.raises(ValueError, match=r"12.*\(5, 2\)"):
        x.reshape((5, 2))
    with pytest.raises(ValueError):
        x.reshape((5, -1))


def test_an_index_outside_is_an_error(device) -> None:
    _, x = pair(device, 3, 4)
    for index in ((3, 0), (0, -5), (0, 0, 0)):
        with pytest.raises(IndexError):
            x[index]


def test_process_slice_is_asked_and_answers_with_ints() -> None:
    asked = []

    class Watching(nd.NDArray):
        def process_slice(self, sl, dim):
            asked.append((sl, dim))
            return super().process_slice(sl, dim)

    Watching(np.arange(6.0).reshape(2, 3))[0:1, 1:]
    assert asked == [(slice(0, 1), 0), (slice(1, None), 1)]
    sl = nd.array(np.zeros((4, 5))).process_slice(slice(None, -1, 2), 1)
    assert (sl.start, sl.stop, sl.step) == (0, 4, 2)
    assert all(type(part) is int for part in (sl.start, sl.stop, sl.step))


# ---- compact ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", range(1, 8))
def test_compact_of_up_to_seven_axes(device, dims: int) -> None:
    a, x = pair(device, *((2, 3) * 4)[:dims])
    order = np.random.permutation(dims)
    view = x.permute(tuple(order))
    packed = view.compact()
    assert packed.is_compact()
    same(packed, np.ascontiguousarray(a.transpose(order)))


def test_compact_of_a_compact_array_is_itself(device) -> None:
    _, x = pair(device, 3, 4)
    assert x.compact() is x and x.is_compact()
    part = x[0:2]  # row-major, but its storage is larger
    assert not part.is_compact() and part.compact().is_compact() and part.compact() is not part


@pytest.mark.parametrize("name", VIEWS)
def test_compact_of_a_view(device, name: str) -> None:
    a, x = pair(device, 4, 3, 5)
    packed = VIEWS[name][0](x).compact()
    assert packed.is_compact()
    same(packed, VIEWS[name][1](a))


# ---- writing ---------------------------------------------------------------------------------------------------------

TARGETS = [
    (slice(1, 4, 2), slice(None, None, 2)),
    (slice(None), slice(None)),
    (2, slice(1, 4)),
    (1, 3),
    (-1, slice(None, None, -1)),
    (slice(0, 0), slice(None)),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_setitem_of_a_number(device, target) -> None:
    a, x = pair(device, 4, 5)
    handle = x._handle
    x[target] = 7.0
    a[target] = 7.0
    assert x._handle is handle
    same(x, a)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_setitem_of_an_array_needs_only_the_count(device, target) -> None:
    a, x = pair(device, 4, 5)
    shape = a[target].shape
    b = normal(*shape).astype("float32") if shape else np.float32(3.0)
    x[target] = nd.array(np.reshape(b, -1), device=device)
    a[target] = b
    same(x, a)


def test_setitem_from_a_strided_source(device) -> None:
    a, x = pair(device, 4, 6)
    b, y = pair(device, 3, 2)
    x[::2, 1:4] = y.permute((1, 0))
    a[::2, 1:4] = b.T
    same(x, a)


def test_setitem_of_a_wrong_count_raises(device) -> None:
    _, x = pair(device, 4, 5)
    with pytest.raises(ValueError, match=r"."):
        x[0:2, 0:2] = nd.array(np.ones(3), device=device)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def test_arithmetic_of_arrays_and_numbers(device) -> None:
    a, x = pair(device, 3, 4)
    b, y = pair(device, 3, 4)
    for got, expected in (
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (x + 2, a + 2),
        (2 + x, a + 2),
        (x - 2, a - 2),
        (2 - x, 2 - a),
        (x * 2, a * 2),
        (2 * x, a * 2),
        (x / 2, a / 2),
        (-x, -a),
        (x**2, a**2),
        (x.maximum(y), np.maximum(a, b)),
        (x.maximum(0.1), np.maximum(a, np.float32(0.1))),
        ((x * x).log(), np.log(a * a)),
        (x.exp(), np.exp(a)),
        (x.tanh(), np.tanh(a)),
    ):
        assert got.dtype == "float32" and got.is_compact()
        close(got, expected)


def test_arithmetic_of_views(device) -> None:
    a, x = pair(device, 4, 6)
    b, y = pair(device, 6, 4)
    same(x[::2, ::-1] + y.permute((1, 0))[1:3], a[::2, ::-1] + b.T[1:3])
    same(x.permute((1, 0)) * 2, a.T * 2)


@pytest.mark.parametrize("operator", ["__add__", "__mul__", "__sub__", "__truediv__", "__eq__", "__ge__", "maximum"])
def test_arrays_of_two_shapes_do_not_stretch(device, operator: str) -> None:
    x, y = nd.array(np.ones((3, 4)), device=device), nd.array(np.ones((1, 4)), device=device)
    with pytest.raises(AssertionError, match=r"\(3, 4\).*\(1, 4\)"):
        getattr(x, operator)(y)


def test_comparisons_give_zeros_and_ones(device) -> None:
    a, b = np.array([1, 2, 3], "float32"), np.array([3, 2, 1], "float32")
    x, y = nd.array(a, device=device), nd.array(b, device=device)
    for got, expected in (
        (x == y, a == b),
        (x != y, a != b),
        (x >= y, a >= b),
        (x > y, a > b),
        (x <= y, a <= b),
        (x < y, a < b),
        (x == 2, a == 2),
        (x != 2, a != 2),
        (x >= 2, a >= 2),
        (x > 2, a > 2),
        (x <= 2, a <= 2),
        (x < 2, a < 2),
    ):
        assert isinstance(got, nd.NDArray) and got.dtype == "float32"
        same(got, expected.astype("float32"))


def test_a_comparison_casts_the_number_to_float32_first(device) -> None:
    a = np.random.rand(50)
    x = nd.array(a, device=device)
    for i in range(50):
        assert (x == float(a[i])).numpy()[i] == 1.0
        assert (x >= float(a[i])).numpy()[i] == 1.0


def test_power_of_a_negative_base_and_a_fraction_is_nan(device) -> None:
    assert np.isnan((nd.array([-2.0], device=device) ** 0.5).numpy()).all()
    close(nd.array([-2.0, 3.0], device=device) ** 3, [-8.0, 27.0])
    close(nd.array([4.0, 9.0], device=device) ** -0.5, [0.5, 1 / 3])


# ---- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, (1,), [2], (0, 2), (0, 1, 2)], ids=str)
def test_reduction_over_axes(device, name: str, axis, keepdims: bool) -> None:
    a, x = pair(device, 2, 5, 3)
    over = tuple(axis) if isinstance(axis, list) else axis
    expected = np.asarray(getattr(a, name)(axis=over, keepdims=keepdims))
    got = getattr(x, name)(axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(got.numpy().reshape(-1), expected.reshape(-1), rtol=1e-5, atol=1e-5)
    if expected.ndim:
        assert got.shape == expected.shape


@pytest.mark.parametrize("name", ["sum", "max"])
def test_full_reduction(device, name: str) -> None:
    a, x = pair(device, 2, 5, 3)
    close(getattr(x, name)(), [getattr(a, name)()])
    close(getattr(x, name)(axis=None, keepdims=True), getattr(a, name)(keepdims=True))


def test_sum_over_no_axis_returns_the_input(device) -> None:
    a, x = pair(device, 2, 3)
    same(x.sum(axis=()), a)


def test_reduction_of_a_view(device) -> None:
    a, x = pair(device, 4, 6)
    close(x.permute((1, 0))[::2].sum(axis=0), a.T[::2].sum(0))
    close(x[:, ::-3].max(axis=1), a[:, ::-3].max(1))


# ---- flip and pad ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2,), (0, 1, 2), (-1,)], ids=str)
def test_flip_is_a_compact_copy(device, axes) -> None:
    a, x = pair(device, 2, 3, 4)
    y = x.flip(axes)
    same(y, np.flip(a, axes))
    assert y.is_compact() and y._handle is not x._handle


def test_pad_with_zeros_on_each_side(device) -> None:
    a, x = pair(device, 2, 3, 4)
    pads = ((0, 0), (1, 2), (3, 0))
    same(x.pad(pads), np.pad(a, pads))
    assert x.pad(((0, 0), (0, 0), (0, 0))).shape == x.shape


# ---- 5.3 products ----------------------------------------------------------------------------------------------------

SIZES = [
    (1, 1, 1),
    (8, 8, 8),
    (7, 9, 5),
    (16, 24, 8),
    (64, 72, 80),
    (73, 74, 75),
    (123, 125, 129),
    (1, 50, 1),
    (50, 1, 50),
]


@pytest.mark.parametrize("m, n, p", SIZES)
def test_matmul_of_every_size(device, m: int, n: int, p: int) -> None:
    a, b = normal(m, n), normal(n, p)
    close(nd.array(a, device=device) @ nd.array(b, device=device), a @ b, 1e-4)


def test_matmul_of_views(device) -> None:
    a, b = normal(6, 5), normal(8, 12)
    x, y = nd.array(a, device=device), nd.array(b, device=device)
    close(x.permute((1, 0)) @ y[2:8, ::3], a.T @ b[2:8, ::3])
    close(x[:, ::-1] @ y.permute((1, 0))[0:5], a[:, ::-1] @ b.T[0:5])


def test_matmul_refuses_other_inner_sizes(device) -> None:
    with pytest.raises(AssertionError, match=r"\(2, 1\).*\(3, 4\)"):
        nd.array(np.ones((2, 1)), device=device) @ nd.array(np.ones((3, 4)), device=device)


@pytest.mark.parametrize("tiles", [(1, 1, 1), (2, 3, 4)])
def test_tiled_matmul_clears_its_output(tiles) -> None:
    device = nd.cpu()
    t = device.__tile_size__
    m, n, p = (t * count for count in tiles)
    a, b = normal(m, n).astype("float32"), normal(n, p).astype("float32")

    def tiled(c: np.ndarray) -> nd.NDArray:
        rows, columns = c.shape
        blocks = np.ascontiguousarray(c.reshape(rows // t, t, columns // t, t).transpose(0, 2, 1, 3))
        return nd.array(blocks, device=device)

    out = nd.NDArray.make((m // t, p // t, t, t), device=device)
    out.fill(1e6)  # whatever was in the memory before
    device.matmul_tiled(tiled(a)._handle, tiled(b)._handle, out._handle, m, n, p)
    close(out.numpy().transpose(0, 2, 1, 3).reshape(m, p), a @ b, 1e-4)


# ---- 5.4 native modules ----------------------------------------------------------------------------------------------

KERNELS = (
    "to_numpy from_numpy fill compact ewise_setitem scalar_setitem ewise_add ewise_mul ewise_div ewise_maximum "
    "ewise_eq ewise_ge scalar_add scalar_mul scalar_div scalar_power scalar_maximum scalar_eq scalar_ge ewise_log "
    "ewise_exp ewise_tanh matmul reduce_max reduce_sum Array __device_name__"
)


@pytest.mark.parametrize("name", KERNELS.split(" "))
def test_kernel_is_there(device, name: str) -> None:
    assert hasattr(device.mod, name)


def stored(device, values: np.ndarray):
    handle = device.Array(values.size)
    device.from_numpy(np.ascontiguousarray(values, dtype="float32"), handle)
    return handle


def read(device, handle, *shape: int) -> np.ndarray:
    return np.array(device.to_numpy(handle, shape, nd.NDArray.compact_strides(shape), 0))


def test_array_has_size_and_pointer(device) -> None:
    handle = device.Array(12)
    assert handle.size == 12
    if device == nd.cpu():
        assert isinstance(handle.ptr(), int) and handle.ptr() != 0


def test_kernels_by_their_argument_order(device) -> None:
    a, b = np.arange(1.0, 7).reshape(2, 3), np.arange(6.0, 0, -1).reshape(2, 3)
    x, y, out = stored(device, a), stored(device, b), device.Array(6)
    for name, expected in (
        ("ewise_add", a + b),
        ("ewise_mul", a * b),
        ("ewise_div", a / b),
        ("ewise_maximum", np.maximum(a, b)),
        ("ewise_eq", a == b),
        ("ewise_ge", a >= b),
    ):
        getattr(device, name)(x, y, out)
        close(read(device, out, 2, 3), expected.astype("float32"))
    for name, expected in (
        ("scalar_add", a + 3),
        ("scalar_mul", a * 3),
        ("scalar_div", a / 3),
        ("scalar_power", a**3),
        ("scalar_maximum", np.maximum(a, 3)),
        ("scalar_eq", a == 3),
        ("scalar_ge", a >= 3),
    ):
        getattr(device, name)(x, 3.0, out)
        close(read(device, out, 2, 3), expected.astype("float32"))
    for name, expected in (("ewise_log", np.log(a)), ("ewise_exp", np.exp(a)), ("ewise_tanh", np.tanh(a))):
        getattr(device, name)(x, out)
        close(read(device, out, 2, 3), expected)


def test_moving_kernels_by_their_argument_order(device) -> None:
    a = np.arange(12.0, dtype="float32").reshape(3, 4)
    x, out = stored(device, a), device.Array(6)
    np.testing.assert_array_equal(device.to_numpy(x, (4, 2), (1, 4), 4), a[1:, :].T)
    device.compact(x, out, (2, 3), (4, 1), 5)
    np.testing.assert_array_equal(read(device, out, 2, 3), a[1:, 1:])
    device.compact(x, out, (2, 3), (-4, -1), 11)
    np.testing.assert_array_equal(read(device, out, 2, 3), a[:0:-1, :0:-1])
    device.fill(out, 7.0)
    device.ewise_setitem(out, x, (2, 3), (4, 1), 5)
    a[1:, 1:] = 7
    device.scalar_setitem(3, 9.0, x, (3, 1), (4, 1), 0)
    a[:, :1] = 9
    np.testing.assert_array_equal(read(device, x, 3, 4), a)


def test_reducing_kernels_by_their_argument_order(device) -> None:
    a = np.array([[3, 1, 2], [-1, -5, -2]], "float32")
    x, out = stored(device, a), device.Array(2)
    device.reduce_max(x, out, 3)
    np.testing.assert_array_equal(read(device, out, 2), a.max(1))
    device.reduce_sum(x, out, 3)
    np.testing.assert_array_equal(read(device, out, 2), a.sum(1))


def test_matmul_kernel_by_its_argument_order(device) -> None:
    a, b = normal(2, 5), normal(5, 3)
    out = device.Array(6)
    device.matmul(stored(device, a), stored(device, b), out, 2, 5, 3)
    close(read(device, out, 2, 3), a @ b)


def test_native_scalars_may_be_of_any_number_type() -> None:
    device = nd.cpu()
    x, out = stored(device, np.ones(3)), device.Array(3)
    for scalar in (2, 2.0, np.float32(2), np.float64(2), np.int64(2)):
        device.scalar_mul(x, scalar, out)
        close(read(device, out, 3), [2.0, 2.0, 2.0])


def test_numpy_of_a_native_array_is_a_copy() -> None:
    x = nd.array([1.0, 2.0], device=nd.cpu())
    x.numpy()[0] = 7
    close(x, [1.0, 2.0])


# ---- types: NumPy 2's table, with the design's exceptions ------------------------------------------------------------

DTYPES = ["bool", "uint8", "int32", "int64", "float32", "float64"]
SUMS = {  # row + column; what stands under the diagonal follows, since + is symmetric
    "bool": ["bool", "uint8", "int32", "int64", "float32", "float64"],
    "uint8": [None, "uint8", "int32", "int64", "float32", "float64"],
    "int32": [None, None, "int32", "int64", "float32", "float64"],
    "int64": [None, None, None, "int64", "float32", "float64"],
    "float32": [None, None, None, None, "float32", "float64"],
    "float64": [None, None, None, None, None, "float64"],
}


@pytest.mark.parametrize("left", DTYPES)
def test_type_of_a_sum(device, left: str) -> None:
    for right, expected in zip(DTYPES, SUMS[left], strict=True):
        if expected is not None:
            x, y = (nd.array(np.ones(3), dtype=d, device=device) for d in (left, right))
            assert (x + y).dtype == (y + x).dtype == expected, (left, right)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_python_number_never_widens(device, dtype: str) -> None:
    x = nd.array(np.ones(3), dtype=dtype, device=device)
    whole = "int64" if dtype == "bool" else dtype
    assert (x + 2).dtype == (2 * x).dtype == whole
    assert (x + 2.5).dtype == (dtype if dtype.startswith("float") else "float32")
    assert (x * np.float64(2.5)).dtype == (dtype if dtype.startswith("float") else "float32")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers_divide_and_average_to_float32_and_sum_to_int64(device, dtype: str) -> None:
    x = nd.array(np.array([1, 2]), dtype=dtype, device=device)
    close(x / x, [1.0, 1.0])
    assert (x / x).dtype == (x / 2).dtype == x.exp().dtype == x.mean().dtype == "float32"
    assert x.sum().dtype == "int64" and x.max().dtype == dtype
    close(nd.array([1], dtype=dtype, device=device) / nd.array([2], dtype=dtype, device=device), [0.5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_are_float32_whatever_is_compared(device, dtype: str) -> None:
    x = nd.array(np.array([0, 1]), dtype=dtype, device=device)
    assert (x >= 1).dtype == (x == x).dtype == "float32"


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_type_move_through_views_and_back(device, dtype: str) -> None:
    a = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    x = nd.array(a, dtype=dtype, device=device)
    same(x.permute((1, 0))[::-2].compact(), a.T[::-2])
    assert x.numpy().dtype == a.dtype and np.asarray(x[1:, ::2]).dtype == a.dtype
    np.testing.assert_array_equal(np.asarray(x[1:, ::2]), a[1:, ::2])
