"""Find the built modules, and enter their kernels in the registry."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import kernels
from .dtypes import DTYPES, FLOATS

FOLDER = Path(__file__).parent

# what the course's kernel files export, float32 only
COURSE_KERNELS = (
    *("to_numpy", "from_numpy", "fill", "compact", "ewise_setitem", "scalar_setitem"),
    *("ewise_add", "ewise_mul", "ewise_div", "ewise_maximum", "ewise_eq", "ewise_ge"),
    *("scalar_add", "scalar_mul", "scalar_div", "scalar_power", "scalar_maximum", "scalar_eq", "scalar_ge"),
    *("ewise_log", "ewise_exp", "ewise_tanh"),
    *("matmul", "matmul_tiled", "reduce_max", "reduce_sum"),
)

# what a typed module exports beside kernels
NO_KERNELS = (
    *("allocated_bytes", "num_threads", "set_num_threads", "wrap"),
    *("isa", "set_isa", "available_isas"),
    *("synchronize", "memory_stats", "empty_cache", "reset_peak"),
)

# what in float32 steps aside in mode "course", where the learner's kernels do the same: products are made of matmul, a
# difference is the sum with the negative, and a view is copied first
STAND_INS = ("matmul_batched", "matmul_strided", "ewise_sub", "scalar_sub", "view_")

# what is defined for floats alone: fused kernels by how their names begin, ewise_ and scalar_ ones by what follows
FLOAT_FAMILIES = (
    *("log", "softmax", "cross_entropy", "layer_norm", "linear", "conv", "sgd", "adam", "rmsprop", "sum_of_squares"),
    *("rnn", "lstm", "gru"),
    *("attention", "batch_norm", "view_", "dropout", "relu_", "tanh_", "sigmoid", "silu", "gelu"),
)
FLOAT_FUNCTIONS = ("div", "log", "exp", "tanh", "sqrt", "sin", "cos")


def load(name: str, folder: Path = FOLDER) -> ModuleType | None:
    """The built module of that name, or None if nobody built it.

    ImportError if it was built for another Python only, naming both, or if it is there and cannot be loaded.
    """
    try:
        return importlib.import_module(f".{name}", __package__)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError) or error.name != f"{__package__}.{name}":
            raise ImportError(f"{name} is there, but cannot be loaded ({error}); run 'make lib'") from error
    check_not_stale(name, folder)
    return None


def check_not_stale(name: str, folder: Path = FOLDER) -> None:
    """Raise ImportError if the folder has the module, but only for other Pythons than this one."""
    built = sorted(path.name for path in folder.glob(f"{name}.*") if path.suffix in (".so", ".pyd", ".dylib"))
    if built and not any(name + suffix in built for suffix in EXTENSION_SUFFIXES):
        raise ImportError(
            f"{name} was built for another Python: found {', '.join(built)}, this Python needs "
            f"{name}{EXTENSION_SUFFIXES[0]}; run 'make lib'"
        )


def register_course(device: str, module: ModuleType) -> None:
    """Enter the float32 kernels of a course module, as far as it has them."""
    for name in COURSE_KERNELS:
        if hasattr(module, name):
            kernels.register(name, device, "float32", getattr(module, name))


def register_typed(device: str, module: ModuleType, course: ModuleType) -> None:
    """Enter the library's typed kernels for all dtypes.

    Where the course module has the same float32 kernel, ours is its fast twin, and only if it was measured faster.
    """
    reads_arrays = hasattr(course, "_array_reader")  # as our bindings have, but not a file's own PYBIND11_MODULE
    if reads_arrays:
        module._accept_arrays(course._array_reader)
    for name in typed_names(module):
        function = getattr(module, name)
        if not reads_arrays:
            function = accept_arrays(function, course.Array, module._view)
        for dtype in dtypes_of(name):
            if dtype != "float32" or not hasattr(course, name):
                fast = dtype == "float32" and name.startswith(STAND_INS)
                kernels.register(name, device, dtype, function, fast=fast)
            elif name in module.__fast__:
                kernels.register(name, device, dtype, function, fast=True)


def typed_names(module: ModuleType) -> list[str]:
    """The kernels that a module of typed kernels exports."""
    return [name for name in dir(module) if name[0].islower() and name not in NO_KERNELS]


def dtypes_of(name: str) -> tuple[str, ...]:
    """The dtypes for which a typed kernel of that name is defined."""
    return FLOATS if name.split("_", 1)[-1] in FLOAT_FUNCTIONS or name.startswith(FLOAT_FAMILIES) else DTYPES


def accept_arrays(function: Callable, array_type: Any, view: Callable) -> Callable:
    """The typed kernel, taking Arrays of a course module that has no reader of them for it, as well as Buffers."""

    def as_buffer(argument: Any) -> Any:
        if isinstance(argument, array_type):
            return view(argument.ptr(), argument.size, "float32", argument)
        if isinstance(argument, list):
            return list(map(as_buffer, argument))
        return argument

    def call(*args: Any) -> Any:
        return function(*map(as_buffer, args))

    call.__name__ = call.__qualname__ = function.__name__
    return call
