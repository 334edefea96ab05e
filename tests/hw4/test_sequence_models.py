"""Checks of homework 4, parts 4, 5 and 7: RNN, LSTM, and a language model on text.

python -m pytest tests/hw4 -k test_rnn      and: test_lstm, language_model_implementation, language_model_training

Values are compared with float64 NumPy, gradients with central differences: input and hidden sizes differ, texts are of
one and of several steps, states are given and not.
"""

from __future__ import annotations

import gc

import needle as ndl
import numpy as np
import pytest
import simple_ml
from models import LanguageModel
from needle import nn
from stages import assert_close, assert_same, assert_within, devices, numerical_gradients, upstream

on_devices = pytest.mark.parametrize("device", devices())
with_sizes = pytest.mark.parametrize("batch, inputs, hidden", [(1, 1, 1), (1, 3, 5), (3, 4, 2)])
with_lengths = pytest.mark.parametrize("layers, steps", [(1, 1), (1, 4), (2, 1), (2, 3)])
with_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
with_state = pytest.mark.parametrize("given", [True, False], ids=["state", "no_state"])
with_nonlinearity = pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def check(f, reference, arrays, parameters, device, terms=2000):
    """f(*Tensors) → list of Tensors equals reference(*arrays, *parameters), and so do all gradients."""
    inputs = [ndl.Tensor(a, device=device) for a in arrays]
    outs = f(*inputs)
    leaves = [*inputs, *parameters]
    values = [leaf.numpy() for leaf in leaves]
    for out, want in zip(outs, reference(*(v.astype(float) for v in values)), strict=True):
        assert out.device == device
        assert_close(out, want, terms=64)

    # one number that depends on all results: each of them weighed unevenly
    weights = [upstream(out.shape, seed) for seed, out in enumerate(outs)]
    total = sum((out * ndl.Tensor(w, device=device)).sum() for out, w in zip(outs, weights, strict=True))
    total.backward()

    def weighed(*values):
        return np.array(sum((out * w).sum() for out, w in zip(reference(*values), weights, strict=True)))

    for leaf, want in zip(leaves, numerical_gradients(weighed, values, np.array(1.0)), strict=True):
        assert_close(leaf.grad, want, terms)


# ---- RNN ------------------------------------------------------------------------------------------------------------


def rnn_step(nonlinearity, X, h, W_ih, W_hh, b_ih=0, b_hh=0):
    total = X @ W_ih + b_ih + h @ W_hh + b_hh
    return np.tanh(total) if nonlinearity == "tanh" else np.maximum(total, 0)


def lstm_step(X, h, c, W_ih, W_hh, b_ih=0, b_hh=0):
    i, f, g, o = np.split(X @ W_ih + b_ih + h @ W_hh + b_hh, 4, axis=1)
    c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    return np.tanh(c) / (1 + np.exp(-o)), c


def check_parameters(cell, inputs, hidden, gates, bias):
    """Weights and biases have the course's names and shapes, and are drawn from ±1/sqrt(hidden) in this order."""
    names = ["W_ih", "W_hh", "bias_ih", "bias_hh"]
    shapes = [(inputs, gates * hidden), (hidden, gates * hidden), (gates * hidden,), (gates * hidden,)]
    bound = 1 / np.sqrt(hidden)
    np.random.seed(0)
    for name, shape in list(zip(names, shapes, strict=True))[: 4 if bias else 2]:
        assert_close(getattr(cell, name), (2 * np.random.rand(*shape) - 1) * bound)
    assert len(cell.parameters()) == (4 if bias else 2)
    if not bias:
        assert getattr(cell, "bias_ih", None) is None and getattr(cell, "bias_hh", None) is None


@on_devices
@with_bias
@pytest.mark.parametrize("kind, gates", [(nn.RNNCell, 1), (nn.LSTMCell, 4)], ids=["rnn", "lstm"])
def test_rnn_cell_parameters(kind, gates, bias, device):
    np.random.seed(0)
    cell = kind(3, 5, bias, device=device)
    check_parameters(cell, 3, 5, gates, bias)
    assert all(isinstance(p, nn.Parameter) and p.device == device for p in cell.parameters())


@on_devices
def test_lstm_sigmoid(device):
    X = np.concatenate([numbers(3, 4), [[-200.0, 200.0, 0.0, 30.0]]]).astype(np.float32)  # flat at the ends, not NaN
    with np.errstate(over="ignore"):
        check(lambda x: [nn.Sigmoid()(x)], lambda x: [1 / (1 + np.exp(-x))], [X], [], device)


