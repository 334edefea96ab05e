"""needle: a deep-learning framework small enough to be read whole.

Tensors and operators are here by name: `needle.Tensor`, `needle.matmul`, …
"""

from . import own_tree  # first: it refuses to be the needle of work that lies in another needle's tree

from . import autograd, core, init, kernels, ops, profile, testing  # isort: skip
from .core import *
from .init import *
from .ops import *
from .profile import detect_anomaly

# >>> hw2
# isort: split
from . import data, nn, optim, serialize, visualize
from .serialize import load, load_checkpoint, save, save_checkpoint

# <<< hw2
# >>> hw3
# isort: split
import importlib

# <<< hw3
# >>> hw4
# isort: split
from . import resources
from .resources import empty_cache, memory_stats, num_threads, reset_peak_memory, set_num_threads

# <<< hw4

__version__ = "0.1.0"

__all__ = [
    *core.__all__,
    *init.__all__,
    *ops.__all__,
    "autograd",
    "detect_anomaly",
    "profile",
    "testing",
]

# >>> hw2
__all__ += [
    "data",
    "load",
    "load_checkpoint",
    "nn",
    "optim",
    "save",
    "save_checkpoint",
    "serialize",
    "visualize",
]

# <<< hw2
# >>> hw4
__all__ += ["empty_cache", "memory_stats", "num_threads", "reset_peak_memory", "resources", "set_num_threads"]

# <<< hw4
# >>> hw3
__all__ += ["backend_ndarray", "device_report"]  # noqa: F405 - by __getattr__ below


def __getattr__(name: str) -> object:
    """Our own array library, which np mode loads only when somebody asks for it, and the report on its devices."""
    if name == "backend_ndarray":
        return importlib.import_module(".backend_ndarray", __name__)
    if name == "device_report":
        return importlib.import_module(".backend_ndarray.report", __name__).device_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# <<< hw3
