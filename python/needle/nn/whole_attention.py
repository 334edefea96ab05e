"""Attention layers on the CPU: between the projections, one operator for all heads."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, kernels, ops
from ..ops.ops_attention import Attention
from .nn_basic import LayerNorm1d, Linear
from .nn_transformer import AttentionLayer, MultiHeadAttention


def attention_layer(
    module: AttentionLayer, q: Tensor, k: Any = None, v: Any = None, *, padding_mask: Any = None
) -> Any:
    """q (B, Tq, F), k and v (B, Tk, F) → (B, Tq, out_features).  Heads stay where the projections leave them."""
    k, v = (q if k is None else k), (q if v is None else v)
    if padding_mask is not None or not _plain(module.attn) or not _fit(module, q, k, v):
        return NotImplemented
    heads = (
        _heads(module, q, module.prenorm_q, module.q_projection),
        _heads(module, k, module.prenorm_k, module.k_projection),
        _heads(module, v, module.prenorm_v, module.v_projection),
    )
    result = Attention(module.attn.causal)(*heads)
    batch, queries, _ = q.shape
    merged = ops.reshape(result, (batch * queries, module.num_head * module.dim_head))
    return ops.reshape(module.out_projection(merged), (batch, queries, module.out_features))


def _heads(module: AttentionLayer, x: Tensor, prenorm: LayerNorm1d, projection: Linear) -> Tensor:
    """(B, T, F) → (B, T, H, D)."""
    batch, steps, features = x.shape
    rows = projection(prenorm(ops.reshape(x, (batch * steps, features))))
    return ops.reshape(rows, (batch, steps, module.num_head, module.dim_head))


def _plain(attention: Any) -> bool:
    """Whether it is the library's own, nobody watches it, and it drops nothing now."""
    parts = attention, getattr(attention, "dropout", None)
    drops = parts[1] is not None and parts[1].training and parts[1].p > 0
    return type(attention) is MultiHeadAttention and not drops and all("_hooks" not in vars(p) for p in parts)


def _fit(module: AttentionLayer, q: Any, k: Any, v: Any) -> bool:
    """Whether the kernel can do it; else the plain path does, or complains."""
    if not all(isinstance(x, Tensor) and x.ndim == 3 and x.size and x.dtype == q.dtype for x in (q, k, v)):
        return False
    widths = module.q_features, module.k_features, module.v_features
    return (
        all(x.shape[2] == width and x.shape[0] == q.shape[0] for x, width in zip((q, k, v), widths, strict=True))
        and k.shape[1] == v.shape[1]
        and not (module.attn.causal and q.shape[1] > k.shape[1])
    )


for dtype in ("float32", "float64"):
    kernels.register_operation(AttentionLayer, "cpu", dtype, forward=attention_layer)
