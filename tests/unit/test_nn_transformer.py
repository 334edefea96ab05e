"""Attention against NumPy: masks, dropout, order of draws, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, nn
from needle.testing import gradient_check

Array = np.ndarray


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed + len(shape)).randn(*shape)


def tensor(array: Array) -> Tensor:
    return Tensor(array, dtype="float64")


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(q: Array, k: Array, v: Array, causal: bool, padding: Array | None = None) -> tuple[Array, Array]:
    logits = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    queries, keys = logits.shape[2:]
    if causal:
        later = np.arange(keys)[None, :] > np.arange(queries)[:, None] + keys - queries
        logits = np.where(later, -np.inf, logits)
    if padding is not None:
        logits = np.where(padding[:, None, None, :], -np.inf, logits)
    probs = softmax(logits)
    return probs @ v, probs


QKV = [numbers(2, 3, 4, 5, seed=seed) for seed in range(3)]
PADDING = np.array([[False, False, False, False], [False, False, True, True]])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [None, PADDING], ids=["whole", "padded"])
def test_attention_equals_numpy_U070(causal: bool, padding: Array | None) -> None:
    mask = None if padding is None else Tensor(padding.astype("float64"), dtype="float64", requires_grad=False)
    attend = nn.MultiHeadAttention(causal=causal)
    result, probs = attend(*map(tensor, QKV), padding_mask=mask)
    expected = attention(*QKV, causal, padding)
    np.testing.assert_allclose(result.numpy(), expected[0], atol=1e-14)
    np.testing.assert_allclose(probs.numpy(), expected[1], atol=1e-14)
    gradient_check(lambda q, k, v: attend(q, k, v, padding_mask=mask), *QKV)


def test_more_keys_than_queries() -> None:
    q, k, v = numbers(1, 2, 2, 3), numbers(1, 2, 5, 3, seed=1), numbers(1, 2, 5, 3, seed=2)
    result, _ = nn.MultiHeadAttention(causal=True)(*map(tensor, (q, k, v)))
    np.testing.assert_allclose(result.numpy(), attention(q, k, v, True)[0], atol=1e-14)


def test_causal_attention_sees_nothing_later_U070() -> None:
    attend = nn.MultiHeadAttention(causal=True)
    q, k, v = (numbers(1, 1, 3, 2, seed=seed) for seed in range(3))
    before, probs = attend(*map(tensor, (q, k, v)))
    assert [(row != 0).sum() for row in probs.numpy()[0, 0]] == [1, 2, 3]
    for array in (q, k, v):
        array[:, :, 2] += 10
    after, _ = attend(*map(tensor, (q, k, v)))
    np.testing.assert_array_equal(after.numpy()[:, :, :2], before.numpy()[:, :, :2])
    assert not np.array_equal(after.numpy()[:, :, 2], before.numpy()[:, :, 2])


def test_masks_are_finite_even_where_everything_is_hidden_U070() -> None:
    attend = nn.MultiHeadAttention(causal=True)
    mask = attend.create_causal_mask(3, 3, ndl.default_device())
    values = np.asarray(mask)
    assert mask.shape == (1, 1, 3, 3)
    np.testing.assert_array_equal(values[0, 0] < 0, np.triu(np.ones((3, 3), bool), 1))
    assert values.min() == np.finfo(np.float32).min
    q = Tensor(1e4 * QKV[0], dtype="float32")
    result, probs = attend(q, q, q, padding_mask=ndl.ones(2, 4))
    assert np.isfinite(result.numpy()).all()
    np.testing.assert_allclose(probs.numpy().sum(-1), 1, rtol=1e-6)


def test_returned_probabilities_are_the_dropped_out_ones() -> None:
    attend = nn.MultiHeadAttention(dropout=0.4)
    np.random.seed(1)
    result, probs = attend(*map(tensor, QKV))
    np.random.seed(1)
    expected = attention(*QKV, False)[1] * (np.random.rand(2, 3, 4, 4) <= 0.6) / 0.6
    np.testing.assert_allclose(probs.numpy(), expected, atol=1e-14)
    np.testing.assert_allclose(result.numpy(), expected @ QKV[2], atol=1e-14)


def heads(x: Array, weight: Array, count: int) -> Array:
    batch, steps, _ = x.shape
    return (layer_norm(x) @ weight).reshape(batch, steps, count, -1).swapaxes(1, 2)


def attention_layer(layer: nn.AttentionLayer, q: Array, k: Array, v: Array, causal: bool) -> Array:
    projections = (layer.q_projection, layer.k_projection, layer.v_projection)
    parts = [heads(x, p.weight.numpy(), layer.num_head) for x, p in zip((q, k, v), projections, strict=True)]
    merged = attention(*parts, causal)[0].swapaxes(1, 2).reshape(*q.shape[:2], -1)
    return merged @ layer.out_projection.weight.numpy()


@pytest.mark.parametrize("causal", [False, True])
def test_attention_layer_equals_numpy(causal: bool) -> None:
    np.random.seed(0)
    layer = nn.AttentionLayer(5, 2, 3, causal=causal, dtype="float64")
    x = numbers(2, 4, 5)
    np.testing.assert_allclose(layer(tensor(x)).numpy(), attention_layer(layer, x, x, x, causal), atol=1e-13)
    gradient_check(layer, x, parameters=layer.parameters())


def test_attention_layer_between_two_sequences() -> None:
    np.random.seed(0)
    layer = nn.AttentionLayer(5, 2, 3, k_features=4, v_features=6, out_features=7, causal=False, dtype="float64")
    q, k, v = numbers(2, 3, 5), numbers(2, 8, 4), numbers(2, 8, 6)
    out = layer(*map(tensor, (q, k, v)))
    assert out.shape == (2, 3, 7)
    np.testing.assert_allclose(out.numpy(), attention_layer(layer, q, k, v, False), atol=1e-13)


def transformer_layer(layer: nn.TransformerLayer, x: Array, causal: bool) -> Array:
    x = x + attention_layer(layer.attention, x, x, x, causal)
    first, second = layer.linear1, layer.linear2
    hidden = np.maximum(layer_norm(x) @ first.weight.numpy() + first.bias.numpy(), 0)
    return x + hidden @ second.weight.numpy() + second.bias.numpy()


def test_transformer_layer_equals_numpy() -> None:
    np.random.seed(0)
    layer = nn.TransformerLayer(5, 2, 3, 7, dtype="float64")
    x = numbers(2, 4, 5)
    np.testing.assert_allclose(layer(tensor(x)).numpy(), transformer_layer(layer, x, True), atol=1e-13)
    gradient_check(layer, x, parameters=layer.parameters())


@pytest.mark.parametrize("batch_first", [False, True])
def test_transformer_equals_numpy(batch_first: bool) -> None:
    np.random.seed(0)
    model = nn.Transformer(4, 6, 2, num_head=2, dim_head=3, dtype="float64", batch_first=batch_first, sequence_len=9)
    x = numbers(2, 3, 4)
    expected = x + model.positions.weight.numpy()[:3]
    for layer in model.layers:
        expected = transformer_layer(layer, expected, True)
    out, state = model(tensor(x if batch_first else x.swapaxes(0, 1)))
    np.testing.assert_allclose(out.numpy() if batch_first else out.numpy().swapaxes(0, 1), expected, atol=1e-12)
    assert state.shape == out.shape and not state.numpy().any()


def test_transformer_gradients() -> None:
    np.random.seed(0)
    model = nn.Transformer(3, 4, 1, num_head=1, dim_head=2, dtype="float64", sequence_len=3)
    gradient_check(lambda x: model(x)[0], numbers(3, 2, 3), parameters=model.parameters())


def test_draws_come_in_the_order_of_the_contract() -> None:
    np.random.seed(5)
    model = nn.Transformer(4, 6, 1, num_head=2, dim_head=3, sequence_len=5)
    np.random.seed(5)

    def linear(fan_in: int, fan_out: int) -> Array:
        bound = np.sqrt(6 / fan_in)
        return np.random.rand(fan_in, fan_out) * 2 * bound - bound

    layer = model.layers[0]
    expected = [
        (model.positions.weight, np.random.randn(5, 4)),
        (layer.attention.q_projection.weight, linear(4, 6)),
        (layer.attention.k_projection.weight, linear(4, 6)),
        (layer.attention.v_projection.weight, linear(4, 6)),
        (layer.attention.out_projection.weight, linear(6, 4)),
        (layer.linear1.weight, linear(4, 6)),
        (layer.linear1.bias, linear(6, 1).T),
        (layer.linear2.weight, linear(6, 4)),
        (layer.linear2.bias, linear(4, 1).T),
    ]
    for parameter, values in expected:
        np.testing.assert_allclose(parameter.numpy(), values, rtol=1e-6, atol=1e-6)


def test_dropout_draws_in_forward_order() -> None:
    np.random.seed(0)
    layer = nn.TransformerLayer(5, 2, 3, 7, dropout=0.2)
    shapes: list[tuple[int, ...]] = []
    for module in (layer.attention.attn.dropout, layer.dropout):
        module.register_forward_hook(lambda _, args, out: shapes.append(out.shape))
    layer(Tensor(numbers(2, 4, 5), dtype="float32"))
    assert [int(np.prod(shape)) for shape in shapes] == [2 * 2 * 4 * 4, 2 * 4 * 5, 2 * 4 * 7, 2 * 4 * 5]


def test_padding_goes_through_the_whole_transformer() -> None:
    np.random.seed(0)
    model = nn.Transformer(4, 6, 2, num_head=2, dim_head=3, causal=False, batch_first=True, sequence_len=5)
    x = numbers(2, 4, 4).astype("float32")
    mask = Tensor(PADDING, dtype="bool", requires_grad=False)
    before, _ = model(Tensor(x, dtype="float32"), padding_mask=mask)
    x[1, 2:] += 5
    after, _ = model(Tensor(x, dtype="float32"), padding_mask=mask)
    np.testing.assert_array_equal(after.numpy()[0], before.numpy()[0])
    np.testing.assert_array_equal(after.numpy()[1, :2], before.numpy()[1, :2])


WRONG = [
    (lambda: nn.MultiHeadAttention()(*[ndl.zeros(2, 3, 4)] * 3), "attention", "(2, 3, 4)"),
    (
        lambda: nn.MultiHeadAttention()(ndl.zeros(1, 1, 2, 3), ndl.zeros(1, 1, 2, 4), ndl.zeros(1, 1, 2, 3)),
        "attention",
        "(1, 1, 2, 4)",
    ),
    (
        lambda: nn.MultiHeadAttention()(*[ndl.zeros(2, 1, 3, 4)] * 3, padding_mask=ndl.zeros(3, 2)),
        "attention",
        "(3, 2)",
    ),
    (lambda: nn.AttentionLayer(4, 1, 2)(ndl.zeros(2, 3, 5)), "attention", "(2, 3, 5)"),
    (lambda: nn.TransformerLayer(4, 1, 2, 3)(ndl.zeros(2, 4)), "attention", "(2, 4)"),
    (lambda: nn.Transformer(4, 4, 1, sequence_len=2)(ndl.zeros(3, 1, 4)), "transformer", "3 steps"),
    (lambda: nn.Transformer(4, 4, 1)(ndl.zeros(3, 4)), "transformer", "(3, 4)"),
]


@pytest.mark.parametrize(("call", "op", "came"), WRONG)
def test_errors_name_the_layer_and_what_came_U090(call: Callable[[], Any], op: str, came: str) -> None:
    with pytest.raises(ValueError, match=f"^{op}: ") as caught:
        call()
    assert came in str(caught.value)
