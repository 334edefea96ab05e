"""Section 8: modules; creation order, draws, shapes, names and formulas."""

from __future__ import annotations

import math

import needle as ndl
import numpy as np
import pytest
from needle import nn

from .tools import SCALAR, T, check_gradients, close, logsumexp, normal, softmax


def uniform(*shape: int, bound: float) -> np.ndarray:
    return np.random.rand(*shape) * 2 * bound - bound


def seeded(maker):
    np.random.seed(1)
    return maker()


def weights(module: nn.Module, names: str) -> list[np.ndarray]:
    return [getattr(module, name).numpy().astype("float64") for name in names.split()]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# ---- 8.1 parameters and modules --------------------------------------------------------------------------------------


def test_parameter_is_a_tensor_and_shares_what_it_is_made_of() -> None:
    x = T([1.0])
    p = nn.Parameter(x)
    assert isinstance(p, ndl.Tensor) and p.requires_grad and p.cached_data is x.cached_data


class Nested(nn.Module):
    """Parameters in every place where they are found."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(T([1.0]))
        self.plain = T([9.0])
        self.inside = nn.Linear(2, 3)
        self.mapping = {"x": nn.Parameter(T([2.0])), "y": nn.Dropout(0.5)}
        self.nested = [[nn.Linear(1, 1, bias=False)], (nn.Dropout(0.1), nn.Parameter(T([3.0])))]


def test_parameters_in_the_order_of_assignment_through_modules_dicts_lists_and_tuples() -> None:
    m = Nested()
    wanted = [m.a, m.inside.weight, m.inside.bias, m.mapping["x"], m.nested[0][0].weight, m.nested[1][1]]
    got = m.parameters()
    assert len(got) == len(wanted) and all(g is w for g, w in zip(got, wanted, strict=True))


def test_train_and_eval_reach_every_descendant() -> None:
    m = Nested()
    parts = [m, m.inside, m.mapping["y"], m.nested[0][0], m.nested[1][0]]
    assert all(part.training for part in parts)
    m.eval()
    assert not any(part.training for part in parts)
    m.train()
    assert all(part.training for part in parts)


def test_call_is_forward() -> None:
    class Add(nn.Module):
        def forward(self, x, y, *, z):
            return x + y + z

    close(Add()(T([1.0]), T([2.0]), z=3), [6.0])


def test_a_parameter_may_be_replaced_by_a_plain_tensor() -> None:
    m = nn.Linear(2, 3)
    m.weight = T(np.ones((2, 3)))
    close(m(T([[1.0, 1.0]])), 2 + m.bias.numpy())
    assert len(m.parameters()) == 1


# ---- 8.2 basic modules -----------------------------------------------------------------------------------------------


def test_identity() -> None:
    x = T([1.0])
    assert nn.Identity()(x) is x


def test_linear_draws_weight_then_bias_with_fan_in_of_out_features() -> None:
    m = seeded(lambda: nn.Linear(5, 7))
    np.random.seed(1)
    close(m.weight, uniform(5, 7, bound=math.sqrt(6 / 5)))
    close(m.bias, uniform(1, 7, bound=math.sqrt(6 / 7)))
    assert m.weight.shape == (5, 7) and m.bias.shape == (1, 7)
    assert isinstance(m.weight, nn.Parameter) and isinstance(m.bias, nn.Parameter)


def test_linear_values_and_gradients() -> None:
    m = nn.Linear(4, 3)
    w, b = weights(m, "weight bias")
    x = normal(5, 4)
    close(m(T(x)), x @ w + b)
    check_gradients(lambda x, w, b: given(m, weight=w, bias=b)(x), x, w, b)


def given(module: nn.Module, **tensors: ndl.Tensor) -> nn.Module:
    for name, tensor in tensors.items():
        setattr(module, name, tensor)
    return module


def test_linear_of_three_axes_and_of_a_flat_bias() -> None:
    m = nn.Linear(4, 3)
    w, b = weights(m, "weight bias")
    x = normal(2, 5, 4)
    close(m(T(x)), x @ w + b)
    m.bias = T(b[0])
    close(m(T(x)), x @ w + b)


def test_linear_without_bias() -> None:
    m = nn.Linear(4, 3, bias=False)
    assert getattr(m, "bias", None) is None and len(m.parameters()) == 1
    x = normal(2, 4)
    close(m(T(x)), x @ m.weight.numpy())


@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 2), (3, 1, 2, 5), (2, 3, 1, 2, 2)], ids=str)
def test_flatten(shape) -> None:
    a = normal(*shape)
    close(nn.Flatten()(T(a)), a.reshape(shape[0], -1))
    check_gradients(nn.Flatten(), a)


def test_relu_and_sequential() -> None:
    m = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = normal(5, 3)
    h = np.maximum(x @ m.modules[0].weight.numpy() + m.modules[0].bias.numpy(), 0)
    close(m(T(x)), h @ m.modules[2].weight.numpy() + m.modules[2].bias.numpy())
    assert isinstance(m.modules[1], nn.ReLU) and len(m.parameters()) == 4


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "int32"])
def test_softmax_loss(dtype: str) -> None:
    z, y = normal(6, 4), np.array([0, 3, 1, 1, 2, 0])
    expected = (logsumexp(z, 1) - z[np.arange(6), y]).mean()
    loss = nn.SoftmaxLoss()(T(z), T(y, dtype, requires_grad=False))
    close(loss, np.reshape(expected, SCALAR))
    x = T(z)
    nn.SoftmaxLoss()(x, T(y, dtype, requires_grad=False)).backward()
    close(x.grad, (softmax(z, 1) - np.eye(4)[y]) / 6)


def test_residual() -> None:
    close(nn.Residual(nn.ReLU())(T([-1.0, 2.0])), [-1.0, 4.0])


def test_layer_norm() -> None:
    m = nn.LayerNorm1d(5)
    close(m.weight, np.ones(5))
    close(m.bias, np.zeros(5))
    x, w, b = normal(4, 5) * 3 + 1, normal(5), normal(5)
    m.weight, m.bias = nn.Parameter(T(w)), nn.Parameter(T(b))
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b
    close(m(T(x)), expected)
    m64 = nn.LayerNorm1d(5, dtype="float64")
    check_gradients(lambda x, w, b: given(m64, weight=w, bias=b)(x), x, w, b)


# ---- dropout ---------------------------------------------------------------------------------------------------------


def test_dropout_keeps_where_a_uniform_number_is_at_most_one_minus_p() -> None:
    x = normal(20, 30)
    np.random.seed(5)
    got = nn.Dropout(0.3)(T(x))
    np.random.seed(5)
    close(got, x * (np.random.rand(20, 30).astype("float32") <= 1 - 0.3) / 0.7, 1e-4)


def test_dropout_in_evaluation_is_the_identity_and_draws_nothing() -> None:
    m = nn.Dropout(0.5)
    m.eval()
    state = np.random.get_state()[1].copy()
    x = normal(3, 4)
    np.random.set_state(("MT19937", state, 624, 0, 0.0))
    close(m(T(x)), x)
    assert m.p == 0.5


def test_dropout_gradient_is_the_mask() -> None:
    x = T(np.ones((10, 10)))
    y = nn.Dropout(0.4)(x)
    y.backward()
    close(x.grad, y.numpy())


# ---- 8.3 batch norm --------------------------------------------------------------------------------------------------


def test_batch_norm_starts_with() -> None:
    m = nn.BatchNorm1d(4)
    for got, expected in (
        (m.weight, np.ones(4)),
        (m.bias, np.zeros(4)),
        (m.running_mean, np.zeros(4)),
        (m.running_var, np.ones(4)),
    ):
        close(got, expected)
    assert len(m.parameters()) == 2


def test_batch_norm_in_training_normalises_by_the_batch() -> None:
    m = nn.BatchNorm1d(4)
    x, w, b = normal(6, 4) * 3 + 1, normal(4), normal(4)
    m.weight, m.bias = nn.Parameter(T(w)), nn.Parameter(T(b))
    close(m(T(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * w + b)
    m64 = nn.BatchNorm1d(4, dtype="float64")
    check_gradients(lambda x, w, b: given(m64, weight=w, bias=b)(x), x, w, b)


def test_batch_norm_running_values_take_the_biased_variance() -> None:
    m = nn.BatchNorm1d(4, momentum=0.2)
    mean, var = np.zeros(4), np.ones(4)
    for _ in range(3):
        x = normal(6, 4) * 2 + 1
        m(T(x))
        mean, var = 0.8 * mean + 0.2 * x.mean(0), 0.8 * var + 0.2 * x.var(0)
    close(m.running_mean, mean)
    close(m.running_var, var)


def test_batch_norm_running_values_keep_identity_dtype_and_no_graph() -> None:
    m = nn.BatchNorm1d(4)
    mean, var = m.running_mean, m.running_var
    m(T(normal(6, 4)))
    assert m.running_mean is mean and m.running_var is var
    for t in (mean, var):
        assert t.dtype == "float32" and t.is_leaf() and not t.requires_grad


def test_batch_norm_in_evaluation_uses_running_values_alone() -> None:
    m = nn.BatchNorm1d(4, eps=1e-3)
    m(T(normal(6, 4)))
    mean, var, w, b = *weights(m, "running_mean running_var"), normal(4), normal(4)
    m.weight, m.bias = nn.Parameter(T(w)), nn.Parameter(T(b))
    m.eval()
    x = normal(3, 4)
    close(m(T(x)), (x - mean) / np.sqrt(var + 1e-3) * w + b)
    close(m(T(x[:1])), (x[:1] - mean) / np.sqrt(var + 1e-3) * w + b)
    close(m.running_mean, mean)


def test_batch_norm_2d_normalises_each_channel() -> None:
    m = nn.BatchNorm2d(3)
    x = normal(2, 3, 4, 5)
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    close(m(T(x)), (x - mean) / np.sqrt(var + 1e-5))
    close(m.running_mean, 0.1 * mean.reshape(3))
    assert isinstance(m, nn.BatchNorm1d) or len(m.parameters()) == 2


# ---- 8.4 convolution -------------------------------------------------------------------------------------------------


def test_conv_draws_weight_then_bias() -> None:
    m = seeded(lambda: nn.Conv(3, 4, 5))
    np.random.seed(1)
    close(m.weight, uniform(5, 5, 3, 4, bound=math.sqrt(6 / 75)))
    close(m.bias, uniform(4, bound=1 / math.sqrt(75)))
    assert m.weight.shape == (5, 5, 3, 4) and m.bias.shape == (4,)


@pytest.mark.parametrize("kernel, stride, size", [(1, 1, 4), (3, 1, 5), (3, 2, 6), (5, 1, 6), (7, 4, 8)])
def test_conv_is_nchw_with_padding_of_half_the_kernel(kernel: int, stride: int, size: int) -> None:
    m = nn.Conv(2, 3, kernel, stride=stride)
    w, b = weights(m, "weight bias")
    x, p = normal(2, 2, size, size), kernel // 2
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    extent = (size + 2 * p - kernel) // stride + 1
    expected = np.zeros((2, 3, extent, extent))
    for i in range(extent):
        for j in range(extent):
            patch = padded[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
            expected[:, :, i, j] = np.einsum("nchw,hwco->no", patch, w) + b
    close(m(T(x)), expected, 1e-4)


def test_conv_takes_the_first_of_a_tuple_and_may_lack_a_bias() -> None:
    m = nn.Conv(2, 3, (3, 3), stride=(2, 2), bias=False)
    assert m.weight.shape == (3, 3, 2, 3) and getattr(m, "bias", None) is None
    assert m(T(normal(1, 2, 6, 6))).shape == (1, 3, 3, 3)


def test_conv_gradients() -> None:
    m = nn.Conv(2, 2, 3, stride=2, dtype="float64")
    w, b = weights(m, "weight bias")
    check_gradients(lambda x, w, b: given(m, weight=w, bias=b)(x), normal(1, 2, 5, 4), w, b, tol=1e-5)


# ---- 8.5 sequences ---------------------------------------------------------------------------------------------------


def test_sigmoid() -> None:
    x = normal(3, 4) * 4
    close(nn.Sigmoid()(T(x)), sigmoid(x))


@pytest.mark.parametrize("cell, gates", [(nn.RNNCell, 1), (nn.LSTMCell, 4)])
def test_cell_draws_its_parameters_in_order(cell, gates: int) -> None:
    m = seeded(lambda: cell(3, 5))
    np.random.seed(1)
    for name, shape in (
        ("W_ih", (3, 5 * gates)),
        ("W_hh", (5, 5 * gates)),
        ("bias_ih", (5 * gates,)),
        ("bias_hh", (5 * gates,)),
    ):
        close(getattr(m, name), uniform(*shape, bound=1 / math.sqrt(5)))
    assert [id(p) for p in m.parameters()] == [id(getattr(m, n)) for n in ("W_ih", "W_hh", "bias_ih", "bias_hh")]


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.LSTMCell])
def test_cell_without_bias(cell) -> None:
    m = cell(3, 5, bias=False)
    assert getattr(m, "bias_ih", None) is None and getattr(m, "bias_hh", None) is None
    m(T(normal(2, 3)))


def rnn_step(m, x, h, f):
    w, u, *biases = weights(m, "W_ih W_hh" + (" bias_ih bias_hh" if getattr(m, "bias_ih", None) is not None else ""))
    return f(x @ w + h @ u + sum(biases))


def lstm_step(m, x, h, c):
    z = rnn_step(m, x, h, lambda z: z)
    i, f, g, o = np.split(z, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize("nonlinearity, f", [("tanh", np.tanh), ("relu", lambda z: np.maximum(z, 0))])
@pytest.mark.parametrize("bias", [True, False])
def test_rnn_cell(nonlinearity: str, f, bias: bool) -> None:
    m = nn.RNNCell(3, 5, bias, nonlinearity)
    x, h = normal(2, 3), normal(2, 5)
    close(m(T(x), T(h)), rnn_step(m, x, h, f))
    close(m(T(x)), rnn_step(m, x, np.zeros((2, 5)), f))
    close(m(T(x), None), rnn_step(m, x, np.zeros((2, 5)), f))


@pytest.mark.parametrize("bias", [True, False])
def test_lstm_cell(bias: bool) -> None:
    m = nn.LSTMCell(3, 5, bias)
    x, h, c = normal(2, 3), normal(2, 5), normal(2, 5)
    for got, expected in zip(m(T(x), (T(h), T(c))), lstm_step(m, x, h, c), strict=True):
        close(got, expected)
    for got, expected in zip(m(T(x)), lstm_step(m, x, h * 0, c * 0), strict=True):
        close(got, expected)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("start", [True, False])
def test_rnn(layers: int, steps: int, start: bool) -> None:
    m = nn.RNN(3, 5, layers, True)
    assert [cell.W_ih.shape[0] for cell in m.rnn_cells] == [3, 5][:layers]
    x, h0 = normal(steps, 2, 3), normal(layers, 2, 5) * start
    out, h_n = m(T(x), T(h0) if start else None)
    sequence, last = list(x), []
    for cell, h in zip(m.rnn_cells, h0, strict=True):
        for t, value in enumerate(sequence):
            h = sequence[t] = rnn_step(cell, value, h, np.tanh)
        last.append(h)
    close(out, np.stack(sequence))
    close(h_n, np.stack(last))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("start", [True, False])
def test_lstm(layers: int, steps: int, start: bool) -> None:
    m = nn.LSTM(3, 5, layers, False)
    assert [cell.W_ih.shape for cell in m.lstm_cells] == [(3, 20), (5, 20)][:layers]
    x, h0, c0 = normal(steps, 2, 3), normal(layers, 2, 5) * start, normal(layers, 2, 5) * start
    out, state = m(T(x), (T(h0), T(c0)) if start else None)
    assert isinstance(state, tuple)
    sequence, last = list(x), []
    for cell, h, c in zip(m.lstm_cells, h0, c0, strict=True):
        for t, value in enumerate(sequence):
            h, c = lstm_step(cell, value, h, c)
            sequence[t] = h
        last.append((h, c))
    close(out, np.stack(sequence))
    close(state[0], np.stack([h for h, _ in last]))
    close(state[1], np.stack([c for _, c in last]))


def test_rnn_and_lstm_create_their_cells_in_order() -> None:
    for maker, cells, gates in ((nn.RNN, "rnn_cells", 1), (nn.LSTM, "lstm_cells", 4)):
        m = seeded(lambda maker=maker: maker(3, 5, 2))
        np.random.seed(1)
        for cell, size in zip(getattr(m, cells), (3, 5), strict=True):
            for name, shape in (
                ("W_ih", (size, 5 * gates)),
                ("W_hh", (5, 5 * gates)),
                ("bias_ih", (5 * gates,)),
                ("bias_hh", (5 * gates,)),
            ):
                close(getattr(cell, name), uniform(*shape, bound=1 / math.sqrt(5)))


@pytest.mark.parametrize("maker, cells", [(nn.RNN, "rnn_cells"), (nn.LSTM, "lstm_cells")])
def test_gradients_reach_tensors_put_in_the_place_of_parameters(maker, cells: str) -> None:
    m = maker(3, 4, 2, True)
    for cell in getattr(m, cells):
        for name in ("W_ih", "W_hh", "bias_ih", "bias_hh"):
            setattr(cell, name, T(getattr(cell, name).numpy()))
    m(T(normal(3, 2, 3)))[0].sum().backward()
    for cell in getattr(m, cells):
        for name in ("W_ih", "W_hh", "bias_ih", "bias_hh"):
            grad = getattr(cell, name).grad
            assert grad is not None and np.abs(grad.numpy()).sum() > 0


def test_rnn_gradients() -> None:
    m = nn.RNN(2, 3, 1, True, dtype="float64")
    (cell,) = m.rnn_cells
    names = ("W_ih", "W_hh", "bias_ih", "bias_hh")

    def f(x, *params):
        given(cell, **dict(zip(names, params, strict=True)))
        return m(x)[0]

    check_gradients(f, normal(3, 2, 2), *(getattr(cell, name).numpy() for name in names))


def test_lstm_gradients() -> None:
    m = nn.LSTM(2, 2, 1, True, dtype="float64")
    (cell,) = m.lstm_cells
    names = ("W_ih", "W_hh", "bias_ih", "bias_hh")

    def f(x, *params):
        given(cell, **dict(zip(names, params, strict=True)))
        out, (_, c) = m(x)
        return out + ndl.broadcast_to(ndl.reshape(c * 2, (1, 2, 2)), out.shape)

    check_gradients(f, normal(3, 2, 2), *(getattr(cell, name).numpy() for name in names))


def test_embedding() -> None:
    m = seeded(lambda: nn.Embedding(7, 4))
    np.random.seed(1)
    close(m.weight, np.random.randn(7, 4))
    ids = np.array([[0, 6, 3], [3, 3, 1]])
    close(m(T(ids)), m.weight.numpy()[ids])
    m(T(ids, requires_grad=False)).backward()
    close(m.weight.grad, np.bincount(ids.ravel(), minlength=7)[:, None] * np.ones((1, 4)))


# ---- 8.6 transformer -------------------------------------------------------------------------------------------------


def attention(q, k, v, causal: bool):
    z = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        z = np.where(np.triu(np.ones(z.shape[-2:]), 1) > 0, -1e30, z)
    p = softmax(z)
    return p @ v, p


@pytest.mark.parametrize("causal", [True, False])
def test_attention_returns_the_result_and_the_probabilities(causal: bool) -> None:
    q, k, v = (normal(2, 3, 5, 4) for _ in range(3))
    result, probs = nn.MultiHeadAttention(dropout=0.0, causal=causal)(T(q), T(k), T(v))
    expected, p = attention(q, k, v, causal)
    close(result, expected)
    close(probs, p)


def test_attention_of_other_lengths() -> None:
    q, k, v = normal(2, 3, 4, 6), normal(2, 3, 7, 6), normal(2, 3, 7, 6)
    result, probs = nn.MultiHeadAttention()(T(q), T(k), T(v))
    close(result, attention(q, k, v, False)[0])
    assert probs.shape == (2, 3, 4, 7)


def test_attention_drops_probabilities_and_returns_the_dropped_ones() -> None:
    q, k, v = (normal(2, 3, 5, 4) for _ in range(3))
    m = nn.MultiHeadAttention(dropout=0.3, causal=True)
    assert isinstance(m.dropout, nn.Dropout) and not m.parameters()
    np.random.seed(9)
    result, probs = m(T(q), T(k), T(v))
    np.random.seed(9)
    p = attention(q, k, v, True)[1] * (np.random.rand(2, 3, 5, 5).astype("float32") <= 0.7) / 0.7
    close(probs, p, 1e-4)
    close(result, p @ v, 1e-4)


def layer_norm(m, x):
    w, b = weights(m, "weight bias")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def attention_layer(m, q, k, v, heads: int, causal: bool):
    projected = []
    for x, norm, projection in (
        (q, m.prenorm_q, m.q_projection),
        (k, m.prenorm_k, m.k_projection),
        (v, m.prenorm_v, m.v_projection),
    ):
        y = layer_norm(norm, x) @ projection.weight.numpy()
        projected.append(y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3))
    result = attention(*projected, causal)[0].transpose(0, 2, 1, 3)
    return result.reshape(*result.shape[:2], -1) @ m.out_projection.weight.numpy()


def test_attention_layer_creates_q_k_v_out_without_bias() -> None:
    m = seeded(lambda: nn.AttentionLayer(6, 2, 4))
    np.random.seed(1)
    for name in ("q_projection", "k_projection", "v_projection"):
        close(getattr(m, name).weight, uniform(6, 8, bound=1.0))
    close(m.out_projection.weight, uniform(8, 6, bound=math.sqrt(6 / 8)))
    assert len(m.parameters()) == 3 * 2 + 4
    assert isinstance(m.attn, nn.MultiHeadAttention)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_layer(causal: bool) -> None:
    m = nn.AttentionLayer(6, 2, 4, causal=causal)
    x = normal(3, 5, 6)
    close(m(T(x)), attention_layer(m, x, x, x, 2, causal), 1e-4)


def test_attention_layer_across_two_sequences() -> None:
    m = nn.AttentionLayer(6, 2, 4, k_features=7, v_features=5, out_features=3, causal=False)
    q, k, v = normal(3, 4, 6), normal(3, 8, 7), normal(3, 8, 5)
    got = m(T(q), T(k), T(v))
    assert got.shape == (3, 4, 3)
    close(got, attention_layer(m, q, k, v, 2, False), 1e-4)


def test_transformer_layer_creates_and_draws_in_order() -> None:
    np.random.seed(1)
    m = nn.TransformerLayer(6, 2, 4, 10, dropout=0.0)
    after = np.random.rand()
    np.random.seed(1)
    np.random.rand(3 * 6 * 8 + 8 * 6)  # q, k, v, out
    np.random.rand(6 * 10 + 10)  # the first linear layer and its bias
    np.random.rand(10 * 6 + 6)
    assert after == np.random.rand()
    shapes = [p.shape for p in m.parameters()]
    for shape in ((6, 10), (1, 10), (10, 6), (1, 6)):
        assert shape in shapes


def linears(module: nn.Module) -> list[nn.Linear]:
    found = []
    for value in vars(module).values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, nn.Linear):
                found.append(part)
            elif isinstance(part, nn.Module):
                found += linears(part)
    return found


def test_transformer_layer_values() -> None:
    m = nn.TransformerLayer(6, 2, 4, 10, dropout=0.0, causal=True)
    x = normal(3, 5, 6)
    attn = next(v for v in vars(m).values() if isinstance(v, nn.AttentionLayer))
    h = x + attention_layer(attn, x, x, x, 2, True)
    first, second = [layer for layer in linears(m) if getattr(layer, "bias", None) is not None]
    z = layer_norm(nn.LayerNorm1d(6), h)
    z = np.maximum(z @ first.weight.numpy() + first.bias.numpy(), 0) @ second.weight.numpy() + second.bias.numpy()
    close(m(T(x)), h + z, 1e-4)


def test_transformer_layer_dropout_draws_in_forward_order() -> None:
    m = nn.TransformerLayer(6, 2, 4, 10, dropout=0.2)
    np.random.seed(3)
    m(T(np.zeros((3, 5, 6))))
    after = np.random.rand()
    np.random.seed(3)
    np.random.rand(3 * 2 * 5 * 5 + 3 * 5 * 6 + 3 * 5 * 10 + 3 * 5 * 6)
    assert after == np.random.rand()


def test_transformer_creates_its_positions_before_its_layers() -> None:
    m = seeded(lambda: nn.Transformer(6, 10, 2, num_head=2, dim_head=4, sequence_len=9))
    np.random.seed(1)
    close(m.parameters()[0], np.random.randn(9, 6))
    assert m.parameters()[0].shape == (9, 6)


@pytest.mark.parametrize("batch_first", [True, False])
def test_transformer_adds_positions_and_runs_its_layers(batch_first: bool) -> None:
    m = nn.Transformer(6, 10, 2, num_head=2, dim_head=4, sequence_len=9, batch_first=batch_first)
    x = normal(3, 5, 6)
    out, h = m(T(x if batch_first else x.swapaxes(0, 1)), None)
    expected = T(x + m.parameters()[0].numpy()[:5])
    found = [p for v in vars(m).values() for p in (v if isinstance(v, (list, tuple)) else [v])]
    layers = [p for p in found if isinstance(p, nn.TransformerLayer)]
    layers = layers or [p for v in found if isinstance(v, nn.Sequential) for p in v.modules]
    assert len(layers) == 2
    for layer in layers:
        expected = layer(expected)
    close(out, expected.numpy() if batch_first else expected.numpy().swapaxes(0, 1), 1e-4)
    assert h.shape == out.shape and not h.numpy().any()


def test_causal_mask() -> None:
    mask = nn.MultiHeadAttention(causal=True).create_causal_mask(3, 3, ndl.cpu())
    mask = np.asarray(mask.numpy() if hasattr(mask, "numpy") else mask)
    assert mask.shape == (1, 1, 3, 3) and np.isfinite(mask).all()
    low = -np.finfo("float32").max
    np.testing.assert_array_equal(mask[0, 0], np.triu(np.full((3, 3), low, "float32"), 1))


def test_attention_helpers() -> None:
    m = nn.MultiHeadAttention()
    a, b = normal(2, 3, 4, 5), normal(2, 3, 6, 5)
    close(m.matmul(T(a), T(b)), a @ b.swapaxes(-1, -2))
    close(m.softmax(T(a)), softmax(a))


# ---- devices and types -----------------------------------------------------------------------------------------------

MODULES = {
    "Linear": lambda **k: nn.Linear(4, 3, **k),
    "BatchNorm1d": lambda **k: nn.BatchNorm1d(4, **k),
    "BatchNorm2d": lambda **k: nn.BatchNorm2d(4, **k),
    "LayerNorm1d": lambda **k: nn.LayerNorm1d(4, **k),
    "Conv": lambda **k: nn.Conv(4, 3, 3, **k),
    "RNNCell": lambda **k: nn.RNNCell(4, 3, **k),
    "LSTMCell": lambda **k: nn.LSTMCell(4, 3, **k),
    "RNN": lambda **k: nn.RNN(4, 3, **k),
    "LSTM": lambda **k: nn.LSTM(4, 3, **k),
    "Embedding": lambda **k: nn.Embedding(4, 3, **k),
    "AttentionLayer": lambda **k: nn.AttentionLayer(4, 2, 3, **k),
    "TransformerLayer": lambda **k: nn.TransformerLayer(4, 2, 3, 5, **k),
    "Transformer": lambda **k: nn.Transformer(4, 5, 1, num_head=2, dim_head=3, **k),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parameters_have_the_device_and_dtype_asked_for(name: str, dtype: str) -> None:
    for device in [d for d in ndl.all_devices() if d.enabled()]:
        for p in MODULES[name](device=device, dtype=dtype).parameters():
            assert p.dtype == dtype and p.device == device and p.requires_grad
