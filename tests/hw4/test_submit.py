"""What is handed in for homework 4: `python3 -m mugrade submit KEY hw4 -k new_ops`, and likewise for the others.

All of it runs on the CPU: what a learner's CUDA kernels compute was handed in with homework 3.
"""

from __future__ import annotations

import mugrade
import needle as ndl
import numpy as np
import simple_ml
from models import LanguageModel
from needle import backend_ndarray as nd
from needle import nn
from stages import write_cifar10

from apps.models import ResNet9


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def tensors(*shapes):
    return [ndl.Tensor(numbers(*shape, seed=seed)) for seed, shape in enumerate(shapes)]


def forward_and_back(f, *shapes, parameters=()):
    """The outputs of f of tensors of these shapes, then the gradients of inputs and parameters of their weighed sum."""
    inputs = tensors(*shapes)
    outs = f(*inputs)
    outs = outs if isinstance(outs, list) else [outs]
    weights = [ndl.Tensor(numbers(*out.shape, seed=9 + i)) for i, out in enumerate(outs)]
    total = sum((out * weight).sum() for out, weight in zip(outs, weights, strict=True))
    total.backward()
    mugrade.submit([out.numpy() for out in outs])
    mugrade.submit([leaf.grad.numpy() for leaf in [*inputs, *parameters]])


def seeded(make):
    np.random.seed(0)
    return make()


def submit_new_nd_backend():
    forward_and_back(lambda a, b: (a - b) / (b * b + 1) * 0.5, (3, 4), (3, 4))
    forward_and_back(lambda a: (a * a + 1) ** 1.5, (3, 4))
    forward_and_back(lambda a, b: a @ b, (3, 4), (4, 5))
    forward_and_back(lambda a: ndl.exp(a) + ndl.log(a * a + 1) + ndl.relu(a) + ndl.tanh(a), (3, 4))
    forward_and_back(lambda a: ndl.logsumexp(a, axes=(1,)), (3, 4))
    forward_and_back(lambda a: a.sum(axes=(0, 2)).reshape((4, 1)).broadcast_to((4, 3)).transpose(), (2, 4, 3))
    forward_and_back(lambda a, b, c: ndl.stack((a, b, c), axis=1), (2, 3), (2, 3), (2, 3))
    forward_and_back(lambda a: list(ndl.split(a, axis=1)), (2, 3, 4))


def submit_cifar10(tmp_path):
    write_cifar10(tmp_path, 6, seed=4)
    for train in (True, False):
        dataset = ndl.data.CIFAR10Dataset(str(tmp_path), train=train)
        mugrade.submit(len(dataset))
        image, label = dataset[3]
        mugrade.submit((image, int(label)))


def submit_new_ops():
    padded = nd.array(numbers(2, 3, 4)).pad(((0, 1), (2, 0), (1, 1)))
    mugrade.submit(padded.numpy())
    forward_and_back(lambda a: ndl.flip(a, axes=(0, 2)), (2, 3, 4))
    forward_and_back(lambda a: ndl.dilate(a, axes=(0, 1), dilation=2), (2, 3, 2))
    forward_and_back(lambda a: ndl.dilate(a, axes=(0, 5), dilation=1), (2, 3))


CONVOLUTIONS = [
    ((2, 6, 6, 3), (3, 3, 3, 4), 1, 1),
    ((2, 8, 8, 3), (3, 3, 3, 2), 2, 0),
    ((1, 7, 5, 2), (1, 1, 2, 3), 1, 2),
]


def submit_conv_forward():
    for x_shape, w_shape, stride, padding in CONVOLUTIONS:
        mugrade.submit(ndl.conv(*tensors(x_shape, w_shape), stride=stride, padding=padding).numpy())
    np.random.seed(0)
    mugrade.submit(ndl.init.kaiming_uniform(27, 36, shape=(3, 3, 3, 4)).numpy())
    layer = seeded(lambda: nn.Conv(3, 4, 3, stride=2))
    mugrade.submit((layer.weight.numpy(), layer.bias.numpy(), layer(*tensors((2, 3, 6, 6))).numpy()))
    bare = seeded(lambda: nn.Conv(3, 4, 3, bias=False))
    mugrade.submit(bare(*tensors((2, 3, 6, 6))).numpy())


def submit_conv_backward():
    for x_shape, w_shape, stride, padding in CONVOLUTIONS:
        f = lambda x, w: ndl.conv(x, w, stride=stride, padding=padding)  # noqa: B023
        forward_and_back(f, x_shape, w_shape)
    layer = seeded(lambda: nn.Conv(3, 4, 3))
    forward_and_back(layer, (2, 3, 5, 5), parameters=layer.parameters())


def submit_resnet9():
    model = seeded(lambda: ResNet9(dtype="float32"))
    mugrade.submit(len(model.parameters()))
    mugrade.submit(model(*tensors((2, 3, 32, 32))).numpy())


def submit_rnn():
    cell = seeded(lambda: nn.RNNCell(4, 3, nonlinearity="relu"))
    forward_and_back(cell, (2, 4), (2, 3), parameters=cell.parameters())
    model = seeded(lambda: nn.RNN(4, 3, num_layers=2))
    forward_and_back(lambda X, h: list(model(X, h)), (5, 2, 4), (2, 2, 3), parameters=model.parameters())
    mugrade.submit(model(*tensors((1, 2, 4)), None)[0].numpy())


def submit_lstm():
    cell = seeded(lambda: nn.LSTMCell(4, 3))
    forward_and_back(lambda X, h, c: list(cell(X, (h, c))), (2, 4), (2, 3), (2, 3), parameters=cell.parameters())
    model = seeded(lambda: nn.LSTM(4, 3, num_layers=2))

    def run(X, h, c):
        output, (h, c) = model(X, (h, c))
        return [output, h, c]

    forward_and_back(run, (5, 2, 4), (2, 2, 3), (2, 2, 3), parameters=model.parameters())


TEXT = "a rose is a rose\nis a rose\n\nthe end of it\n"


def submit_ptb(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.txt").write_text(TEXT * 3 if name == "train" else "a new rose\n")
    corpus = ndl.data.Corpus(str(tmp_path))
    mugrade.submit((len(corpus.dictionary), corpus.dictionary.idx2word, list(corpus.train), list(corpus.test)))
    mugrade.submit(list(ndl.data.Corpus(str(tmp_path), max_lines=2).train))
    batches = ndl.data.batchify(corpus.train, 4, device=ndl.cpu(), dtype="float32")
    mugrade.submit(np.asarray(batches))
    for start in (0, 5, len(batches) - 2):
        data, target = ndl.data.get_batch(batches, start, 3, device=ndl.cpu())
        mugrade.submit((data.numpy(), target.numpy()))


def submit_language_model():
    for kind in ("rnn", "lstm"):
        model = seeded(lambda: LanguageModel(5, 7, 6, 2, kind))  # noqa: B023
        ids = ndl.Tensor(np.random.RandomState(1).randint(7, size=(4, 3)))
        mugrade.submit(model(ids)[0].numpy())
        data = ndl.data.batchify(list(np.random.RandomState(2).randint(7, size=90)), 3)
        mugrade.submit([float(np.asarray(value)) for value in simple_ml.evaluate_ptb(model, data, seq_len=4)])
        mugrade.submit([float(np.asarray(value)) for value in simple_ml.train_ptb(model, data, seq_len=4, lr=0.5)])
