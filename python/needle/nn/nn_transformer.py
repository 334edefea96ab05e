"""Attention, and the network that is made of it.  (Vaswani et al. 2017)

Sequences here have the batch first: x is (B, T, F); heads are (B, H, T, D).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import NDArray, Tensor, init, ops
from ..errors import ArgumentError, ShapeError
from .module import Module
from .nn_basic import Dropout, LayerNorm1d, Linear
from .nn_sequence import Embedding


class MultiHeadAttention(Module):
    """Each query takes the mean of the values, weighted by how well it fits their keys.  It has no parameters.

    probs = dropout(softmax(q kᵀ / √D + mask)), result = probs v.  The mask is a huge negative number, never -∞, where
    a query must not look: at later keys (if causal), and at padding.  device and dtype are accepted, as by all layers,
    and not needed.
    """

    def __init__(
        self, *, dropout: float = 0.0, causal: bool = False, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.causal = causal
        self.dropout = Dropout(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """q (B, H, Tq, D), k and v (B, H, Tk, D) → result (B, H, Tq, D), and the probabilities (B, H, Tq, Tk).

        padding_mask (B, Tk) is true (or 1) at keys that are padding; a query with nothing else to look at looks
        everywhere alike.
        """
        _check_heads(q, k, v)
        ### BEGIN YOUR SOLUTION hw4_extra/attention_activation
        logits = self.matmul(q, k) / math.sqrt(q.shape[3])
        if self.causal or padding_mask is not None:
            logits = logits + ops.broadcast_to(self.mask(logits, padding_mask), logits.shape)
        probs = self.dropout(self.softmax(logits))
        return self.matmul(probs, ops.transpose(v)), probs
        ### END YOUR SOLUTION hw4_extra/attention_activation

    def create_causal_mask(self, i: int, j: int, device: Any) -> NDArray:
        """(1, 1, i, j): 0 where query i may look at key j, and the most negative float32 at later keys.

        Where there are more keys than queries, the last query belongs to the last key.
        """
        later = _later(i, j).reshape(1, 1, i, j)
        return Tensor(_negative(later), device=device, dtype="float32").realize_cached_data()

    def mask(self, logits: Tensor, padding_mask: Tensor | None) -> Tensor:
        """What to add to the logits (B, H, Tq, Tk): (1 or B, 1, Tq, Tk)."""
        batch, _, queries, keys = logits.shape
        hidden = np.zeros((1, 1, queries, keys), dtype=bool)
        if self.causal:
            hidden = hidden | _later(queries, keys)
        if padding_mask is not None:
            if padding_mask.shape != (batch, keys):
                raise ShapeError(f"attention: padding_mask {padding_mask.shape}, wanted {(batch, keys)}")
            hidden = hidden | np.asarray(padding_mask).astype(bool).reshape(batch, 1, 1, keys)
        return Tensor(_negative(hidden), device=logits.device, dtype=logits.dtype, requires_grad=False)

    def matmul(self, a: Tensor, b_transpose: Tensor) -> Tensor:
        """a bᵀ for every batch and head: (B, H, M, D), (B, H, N, D) → (B, H, M, N)."""
        return ops.matmul(a, ops.transpose(b_transpose))

    def softmax(self, logit: Tensor) -> Tensor:
        """Positive numbers that sum to 1 over the last of four axes."""
        return ops.softmax(logit, 3)


class AttentionLayer(Module):
    """Multi-head attention between sequences: normalize, project, attend, project back."""

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        *,
        k_features: int | None = None,
        v_features: int | None = None,
        out_features: int | None = None,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.q_features = q_features
        self.k_features = q_features if k_features is None else k_features
        self.v_features = q_features if v_features is None else v_features
        self.out_features = q_features if out_features is None else out_features
        self.num_head = num_head
        self.dim_head = dim_head
        placed = {"device": device, "dtype": dtype}
        self.prenorm_q = LayerNorm1d(self.q_features, **placed)
        self.prenorm_k = LayerNorm1d(self.k_features, **placed)
        self.prenorm_v = LayerNorm1d(self.v_features, **placed)
        width = num_head * dim_head
        self.q_projection = Linear(self.q_features, width, bias=False, **placed)
        self.k_projection = Linear(self.k_features, width, bias=False, **placed)
        self.v_projection = Linear(self.v_features, width, bias=False, **placed)
        self.attn = MultiHeadAttention(dropout=dropout, causal=causal, **placed)
        self.out_projection = Linear(width, self.out_features, bias=False, **placed)

    def forward(
        self, q: Tensor, k: Tensor | None = None, v: Tensor | None = None, *, padding_mask: Tensor | None = None
    ) -> Tensor:
        """q (B, Tq, F), k and v (B, Tk, F), both q by default → (B, Tq, out_features).  padding_mask: (B, Tk)."""
        k, v = (q if k is None else k), (q if v is None else v)
        ### BEGIN YOUR SOLUTION hw4_extra/attention_forward
        heads = (
            self.heads(q, self.prenorm_q, self.q_projection),
            self.heads(k, self.prenorm_k, self.k_projection),
            self.heads(v, self.prenorm_v, self.v_projection),
        )
        result, _ = self.attn(*heads, padding_mask=padding_mask)
        batch, _, queries, _ = result.shape
        merged = ops.reshape(ops.transpose(result, (1, 2)), (batch * queries, self.num_head * self.dim_head))
        return ops.reshape(self.out_projection(merged), (batch, queries, self.out_features))
        ### END YOUR SOLUTION hw4_extra/attention_forward

    def heads(self, x: Tensor, prenorm: LayerNorm1d, projection: Linear) -> Tensor:
        """(B, T, F) → (B, H, T, D)."""
        if x.ndim != 3 or x.shape[2] != projection.in_features:
            raise ShapeError(f"attention: got shape {x.shape}, wanted (B, T, {projection.in_features})")
        ### BEGIN YOUR SOLUTION hw4_extra/attention_heads
        batch, steps, features = x.shape
        rows = projection(prenorm(ops.reshape(x, (batch * steps, features))))
        return ops.transpose(ops.reshape(rows, (batch, steps, self.num_head, self.dim_head)), (1, 2))
        ### END YOUR SOLUTION hw4_extra/attention_heads


class TransformerLayer(Module):
    """Attention, then a small network for every step alone, each added to what came in.  (B, T, F) → (B, T, F)."""

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        hidden_size: int,
        *,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        placed = {"device": device, "dtype": dtype}
        ### BEGIN YOUR SOLUTION hw4_extra/transformer_layer_init
        self.attention = AttentionLayer(q_features, num_head, dim_head, dropout=dropout, causal=causal, **placed)
        self.norm = LayerNorm1d(q_features, **placed)
        self.linear1 = Linear(q_features, hidden_size, **placed)
        self.linear2 = Linear(hidden_size, q_features, **placed)
        self.dropout = Dropout(dropout)
        ### END YOUR SOLUTION hw4_extra/transformer_layer_init

    def forward(self, x: Tensor, *, padding_mask: Tensor | None = None) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4_extra/transformer_layer_forward
        x = x + self.dropout(self.attention(x, padding_mask=padding_mask))
        batch, steps, features = x.shape
        rows = self.norm(ops.reshape(x, (batch * steps, features)))
        hidden = self.dropout(ops.relu(self.linear1(rows)))
        rows = self.dropout(self.linear2(hidden))
        return x + ops.reshape(rows, x.shape)
        ### END YOUR SOLUTION hw4_extra/transformer_layer_forward


class Transformer(Module):
    """Transformer layers over a sequence, to which learned positions are added.

    hidden_size is the width of the small network inside the layers; sequence_len the longest sequence it can read.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        num_head: int = 8,
        dim_head: int = 32,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: str = "float32",
        batch_first: bool = False,
        sequence_len: int = 2048,
    ) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.sequence_len = sequence_len
        placed = {"device": device, "dtype": dtype}
        ### BEGIN YOUR SOLUTION hw4_extra/transformer_init
        self.positions = Embedding(sequence_len, embedding_size, **placed)
        self.layers = [
            TransformerLayer(embedding_size, num_head, dim_head, hidden_size, dropout=dropout, causal=causal, **placed)
            for _ in range(num_layers)
        ]
        ### END YOUR SOLUTION hw4_extra/transformer_init

    def forward(
        self, x: Tensor, h: Tensor | None = None, *, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x (T, B, F), or (B, T, F) if batch_first → the same shape, and zeros in place of a recurrent state.

        h is accepted and not read, so that a transformer is called as an RNN is.
        """
        if x.ndim != 3:
            raise ShapeError(f"transformer: got shape {x.shape}, wanted three axes: time, batch, features")
        ### BEGIN YOUR SOLUTION hw4_extra/transformer_forward
        if not self.batch_first:
            x = ops.transpose(x, (0, 1))
        x = x + self.embedded_positions(x)
        for layer in self.layers:
            x = layer(x, padding_mask=padding_mask)
        if not self.batch_first:
            x = ops.transpose(x, (0, 1))
        return x, init.zeros_like(x)
        ### END YOUR SOLUTION hw4_extra/transformer_forward

    def embedded_positions(self, x: Tensor) -> Tensor:
        """The vectors of positions 0 … T - 1, the same for every sequence of the batch.  (B, T, F) → (B, T, F)."""
        _, steps, features = x.shape
        if steps > self.sequence_len:
            raise ArgumentError(f"transformer: {steps} steps, wanted at most sequence_len = {self.sequence_len}")
        ### BEGIN YOUR SOLUTION hw4_extra/embedded_positions
        numbers = init.arange(steps, device=x.device, dtype="float32")
        return ops.broadcast_to(ops.reshape(self.positions(numbers), (1, steps, features)), x.shape)
        ### END YOUR SOLUTION hw4_extra/embedded_positions


def _later(queries: int, keys: int) -> np.ndarray:
    """(queries, keys), true where the key comes after the query; the last query belongs to the last key."""
    return np.triu(np.ones((queries, keys), dtype=bool), keys - queries + 1)


def _negative(hidden: np.ndarray) -> np.ndarray:
    """The most negative float32 where hidden is true, else 0: finite, so that a row with nothing to see is no NaN."""
    return np.where(hidden, np.finfo(np.float32).min, np.float32(0))


def _check_heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    fits = q.ndim == k.ndim == v.ndim == 4 and q.shape[:2] == k.shape[:2] and k.shape[:3] == v.shape[:3]
    if not fits or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"attention: q {q.shape}, k {k.shape}, v {v.shape}, wanted (B, H, Tq, D) and twice (B, H, Tk, D)"
        )
