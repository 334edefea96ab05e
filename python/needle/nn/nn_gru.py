"""The gated recurrent unit, a lighter LSTM: two gates, no separate memory."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, ops
from .module import Module
from .nn_sequence import affine, checked_state, layer_sizes, recurrent_parameters, unstacked_state


class GRUCell(Module):
    """One step: r = σ(…), z = σ(…), n = tanh(x W_in + b_in + r (h W_hn + b_hn)); h' = (1 - z) n + z h.

    (Cho et al. 2014; r inside the tanh applied after the product, so that all products of a step can be one)
    W_ih (input_size, 3 hidden_size), W_hh (hidden_size, 3 hidden_size), column blocks r, z, n; biases (3 hidden_size,).
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.W_ih, self.W_hh, self.bias_ih, self.bias_hh = recurrent_parameters(
            input_size, hidden_size, 3 * hidden_size, bias, device, dtype
        )

    def forward(self, X: Tensor, h: Tensor | None = None) -> Tensor:
        """X (B, I), h (B, H) or None for zeros → (B, H)."""
        h = checked_state("gru_cell", self, X, h)
        of_x = affine(X, self.W_ih, self.bias_ih)
        of_h = affine(h, self.W_hh, self.bias_hh)
        blocks = (X.shape[0], 3, self.hidden_size)
        (xr, xz, xn), (hr, hz, hn) = (ops.split(ops.reshape(part, blocks), 1) for part in (of_x, of_h))
        r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        n = ops.tanh(xn + r * hn)
        return n + z * (h - n)


class GRU(Module):
    """GRU layers on top of each other, run over a sequence."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.gru_cells = [
            GRUCell(size, hidden_size, bias, device, dtype)
            for size in layer_sizes("gru", input_size, hidden_size, num_layers)
        ]

    def forward(self, X: Tensor, h0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """X (T, B, I), h0 (L, B, H) or None for zeros → output of the last layer (T, B, H), final h (L, B, H)."""
        hidden = unstacked_state("gru", self, X, h0)
        outputs = []
        for x in ops.split(X, 0):
            for layer, cell in enumerate(self.gru_cells):
                x = hidden[layer] = cell(x, hidden[layer])
            outputs.append(x)
        return ops.stack(outputs, 0), ops.stack(hidden, 0)
