"""Neural networks: modules that hold parameters."""

from .module import Module, Parameter
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