@on_devices
@with_nonlinearity
@with_state
@with_bias
@with_sizes
def test_rnn_cell(batch, inputs, hidden, bias, given, nonlinearity, device):
    np.random.seed(0)
    cell = nn.RNNCell(inputs, hidden, bias, nonlinearity, device=device)
    check_parameters(cell, inputs, hidden, 1, bias)
    X, h = numbers(batch, inputs), numbers(batch, hidden, seed=1)
    if given:
        reference = lambda X, h, *p: [rnn_step(nonlinearity, X, h, *p)]
        check(lambda X, h: [cell(X, h)], reference, [X, h], cell.parameters(), device)
    else:
        h = np.zeros_like(h)
        parameters = [p for name, p in vars(cell).items() if name != "W_hh" and isinstance(p, ndl.Tensor)]
        reference = lambda X, W, *b: [rnn_step(nonlinearity, X, h, W, np.zeros((hidden, hidden)), *b)]
        check(lambda X: [cell(X, None)], reference, [X], parameters, device)


@on_devices
@with_state
@with_bias
@with_sizes
def test_lstm_cell(batch, inputs, hidden, bias, given, device):
    np.random.seed(0)
    cell = nn.LSTMCell(inputs, hidden, bias, device=device)
    check_parameters(cell, inputs, hidden, 4, bias)
    X, h, c = numbers(batch, inputs), numbers(batch, hidden, seed=1), numbers(batch, hidden, seed=2)
    if given:
        check(lambda X, h, c: cell(X, (h, c)), lstm_step, [X, h, c], cell.parameters(), device)
    else:
        zeros = np.zeros_like(h, float)
        for out, want in zip(cell(ndl.Tensor(X, device=device), None),
                             lstm_step(X.astype(float), zeros, zeros, *(p.numpy() for p in cell.parameters())),
                             strict=True):  # fmt: skip
            assert_close(out, want)


def run_layers(step, states, X, parameters, per_layer):
    """All layers over all steps; states: per layer a tuple.  Returns what the last layer says, and the last states."""
    outputs = list(X)
    finals = []
    for layer, state in enumerate(states):
        own = parameters[layer * per_layer : (layer + 1) * per_layer]
        for t, x in enumerate(outputs):
            state = step(x, *state, *own)
            state = state if isinstance(state, tuple) else (state,)
            outputs[t] = state[0]
        finals.append(state)
    return [np.stack(outputs), *(np.stack(parts) for parts in zip(*finals, strict=True))]


@on_devices
@with_nonlinearity
@with_state
@with_bias
@with_lengths
@with_sizes
def test_rnn(batch, inputs, hidden, layers, steps, bias, given, nonlinearity, device):
    np.random.seed(0)
    model = nn.RNN(inputs, hidden, layers, bias, device=device, nonlinearity=nonlinearity)
    assert [cell.W_ih.shape[0] for cell in model.rnn_cells] == [inputs] + [hidden] * (layers - 1)
    X, h0 = numbers(steps, batch, inputs), numbers(layers, batch, hidden, seed=1)
    step = lambda x, h, *p: rnn_step(nonlinearity, x, h, *p)

    def reference(X, h0, *parameters):
        return run_layers(step, [(h,) for h in h0], X, parameters, 4 if bias else 2)

    if given:
        check(lambda X, h: model(X, h), reference, [X, h0], model.parameters(), device)
    else:
        outs = model(ndl.Tensor(X, device=device), None)
        for out, want in zip(outs, reference(X, 0 * h0, *doubles(model)), strict=True):
            assert_close(out, want, terms=64)


@on_devices
@with_state
@with_bias
@with_lengths
@with_sizes
def test_lstm(batch, inputs, hidden, layers, steps, bias, given, device):
    np.random.seed(0)
    model = nn.LSTM(inputs, hidden, layers, bias, device=device)
    assert [cell.W_ih.shape[0] for cell in model.lstm_cells] == [inputs] + [hidden] * (layers - 1)
    X = numbers(steps, batch, inputs)
    h0, c0 = numbers(layers, batch, hidden, seed=1), numbers(layers, batch, hidden, seed=2)

    def f(X, *state):
        output, (h, c) = model(X, state or None)
        return output, h, c

    def reference(X, h0, c0, *parameters):
        return run_layers(lstm_step, list(zip(h0, c0, strict=True)), X, parameters, 4 if bias else 2)

    if given:
        check(f, reference, [X, h0, c0], model.parameters(), device)
    else:
        for out, want in zip(
            f(ndl.Tensor(X, device=device)), reference(X, 0 * h0, 0 * c0, *doubles(model)), strict=True
        ):
            assert_close(out, want, terms=64)


def doubles(model):
    return [p.numpy().astype(float) for p in model.parameters()]


# ---- language model -------------------------------------------------------------------------------------------------


