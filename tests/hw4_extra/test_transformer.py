"""Checks of homework 4 extra: attention, and a transformer made of it.

python -m pytest tests/hw4_extra -k attention_activation      and: attention_layer, transformer_layer, transformer_model

Everything is compared with float64 NumPy.  Parameters and dropout masks are drawn anew from the same seed, which also
checks the order in which they are drawn; dropout is applied, since modules are in training mode.
"""

from __future__ import annotations

import math

import models
import needle as ndl
import numpy as np
import pytest
import simple_ml  # noqa: F401
from needle import nn
from stages import assert_close, assert_same, devices, numerical_gradients, upstream

on_devices = pytest.mark.parametrize("device", devices())
with_causal = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
with_dropout = pytest.mark.parametrize("dropout", [0.0, 0.1])
SEED = 19943


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


# ---- the same in NumPy ----------------------------------------------------------------------------------------------


class Draws:
    """What the modules draw: first the parameters, when they are made, then a mask per dropout of a forward pass."""

    def linear(self, inputs, outputs, bias=True):
        weight = (2 * np.random.rand(inputs, outputs) - 1) * math.sqrt(6 / inputs)
        return weight, (2 * np.random.rand(1, outputs) - 1) * math.sqrt(6 / outputs) if bias else 0.0

    def attention(self, features, heads, dim_head):
        projections = [self.linear(features, heads * dim_head, bias=False)[0] for _ in range(3)]
        return heads, projections, self.linear(heads * dim_head, features, bias=False)[0]

    def transformer_layer(self, features, heads, dim_head, hidden):
        return self.attention(features, heads, dim_head), self.linear(features, hidden), self.linear(hidden, features)


class Masks:
    """Dropout masks: drawn in the order in which they are asked for, and given again in a second pass."""

    def __init__(self, p):
        self.p, self.kept, self.position = p, [], 0

    def __call__(self, x):
        if self.p == 0:
            return x
        if self.position == len(self.kept):
            self.kept.append((np.random.rand(*x.shape) <= 1 - self.p) / (1 - self.p))
        self.position += 1
        return x * self.kept[self.position - 1]

    def again(self):
        self.position = 0


def attend(q, k, v, causal, drop):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities = drop(odds / odds.sum(axis=-1, keepdims=True))
    return probabilities @ v, probabilities


def layer_norm(x):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def attention_layer(q, k, v, parameters, causal, drop):
    heads, projections, out = parameters
    split = [
        (layer_norm(x) @ weight).reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        for x, weight in zip((q, k, v), projections, strict=True)
    ]
    merged = attend(*split, causal, drop)[0].transpose(0, 2, 1, 3)
    return merged.reshape(*q.shape[:2], -1) @ out


def transformer_layer(x, parameters, causal, drop):
    attention, (w1, b1), (w2, b2) = parameters
    x = x + drop(attention_layer(x, x, x, attention, causal, drop))
    hidden = drop(np.maximum(layer_norm(x) @ w1 + b1, 0))
    return x + drop(hidden @ w2 + b2)


def check(make, draw, reference, inputs, dropout, device, gradients=True):
    """make() → a function of Tensors with parameters; reference(masks, parameters, *arrays) says what it gives."""
    np.random.seed(SEED)
    f = make()
    tensors = [ndl.Tensor(a, device=device) for a in inputs]
    np.random.seed(SEED + 1)
    out = f(*tensors)
    np.random.seed(SEED)
    parameters = draw()
    masks = Masks(dropout)
    np.random.seed(SEED + 1)

    def again(*arrays):
        masks.again()
        return reference(masks, parameters, *arrays)

    assert out.device == device
    assert_close(out, again(*(a.astype(float) for a in inputs)), terms=200)
    if gradients:
        weights = upstream(out.shape)
        out.backward(ndl.Tensor(weights, device=device))
        for tensor, want in zip(tensors, numerical_gradients(again, inputs, weights), strict=True):
            assert_close(tensor.grad, want, terms=2000)


# ---- attention ------------------------------------------------------------------------------------------------------


