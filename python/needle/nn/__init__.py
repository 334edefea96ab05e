"""Neural networks: modules that hold parameters."""

from .module import HookHandle, Module, Parameter
from .nn_basic import (
    BatchNorm1d,
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

# >>> hw3
# isort: split
from .nn_normalization import GroupNorm, LayerNorm

# <<< hw3
# >>> hw4
# isort: split
from .nn_basic import BatchNorm2d
from .nn_conv import Conv
from .nn_pooling import AvgPool2d, MaxPool2d
from .nn_sequence import LSTM, RNN, Embedding, LSTMCell, RNNCell, Sigmoid

# <<< hw4
# >>> hw4_extra
# isort: split
from .nn_activation import GELU, LeakyReLU, SiLU, Softmax, Softplus, Tanh
from .nn_losses import BCEWithLogitsLoss, CrossEntropyLoss, MSELoss
from .nn_transformer import AttentionLayer, MultiHeadAttention, Transformer, TransformerLayer

# <<< hw4_extra
# >>> never
# isort: split
from ..core import BACKEND
from .nn_gru import GRU, GRUCell

# <<< never

__all__ = [
    "BatchNorm1d",
    "Dropout",
    "Flatten",
    "HookHandle",
    "Identity",
    "LayerNorm1d",
    "Linear",
    "Module",
    "Parameter",
    "ReLU",
    "Residual",
    "Sequential",
    "SoftmaxLoss",
]

# >>> hw3
__all__ += ["GroupNorm", "LayerNorm"]
# <<< hw3
# >>> hw4
__all__ += [
    "LSTM",
    "RNN",
    "AvgPool2d",
    "BatchNorm2d",
    "Conv",
    "Embedding",
    "LSTMCell",
    "MaxPool2d",
    "RNNCell",
    "Sigmoid",
]

# <<< hw4
# >>> hw4_extra
__all__ += [
    "GELU",
    "AttentionLayer",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "LeakyReLU",
    "MSELoss",
    "MultiHeadAttention",
    "SiLU",
    "Softmax",
    "Softplus",
    "Tanh",
    "Transformer",
    "TransformerLayer",
]

# <<< hw4_extra
# >>> never
__all__ += ["GRU", "GRUCell"]

if BACKEND == "nd":
    from . import whole_attention, whole_images, whole_linear, whole_modules, whole_recurrent

# <<< never
