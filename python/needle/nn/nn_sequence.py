"""Networks that read sequences step by step: recurrent cells and layers, embeddings.

Sequences have the time first: X is (T, B, I) for T steps, a batch of B, I features.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import Tensor, TensorTuple, init, ops
from ..errors import ArgumentError, ArgumentTypeError, ShapeError, describe
from .module import Module, Parameter


class Sigmoid(Module):
    """1 / (1 + e⁻ˣ), entry by entry."""

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/sigmoid
        return (1 + ops.tanh(x / 2)) / 2  # nothing overflows
        ### END YOUR SOLUTION hw4/sigmoid


class RNNCell(Module):
    """One step of a recurrent network: h' = f(X W_ih + b_ih + h W_hh + b_hh), f = tanh or relu.  (Elman 1990)

    W_ih (input_size, hidden_size), W_hh (hidden_size, hidden_size); the biases (hidden_size,), or None.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"rnn_cell: nonlinearity {nonlinearity!r}, wanted 'tanh' or 'relu'")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.nonlinearity = nonlinearity
        self.W_ih, self.W_hh, self.bias_ih, self.bias_hh = recurrent_parameters(
            input_size, hidden_size, hidden_size, bias, device, dtype
        )

    def forward(self, X: Tensor, h: Tensor | None = None) -> Tensor:
        """X (B, I), h (B, H) or None for zeros → (B, H)."""
        h = checked_state("rnn_cell", self, X, h)
        ### BEGIN YOUR SOLUTION hw4/rnn_cell
        total = affine(X, self.W_ih, self.bias_ih) + affine(h, self.W_hh, self.bias_hh)
        return ops.tanh(total) if self.nonlinearity == "tanh" else ops.relu(total)
        ### END YOUR SOLUTION hw4/rnn_cell


