"""Checks of homework 3: the strided NDArray in Python, its kernels in C++ and in CUDA.

python -m pytest tests/hw3 -k "(permute or reshape or broadcast or getitem) and cpu and not compact"      part 1
python -m pytest tests/hw3 -k "(compact or setitem) and cpu"                                              part 2
python -m pytest tests/hw3 -k "(ewise_fn or ewise_max or log or exp or tanh or (scalar and not setitem)) and cpu"
python -m pytest tests/hw3 -k "reduce and cpu"          part 4
python -m pytest tests/hw3 -k "matmul and cpu"          part 5; parts 6 to 9 are the same with cuda

All is compared with NumPy.  A view must share its storage; a result must not depend on how its input is laid out.
"""

from __future__ import annotations

import numpy as np
import pytest
from needle import backend_ndarray as nd
from stages import assert_close, assert_same, devices

on_devices = pytest.mark.parametrize("device", devices())
F32 = np.float32


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(F32)


def assert_view(a, view, wanted):
    """view shows `wanted` in the storage of a, with the strides that NumPy gives the same view."""
    assert view._handle.ptr() == a._handle.ptr(), "a view must not copy"
    assert view.shape == wanted.shape, f"shape {view.shape}, wanted {wanted.shape}"
    strides = tuple(s // wanted.itemsize for s in wanted.strides)
    real = [axis for axis, extent in enumerate(wanted.shape) if extent > 1]  # elsewhere no stride is ever taken
    assert [view.strides[i] for i in real] == [strides[i] for i in real], f"strides {view.strides}, wanted {strides}"
    assert_same(view.numpy(), wanted)


LAYOUTS = {  # how to make an array of some shape that is not laid out row after row
    "plain": lambda A, a: (A, a),
    "transposed": lambda A, a: (A.T, a.permute(tuple(reversed(range(a.ndim))))),
    "stepped": lambda A, a: (A[::2], a[(slice(None, None, 2),) + (slice(None),) * (a.ndim - 1)]),
    "offset": lambda A, a: (A[1:, ..., :-1], a[(slice(1, None),) + (slice(None),) * (a.ndim - 2) + (slice(0, -1),)]),
    "reversed": lambda A, a: (A[..., ::-1], a[(slice(None),) * (a.ndim - 1) + (slice(None, None, -1),)]),
}


def laid_out(layout, *shape, device, seed=0):
    """An array as NumPy and as NDArray, in the layout of that name."""
    A = numbers(*shape, seed=seed)
    return LAYOUTS[layout](A, nd.array(A, device=device))


# ---- part 1: views in Python ----------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize(
    "shape, axes", [((4, 4), (1, 0)), ((4, 1, 4), (2, 0, 1)), ((2, 3, 4), (1, 2, 0)), ((2, 3, 4, 5), (3, 1, 0, 2))]
)
def test_permute(device, shape, axes):
    A = numbers(*shape)
    a = nd.array(A, device=device)
    assert_view(a, a.permute(axes), A.transpose(axes))
    assert_view(a, a.permute(axes).permute(axes), A.transpose(axes).transpose(axes))


@on_devices
@pytest.mark.parametrize(
    "shape, wanted", [((8, 16), (2, 4, 16)), ((2, 4, 2, 2, 4), (16, 8)), ((6,), (1, 3, 2)), ((3, 1), (3,))]
)
def test_reshape(device, shape, wanted):
    A = numbers(*shape)
    a = nd.array(A, device=device)
    assert_view(a, a.reshape(wanted), A.reshape(wanted))
    with pytest.raises(ValueError, match="reshape"):
        a.reshape((7, 11))


@on_devices
@pytest.mark.parametrize("index", [
    np.s_[1:3, 0:2, 0:2], np.s_[0:4:2, 1:2, 3], np.s_[1, 2, 3], np.s_[:, 1:, ::3], np.s_[-2:, :-1, -1],
    np.s_[:, 1:99, :], np.s_[::-1, :, 3:0:-2],
])  # fmt: skip
def test_getitem(device, index):
    A = numbers(5, 4, 6)
    a = nd.array(A, device=device)
    assert_view(a, a[index], A[keeping_axes(index)])  # an integer keeps its axis, with one element
    assert_view(a, a[1:, :, ::2][:, index[1], 0:2], A[1:, :, ::2][:, keeping_axes(index)[1], 0:2])  # a view of a view


