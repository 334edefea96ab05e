"""The operators, and the plug by which `Tensor.__add__` and its like find them.

ops_mathematic, ops_logarithmic and ops_tuple hold the operators of the course, the other files what the library adds.
"""

from __future__ import annotations

import sys

from .. import autograd
from ..backend_selection import BACKEND
from . import (
    ops_activation,
    ops_assignment,
    ops_casting,
    ops_comparison,
    ops_convolution,
    ops_elementwise,
    ops_indexing,
    ops_logarithmic,
    ops_mathematic,
    ops_reduction,
    ops_shape,
    ops_tuple,
)
from .ops_activation import *
from .ops_assignment import *
from .ops_casting import *
from .ops_comparison import *
from .ops_convolution import *
from .ops_elementwise import *
from .ops_indexing import *
from .ops_logarithmic import *
from .ops_mathematic import *
from .ops_reduction import *
from .ops_shape import *
from .ops_tuple import *

__all__ = [
    *ops_activation.__all__,
    *ops_assignment.__all__,
    *ops_casting.__all__,
    *ops_comparison.__all__,
    *ops_convolution.__all__,
    *ops_elementwise.__all__,
    *ops_indexing.__all__,
    *ops_logarithmic.__all__,
    *ops_mathematic.__all__,
    *ops_reduction.__all__,
    *ops_shape.__all__,
    *ops_tuple.__all__,
]

# operators that are also methods: x.exp() is ops.exp(x), and x.max(1) is ops.max(x, 1)
METHODS = {
    name: globals()[name]
    for line in (
        "abs clip clone cos exp log maximum minimum sign sin sqrt square tanh",
        "gelu logsoftmax relu sigmoid silu softmax softplus",
        "argmax argmin logsumexp max mean min std var",
        "expand_dims flatten flip pad permute split squeeze unsqueeze",
        "gather isfinite isnan masked_fill requires_grad_ take",
    )
    for name in line.split()
}

if BACKEND == "nd":
    from . import whole_operations

autograd.ops = sys.modules[__name__]
