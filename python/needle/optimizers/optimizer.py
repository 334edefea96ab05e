"""Optimizer, the base: a list of parameters, a step that changes them, state that can be saved."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

from ..core import Tensor, kernels, no_grad
from ..errors import ArgumentError, ArgumentTypeError, NamesItself, describe
from .clipping import clip_grad_norm_

# settings by name, and below what each has to stay; none may be negative
BOUNDS = {"lr": math.inf, "eps": math.inf, "weight_decay": math.inf, "momentum": 1, "alpha": 1, "beta1": 1, "beta2": 1}


class Optimizer(NamesItself):
    """Changes parameters by their gradients.  A subclass defines `step`.

    What a subclass remembers between steps are numbers, and dicts {parameter: tensor}; `state_dict` finds both.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _checked(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Tensor]) -> None:
        """params: tensors, each of which is changed once per step even if it is given twice."""
        name = type(self).__name__
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentTypeError(f"{name}: got {describe(params)}, wanted a list of parameters")
        self.params = list(params)
        for p in self.params:
            if not isinstance(p, Tensor):
                raise ArgumentTypeError(f"{name}: got {describe(p)} among the parameters")
        if not self.params:
            raise ArgumentError(f"{name}: got no parameters; pass model.parameters()")
        self.params = list(dict.fromkeys(self.params))

    def step(self) -> None:
        """Change every parameter that has a gradient; its identity, shape, dtype and device stay."""
        raise NotImplementedError(f"{type(self).__name__}.step is not implemented")

    def reset_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None

    zero_grad = reset_grad

    def clip_grad_norm(self, max_norm: float = 0.25) -> float:
        """Scale all gradients so that their common L2 norm is at most max_norm; returns the norm they had."""
        return clip_grad_norm_(self.params, max_norm)

    def state_dict(self) -> dict[str, Any]:
        """Settings and counters by name; what belongs to parameters as {name: {place of the parameter: copy}}."""
        places = {p: str(place) for place, p in enumerate(self.params)}
        state: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, dict):
                state[name] = {places[p]: _copy(tensor, tensor.device) for p, tensor in value.items()}
            elif isinstance(value, (bool, int, float, str)):
                state[name] = value
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a `state_dict` of an optimizer of the same kind for the same parameters, in the same order.

        Raises ArgumentError, before anything is changed, if names or shapes do not fit.
        """
        complaints = _complaints(self, state)
        if complaints:
            raise ArgumentError(f"load_state_dict: {type(self).__name__}: {'; '.join(complaints)}")
        for name, value in state.items():
            if isinstance(value, Mapping):
                places = {self.params[int(place)]: tensor for place, tensor in value.items()}
                value = {p: _copy(tensor, p.device) for p, tensor in places.items()}
            setattr(self, name, value)

    def __repr__(self) -> str:
        settings = [f"{k}={v!r}" for k, v in vars(self).items() if isinstance(v, (bool, int, float, str))]
        return f"{type(self).__name__}({', '.join([f'{len(self.params)} parameters', *settings])})"


def _checked(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that complains about settings which make no sense."""

    @functools.wraps(init)
    def wrapped(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        init(optimizer, *args, **kwargs)
        for name, bound in BOUNDS.items():
            value = getattr(optimizer, name, 0)
            message = f"{type(optimizer).__name__}: {name} = {value!r}, wanted 0 ≤ {name} < {bound}"
            if not isinstance(value, Real):
                raise ArgumentTypeError(message)
            if not 0 <= float(value) < bound:
                raise ArgumentError(message)

    return wrapped


def has_fast_twin(step: Callable[[Any], None]) -> Callable[[Any], None]:
    """For a `step`: it records no graph, and one from the registry may stand in for it."""

    @functools.wraps(step)
    def wrapped(optimizer: Optimizer) -> None:
        twin = kernels.whole_pass("forward", type(optimizer), optimizer.params[0].realize_cached_data())
        with no_grad():
            if twin is None or twin(optimizer) is NotImplemented:
                step(optimizer)

    return wrapped


def _copy(tensor: Any, device: Any) -> Tensor:
    return Tensor(tensor.numpy(), device=device, dtype=tensor.dtype, requires_grad=False)


def _complaints(optimizer: Optimizer, state: Mapping[str, Any]) -> list[str]:
    """What is wrong with state, a phrase per kind; empty if nothing."""
    own = {name: value for name, value in vars(optimizer).items() if isinstance(value, (dict, bool, int, float, str))}
    kept = [name for name, value in own.items() if isinstance(value, dict)]
    shapes = {str(place): p.shape for place, p in enumerate(optimizer.params)}
    kinds = {
        "missing": [name for name in own if name not in state],
        "unexpected": [name for name in state if name not in own],
        "of another kind": [name for name in state if (name in kept) != isinstance(state[name], Mapping)],
        "without a parameter of that shape": [
            f"{name}.{place} {tuple(tensor.shape)}"
            for name in kept
            if isinstance(state.get(name), Mapping)
            for place, tensor in state[name].items()
            if shapes.get(str(place)) != tuple(tensor.shape)
        ],
    }
    return [f"{kind}: {', '.join(found)}" for kind, found in kinds.items() if found]