@on_devices
def test_broadcast_to(device):
    for shape, wanted in (((1, 3, 4), (6, 3, 4)), ((5, 1, 1), (5, 2, 3)), ((2, 3), (2, 3)), ((3, 1), (2, 3, 4))):
        A = numbers(*shape)
        a = nd.array(A, device=device)
        assert_view(a, a.broadcast_to(wanted), np.broadcast_to(A, wanted))
    with pytest.raises(AssertionError):
        a.broadcast_to((4, 3))


# ---- part 2: compact and setitem ------------------------------------------------------------------------------------

COMPACTS = {
    "transpose": ((4, 4), lambda x: transposed(x, (1, 0))),
    "broadcast": ((4, 1, 4), lambda x: broadcast(x, (4, 5, 4))),
    "reshape1": ((4, 4), lambda x: x.reshape((2, 2, 4))),
    "reshape2": ((4, 4), lambda x: x.reshape((2, 2, 2, 2))),
    "reshape3": ((2, 4, 2, 2, 4), lambda x: x.reshape((8, 16))),
    "getitem1": ((8, 8), lambda x: x[4:, 4:]),
    "getitem2": ((8, 8, 2, 2, 2, 2), lambda x: x[1:3, 5:8, 1:2, 0:1, 0:1, 1:2]),
    "transposegetitem": ((7, 8), lambda x: transposed(x, (1, 0))[3:7, 2:5]),
    "stepped": ((9, 7), lambda x: x[1::3, ::2]),
    "reversed": ((5, 4), lambda x: x[::-1, 3:0:-1]),
    "seven_axes": ((2, 1, 3, 2, 1, 2, 2), lambda x: transposed(x, (6, 2, 4, 0, 5, 1, 3))),
    "many_blocks": ((37, 71), lambda x: transposed(x, (1, 0))),  # more elements than two blocks of a GPU have threads
}


def transposed(x, axes):
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(axes)


def broadcast(x, shape):
    return np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x.broadcast_to(shape)


@on_devices
@pytest.mark.parametrize("name", COMPACTS)
def test_compact(name, device):
    shape, view = COMPACTS[name]
    A = numbers(*shape)
    compact = view(nd.array(A, device=device)).compact()
    assert compact.is_compact()
    assert_same(compact.numpy(), view(A))


@on_devices
@pytest.mark.parametrize("shape, wanted", [((4, 6), (8, 3)), ((2, 3, 4), (12, 2)), ((3, 5), (15,))])
def test_compact_before_reshape(shape, wanted, device):
    A = numbers(*shape)
    turned = nd.array(A, device=device).permute(tuple(reversed(range(A.ndim))))
    assert_same(turned.compact().reshape(wanted), A.T.reshape(wanted))
    assert_same(turned, A.T)  # the view itself stays as it was


SETITEMS = [  # target: shape and index; source: shape and index
    ((4, 5, 6), np.s_[1, 2, 3], (4, 5, 6), np.s_[2, 3, 4]),
    ((4, 5, 6), np.s_[1:4, ::2, 0], (7, 7, 7), np.s_[0:3, 0:3, 1]),
    ((4, 5, 6), np.s_[1:4:2, 0, 0], (7, 7, 7), np.s_[0:4:3, 3, 1]),
    ((6, 5), np.s_[::-1, 1:4], (6, 3), np.s_[:, :]),
    ((37, 150), np.s_[:, 1::2], (37, 75), np.s_[::-1, :]),  # more than two blocks
]


def keeping_axes(index):
    """The index with which NumPy keeps the axes that an integer would drop."""
    return tuple(i if isinstance(i, slice) else slice(i, i + 1 or None) for i in index)


@on_devices
@pytest.mark.parametrize("shape, index, source_shape, source_index", SETITEMS)
def test_setitem_ewise(shape, index, source_shape, source_index, device):
    A, B = numbers(*shape), numbers(*source_shape, seed=1)
    a, b = nd.array(A, device=device), nd.array(B, device=device)
    before = a._handle.ptr()
    a[index] = b[source_index]
    A[keeping_axes(index)] = B[keeping_axes(source_index)]
    assert a._handle.ptr() == before, "setitem writes into the storage that is there"
    assert_same(a.numpy(), A)
    assert_same(b.numpy(), B)


