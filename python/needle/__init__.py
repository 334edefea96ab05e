"""needle: a deep-learning framework small enough to be read whole."""

from . import autograd, backend_ndarray, data, init, kernels, nn, ops, optim
from .autograd import Op, Tensor, TensorOp, TensorTuple, TensorTupleOp, Value, enable_grad, is_recording, no_grad
from .core import *
from .init import *
from .ops import *
