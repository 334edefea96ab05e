"""Attention on the CPU: all heads in one pass over blocks of queries, forward and backward, without their weights."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Tensor
from ..backend_selection import NDArray
from .ops_attention import Attention
from .whole_operations import empty
from .whole_recurrent import run


def attention_forward(op: Attention, q: NDArray, k: NDArray, v: NDArray) -> NDArray:
    if not fits(op, q, k, v):
        return NotImplemented
    batch, queries, heads, depth = q.shape
    out, lse = empty(q.shape, q), empty((batch, heads, queries), q)
    run("attention_forward", q, k, v, out, lse, batch, heads, queries, k.shape[1], depth, op.causal)
    op.saved = lse
    return out


def attention_backward(op: Attention, out_grad: Tensor, node: Tensor) -> Any:
    if op.saved is None:
        return NotImplemented
    q, k, v = (x.cached_data for x in node.inputs)
    batch, queries, heads, depth = q.shape
    grads = [empty(x.shape, x) for x in (q, k, v)]
    sizes = batch, heads, queries, k.shape[1], depth, op.causal
    run("attention_backward", q, k, v, node.cached_data, op.saved, out_grad.cached_data, *grads, *sizes)
    return tuple(Tensor.make_const(grad) for grad in grads)


def fits(op: Attention, q: NDArray, k: NDArray, v: NDArray) -> bool:
    """Whether there is a kernel, and every query sees a key; else the plain path decides, or complains."""
    return (
        kernels.device_kernel("attention_forward", q.device.name, q.dtype) is not None
        and q.dtype == k.dtype == v.dtype
        and q.ndim == 4
        and k.shape == v.shape == (q.shape[0], k.shape[1], *q.shape[2:])
        and q.size > 0 < k.size
        and not (op.causal and q.shape[1] > k.shape[1])
    )


for dtype in ("float32", "float64"):
    kernels.register_operation(Attention, "cpu", dtype, forward=attention_forward, backward=attention_backward)