@on_devices
@pytest.mark.parametrize("shape, index", [
    ((4, 5, 6), np.s_[1, 2, 3]), ((5, 20, 6), np.s_[1:5, 2:, 1:]), ((4, 5, 6), np.s_[1:4:2, ::2, -1]),
    ((4, 5), np.s_[::-2, :]), ((37, 150), np.s_[:, 1::2]),
])  # fmt: skip
def test_setitem_scalar(shape, index, device):
    A = numbers(*shape)
    a = nd.array(A, device=device)
    before = a._handle.ptr()
    a[index] = 4.5
    A[index] = 4.5
    assert a._handle.ptr() == before, "setitem writes into the storage that is there"
    assert_same(a.numpy(), A)
    view = a.permute(tuple(reversed(range(a.ndim))))
    view[tuple(reversed(index))] = -1.0
    A[index] = -1
    assert_same(a.numpy(), A)


# ---- part 3: element-wise and scalar operations ---------------------------------------------------------------------

EWISE = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "subtract": lambda a, b: a - b,
    "equal": lambda a, b: a == b,
    "greater_than": lambda a, b: a >= b,
}
SHAPES = [(1, 1, 1), (4, 5, 6)]


@on_devices
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", EWISE)
def test_ewise_fn(name, shape, device):
    A, B = numbers(*shape), numbers(*shape, seed=1)
    B.flat[::3] = A.flat[::3]  # some are equal
    assert_close(EWISE[name](nd.array(A, device=device), nd.array(B, device=device)), EWISE[name](A, B))
    if shape != (1, 1, 1):
        for layout in LAYOUTS:
            (A, a), (B, b) = (laid_out(layout, *shape, device=device, seed=seed) for seed in (0, 1))
            assert_close(EWISE[name](a, b), EWISE[name](A, B))


@on_devices
@pytest.mark.parametrize("shape", SHAPES)
def test_ewise_max(shape, device):
    A, B = numbers(*shape), numbers(*shape, seed=1)
    a, b = nd.array(A, device=device), nd.array(B, device=device)
    assert_same(a.maximum(b).numpy(), np.maximum(A, B))


def check_scalar(f, device, *, positive=False):
    """f of an array and of its NumPy twin agree, in every layout."""
    for layout in LAYOUTS:
        A, a = laid_out(layout, 4, 5, 6, device=device)
        if positive:
            A, a = np.abs(A) + 0.5, (a * a) ** 0.5 + 0.5
        with np.errstate(invalid="ignore"):
            assert_close(f(a), f(A))


@on_devices
def test_scalar_mul(device):
    check_scalar(lambda x: x * 0.7, device)
    check_scalar(lambda x: -3 * x, device)


@on_devices
def test_scalar_div(device):
    check_scalar(lambda x: x / -1.7, device)


@on_devices
def test_scalar_power(device):
    for exponent in (3, 0.5, -1.5, 0):
        check_scalar(lambda x: x**exponent, device, positive=True)  # noqa: B023
    got = (nd.array(np.array([[-2.0, 2.0]]), device=device) ** 0.5).numpy()
    assert np.isnan(got[0, 0]) and got[0, 1] == np.sqrt(F32(2))


@on_devices
def test_scalar_maximum(device):
    for scalar in (0.1, -5.0, 5.0):
        check_scalar(lambda x: np.maximum(x, F32(scalar)) if isinstance(x, np.ndarray) else x.maximum(scalar), device)  # noqa: B023


@on_devices
def test_scalar_eq(device):
    original = np.random.RandomState(0).randn(4, 5)  # float64: its numbers become float32 on both sides of ==
    a = nd.array(original, device=device)
    for scalar in (original[2, 3], 0.5):
        assert_same((a == scalar).numpy(), original.astype(F32) == F32(scalar))
        assert_same((a != scalar).numpy(), original.astype(F32) != F32(scalar))


@on_devices
def test_scalar_ge(device):
    original = np.random.RandomState(0).randn(4, 5)
    a, A = nd.array(original, device=device), original.astype(F32)
    for scalar in (original[2, 3], 0.1):
        for compare in (lambda x, s: x >= s, lambda x, s: x > s, lambda x, s: x <= s, lambda x, s: x < s):
            assert_same(compare(a, scalar).numpy(), compare(A, F32(scalar)))


@on_devices
def test_ewise_log(device):
    check_scalar(lambda x: np.log(x) if isinstance(x, np.ndarray) else x.log(), device, positive=True)