def language_model_reference(kind, layers):
    """Logits (T * B, V) and the last states, from ids (T, B), first states and parameters in order of creation."""
    step = lstm_step if kind == "lstm" else lambda x, h, *p: rnn_step("tanh", x, h, *p)

    def reference(ids, states, embedding, *parameters):
        *cells, W, b = parameters
        X = embedding[ids]
        output, *finals = run_layers(step, states, X, cells, 4)
        return output.reshape(-1, output.shape[2]) @ W + b, finals

    return reference


@on_devices
def test_language_model_implementation_embedding_init(device):
    np.random.seed(0)
    wanted = np.random.randn(7, 3)
    np.random.seed(0)
    layer = nn.Embedding(7, 3, device=device)
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.device == device
    assert layer.parameters() == [layer.weight]
    assert_close(layer.weight, wanted)


@on_devices
def test_language_model_implementation_embedding(device):
    layer = nn.Embedding(7, 3, device=device)
    ids = np.array([[0, 6], [2, 2], [5, 2], [2, 0]])
    out = layer(ndl.Tensor(ids, device=device))
    assert out.shape == (4, 2, 3) and out.device == device
    assert_same(out, layer.weight.numpy()[ids])
    weights = upstream(out.shape)
    out.backward(ndl.Tensor(weights, device=device))
    wanted = np.zeros((7, 3))
    np.add.at(wanted, ids, weights)  # a word that comes several times is paid several times
    assert_close(layer.weight.grad, wanted)


@on_devices
@pytest.mark.parametrize("kind, gates", [("rnn", 1), ("lstm", 4)])
def test_language_model_implementation_init(kind, gates, device):
    np.random.seed(0)
    model = LanguageModel(3, 7, 5, 2, kind, device=device)
    width, bound = gates * 5, 1 / np.sqrt(5)
    np.random.seed(0)
    embedding = np.random.randn(7, 3)
    cells = [(2 * np.random.rand(*shape) - 1) * bound
             for inputs in (3, 5) for shape in ((inputs, width), (5, width), (width,), (width,))]  # fmt: skip
    linear = [(2 * np.random.rand(5, 7) - 1) * np.sqrt(6 / 5), (2 * np.random.rand(1, 7) - 1) * np.sqrt(6 / 7)]
    parameters = model.parameters()
    for parameter, want in zip(parameters, [embedding, *cells, *linear], strict=True):
        assert parameter.device == device
        assert_close(parameter, want)


@on_devices
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
@pytest.mark.parametrize("given", [True, False], ids=["state", "no_state"])
@pytest.mark.parametrize("words", [1, 7])
@pytest.mark.parametrize("batch, embedding, hidden", [(1, 1, 1), (3, 2, 4)])
@with_lengths
def test_language_model_implementation(batch, embedding, hidden, layers, steps, words, given, kind, device):
    np.random.seed(0)
    model = LanguageModel(embedding, words, hidden, layers, kind, device=device)
    parts = 2 if kind == "lstm" else 1
    start = [numbers(layers, batch, hidden, seed=seed) for seed in range(parts)] if given else None
    h = start and [ndl.Tensor(part, device=device) for part in start]
    ids = np.random.RandomState(1).randint(words, size=(steps, batch))
    logits, state = model(ndl.Tensor(ids, device=device), h and (tuple(h) if kind == "lstm" else h[0]))

    assert logits.shape == (steps * batch, words) and logits.device == device
    assert isinstance(state, tuple) == (kind == "lstm")
    states = list(zip(*(start or [np.zeros((layers, batch, hidden))] * parts), strict=True))
    reference = language_model_reference(kind, layers)
    wanted, finals = reference(ids, states, *doubles(model))
    assert_close(logits, wanted, terms=64)
    for part, want in zip(state if kind == "lstm" else [state], finals, strict=True):
        assert_close(part, want, terms=64)

    weights = upstream(logits.shape)
    logits.backward(ndl.Tensor(weights, device=device))
    parameters = model.parameters()
    assert all(p.grad is not None for p in parameters)
    wanted = numerical_gradients(lambda *p: reference(ids, states, *p)[0], [p.numpy() for p in parameters], weights)
    for p, want in zip(parameters, wanted, strict=True):
        assert_close(p.grad, want, terms=2000)


def text(words, count, seed=0):
    """Ids of a text in which the next word mostly follows from the one before."""
    random = np.random.RandomState(seed)
    ids = [0]
    while len(ids) < count:
        ids.append((ids[-1] * 2 + 1) % words if random.rand() < 0.9 else random.randint(words))
    return ids


def small_model_and_text(kind, device, seed=3):
    np.random.seed(seed)
    model = LanguageModel(5, 11, 6, 1, kind, device=device)
    return model, ndl.data.batchify(text(11, 88), 4, device=device, dtype="float32")  # 22 rows: the last step has one


