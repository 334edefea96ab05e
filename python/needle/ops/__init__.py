"""The operators, and the plug by which `Tensor.__add__` and its like find them."""

from __future__ import annotations

import sys

from .. import autograd
from .ops_logarithmic import *  # noqa: F403
from .ops_mathematic import *  # noqa: F403
from .ops_tuple import *  # noqa: F403

autograd.ops = sys.modules[__name__]
