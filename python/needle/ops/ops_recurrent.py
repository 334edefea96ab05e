"""Operators that are a whole layer of recurrent cells, run over a sequence: (T, B, I) → (T, B, H).

Each computes and differentiates by plain operators, too, step by step and back through time (Rumelhart, Hinton and
Williams 1986; Werbos 1990): that is what runs where there is no kernel, where a graph is recorded through the gradient,
and what the kernels are tested against.  Biases are always given; a layer without them has zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp
from ..backend_selection import NDArray
from ..execution import no_grad
from .ops_activation import sigmoid
from .ops_mathematic import matmul, relu, reshape, split, stack, summation, tanh, transpose

__all__ = ["GRULayer", "LSTMLayer", "RNNLayer"]


class RecurrentOp:
    saved: Any = None  # what the kernel of the forward pass leaves to that of the backward pass

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # arrays would not help a reader


class RNNLayer(RecurrentOp, TensorOp):
    """h' = f(x W_ih + b_ih + h W_hh + b_hh), f = tanh or relu.  (Elman 1990)

    x (T, B, I), h0 (B, H), W_ih (I, H), W_hh (H, H), b_ih (H,), b_hh (H,) → h after every step (T, B, H).
    """

    name = "rnn_layer"

    def __init__(self, nonlinearity: str) -> None:
        self.nonlinearity = nonlinearity

    def compute(self, *arrays: NDArray) -> NDArray:
        with no_grad():
            return stack(self._states(*map(Tensor.make_const, arrays)), 0).realize_cached_data()

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, ...]:
        x, h0, W_ih, W_hh, _, _ = node.inputs
        states, out_grads = self._states(*node.inputs), split(out_grad, 0)
        to_gates: list[Tensor] = []  # the gradients of what f is taken of, the last step first
        for t in reversed(range(len(states))):
            to_h = out_grads[t] if not to_gates else out_grads[t] + to_before(to_gates[-1], W_hh)
            to_gates.append(to_h * self._slope(states[t]))
        grads, before = stack(to_gates[::-1], 0), stack([h0, *states[:-1]], 0)
        to_bias = to_bias_of(grads)
        to_h0 = to_before(to_gates[-1], W_hh)
        return to_inputs(grads, W_ih), to_h0, to_weight(x, grads), to_weight(before, grads), to_bias, to_bias

    def _states(self, x: Tensor, h: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> list[Tensor]:
        """h after every step."""
        bend = tanh if self.nonlinearity == "tanh" else relu
        states = []
        for of_x in split(matmul(x, W_ih) + (b_ih + b_hh), 0):
            h = bend(of_x + matmul(h, W_hh))
            states.append(h)
        return states

    def _slope(self, h: Tensor) -> Tensor:
        """f' where f has the value h."""
        return 1 - h * h if self.nonlinearity == "tanh" else (h > 0).astype(h.dtype)


class LSTMLayer(RecurrentOp, TensorTupleOp):
    """i, f, g, o = x W_ih + b_ih + h W_hh + b_hh; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c').

    x (T, B, I), h0 and c0 (B, H), W_ih (I, 4H), W_hh (H, 4H), b_ih and b_hh (4H,) → h after every step (T, B, H), and
    the last c (B, H).  (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)
    """

    name = "lstm_layer"

    def compute(self, *arrays: NDArray) -> tuple[NDArray, NDArray]:
        with no_grad():
            steps = self._steps(*map(Tensor.make_const, arrays))
            return stack([step[-1] for step in steps], 0).realize_cached_data(), steps[-1][4].realize_cached_data()

    def gradient(self, out_grad: TensorTuple, node: TensorTuple) -> tuple[Tensor, ...]:
        x, h0, c0, W_ih, W_hh, _, _ = node.inputs
        steps, out_grads, to_c = self._steps(*node.inputs), split(out_grad[0], 0), out_grad[1]
        to_gates: list[Tensor] = []  # the last step first
        for t in reversed(range(len(steps))):
            to_h = out_grads[t] if not to_gates else out_grads[t] + to_before(to_gates[-1], W_hh)
            (i, f, g, o, c, _), c_before = steps[t], steps[t - 1][4] if t else c0
            bent = tanh(c)
            to_c = to_c + to_h * o * (1 - bent * bent)
            to_gates.append(
                beside(
                    to_c * g * i * (1 - i),
                    to_c * c_before * f * (1 - f),
                    to_c * i * (1 - g * g),
                    to_h * bent * o * (1 - o),
                )
            )
            to_c = to_c * f
        grads, before = stack(to_gates[::-1], 0), stack([h0, *(step[-1] for step in steps[:-1])], 0)
        to_bias = to_bias_of(grads)
        to_h0 = to_before(to_gates[-1], W_hh)
        return to_inputs(grads, W_ih), to_h0, to_c, to_weight(x, grads), to_weight(before, grads), to_bias, to_bias

    def _steps(
        self, x: Tensor, h: Tensor, c: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor, b_hh: Tensor
    ) -> list[tuple[Tensor, ...]]:
        """σ(i), σ(f), tanh(g), σ(o), c and h after every step."""
        steps: list[tuple[Tensor, ...]] = []
        for of_x in split(matmul(x, W_ih) + (b_ih + b_hh), 0):
            i, f, g, o = blocks(of_x + matmul(h, W_hh), 4)
            i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
            c = f * c + i * g
            h = o * tanh(c)
            steps.append((i, f, g, o, c, h))
        return steps


