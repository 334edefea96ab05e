"""Optimizer, the base: a list of parameters, a step that changes them, state that can be saved."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..core import Tensor, kernels, no_grad
from ..errors import ArgumentError, ArgumentTypeError, describe


class Optimizer:
    """Changes parameters by their gradients.  A subclass defines `step`."""

    def __init__(self, params: Iterable[Tensor]) -> None:
        """params: tensors, each of which is changed once per step even if it is given twice."""
        if isinstance(params, Tensor):
            raise ArgumentTypeError(f"{type(self).__name__}: got one {describe(params)}, wanted a list of parameters")
        self.params = list(dict.fromkeys(params))
        for p in self.params:
            if not isinstance(p, Tensor):
                raise ArgumentTypeError(f"{type(self).__name__}: got {describe(p)} among the parameters")
        if not self.params:
            raise ArgumentError(f"{type(self).__name__}: got no parameters; pass model.parameters()")

    def step(self) -> None:
        """Change every parameter that has a gradient; its identity, shape, dtype and device stay."""
        raise NotImplementedError(f"{type(self).__name__}.step is not implemented")

    def reset_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None

    zero_grad = reset_grad


def has_fast_twin(step: Callable[[Any], None]) -> Callable[[Any], None]:
    """A step that records no graph, and for which one from the registry may stand in."""

    @functools.wraps(step)
    def wrapped(optimizer: Optimizer) -> None:
        twin = kernels.operation(type(optimizer), optimizer.params[0].realize_cached_data())
        with no_grad():
            if twin is None or twin.forward is None or twin.forward(optimizer) is NotImplemented:
                step(optimizer)

    return wrapped
