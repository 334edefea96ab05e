"""Recurrent layers against step-by-step NumPy, and gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, nn
from needle.testing import gradient_check

Array = np.ndarray
STEPS, BATCH, INPUT, HIDDEN = 3, 4, 5, 2


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed + sum(shape)).randn(*shape)


def tensor(array: Array) -> Tensor:
    return Tensor(array, dtype="float64")


def weights(cell: nn.Module) -> list[Array]:
    """W_ih, W_hh and the sum of the biases, if there are any."""
    bias = 0 if cell.bias_ih is None else cell.bias_ih.numpy() + cell.bias_hh.numpy()
    return [cell.W_ih.numpy(), cell.W_hh.numpy(), bias]


def rnn_step(cell: nn.RNNCell, x: Array, h: Array) -> Array:
    W_ih, W_hh, bias = weights(cell)
    total = x @ W_ih + h @ W_hh + bias
    return np.tanh(total) if cell.nonlinearity == "tanh" else np.maximum(total, 0)


def lstm_step(cell: nn.LSTMCell, x: Array, state: Array) -> Array:
    W_ih, W_hh, bias = weights(cell)
    i, f, g, o = np.split(x @ W_ih + state[0] @ W_hh + bias, 4, axis=1)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return np.stack([sigmoid(o) * np.tanh(c), c])


def gru_step(cell: nn.GRUCell, x: Array, h: Array) -> Array:
    of_x, of_h = x @ cell.W_ih.numpy(), h @ cell.W_hh.numpy()
    if cell.bias_ih is not None:
        of_x, of_h = of_x + cell.bias_ih.numpy(), of_h + cell.bias_hh.numpy()
    (xr, xz, xn), (hr, hz, hn) = np.split(of_x, 3, axis=1), np.split(of_h, 3, axis=1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    n = np.tanh(xn + r * hn)
    return (1 - z) * n + z * h


def run(step: Callable[..., Array], cells: list[nn.Module], X: Array, state: Array) -> tuple[Array, Array]:
    """Outputs (T, B, H) of the last layer and the final states; state is (L, B, H), or (L, 2, B, H) for an LSTM."""
    state, outputs = state.copy(), []
    for x in X:
        for layer, cell in enumerate(cells):
            state[layer] = step(cell, x, state[layer])
            x = np.array(state[layer][0] if state.ndim == 4 else state[layer])
        outputs.append(x)
    return np.stack(outputs), state


KINDS = {
    "rnn-tanh": (lambda **kw: nn.RNN(INPUT, HIDDEN, **kw), "rnn_cells", rnn_step),
    "rnn-relu": (lambda **kw: nn.RNN(INPUT, HIDDEN, nonlinearity="relu", **kw), "rnn_cells", rnn_step),
    "lstm": (lambda **kw: nn.LSTM(INPUT, HIDDEN, **kw), "lstm_cells", lstm_step),
    "gru": (lambda **kw: nn.GRU(INPUT, HIDDEN, **kw), "gru_cells", gru_step),
}
all_kinds = pytest.mark.parametrize("kind", KINDS)


def build(kind: str, layers: int = 1, bias: bool = True, dtype: str = "float64") -> nn.Module:
    np.random.seed(3)
    return KINDS[kind][0](num_layers=layers, bias=bias, dtype=dtype)


def as_state(kind: str, state: Array) -> Any:
    """(L, B, H) as a tensor, or (L, 2, B, H) as the pair that an LSTM takes."""
    return (tensor(state[:, 0]), tensor(state[:, 1])) if kind == "lstm" else tensor(state)


def as_arrays(kind: str, state: Any) -> Array:
    return np.stack([part.numpy() for part in state], 1) if kind == "lstm" else state.numpy()


def first_state(kind: str, layers: int) -> Array:
    return numbers(layers, 2, BATCH, HIDDEN) if kind == "lstm" else numbers(layers, BATCH, HIDDEN)


@all_kinds
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize("given", [True, False])
def test_layers_equal_numpy_U088(kind: str, layers: int, bias: bool, steps: int, given: bool) -> None:
    model = build(kind, layers, bias)
    X, state = numbers(steps, BATCH, INPUT), first_state(kind, layers) * given
    output, final = model(tensor(X), as_state(kind, state) if given else None)
    expected, expected_final = run(KINDS[kind][2], getattr(model, KINDS[kind][1]), X, state)
    np.testing.assert_allclose(output.numpy(), expected, atol=1e-14)
    np.testing.assert_allclose(as_arrays(kind, final), expected_final, atol=1e-14)


@all_kinds
def test_gradients_of_input_state_and_parameters(kind: str) -> None:
    model = build(kind, layers=2)
    parts = 2 if kind == "lstm" else 1

    def outputs(X: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        output, final = model(X, state if kind == "lstm" else state[0])
        return (output, *final) if kind == "lstm" else (output, final)

    state = [numbers(2, BATCH, HIDDEN, seed=part) for part in range(parts)]
    gradient_check(outputs, numbers(STEPS, BATCH, INPUT), *state, parameters=model.parameters())


@all_kinds
def test_gradients_without_a_state_of_one_step_U088(kind: str) -> None:
    model = build(kind, bias=False)
    gradient_check(lambda X: model(X)[0], numbers(1, BATCH, INPUT), parameters=model.parameters())


@all_kinds
def test_parameters_are_drawn_in_order_from_one_interval(kind: str) -> None:
    model, bound = build(kind, layers=2), 1 / np.sqrt(HIDDEN)
    np.random.seed(3)
    for p in model.parameters():
        np.testing.assert_allclose(p.numpy(), np.random.rand(*p.shape) * 2 * bound - bound, rtol=1e-6, atol=1e-7)
    width = {"lstm": 4, "gru": 3}.get(kind, 1) * HIDDEN
    shapes = [(INPUT, width), (HIDDEN, width), (width,), (width,)]
    assert [p.shape for p in model.parameters()] == [*shapes, (HIDDEN, width), *shapes[1:]]


@all_kinds
def test_without_bias_there_is_none(kind: str) -> None:
    cell = getattr(build(kind, bias=False), KINDS[kind][1])[0]
    assert cell.bias_ih is None and cell.bias_hh is None
    assert len(cell.parameters()) == 2


@all_kinds
def test_carried_state_continues_the_sequence(kind: str) -> None:
    model, X = build(kind, layers=2), tensor(numbers(4, BATCH, INPUT))
    whole, _ = model(X)
    first, state = model(X[:1])
    second, _ = model(X[1:], state)
    np.testing.assert_allclose(np.concatenate([first.numpy(), second.numpy()]), whole.numpy(), atol=1e-14)


@all_kinds
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_kept_U066(kind: str, dtype: str) -> None:
    output, state = build(kind, dtype=dtype)(Tensor(numbers(2, BATCH, INPUT), dtype=dtype))
    final = state if kind == "lstm" else (state,)
    assert {str(t.dtype) for t in (output, *final)} == {dtype}


@pytest.mark.skipif(ndl.core.BACKEND == "np", reason="np mode has one device")
@all_kinds
def test_missing_state_follows_the_device_U066(kind: str) -> None:
    device = ndl.cpu_numpy()
    make, _, _ = KINDS[kind]
    model = make(device=device)
    X = Tensor(numbers(2, BATCH, INPUT), device=device, dtype="float32")
    output, _ = model(X)
    assert output.device == device


def test_weights_may_be_replaced_by_plain_tensors() -> None:
    cell = nn.RNNCell(INPUT, HIDDEN)
    cell.W_ih = Tensor(numbers(INPUT, HIDDEN), dtype="float32")
    cell(Tensor(numbers(BATCH, INPUT), dtype="float32")).sum().backward()
    assert cell.W_ih.grad.shape == (INPUT, HIDDEN)


WRONG = [
    (lambda: nn.RNNCell(3, 2)(ndl.zeros(4, 5)), "rnn_cell", "(4, 5)"),
    (lambda: nn.RNNCell(3, 2)(ndl.zeros(4, 3), ndl.zeros(3, 2)), "rnn_cell", "(3, 2)"),
    (lambda: nn.RNNCell(3, 2, nonlinearity="sin"), "rnn_cell", "'sin'"),
    (lambda: nn.LSTMCell(3, 2)(ndl.zeros(4, 3), (ndl.zeros(4, 2), ndl.zeros(4, 3))), "lstm_cell", "(4, 3)"),
    (lambda: nn.RNN(3, 2, num_layers=0), "rnn", "0"),
    (lambda: nn.RNN(3, 2)(ndl.zeros(4, 3)), "rnn", "(4, 3)"),
    (lambda: nn.RNN(3, 2)(ndl.zeros(0, 4, 3)), "rnn", "(0, 4, 3)"),
    (lambda: nn.LSTM(3, 2)(ndl.zeros(5, 4, 3), (ndl.zeros(2, 4, 2), None)), "lstm", "(2, 4, 2)"),
    (lambda: nn.GRU(3, 2)(ndl.zeros(5, 4, 3), ndl.zeros(4, 2)), "gru", "(4, 2)"),
]


@pytest.mark.parametrize(("call", "op", "came"), WRONG)
def test_errors_name_the_layer_and_what_came_U090(call: Callable[[], Any], op: str, came: str) -> None:
    with pytest.raises(ValueError, match=f"^{op}: ") as caught:
        call()
    assert came in str(caught.value)