class RNN(Module):
    """Recurrent layers on top of each other, run over a sequence."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.rnn_cells = [
            RNNCell(size, hidden_size, bias, nonlinearity, device, dtype)
            for size in layer_sizes("rnn", input_size, hidden_size, num_layers)
        ]

    def forward(self, X: Tensor, h0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """X (T, B, I), h0 (L, B, H) or None for zeros → output of the last layer (T, B, H), final h (L, B, H)."""
        hidden = unstacked_state("rnn", self, X, h0)
        ### BEGIN YOUR SOLUTION hw4/rnn_forward
        outputs = []
        for x in ops.split(X, 0):
            for layer, cell in enumerate(self.rnn_cells):
                x = hidden[layer] = cell(x, hidden[layer])
            outputs.append(x)
        return ops.stack(outputs, 0), ops.stack(hidden, 0)
        ### END YOUR SOLUTION hw4/rnn_forward


class LSTMCell(Module):
    """One step of a network with a long memory c, which three gates erase, write and show.

    i, f, g, o = X W_ih + b_ih + h W_hh + b_hh, each (B, H); c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c').
    (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)
    W_ih (input_size, 4 hidden_size), W_hh (hidden_size, 4 hidden_size); the biases (4 hidden_size,), or None.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.W_ih, self.W_hh, self.bias_ih, self.bias_hh = recurrent_parameters(
            input_size, hidden_size, 4 * hidden_size, bias, device, dtype
        )

    def forward(self, X: Tensor, h: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """X (B, I), h = (h, c), each (B, H), or None for zeros → (h', c')."""
        h0, c0 = two_states("lstm_cell", h)
        h0, c0 = checked_state("lstm_cell", self, X, h0), checked_state("lstm_cell", self, X, c0)
        ### BEGIN YOUR SOLUTION hw4/lstm_cell
        gates = affine(X, self.W_ih, self.bias_ih) + affine(h0, self.W_hh, self.bias_hh)
        i, f, g, o = ops.split(ops.reshape(gates, (X.shape[0], 4, self.hidden_size)), 1)
        sigmoid = Sigmoid()
        c = sigmoid(f) * c0 + sigmoid(i) * ops.tanh(g)
        return sigmoid(o) * ops.tanh(c), c
        ### END YOUR SOLUTION hw4/lstm_cell


class LSTM(Module):
    """LSTM layers on top of each other, run over a sequence."""

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
        self.lstm_cells = [
            LSTMCell(size, hidden_size, bias, device, dtype)
            for size in layer_sizes("lstm", input_size, hidden_size, num_layers)
        ]

    def forward(self, X: Tensor, h: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """X (T, B, I), h = (h0, c0), each (L, B, H), or None for zeros → output (T, B, H), final (h, c)."""
        h0, c0 = two_states("lstm", h)
        state = list(zip(unstacked_state("lstm", self, X, h0), unstacked_state("lstm", self, X, c0), strict=True))
        ### BEGIN YOUR SOLUTION hw4/lstm_forward
        outputs = []
        for x in ops.split(X, 0):
            for layer, cell in enumerate(self.lstm_cells):
                state[layer] = cell(x, state[layer])
                x = state[layer][0]
            outputs.append(x)
        hidden, memory = zip(*state, strict=True)
        return ops.stack(outputs, 0), (ops.stack(hidden, 0), ops.stack(memory, 0))
        ### END YOUR SOLUTION hw4/lstm_forward


class Embedding(Module):
    """A learned vector for every number from 0 to num_embeddings - 1.  weight (num_embeddings, embedding_dim)."""

    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: str = "float32") -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        ### BEGIN YOUR SOLUTION hw4/embedding_init
        self.weight = Parameter(init.randn(num_embeddings, embedding_dim, device=device, dtype=dtype))
        ### END YOUR SOLUTION hw4/embedding_init

    def forward(self, x: Tensor) -> Tensor:
        """Whole numbers of any dtype, (T, B) or any other shape (…) → (…, embedding_dim)."""
        ids = x.numpy()
        if ids.size and not (ids.min() >= 0 and ids.max() < self.num_embeddings):
            raise ArgumentError(
                f"embedding: numbers from {ids.min()} to {ids.max()}, wanted 0 to {self.num_embeddings - 1}"
            )
        ### BEGIN YOUR SOLUTION hw4/embedding_forward
        return ops.take(self.weight, ids, 0)
        ### END YOUR SOLUTION hw4/embedding_forward


# ---- what the recurrent layers share ---------------------------------------------------------------------------------


def recurrent_parameters(
    input_size: int, hidden_size: int, width: int, bias: bool, device: Any, dtype: str
) -> tuple[Parameter, Parameter, Parameter | None, Parameter | None]:
    """W_ih (I, width), W_hh (H, width), and two biases (width,) or None, all from U(-1/√H, 1/√H)."""
    ### BEGIN YOUR SOLUTION hw4/recurrent_parameters
    bound = 1 / math.sqrt(hidden_size)

    def uniform(*shape: int) -> Parameter:
        return Parameter(init.rand(*shape, low=-bound, high=bound, device=device, dtype=dtype))

    weights = uniform(input_size, width), uniform(hidden_size, width)
    return (*weights, uniform(width), uniform(width)) if bias else (*weights, None, None)
    ### END YOUR SOLUTION hw4/recurrent_parameters


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W + b.  (B, I), (I, W), (W,) or None → (B, W)."""
    y = ops.matmul(x, weight)
    if bias is None:
        return y
    return y + ops.broadcast_to(ops.reshape(bias, (1, y.shape[1])), y.shape)


def layer_sizes(name: str, input_size: int, hidden_size: int, num_layers: int) -> list[int]:
    """The input size of every layer: the first reads the input, the others the layer below."""
    if num_layers < 1:
        raise ArgumentError(f"{name}: num_layers {num_layers}, wanted 1 or more")
    return [input_size] + [hidden_size] * (num_layers - 1)


def checked_state(name: str, cell: Any, X: Tensor, h: Tensor | None) -> Tensor:
    """h, or zeros if there is none; raises ShapeError where X is not (B, I) or h not (B, H)."""
    if X.ndim != 2 or X.shape[1] != cell.input_size:
        raise ShapeError(f"{name}: got X {X.shape}, wanted (B, {cell.input_size})")
    wanted = (X.shape[0], cell.hidden_size)
    if h is None:
        return init.zeros(*wanted, device=X.device, dtype=X.dtype)
    if not isinstance(h, Tensor) or h.shape != wanted:
        raise ShapeError(f"{name}: got X {X.shape} and state {describe(h)}, wanted {wanted}")
    return h


def two_states(name: str, state: Any) -> tuple[Tensor | None, Tensor | None]:
    """h and c of a pair of them; None and None if there is no state."""
    if state is None:
        return None, None
    if not isinstance(state, (tuple, list, TensorTuple)) or len(state) != 2:
        raise ArgumentTypeError(f"{name}: got {describe(state)} as a state, wanted a pair (h, c)")
    return state[0], state[1]


def unstacked_state(name: str, rnn: Any, X: Tensor, h: Tensor | None) -> list[Tensor]:
    """The state of every layer, from (L, B, H) or, if there is none, zeros; ShapeError where X or h does not fit."""
    if X.ndim != 3 or not X.shape[0]:
        raise ShapeError(f"{name}: got X {X.shape}, wanted (T, B, I) with at least one step")
    wanted = (rnn.num_layers, X.shape[1], rnn.hidden_size)
    if h is None:
        return [init.zeros(*wanted[1:], device=X.device, dtype=X.dtype) for _ in range(rnn.num_layers)]
    if not isinstance(h, Tensor) or h.shape != wanted:
        raise ShapeError(f"{name}: got X {X.shape} and state {describe(h)}, wanted {wanted}")
    return list(ops.split(h, 0))