@on_devices
def test_ewise_exp(device):
    check_scalar(lambda x: np.exp(x) if isinstance(x, np.ndarray) else x.exp(), device)


@on_devices
def test_ewise_tanh(device):
    check_scalar(lambda x: np.tanh(x) if isinstance(x, np.ndarray) else x.tanh(), device)
    far = nd.array(np.array([[-1000.0, 1000.0]]), device=device).tanh()
    assert_same(far.numpy(), [[-1, 1]])


# ---- part 4: reductions ---------------------------------------------------------------------------------------------

REDUCTIONS = [((1, 1, 1), None), ((5, 4, 6), None), ((5, 4, 6), 0), ((5, 4, 6), 1), ((5, 4, 6), -1), ((1, 300), 1),
              ((2100, 3), 1)]  # fmt: skip


def check_reduction(name, shape, axis, device):
    for layout in LAYOUTS if len(shape) == 3 and shape[0] > 1 else ["plain"]:
        A, a = laid_out(layout, *shape, device=device)
        A, a = A - 3, a - 3  # all are negative: a maximum that starts from 0 shows
        for keepdims in (False, True):
            got = getattr(a, name)(axis=axis, keepdims=keepdims)
            wanted = getattr(A.astype(np.float64), name)(axis=axis, keepdims=keepdims)
            wanted = np.reshape(wanted, got.shape) if axis is None else wanted
            assert_close(got, wanted, terms=A.size)
    if axis is None:
        assert getattr(a, name)().shape == (1,)


@on_devices
@pytest.mark.parametrize("shape, axis", REDUCTIONS)
def test_reduce_sum(shape, axis, device):
    check_reduction("sum", shape, axis, device)


@on_devices
@pytest.mark.parametrize("shape, axis", REDUCTIONS)
def test_reduce_max(shape, axis, device):
    check_reduction("max", shape, axis, device)


# ---- part 5: matrix products ----------------------------------------------------------------------------------------

SIZES = [(8, 8, 8), (16, 8, 24), (1, 2, 3), (3, 4, 5), (5, 4, 3), (64, 64, 64), (72, 72, 72), (73, 74, 72),
         (74, 73, 129), (128, 16, 1)]  # fmt: skip


@on_devices
@pytest.mark.parametrize("m, n, p", SIZES)
def test_matmul(m, n, p, device):
    A, B = numbers(m, n), numbers(n, p, seed=1)
    wanted = A.astype(np.float64) @ B
    a, b = nd.array(A, device=device), nd.array(B, device=device)
    assert_close(a @ b, wanted, terms=n)
    turned = nd.array(A.T, device=device).permute((1, 0))
    assert_close(turned @ b, wanted, terms=n)


@on_devices
@pytest.mark.parametrize("m, n, p", [(3, 4, 5), (16, 8, 24)])
def test_matmul_overwrites(m, n, p, device):
    A, B = numbers(m, n), numbers(n, p, seed=1)
    out = nd.NDArray.make((m, p), device=device)
    out.fill(77)  # what was in the storage before must not matter
    a, b = nd.array(A, device=device), nd.array(B, device=device)
    for _ in range(2):
        device.matmul(a._handle, b._handle, out._handle, m, n, p)
        assert_close(out, A.astype(np.float64) @ B, terms=n)


@pytest.mark.parametrize("device", [pytest.param(nd.cpu(), id="cpu")])
@pytest.mark.parametrize("m, n, p", [(1, 1, 1), (4, 8, 2), (1, 3, 5), (6, 1, 2)])  # in tiles
def test_matmul_tiled(m, n, p, device):
    assert hasattr(device, "matmul_tiled")
    tile = device.__tile_size__
    A, B = numbers(m, n, tile, tile), numbers(n, p, tile, tile, seed=1)
    out = nd.NDArray.make((m, p, tile, tile), device=device)
    out.fill(77)  # what was in the storage before must not matter
    a, b = nd.array(A, device=device), nd.array(B, device=device)
    device.matmul_tiled(a._handle, b._handle, out._handle, m * tile, n * tile, p * tile)

    def untiled(X):
        return X.astype(np.float64).swapaxes(1, 2).reshape(X.shape[0] * tile, X.shape[1] * tile)

    assert_close(untiled(out.numpy()), untiled(A) @ untiled(B), terms=n * tile, dtype=F32)