def accuracy_and_loss(model, data, device):
    """Of the whole text at one go, which is what carrying the state from step to step gives; each word counts once."""
    logits = model(ndl.Tensor(data[:-1], device=device))[0].numpy().astype(float)
    target = data[1:].astype(int).flatten()
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(target)), target]
    return np.array([np.mean(logits.argmax(axis=1) == target), losses.mean()])


def pair(result):
    return np.array([number(value) for value in result])


class HalfLoss(nn.SoftmaxLoss):
    """A loss of one's own: whoever takes the usual one in its place is seen."""

    def forward(self, logits, y):
        return super().forward(logits, y) / 2


@on_devices
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_language_model_training_epoch(kind, device):
    model, data = small_model_and_text(kind, device)
    before = doubles(model)
    result = simple_ml.epoch_general_ptb(data, model, seq_len=5, device=device)
    assert not model.training, "without an optimizer it is an evaluation"
    assert_within(pair(result), accuracy_and_loss(model, data, device), rtol=1e-5)
    for now, then in zip(doubles(model), before, strict=True):
        assert_same(now, then)

    opt = ndl.optim.SGD(model.parameters(), lr=1.0)
    simple_ml.epoch_general_ptb(data, model, seq_len=5, opt=opt, clip=1e-3, device=device)
    assert model.training
    moved = np.sqrt(sum(((now - then) ** 2).sum() for now, then in zip(doubles(model), before, strict=True)))
    assert 0 < moved <= 1.01e-3 * len(range(0, len(data) - 1, 5)), "clip bounds what each step can move"
    losses = [pair(simple_ml.epoch_general_ptb(data, model, seq_len=5, opt=opt, device=device))[1] for _ in range(4)]
    assert losses[-1] < losses[0]


@on_devices
def test_language_model_training_is_epochs_of_an_optimizer(device):
    settings = {"optimizer": ndl.optim.SGD, "lr": 0.5, "weight_decay": 0.01, "loss_fn": HalfLoss, "clip": 0.3}
    (ours, data), (theirs, _) = small_model_and_text("rnn", device), small_model_and_text("rnn", device)
    result = simple_ml.train_ptb(ours, data, seq_len=5, n_epochs=2, device=device, **settings)
    opt = ndl.optim.SGD(theirs.parameters(), lr=0.5, weight_decay=0.01)
    epoch = lambda: simple_ml.epoch_general_ptb(data, theirs, 5, HalfLoss(), opt, clip=0.3, device=device)
    wanted = [epoch() for _ in range(2)][-1]
    assert_within(pair(result), pair(wanted), rtol=1e-6)
    for now, want in zip(doubles(ours), doubles(theirs), strict=True):
        assert_same(now, want)


@on_devices
def test_language_model_training_evaluates(device):
    model, data = small_model_and_text("lstm", device)
    before = doubles(model)
    result = simple_ml.evaluate_ptb(model, data, seq_len=4, device=device)
    assert not model.training
    accuracy, loss = accuracy_and_loss(model, data, device)
    assert_within(pair(result), np.array([accuracy, loss]), rtol=1e-5)
    result = simple_ml.evaluate_ptb(model, data, seq_len=4, loss_fn=HalfLoss, device=device)
    assert_within(pair(result), np.array([accuracy, loss / 2]), rtol=1e-5)
    for now, then in zip(doubles(model), before, strict=True):
        assert_same(now, then)


@on_devices
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_language_model_training(kind, device):
    np.random.seed(3)
    model = LanguageModel(6, 11, 8, 2, kind, device=device)
    data = ndl.data.batchify(text(11, 104), 8, device=device, dtype="float32")
    before = doubles(model)
    _, untrained = pair(simple_ml.evaluate_ptb(model, data, seq_len=6, device=device))

    # training with a step size of 0 sees the same losses, and moves nothing
    _, still = pair(simple_ml.train_ptb(model, data, seq_len=6, lr=0.0, device=device))
    assert model.training
    assert_within(still, untrained, rtol=1e-5)
    for now, then in zip(doubles(model), before, strict=True):
        assert_same(now, then)

    adam = {"n_epochs": 6, "optimizer": ndl.optim.Adam, "lr": 0.02}
    _, trained = pair(simple_ml.train_ptb(model, data, seq_len=6, device=device, **adam))
    assert trained < 0.9 * untrained
    _, after = pair(simple_ml.evaluate_ptb(model, data, seq_len=6, device=device))
    assert after < trained


def test_language_model_training_keeps_nothing():
    data = ndl.data.batchify(text(7, 120), 4)
    model = LanguageModel(4, 7, 5, 1, "lstm")
    alive = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(4):
            simple_ml.train_ptb(model, data, seq_len=5)
            alive.append(ndl.autograd.TENSOR_COUNTER)
    finally:
        gc.enable()
    assert alive[-1] == alive[0], "the state carried from step to step must let go of the graphs behind it"


def number(value):
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, float).item()
