"""What users reach is described: every public class, function and method says in a sentence what it does."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable

import needle as ndl
import pytest
from needle import backend_ndarray as nd
from needle import nn, optim

MODULES = ["ops", "init", "nn", "optim", "data", "functional", "testing", "serialize", "visualize", "profile"]
MODULES += ["backend_ndarray", "resources"]
CLASSES = [ndl.Tensor, ndl.TensorTuple, nd.NDArray, nd.BackendDevice, nn.Module, optim.Optimizer, optim.LRScheduler]


def public(module: str) -> dict[str, Callable]:
    where = importlib.import_module(f"needle.{module}")
    names = getattr(where, "__all__", [name for name in vars(where) if not name.startswith("_")])
    found = {f"{module}.{name}": getattr(where, name) for name in names}
    return {name: x for name, x in found.items() if callable(x) and getattr(x, "__module__", "").startswith("needle")}


PUBLIC = {name: x for module in MODULES for name, x in public(module).items()}
# an operator's class stands under the function that users call, which says what it computes; so do a test's methods
DESCRIBED = {n: x for n, x in PUBLIC.items() if not (isinstance(x, type) and issubclass(x, ndl.Op))}


@pytest.mark.parametrize("name", DESCRIBED)
def test_public_callable_says_in_a_sentence_what_it_does(name: str) -> None:
    first = (inspect.getdoc(DESCRIBED[name]) or "").partition("\n\n")[0]
    assert first and first.rstrip()[-1] in ".:)…", f"{name}: {first!r}"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_public_method_says_what_it_does(cls: type) -> None:
    obvious = {"shape", "dtype", "device", "forward", "step"}  # described by the class
    silent = [
        name
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        if not inspect.getdoc(member) and name not in obvious
    ]
    assert not silent, f"{cls.__name__}: {silent}"


def test_every_operator_class_has_a_function_beside_it() -> None:
    functions = {name for name in ndl.ops.__all__ if inspect.isfunction(getattr(ndl.ops, name))}
    inner = {"Identity", "Windows", "FoldWindows", "PutItem", "ScatterAdd"}  # steps of others, and of their gradients
    classes = {
        n: c for n, c in vars(ndl.ops).items() if isinstance(c, type) and issubclass(c, ndl.Op) and n in ndl.ops.__all__
    }
    lonely = [name for name, cls in classes.items() if cls.name not in functions and name not in inner]
    assert not lonely


@pytest.mark.parametrize("name", DESCRIBED)
def test_public_function_has_annotations(name: str) -> None:
    function = DESCRIBED[name]
    function = function.__init__ if isinstance(function, type) else function
    if not inspect.isfunction(inspect.unwrap(function)):
        return
    parameters = inspect.signature(function).parameters.values()
    bare = [p.name for p in parameters if p.annotation is p.empty and p.name != "self"]
    assert not bare, f"{name}: {bare}"


def test_one_name_means_one_thing() -> None:
    """What is exported in two places is the same object."""
    for name in ndl.__all__:
        for module in ("ops", "init", "functional"):
            where = importlib.import_module(f"needle.{module}")
            if name in where.__all__:
                assert getattr(ndl, name) is getattr(where, name), name
