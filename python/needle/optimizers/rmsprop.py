"""RMSProp: steps divided by the running size of the gradient."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import Tensor
from .optimizer import Optimizer, has_fast_twin


class RMSProp(Optimizer):
    """v = alpha v + (1 - alpha) g², u = momentum u + g / (√v + eps), θ = θ - lr u, g = gradient + weight_decay θ.

    (Tieleman and Hinton 2012, lecture 6.5)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = lr
        self.alpha = alpha
        self.eps = eps
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.u: dict[Tensor, Tensor] = {}
        self.v: dict[Tensor, Tensor] = {}

    @has_fast_twin
    def step(self) -> None:
        for p in self.params:
            if p.grad is None:
                continue
            grad = p.grad.data + self.weight_decay * p.data
            self.v[p] = self.alpha * self.v.get(p, 0) + (1 - self.alpha) * (grad * grad)
            self.u[p] = self.momentum * self.u.get(p, 0) + grad / (self.v[p] ** 0.5 + self.eps)
            p.data = Tensor(p.data - self.lr * self.u[p], dtype=p.dtype)
