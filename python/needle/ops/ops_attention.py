"""Attention of all heads as one operator.  (Vaswani et al. 2017)"""

from __future__ import annotations

import math

import numpy as np

from ..autograd import Tensor
from ..backend_selection import NDArray
from ..execution import no_grad
from .ops_activation import softmax
from .ops_fused import FusedOp
from .ops_mathematic import broadcast_to, matmul, reshape, summation, transpose

__all__ = ["Attention"]


class Attention(FusedOp):
    """softmax(q kᵀ / √D + mask) v for every head.  q (B, Tq, H, D), k and v (B, Tk, H, D) → (B, Tq, H, D).

    If causal, the last query belongs to the last key, and no query sees a later key.
    """

    def __init__(self, causal: bool) -> None:
        self.causal = causal

    def compute(self, q: NDArray, k: NDArray, v: NDArray) -> NDArray:
        with no_grad():
            queries, keys, values = (of_heads(Tensor.make_const(x)) for x in (q, k, v))
            return of_heads(matmul(self._probs(queries, keys), values)).realize_cached_data()

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = map(of_heads, node.inputs)
        grad, probs = of_heads(out_grad), self._probs(q, k)
        to_probs = matmul(grad, transpose(v))
        mean = summation(probs * to_probs, 3)
        mean = broadcast_to(reshape(mean, (*mean.shape, 1)), probs.shape)
        to_logits = probs * (to_probs - mean) / math.sqrt(q.shape[3])
        to_k, to_v = matmul(transpose(to_logits), q), matmul(transpose(probs), grad)
        return of_heads(matmul(to_logits, k)), of_heads(to_k), of_heads(to_v)

    def _probs(self, q: Tensor, k: Tensor) -> Tensor:
        """What each query weighs each key by.  (B, H, Tq, D), (B, H, Tk, D) → (B, H, Tq, Tk)."""
        logits = matmul(q, transpose(k)) / math.sqrt(q.shape[3])
        if self.causal:
            queries, keys = logits.shape[2:]
            later = np.triu(np.ones((queries, keys), dtype=bool), keys - queries + 1)
            mask = np.where(later, np.finfo(np.float32).min, np.float32(0))
            logits = logits + Tensor(mask, device=q.device, dtype=q.dtype, requires_grad=False)
        return softmax(logits, 3)


def of_heads(x: Tensor) -> Tensor:
    """(B, T, H, D) → (B, H, T, D), and back."""
    return transpose(x, (1, 2))
