"""needle: a deep-learning framework small enough to be read whole.

Tensors and operators are here by name (`needle.Tensor`, `needle.matmul`, …); layers are in `needle.nn`, optimizers in
`needle.optim`, data sets and loaders in `needle.data`.
"""

import importlib

from . import own_tree  # first: it refuses to be the needle of work that lies in another needle's tree

from . import (  # isort: skip
    autograd,
    core,
    data,
    init,
    kernels,
    nn,
    ops,
    optim,
    profile,
    serialize,
    testing,
    visualize,
)
from .core import *
from .init import *
from .ops import *
from .profile import detect_anomaly
from .serialize import load, load_checkpoint, save, save_checkpoint

__version__ = "0.1.0"

__all__ = [
    *core.__all__,
    *init.__all__,
    *ops.__all__,
    "autograd",
    "backend_ndarray",  # noqa: F405 - by __getattr__ below
    "data",
    "detect_anomaly",
    "load",
    "load_checkpoint",
    "nn",
    "optim",
    "profile",
    "save",
    "save_checkpoint",
    "serialize",
    "testing",
    "visualize",
]


def __getattr__(name: str) -> object:
    """Our own array library, which np mode loads only when somebody asks for it."""
    if name == "backend_ndarray":
        return importlib.import_module(".backend_ndarray", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
