"""The larger networks of the course: ResNet9 for pictures, LanguageModel for text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import needle.nn as nn
import numpy as np

np.random.seed(0)


def ConvBN(
    in_channels: int, out_channels: int, kernel_size: int, stride: int, device: Any = None, dtype: str = "float32"
) -> nn.Module:
    """Convolution, batch norm, ReLU.  (B, in_channels, H, W) → (B, out_channels, H / stride, W / stride)"""
    ### BEGIN YOUR SOLUTION hw4/conv_bn
    return nn.Sequential(
        nn.Conv(in_channels, out_channels, kernel_size, stride=stride, device=device, dtype=dtype),
        nn.BatchNorm2d(out_channels, device=device, dtype=dtype),
        nn.ReLU(),
    )
    ### END YOUR SOLUTION hw4/conv_bn


class ResNet9(nn.Module):
    """A small residual network for CIFAR-10 (after He et al. 2016).  (B, 3, 32, 32) → logits (B, 10)

    Nine layers with weights: eight convolutions, two pairs of which lie inside a residual, and two linear layers count
    as one head.
    """

    def __init__(self, device: Any = None, dtype: str = "float32") -> None:
        super().__init__()
        like = {"device": device, "dtype": dtype}
        ### BEGIN YOUR SOLUTION hw4/resnet9_init
        self.layers = nn.Sequential(
            ConvBN(3, 16, 7, 4, **like),
            ConvBN(16, 32, 3, 2, **like),
            nn.Residual(nn.Sequential(ConvBN(32, 32, 3, 1, **like), ConvBN(32, 32, 3, 1, **like))),
            ConvBN(32, 64, 3, 2, **like),
            ConvBN(64, 128, 3, 2, **like),
            nn.Residual(nn.Sequential(ConvBN(128, 128, 3, 1, **like), ConvBN(128, 128, 3, 1, **like))),
            nn.Flatten(),
            nn.Linear(128, 128, **like),
            nn.ReLU(),
            nn.Linear(128, 10, **like),
        )
        ### END YOUR SOLUTION hw4/resnet9_init

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        ### BEGIN YOUR SOLUTION hw4/resnet9_forward
        return self.layers(x)
        ### END YOUR SOLUTION hw4/resnet9_forward


SEQUENCE_MODELS = ["rnn", "lstm"]
# >>> hw4_extra
SEQUENCE_MODELS += ["transformer"]
# <<< hw4_extra


class LanguageModel(nn.Module):
    """Predicts the next word: embedding, a sequence model, and a linear layer that scores every word.

    embedding_size  length of a word's vector
    output_size     number of words in the vocabulary
    hidden_size     length of the state of an rnn or lstm; width of a transformer's feed-forward layers
    num_layers      layers of the sequence model
    seq_model       "rnn", "lstm" or "transformer"
    seq_len         the longest text that a transformer takes
    dropout         share of the numbers between the parts that training sets to zero
    """

    def __init__(
        self,
        embedding_size: int,
        output_size: int,
        hidden_size: int,
        num_layers: int = 1,
        seq_model: str = "rnn",
        seq_len: int = 40,
        device: Any = None,
        dtype: str = "float32",
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        like = {"device": device, "dtype": dtype}
        if seq_model not in SEQUENCE_MODELS:
            raise ValueError(f"LanguageModel: seq_model is {seq_model!r}, wanted one of {SEQUENCE_MODELS}")
        self.output_size = output_size
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        # >>> hw4_extra
        if seq_model == "transformer":  # whose output is as wide as its input
            self.embedding = nn.Embedding(output_size, embedding_size, **like)
            self.sequence_model = nn.Transformer(
                embedding_size, hidden_size, num_layers, dropout=dropout, sequence_len=seq_len, **like
            )
            self.linear = nn.Linear(embedding_size, output_size, **like)
            return
        # <<< hw4_extra
        ### BEGIN YOUR SOLUTION hw4/language_model_init
        recurrent = nn.RNN if seq_model == "rnn" else nn.LSTM
        self.embedding = nn.Embedding(output_size, embedding_size, **like)
        self.sequence_model = recurrent(embedding_size, hidden_size, num_layers, **like)
        self.linear = nn.Linear(hidden_size, output_size, **like)
        ### END YOUR SOLUTION hw4/language_model_init

    def forward(self, x: ndl.Tensor, h: Any = None) -> tuple[ndl.Tensor, Any]:
        """Score the next word at every place.

        x  word ids (T, B)
        h  the state that the text before left (rnn: a tensor, lstm: a pair), or None

        Returns logits (T * B, output_size), rows by time and then by text, and the new state.
        """
        ### BEGIN YOUR SOLUTION hw4/language_model_forward
        states, h = self.sequence_model(self.dropout(self.embedding(x)), h)
        time, batch, width = states.shape
        return self.linear(self.dropout(states).reshape((time * batch, width))), h
        ### END YOUR SOLUTION hw4/language_model_forward