@on_devices
@with_dropout
@with_causal
@pytest.mark.parametrize("batch, heads, length, dim", [(4, 5, 7, 3), (1, 1, 1, 2), (8, 2, 31, 16)])
def test_attention_activation(batch, heads, length, dim, causal, dropout, device):
    q, k, v = (numbers(batch, heads, length, dim, seed=seed) for seed in range(3))
    layer = nn.MultiHeadAttention(dropout=dropout, causal=causal, device=device)
    assert layer.parameters() == []
    np.random.seed(SEED)
    result, probabilities = layer(*(ndl.Tensor(x, device=device) for x in (q, k, v)))
    np.random.seed(SEED)
    wanted, wanted_probabilities = attend(*(x.astype(float) for x in (q, k, v)), causal, Masks(dropout))
    assert_close(probabilities, wanted_probabilities, terms=100)  # those that were dropped are 0 in it
    assert_close(result, wanted, terms=100)
    if causal and dropout == 0:
        rows = (probabilities.numpy() != 0).sum(axis=-1)
        assert_same(rows, np.broadcast_to(np.arange(1, length + 1), rows.shape))
        layer.eval()
        huge = ndl.Tensor(1e4 * q, device=device)
        assert np.isfinite(layer(huge, huge, huge)[0].numpy()).all()


@on_devices
@pytest.mark.parametrize("batch, length, features, heads, dim", [(2, 3, 6, 2, 4), (1, 5, 4, 3, 2)])
def test_attention_layer_heads(batch, length, features, heads, dim, device):
    np.random.seed(SEED)
    layer = nn.AttentionLayer(features, heads, dim, device=device)
    random = np.random.RandomState(1)
    scale, shift = random.uniform(0.5, 1.5, (2, features)).astype(np.float32)
    layer.prenorm_k.weight.data = ndl.Tensor(scale, device=device)
    layer.prenorm_k.bias.data = ndl.Tensor(shift, device=device)
    x = numbers(batch, length, features)
    got = layer.heads(ndl.Tensor(x, device=device), layer.prenorm_k, layer.k_projection)
    projected = (layer_norm(x.astype(float)) * scale + shift) @ layer.k_projection.weight.numpy()
    assert got.device == device
    assert_close(got, projected.reshape(batch, length, heads, dim).transpose(0, 2, 1, 3), terms=100)


@on_devices
@with_dropout
@with_causal
@pytest.mark.parametrize("batch, length, features, heads, dim", [(2, 3, 6, 2, 4), (1, 4, 5, 3, 2), (4, 11, 27, 8, 32)])
def test_attention_layer(batch, length, features, heads, dim, causal, dropout, device):
    q, k, v = (numbers(batch, length, features, seed=seed) for seed in range(3))
    small = length < 5
    make = lambda: nn.AttentionLayer(features, heads, dim, dropout=dropout, causal=causal, device=device)
    draw = lambda: Draws().attention(features, heads, dim)
    check(
        make,
        draw,
        lambda drop, p, q, k, v: attention_layer(q, k, v, p, causal, drop),
        [q, k, v],
        dropout,
        device,
        small,
    )
    check(make, draw, lambda drop, p, q: attention_layer(q, q, q, p, causal, drop), [q], dropout, device, small)


def values(drawn):
    """The weights of what Draws made, in order; biases that there are none of are left out."""
    if isinstance(drawn, (list, tuple)):
        return [value for part in drawn for value in values(part)]
    return [drawn] if isinstance(drawn, np.ndarray) else []


def check_first_values(module, drawn, norms, device):
    """The module's parameters are those drawn, in that order, and besides only the 1s and 0s of so many norms."""
    parameters = [p.numpy() for p in module.parameters()]
    assert all(p.device == device for p in module.parameters())
    drawn = values(drawn)
    assert len(parameters) == len(drawn) + 2 * norms
    random = [p for p in parameters if p.ndim > 1]
    assert len(random) == len(drawn)
    for got in drawn:
        assert any(p.shape == got.shape and np.allclose(p, got, atol=1e-6) for p in random), "drawn in another order"
    assert sorted({float(p.min()) for p in parameters if p.ndim == 1}) == [0, 1]


