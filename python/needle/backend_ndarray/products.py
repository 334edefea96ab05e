"""Matrix products: one pair of matrices, the course's tiled path, and batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import kernels
from ..errors import ShapeError
from .dtypes import promote
from .indexing import Shape, broadcast_shapes

if TYPE_CHECKING:
    from .ndarray import NDArray


def matmul(a: NDArray, b: NDArray) -> NDArray:
    """a @ b as in NumPy: (…, m, n) @ (…, n, p) → (…, m, p); an operand with a single axis is a row or a column."""
    if not a.ndim or not b.ndim:
        raise ShapeError(f"matmul: {a.shape} @ {b.shape}: an operand has no axes; multiply by it with *")
    left = a.expand_dims(0) if a.ndim == 1 else a
    right = b.expand_dims(1) if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(f"matmul: {a.shape} @ {b.shape}: inner sizes {left.shape[-1]} and {right.shape[-2]} differ")
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if batch is None:
        raise ShapeError(f"matmul: {a.shape} @ {b.shape}: the axes in front do not broadcast")
    dtype = promote(a.dtype, b.dtype)
    out = _matmul(left._cast(dtype), right._cast(dtype), batch)
    added = [axis for axis, operand in ((-2, a), (-1, b)) if operand.ndim == 1]
    return out.squeeze(added) if added else out


def _matmul(a: NDArray, b: NDArray, batch: Shape) -> NDArray:
    (m, n), p = a.shape[-2:], b.shape[-1]
    shape = batch + (m, p)
    if 0 in shape or n == 0:
        out = a._new(shape, a.dtype)
        out.fill(0)  # an empty sum
        return out
    if b.ndim == 2:  # every row of the batch meets the same matrix: one product does
        return a.reshape((-1, n))._matmul_2d(b).reshape(shape)
    return matmul_batched(a, b, batch)


def matmul_tiled(a: NDArray, b: NDArray, tile: int) -> NDArray:
    """The product by the kernel that works on tiles.  (m, n) @ (n, p), all multiples of tile, → (m, p)."""
    m, p = a.shape[0], b.shape[1]
    out = a._new((m // tile, p // tile, tile, tile), a.dtype)
    kernel = a._kernel("matmul_tiled")
    kernel(_tiles(a, tile), _tiles(b, tile), out._handle, m, a.shape[1], p)
    return out.permute((0, 2, 1, 3)).reshape((m, p))


def _tiles(a: NDArray, tile: int):
    """(m, n) → compact (m / tile, n / tile, tile, tile): each tile lies together in memory."""
    rows, columns = a.shape
    return a.reshape((rows // tile, tile, columns // tile, tile)).permute((0, 2, 1, 3))._flat(a.dtype)


def matmul_batched(a: NDArray, b: NDArray, batch: Shape) -> NDArray:
    """Products of corresponding matrices of two batches, of which either may be a single matrix."""
    (m, n), p = a.shape[-2:], b.shape[-1]
    out, count = a._new(batch + (m, p), a.dtype), math.prod(batch)
    kernel = kernels.device_kernel("matmul_batched", a.device.name, a.dtype)
    if kernel is not None:
        (left, left_step), (right, right_step) = _batch_of(a, batch), _batch_of(b, batch)
        kernel(left, right, out._handle, count, m, n, p, left_step, right_step)
        return out
    lefts, rights = (x.broadcast_to(batch + x.shape[-2:]).reshape((count, *x.shape[-2:])) for x in (a, b))
    products = out.reshape((count, m, p))
    for i in range(count):
        products[i] = lefts[i].reshape((m, n))._matmul_2d(rights[i].reshape((n, p)))
    return out


def _batch_of(x: NDArray, batch: Shape) -> tuple:
    """Flat storage of the matrices of a batch, and the step from one to the next: 0 where there is but one."""
    rows, columns = x.shape[-2:]
    if x.size == rows * columns:
        return x._flat(x.dtype), 0
    return x.broadcast_to(batch + (rows, columns))._flat(x.dtype), rows * columns
