"""The operators, and the plug by which `Tensor.__add__` and its like find them.

ops_mathematic and ops_logarithmic hold the operators of the course, the other files what the library adds.
"""

from __future__ import annotations

import sys

from .. import autograd
from . import ops_casting, ops_mathematic, ops_tuple
from .ops_casting import *
from .ops_mathematic import *
from .ops_tuple import *

# >>> hw2
# isort: split
from . import (
    ops_assignment,
    ops_comparison,
    ops_elementwise,
    ops_indexing,
    ops_logarithmic,
    ops_reduction,
    ops_shape,
)
from .ops_assignment import *
from .ops_comparison import *
from .ops_elementwise import *
from .ops_indexing import *
from .ops_logarithmic import *
from .ops_reduction import *
from .ops_shape import *

# <<< hw2
# >>> hw4
# isort: split
from . import ops_convolution
from .ops_convolution import *

# <<< hw4
# >>> hw4_extra
# isort: split
from . import ops_activation
from .ops_activation import *

# <<< hw4_extra
# >>> never
# isort: split
from ..backend_selection import BACKEND

# <<< never

__all__ = [*ops_casting.__all__, *ops_mathematic.__all__, *ops_tuple.__all__]

# >>> hw2
__all__ += [
    *ops_assignment.__all__,
    *ops_comparison.__all__,
    *ops_elementwise.__all__,
    *ops_indexing.__all__,
    *ops_logarithmic.__all__,
    *ops_reduction.__all__,
    *ops_shape.__all__,
]

# <<< hw2
# >>> hw4
__all__ += ops_convolution.__all__
# <<< hw4
# >>> hw4_extra
__all__ += ops_activation.__all__
# <<< hw4_extra
# operators that are also methods: x.exp() is ops.exp(x), and x.broadcast_to(shape) is ops.broadcast_to(x, shape)
_METHODS = "exp log relu "
# >>> hw2
_METHODS += "abs clip clone cos maximum minimum sign sin sqrt square "
_METHODS += "argmax argmin logsoftmax logsumexp max mean min std var "
_METHODS += "expand_dims flatten pad permute squeeze unsqueeze "
_METHODS += "gather isfinite isnan masked_fill requires_grad_ take "
# <<< hw2
# >>> hw4
_METHODS += "flip split tanh "
# <<< hw4
# >>> hw4_extra
_METHODS += "gelu sigmoid silu softmax softplus "
# <<< hw4_extra
for name in _METHODS.split():
    setattr(autograd.Tensor, name, globals()[name])

# >>> never
if BACKEND == "nd":
    from . import (
        whole_attention,
        whole_batch_norm,
        whole_convolution,
        whole_elementwise,
        whole_indexing,
        whole_operations,
        whole_operations_cuda,
        whole_products,
        whole_recurrent,
    )

# <<< never
autograd.ops = sys.modules[__name__]
