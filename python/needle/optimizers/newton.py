"""Newton's method, for small problems: a step by the whole matrix of second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..core import Tensor, enable_grad, init, ops
from ..errors import ArgumentError, ShapeError
from .optimizer import Optimizer


class Newton(Optimizer):
    """θ = θ - lr (H + damping I)⁻¹ ∇, which reaches the minimum of a quadratic in one step.

    H has as many rows and columns as there are numbers in all parameters, and each row costs a walk through the graph:
    meant for up to some hundred numbers.  (Nocedal and Wright 2006, section 3.3)
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 1.0, damping: float = 0.0) -> None:
        super().__init__(params)
        self.lr = lr
        self.damping = damping

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:  # type: ignore[override]
        """closure() computes the loss, one number, from the parameters; it is returned as it was before the step."""
        if closure is None:
            raise ArgumentError("Newton: step needs a function that computes the loss: step(lambda: loss(model(x), y))")
        with enable_grad():
            loss = closure()
            if loss.size != 1:
                raise ShapeError(f"Newton: the loss has shape {loss.shape}, wanted one number")
            self._backward(loss)
            gradient = self._flat_gradient()
            rows = []
            for entry in gradient:
                self._backward(entry)
                rows.append(self._flat_gradient().numpy())
        matrix = np.stack(rows).astype(np.float64) + self.damping * np.eye(len(rows))
        try:
            direction = np.linalg.solve(matrix, gradient.numpy().astype(np.float64))
        except np.linalg.LinAlgError:
            raise ArgumentError("Newton: the matrix of second derivatives is singular; pass damping > 0") from None
        self._move(direction)
        return loss.detach()

    def _backward(self, output: Tensor) -> None:
        self.reset_grad()
        output.backward()

    def _flat_gradient(self) -> Tensor:
        """All gradients as one vector, that can still be differentiated; zeros where there is none."""
        parts = [init.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        return ops.concatenate([ops.reshape(part, (part.size,)) for part in parts])

    def _move(self, direction: np.ndarray) -> None:
        ends = np.cumsum([p.size for p in self.params])
        for p, part in zip(self.params, np.split(direction, ends[:-1]), strict=True):
            change = Tensor(part.reshape(p.shape), device=p.device, dtype=p.dtype, requires_grad=False)
            p.data = p.data - self.lr * change
