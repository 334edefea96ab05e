"""Neural networks: modules that hold parameters.

nn_basic, nn_conv, nn_sequence and nn_transformer hold the layers of the course, the other files what the library adds.
"""

from .module import HookHandle, Module, Parameter
from .nn_activation import GELU, LeakyReLU, SiLU, Softmax, Softplus, Tanh
from .nn_basic import (
    BatchNorm1d,
    BatchNorm2d,
    Dropout,
    Flatten,
    Identity,
    LayerNorm1d,
    Linear,
    ReLU,
    Residual,
    Sequential,
    SoftmaxLoss,
)
from .nn_conv import Conv
from .nn_gru import GRU, GRUCell
from .nn_losses import BCEWithLogitsLoss, CrossEntropyLoss, MSELoss
from .nn_normalization import GroupNorm, LayerNorm
from .nn_pooling import AvgPool2d, MaxPool2d
from .nn_sequence import LSTM, RNN, Embedding, LSTMCell, RNNCell, Sigmoid
from .nn_transformer import AttentionLayer, MultiHeadAttention, Transformer, TransformerLayer

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "AttentionLayer",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "HookHandle",
    "Identity",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm1d",
    "LeakyReLU",
    "Linear",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "MultiHeadAttention",
    "Parameter",
    "RNNCell",
    "ReLU",
    "Residual",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "SoftmaxLoss",
    "Softplus",
    "Tanh",
    "Transformer",
    "TransformerLayer",
]
