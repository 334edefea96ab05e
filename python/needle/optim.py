"""Optimizers: SGD and Adam of the course, and by name what `optimizers/` holds besides."""

from __future__ import annotations

from collections.abc import Iterable

from . import optimizers
from .core import Tensor
from .optimizers import *  # noqa: F403
from .optimizers.optimizer import Optimizer, has_fast_twin

# >>> never
# isort: split
from .core import BACKEND

# <<< never

__all__ = ["SGD", "Adam", *optimizers.__all__]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    With g = gradient + weight_decay θ:  u = momentum u + (1 - momentum) g, from u = 0, and θ = θ - lr u.
    Since u starts at 0, early steps are small: unbiased divides u by 1 - momentumᵗ.  nesterov steps along
    momentum u + (1 - momentum) g, where u will have carried the parameters.  (Sutskever et al. 2013, eq. 3 and 4)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        *,
        nesterov: bool = False,
        unbiased: bool = False,
    ) -> None:
        super().__init__(params)
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.unbiased = unbiased
        self.t = 0
        self.u: dict[Tensor, Tensor] = {}

    @has_fast_twin
    def step(self) -> None:
        ### BEGIN YOUR SOLUTION hw2/sgd
        self.t += 1
        for p in self.params:
            if p.grad is None:
                continue
            grad = p.grad.data + self.weight_decay * p.data
            direction = self.u[p] = self.momentum * self.u.get(p, 0) + (1 - self.momentum) * grad
            if self.nesterov:
                direction = self.momentum * self.u[p] + (1 - self.momentum) * grad
            if self.unbiased:
                direction = direction / (1 - self.momentum**self.t)
            p.data = Tensor(p.data - self.lr * direction, dtype=p.dtype)
        ### END YOUR SOLUTION hw2/sgd


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square.  (Kingma and Ba 2015, algorithm 1)

    weight_decay θ is added to the gradient.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = lr
        self.beta1 = beta1
        self.beta2 = beta2
        self.eps = eps
        self.weight_decay = weight_decay
        self.t = 0
        self.m: dict[Tensor, Tensor] = {}
        self.v: dict[Tensor, Tensor] = {}

    @has_fast_twin
    def step(self) -> None:
        ### BEGIN YOUR SOLUTION hw2/adam
        self.t += 1
        for p in self.params:
            if p.grad is None:
                continue
            grad = p.grad.data + self.weight_decay * p.data
            self.m[p] = self.beta1 * self.m.get(p, 0) + (1 - self.beta1) * grad
            self.v[p] = self.beta2 * self.v.get(p, 0) + (1 - self.beta2) * (grad * grad)
            mean = self.m[p] / (1 - self.beta1**self.t)
            square = self.v[p] / (1 - self.beta2**self.t)
            p.data = Tensor(p.data - self.lr * mean / (square**0.5 + self.eps), dtype=p.dtype)
        ### END YOUR SOLUTION hw2/adam


# >>> never
if BACKEND == "nd":
    from .optimizers import whole_steps

    whole_steps.register(SGD, whole_steps.sgd_at_once, whole_steps.sgd)
    whole_steps.register(Adam, whole_steps.adam_at_once, whole_steps.adam)
    whole_steps.register(optimizers.AdamW, whole_steps.adamw_at_once, whole_steps.adamw)
    whole_steps.register(optimizers.RMSProp, whole_steps.rmsprop_at_once)

# <<< never
