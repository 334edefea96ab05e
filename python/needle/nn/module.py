"""Module, the base of all layers: it finds its parameters by itself, is called like a function, saves and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import write_log
from ..core import Tensor, Value, kernels, no_grad
from ..errors import COMPLAINTS, ArgumentError, ArgumentTypeError, NamesItself, NeedleError, describe, in_the_name_of
from .summary import summary


class Parameter(Tensor):
    """A tensor that is learned: what `Module.parameters` finds and an optimizer changes."""


class Module(NamesItself):
    """A layer, or a model made of layers.  A subclass sets its parts as attributes and defines `forward`."""

    training = True

    def __init__(self) -> None:
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; a subclass defines it, a caller writes `module(x)`."""
        raise NotImplementedError(f"{type(self).__name__}.forward is not implemented")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self.__dict__.get("_hooks")
        if hooks is None:
            return self._forward(args, kwargs)
        for hook in tuple(hooks["before"]):
            args = _replaced(args, hook(self, args))
        output = self._forward(args, kwargs)
        for hook in tuple(hooks["after"]):
            changed = hook(self, args, output)
            output = output if changed is None else changed
        return output

    def _forward(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the fast twin makes, or, where there is none or it declines, `forward`."""
        try:
            output = self._fast_forward(args, kwargs)
            return self.forward(*args, **kwargs) if output is NotImplemented else output
        except COMPLAINTS as error:
            if isinstance(error, NeedleError) or (args and all(isinstance(x, Tensor) for x in args)):
                raise
            raise in_the_name_of(type(self).__name__, args, error) from error  # a tensor was wanted, most likely

    def _fast_forward(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """By what the registry has for this class, device and dtype; else NotImplemented."""
        if not args or not isinstance(args[0], Tensor):
            return NotImplemented
        twin = kernels.whole_pass("forward", type(self), args[0].realize_cached_data())
        return NotImplemented if twin is None else twin(self, *args, **kwargs)

    # ---- what is inside --------------------------------------------------------------------------------------------

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """(dotted name, module) for this module, named "", and all below it, each once."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Module))

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, parameter) for all parameters, in the order in which they were assigned, each once."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Parameter))

    def parameters(self) -> list[Parameter]:
        """All parameters of this module and of the modules in its attributes, lists, tuples and dicts, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def children(self) -> list[Module]:
        """The modules directly below this one."""
        names = [name for name, _ in self.named_modules() if name]
        parents = tuple(f"{name}." for name in names)
        return [part for name, part in self.named_modules() if name and not name.startswith(parents)]

    # ---- modes -----------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Switch this module and all below it to training; dropout drops, batch norm uses its batch.  Returns self."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Switch this module and all below it to evaluation.  Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Let all parameters require a gradient, or freeze them with False.  Returns self."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
            if not requires_grad:
                parameter.grad = None
        return self

    def freeze(self) -> Module:
        """Exclude all parameters from training: they require no gradient any more.  Returns self."""
        return self.requires_grad_(False)

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Call function on every module below this one, and last on this one.  Returns self."""
        for _, module in reversed(list(self.named_modules())):
            function(module)
        return self

    def to(self, target: Any) -> Module:
        """Move all parameters and statistics to a device ("cpu", ndl.cuda(), …) or into a dtype ("float64", …).

        A dtype is for floats only: statistics that count or tell true from false keep theirs.  The parameters stay the
        same objects; an optimizer's state does not move along, so make the optimizer afterwards.  Returns self.
        """
        for _, tensor in self._tensors():
            with no_grad():
                moved = tensor.to(target)
            if moved.dtype == tensor.dtype or str(tensor.dtype).startswith("float"):
                tensor.cached_data = moved.realize_cached_data()
                tensor.grad, tensor.changed_at = None, write_log.tick()
        return self

    # ---- state -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """(dotted name, tensor): parameters, and plain tensors such as running statistics."""
        return ((name, part) for name, part in _walk(self) if isinstance(part, Tensor))

    def state_dict(self) -> dict[str, Tensor]:
        """{dotted name: value} of all parameters and statistics: copies, so that later training leaves them alone."""
        return {name: _copy(tensor, like=tensor) for name, tensor in self._tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Take over the values of a `state_dict`, of tensors or NumPy arrays.

        Values are cast to the parameter's dtype and moved to its device.  Raises ArgumentError, before anything is
        changed, with all keys that are missing or unexpected (only if strict) and all shapes that differ.
        """
        own = dict(self._tensors())
        complaints = _complaints(own, state, strict)
        if complaints:
            raise ArgumentError(f"load_state_dict: {type(self).__name__}: {'; '.join(complaints)}")
        for name, tensor in own.items():
            if name in state:
                tensor.data = _copy(state[name], like=tensor)

    # ---- hooks -----------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook: Callable[[Module, tuple], Any]) -> HookHandle:
        """Call hook(module, args) before every forward; what it returns, unless None, replaces the arguments."""
        return HookHandle(self, "before", hook)

    def register_forward_hook(self, hook: Callable[[Module, tuple, Any], Any]) -> HookHandle:
        """Call hook(module, args, output) after every forward; what it returns, unless None, replaces the output."""
        return HookHandle(self, "after", hook)

    # ---- text ------------------------------------------------------------------------------------------------------

    def summary(self, *inputs: Any) -> str:
        """A table of all modules: shape of the output, if inputs or their shapes are given, and parameter counts."""
        return summary(self, *inputs)

    def __repr__(self) -> str:
        parts = [f"{key}={value!r}" for key, value in vars(self).items() if _is_setting(key, value)]
        parts += [f"{key} {tensor.shape}" for key, tensor in vars(self).items() if isinstance(tensor, Tensor)]
        parts = [", ".join(parts)] if parts else []
        parts += [f"({name}): {child!r}" for name, child in _named_children(self)]
        if len(parts) < 2 and "\n" not in "".join(parts) and not any(_named_children(self)):
            return f"{type(self).__name__}({''.join(parts)})"
        lines = "\n".join(parts).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {lines}\n)"


class HookHandle:
    """A registered hook; `remove()` takes it away again."""

    def __init__(self, module: Module, when: str, hook: Callable) -> None:
        if not callable(hook):
            raise ArgumentTypeError(f"register_forward_hook: got {describe(hook)}, wanted a function")
        self._list = module.__dict__.setdefault("_hooks", {"before": [], "after": []})[when]
        self._entry = lambda *args: hook(*args)  # an entry of its own, though the same function be registered twice
        self._list.append(self._entry)

    def remove(self) -> None:
        """Call the hook no more; twice does no harm."""
        if self._entry in self._list:
            self._list.remove(self._entry)


def _replaced(args: tuple, changed: Any) -> tuple:
    if changed is None:
        return args
    return changed if isinstance(changed, tuple) else (changed,)


def _walk(value: Any, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """(dotted name, Module or Tensor) for all of them at and below value, in order of assignment, each once."""
    seen = set() if seen is None else seen
    if not isinstance(value, (Module, Value, dict, list, tuple)) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (Module, Tensor)):
        yield name, value
    for key, part in _parts(value):
        yield from _walk(part, f"{name}.{key}" if name else str(key), seen)


def _parts(value: Any) -> Any:
    """(name, part) for the attributes of a Module, the entries of a dict, list or tuple."""
    if isinstance(value, Module):
        return value.__dict__.items()
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, (list, tuple)) else ()


def _named_children(value: Any, name: str = "") -> Iterator[tuple[str, Module]]:
    """(name, module) for the modules that value holds itself or in containers."""
    for key, part in _parts(value):
        inner = f"{name}.{key}" if name else str(key)
        if isinstance(part, Module):
            yield inner, part
        elif isinstance(part, (dict, list, tuple)) and key != "_hooks":
            yield from _named_children(part, inner)


def _is_setting(key: str, value: Any) -> bool:
    return isinstance(value, (bool, int, float, str)) and key != "training" and not key.startswith("_")


def _copy(value: Any, like: Tensor) -> Tensor:
    """value as a new constant with the dtype and on the device of `like`."""
    array = value.numpy() if hasattr(value, "numpy") else value
    return Tensor(array, device=like.device, dtype=like.dtype, requires_grad=False)


def _complaints(own: Mapping[str, Tensor], state: Mapping[str, Any], strict: bool) -> list[str]:
    """What is wrong with state, a phrase per kind; empty if nothing."""
    kinds = {
        "missing": [key for key in own if key not in state] if strict else [],
        "unexpected": [key for key in state if key not in own] if strict else [],
        "wrong shape": [
            f"{key} {np.shape(state[key])} for {own[key].shape}"
            for key in own
            if key in state and _shape_of(state[key]) != own[key].shape
        ],
    }
    return [f"{kind}: {', '.join(keys)}" for kind, keys in kinds.items() if keys]


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