@on_devices
def test_transformer_layer_init(device):
    np.random.seed(SEED)
    layer = nn.TransformerLayer(4, 2, 3, 5, dropout=0.1, causal=True, device=device)
    np.random.seed(SEED)
    check_first_values(layer, Draws().transformer_layer(4, 2, 3, 5), norms=4, device=device)


@on_devices
@with_dropout
@with_causal
@pytest.mark.parametrize("batch, length, features, heads, dim, hidden", [(2, 3, 4, 2, 3, 5), (4, 11, 27, 8, 32, 64)])
def test_transformer_layer(batch, length, features, heads, dim, hidden, causal, dropout, device):
    check(
        lambda: nn.TransformerLayer(features, heads, dim, hidden, dropout=dropout, causal=causal, device=device),
        lambda: Draws().transformer_layer(features, heads, dim, hidden),
        lambda drop, p, x: transformer_layer(x, p, causal, drop),
        [numbers(batch, length, features)],
        dropout,
        device,
        gradients=length < 5,
    )


def drawn_transformer(features, heads, dim, hidden, layers, sequence_len):
    positions = np.random.randn(sequence_len, features)  # drawn before the layers
    return positions, [Draws().transformer_layer(features, heads, dim, hidden) for _ in range(layers)]


@on_devices
def test_transformer_model_init(device):
    np.random.seed(SEED)
    model = nn.Transformer(4, 5, 3, num_head=2, dim_head=3, sequence_len=7, device=device)
    np.random.seed(SEED)
    check_first_values(model, drawn_transformer(4, 2, 3, 5, 3, 7), norms=12, device=device)


@on_devices
def test_transformer_model_positions(device):
    np.random.seed(SEED)
    model = nn.Transformer(4, 5, 1, num_head=2, dim_head=3, sequence_len=7, device=device)
    np.random.seed(SEED)
    positions = np.random.randn(7, 4)
    got = model.embedded_positions(ndl.Tensor(numbers(3, 5, 4), device=device))
    assert got.device == device
    assert_close(got, np.broadcast_to(positions[:5], (3, 5, 4)))


@on_devices
@with_dropout
@with_causal
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch_first", "time_first"])
@pytest.mark.parametrize(
    "batch, length, features, hidden, layers, heads, dim", [(2, 3, 4, 5, 2, 2, 3), (8, 6, 27, 64, 2, 4, 8)]
)
def test_transformer_model(batch, length, features, hidden, layers, heads, dim, batch_first, causal, dropout, device):
    settings = {"num_head": heads, "dim_head": dim, "dropout": dropout, "causal": causal, "sequence_len": 20}
    turn = (lambda x: x) if batch_first else (lambda x: np.swapaxes(x, 0, 1))

    def make():
        model = nn.Transformer(features, hidden, layers, device=device, batch_first=batch_first, **settings)
        return lambda x: model(x)[0]

    def reference(drop, parameters, x):
        positions, blocks = parameters
        x = turn(x) + positions[:length]
        for block in blocks:
            x = transformer_layer(x, block, causal, drop)
        return turn(x)

    check(
        make, lambda: drawn_transformer(features, heads, dim, hidden, layers, 20), reference,
        [turn(numbers(batch, length, features))], dropout, device, gradients=length < 5,
    )  # fmt: skip


@on_devices
def test_transformer_model_looks_back_only(device):
    np.random.seed(SEED)
    model = nn.Transformer(4, 8, 2, num_head=2, dim_head=3, causal=True, batch_first=True, device=device)
    x = numbers(1, 4, 4)
    output, state = model(ndl.Tensor(x, device=device))
    assert output.shape == state.shape == x.shape and not state.numpy().any()
    x[:, 2] += 1
    changed = model(ndl.Tensor(x, device=device))[0].numpy() != output.numpy()
    assert not changed[:, :2].any() and changed[:, 2:].any(axis=-1).all()


@on_devices
def test_transformer_model_writes_text(device):
    np.random.seed(SEED)
    model = models.LanguageModel(8, 11, 16, 1, "transformer", seq_len=6, device=device)
    logits, state = model(ndl.Tensor(np.arange(10).reshape(5, 2), device=device))
    assert logits.shape == (10, 11) and state.shape == (5, 2, 8)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