class GRULayer(RecurrentOp, TensorOp):
    """r, z, n of x and of h: x W_ih + b_ih and h W_hh + b_hh; r = σ(rx + rh), z = σ(zx + zh), n = tanh(nx + r nh);
    h' = n + z (h - n).

    x (T, B, I), h0 (B, H), W_ih (I, 3H), W_hh (H, 3H), b_ih (3H,), b_hh (3H,) → h after every step (T, B, H).
    (Cho et al. 2014)
    """

    name = "gru_layer"

    def compute(self, *arrays: NDArray) -> NDArray:
        with no_grad():
            steps = self._steps(*map(Tensor.make_const, arrays))
            return stack([step[-1] for step in steps], 0).realize_cached_data()

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, ...]:
        x, h0, W_ih, W_hh, _, _ = node.inputs
        steps, out_grads = self._steps(*node.inputs), split(out_grad, 0)
        to_x: list[Tensor] = []  # the gradients of what x and h add to the gates, the last step first
        to_h: list[Tensor] = []
        carried: Any = 0  # what reaches the state of the step before: past the gates, and through them
        for t in reversed(range(len(steps))):
            (r, z, n, nh, _), h_before = steps[t], steps[t - 1][-1] if t else h0
            grad = out_grads[t] + carried
            to_n, to_z = grad * (1 - z) * (1 - n * n), grad * (h_before - n) * z * (1 - z)
            to_r = to_n * nh * r * (1 - r)
            to_x.append(beside(to_r, to_z, to_n))
            to_h.append(beside(to_r, to_z, to_n * r))
            carried = grad * z + to_before(to_h[-1], W_hh)
        x_grads, h_grads = stack(to_x[::-1], 0), stack(to_h[::-1], 0)
        before = stack([h0, *(step[-1] for step in steps[:-1])], 0)
        weights = to_weight(x, x_grads), to_weight(before, h_grads)
        return to_inputs(x_grads, W_ih), carried, *weights, to_bias_of(x_grads), to_bias_of(h_grads)

    def _steps(
        self, x: Tensor, h: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor, b_hh: Tensor
    ) -> list[tuple[Tensor, ...]]:
        """r, z, n, what h adds to n before r weighs it, and h after every step."""
        steps: list[tuple[Tensor, ...]] = []
        for of_x in split(matmul(x, W_ih) + b_ih, 0):
            (rx, zx, nx), (rh, zh, nh) = blocks(of_x, 3), blocks(matmul(h, W_hh) + b_hh, 3)
            r, z = sigmoid(rx + rh), sigmoid(zx + zh)
            n = tanh(nx + r * nh)
            h = n + z * (h - n)
            steps.append((r, z, n, nh, h))
        return steps


# ---- what they share -------------------------------------------------------------------------------------------------


def blocks(gates: Tensor, count: int) -> Sequence[Tensor]:
    """The column blocks of (B, count H), each (B, H)."""
    return split(reshape(gates, (gates.shape[0], count, gates.shape[1] // count)), 1).tuple()


def beside(*parts: Tensor) -> Tensor:
    """The adjoint: n × (B, H) → (B, n H)."""
    return reshape(stack(parts, 1), (parts[0].shape[0], -1))


def to_before(to_gates: Tensor, W_hh: Tensor) -> Tensor:
    """The gradient of a step's h, through the gates of the step after."""
    return matmul(to_gates, transpose(W_hh))


def to_inputs(grads: Tensor, W_ih: Tensor) -> Tensor:
    return matmul(grads, transpose(W_ih))


def to_weight(inputs: Tensor, grads: Tensor) -> Tensor:
    """Σ inputsᵀ grads over all steps, as one product.  (T, B, I), (T, B, G) → (I, G)."""
    return matmul(transpose(rows_of(inputs)), rows_of(grads))


def to_bias_of(grads: Tensor) -> Tensor:
    return summation(rows_of(grads), 0)


def rows_of(a: Tensor) -> Tensor:
    return reshape(a, (-1, a.shape[-1]))
