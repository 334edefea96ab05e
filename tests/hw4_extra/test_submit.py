"""What is handed in for homework 4 extra: `python3 -m mugrade submit KEY hw4_extra -k attention_layer`, and so on."""

from __future__ import annotations

import mugrade
import needle as ndl
import numpy as np
from needle import nn


def tensor(*shape, seed=0):
    return ndl.Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def seeded(make):
    np.random.seed(0)
    return make()


def forward_and_back(f, *inputs, parameters=()):
    np.random.seed(1)  # of the dropout masks
    out = f(*inputs)
    out.backward(tensor(*out.shape, seed=9))
    mugrade.submit(out.numpy())
    mugrade.submit([leaf.grad.numpy() for leaf in [*inputs, *parameters]])


def submit_attention_activation():
    for causal in (False, True):
        layer = nn.MultiHeadAttention(dropout=0.1, causal=causal)
        q, k, v = (tensor(2, 3, 5, 4, seed=seed) for seed in range(3))
        np.random.seed(1)
        mugrade.submit([result.numpy() for result in layer(q, k, v)])
        forward_and_back(lambda q, k, v: layer(q, k, v)[0], q, k, v)  # noqa: B023


def submit_attention_layer():
    for causal in (False, True):
        layer = seeded(lambda: nn.AttentionLayer(6, 2, 4, dropout=0.1, causal=causal))  # noqa: B023
        forward_and_back(layer, *(tensor(2, 5, 6, seed=seed) for seed in range(3)), parameters=layer.parameters())


def submit_transformer_layer():
    for causal in (False, True):
        layer = seeded(lambda: nn.TransformerLayer(6, 2, 4, 8, dropout=0.1, causal=causal))  # noqa: B023
        forward_and_back(layer, tensor(2, 5, 6), parameters=layer.parameters())


def submit_transformer_model():
    for batch_first in (False, True):
        settings = {"num_head": 2, "dim_head": 4, "dropout": 0.1, "causal": True, "batch_first": batch_first}
        model = seeded(lambda: nn.Transformer(6, 8, 2, sequence_len=9, **settings))  # noqa: B023
        forward_and_back(lambda x: model(x)[0], tensor(3, 5, 6), parameters=model.parameters())  # noqa: B023
