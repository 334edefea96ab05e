"""Matrix products: one pair of matrices, the course's tiled path, and batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..errors import ShapeError
from .dtypes import promote
from .indexing import Shape, broadcast_shapes

if TYPE_CHECKING:
    from .ndarray import NDArray


def matmul(a: NDArray, b: NDArray) -> NDArray:
    """a @ b as in NumPy: (…, m, n) @ (…, n, p) → (…, m, p); an operand with a single axis is a row or a column."""
    if len(a._shape) == len(b._shape) == 2:
        return matmul_2d(a, b)
    if not a.ndim or not b.ndim:
        raise ShapeError(f"matmul: {a.shape} @ {b.shape}: an operand has no axes; multiply by it with *")
    left = a.expand_dims(0) if a.ndim == 1 else a
    right = b.expand_dims(1) if b.ndim == 1 else b
    added = [axis for axis, operand in ((-2, a), (-1, b)) if operand.ndim == 1]
    if left.shape[-1] != right.shape[-2]:
        raise _mismatch(a, b, left.shape[-1], right.shape[-2])
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if batch is None:
        raise ShapeError(f"matmul: {a.shape} @ {b.shape}: the axes in front do not broadcast")
    return matmul_batched(left, right, batch).squeeze(added)


def _mismatch(a: NDArray, b: NDArray, columns: int, rows: int) -> ShapeError:
    return ShapeError(f"matmul: {a.shape} @ {b.shape}: inner sizes {columns} and {rows} differ")


def matmul_2d(a: NDArray, b: NDArray) -> NDArray:
    """(m, n) @ (n, p) → (m, p); by a kernel that takes matrices wherever they lie, or by the course's."""
    (m, n), (rows, p) = a._shape, b._shape
    if n != rows:
        raise _mismatch(a, b, n, rows)
    dtype = promote(a._dtype, b._dtype)
    strided = kernels.device_kernel("matmul_strided", a._device.name, dtype)
    if strided is None:
        return _matmul_compact(a, b, dtype)
    a, b, out = a._cast(dtype), b._cast(dtype), a._new((m, p), dtype)
    strided(a._handle, b._handle, out._handle, (m, n, p), a._strides, a._offset, b._strides, b._offset)
    return out


def _matmul_compact(a: NDArray, b: NDArray, dtype: str) -> NDArray:
    """The same by kernels that want compact memory; in mode "course" by the course's tiled one if tiles fit."""
    (m, n), p = a._shape, b._shape[1]
    tiled = kernels.mode() == "course" and dtype == "float32" and hasattr(a._device, "matmul_tiled")
    tile = a._device.__tile_size__ if tiled else None
    if tile and m * n * p and not (m % tile or n % tile or p % tile):
        return matmul_tiled(a._cast(dtype), b._cast(dtype), tile)
    out = a._new((m, p), dtype)
    if n == 0:
        out.fill(0)  # an empty sum
    elif m and p:
        a._kernel("matmul", dtype)(a._flat(dtype), b._flat(dtype), out._handle, m, n, p)
    return out


def matmul_tiled(a: NDArray, b: NDArray, tile: int) -> NDArray:
    """The product by the kernel that works on tiles.  (m, n) @ (n, p), all multiples of tile, → (m, p)."""
    m, p = a.shape[0], b.shape[1]
    out = a._new((m // tile, p // tile, tile, tile), a.dtype)
    kernel = a._kernel("matmul_tiled")
    kernel(_tiles(a, tile), _tiles(b, tile), out._handle, m, a.shape[1], p)
    return out.permute((0, 2, 1, 3)).reshape((m, p))


def _tiles(a: NDArray, tile: int) -> Any:
    """(m, n) → compact (m / tile, n / tile, tile, tile): each tile lies together in memory."""
    rows, columns = a.shape
    return a.reshape((rows // tile, tile, columns // tile, tile)).permute((0, 2, 1, 3))._flat(a.dtype)


def matmul_batched(a: NDArray, b: NDArray, batch: Shape) -> NDArray:
    """Products of corresponding matrices of two batches, of which either may be a single matrix."""
    (m, n), p = a.shape[-2:], b.shape[-1]
    dtype = promote(a.dtype, b.dtype)
    strided = kernels.device_kernel("matmul_strided", a.device.name, dtype)
    if strided is not None:
        return _in_place(a._cast(dtype), b._cast(dtype), batch, strided)
    if b.ndim == 2 and n:  # every row of the batch meets the same matrix: one product does
        return matmul_2d(a.reshape((-1, n)), b).reshape(batch + (m, p))
    out = a._new(batch + (m, p), dtype)
    kernel = kernels.device_kernel("matmul_batched", a.device.name, dtype)
    if n == 0:
        out.fill(0)  # empty sums
    elif out.size and kernel is not None:
        (left, left_step), (right, right_step) = _batch_of(a, batch, dtype), _batch_of(b, batch, dtype)
        kernel(left, right, out._handle, math.prod(batch), m, n, p, left_step, right_step)
    elif out.size:
        _one_by_one(a.broadcast_to(batch + (m, n)), b.broadcast_to(batch + (n, p)), out)
    return out


def _in_place(a: NDArray, b: NDArray, batch: Shape, kernel: Callable) -> NDArray:
    """The products by a kernel that takes operands wherever their matrices lie: none is copied."""
    (m, n), p = a.shape[-2:], b.shape[-1]
    out = a._new(batch + (m, p), a.dtype)
    a, b = a.broadcast_to(batch + (m, n)), b.broadcast_to(batch + (n, p))
    kernel(a._handle, b._handle, out._handle, (*batch, m, n, p), a._strides, a._offset, b._strides, b._offset)
    return out


def _batch_of(x: NDArray, batch: Shape, dtype: str) -> tuple[Any, int]:
    """Flat storage of the matrices of a batch, and the step from one to the next: 0 where there is but one."""
    size = x.shape[-2] * x.shape[-1]
    if x.size == size:
        return x._flat(dtype), 0
    return x.broadcast_to(batch + x.shape[-2:])._flat(dtype), size


def _one_by_one(a: NDArray, b: NDArray, out: NDArray) -> None:
    """Products of a batch where no kernel takes all of it."""
    lefts, rights, products = (x.reshape((-1, *x.shape[-2:])) for x in (a, b, out))
    for i in range(len(products)):
        products[i] = matmul_2d(lefts[i].reshape(a.shape[-2:]), rights[i].reshape(b.shape[-2:]))
