"""AdamW: Adam with the weight decay kept apart from the gradient."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import Tensor
from .optimizer import Optimizer, has_fast_twin


class AdamW(Optimizer):
    """Adam whose weight decay shrinks the parameters directly: θ = θ - lr weight_decay θ before each step.

    (Loshchilov and Hutter 2019, algorithm 2)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
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
        self.t += 1
        for p in self.params:
            if p.grad is None:
                continue
            grad = p.grad.data
            self.m[p] = self.beta1 * self.m.get(p, 0) + (1 - self.beta1) * grad
            self.v[p] = self.beta2 * self.v.get(p, 0) + (1 - self.beta2) * (grad * grad)
            mean = self.m[p] / (1 - self.beta1**self.t)
            square = self.v[p] / (1 - self.beta2**self.t)
            shrunk = (1 - self.lr * self.weight_decay) * p.data
            p.data = Tensor(shrunk - self.lr * mean / (square**0.5 + self.eps), dtype=p.dtype)
