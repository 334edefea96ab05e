"""The gradient of a gather on the CPU in one pass: zeros and sums together, on several threads."""

from __future__ import annotations

import math

from .. import kernels
from ..backend_selection import NDArray, array_api
from .ops_indexing import ScatterAdd
from .whole_operations import empty


def scatter_add_forward(op: ScatterAdd, a: NDArray) -> NDArray:
    kernel = kernels.device_kernel("scatter_sum", a.device.name, a.dtype)
    front, extent, back = op.shape[: op.axis], op.shape[op.axis], op.shape[op.axis + 1 :]
    if kernel is None or op.axis < 0 or a.shape != (*front, *op.ids.shape, *back):
        return NotImplemented
    out, ids = empty(op.shape, a), array_api.array(op.ids, dtype="int64", device=a.device)
    kernel(a.compact()._handle, ids._handle, out._handle, math.prod(front), extent, math.prod(back))
    return out


for dtype in ("float32", "float64"):
    kernels.register_operation(ScatterAdd, "cpu", dtype, forward=scatter_add_forward)
