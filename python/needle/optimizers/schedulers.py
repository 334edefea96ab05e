"""Learning rates that change over time: call `scheduler.step()` once per epoch, or batch, as its numbers are meant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError, NamesItself, describe
from .optimizer import Optimizer


class LRScheduler(NamesItself):
    """Sets optimizer.lr as a function of how often `step` has been called.  A subclass defines `rate(t)`."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not hasattr(optimizer, "lr"):
            raise ArgumentTypeError(f"{type(self).__name__}: got {describe(optimizer)}, wanted an optimizer with an lr")
        self.optimizer = optimizer
        self.base_lr = optimizer.lr
        self.t = 0
        optimizer.lr = self.rate(0)

    def rate(self, t: int) -> float:
        """The learning rate after t steps."""
        raise NotImplementedError(f"{type(self).__name__}.rate is not implemented")

    def step(self) -> None:
        """Go one step on in time and set the learning rate that belongs to it."""
        self.t += 1
        self.optimizer.lr = self.rate(self.t)

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the schedule."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the schedule of this state stood, and set its learning rate."""
        own = self.state_dict()
        if set(own) != set(state):
            raise ArgumentError(
                f"load_state_dict: {type(self).__name__}: got {', '.join(state)}; wanted {', '.join(own)}"
            )
        vars(self).update(state)
        self.optimizer.lr = self.rate(self.t)


class StepLR(LRScheduler):
    """lr = base gamma^⌊t / step_size⌋: multiplied by gamma every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = _at_least_one("StepLR", "step_size", step_size)
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, t: int) -> float:
        return self.base_lr * self.gamma ** (t // self.step_size)


class CosineAnnealingLR(LRScheduler):
    """lr falls from base to eta_min along half a cosine of T_max steps, and stays there.

    (Loshchilov and Hutter 2017, eq. 5, without restarts)
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max = _at_least_one("CosineAnnealingLR", "T_max", T_max)
        self.eta_min = eta_min
        super().__init__(optimizer)

    def rate(self, t: int) -> float:
        return _cosine(self.base_lr, self.eta_min, t / self.T_max)


class LinearWarmup(LRScheduler):
    """lr climbs in warmup_steps equal steps to base, and stays there."""

    def __init__(self, optimizer: Optimizer, warmup_steps: int) -> None:
        self.warmup_steps = _at_least_one("LinearWarmup", "warmup_steps", warmup_steps)
        super().__init__(optimizer)

    def rate(self, t: int) -> float:
        return self.base_lr * min(1.0, (t + 1) / self.warmup_steps)


class WarmupCosine(LRScheduler):
    """lr climbs to base in warmup_steps, then falls to eta_min along half a cosine until total_steps."""

    def __init__(self, optimizer: Optimizer, warmup_steps: int, total_steps: int, eta_min: float = 0.0) -> None:
        self.warmup_steps = _at_least_one("WarmupCosine", "warmup_steps", warmup_steps)
        self.total_steps = total_steps
        self.eta_min = eta_min
        if total_steps <= warmup_steps:
            raise ArgumentError(
                f"WarmupCosine: total_steps = {total_steps}, wanted more than the warm-up's {warmup_steps}"
            )
        super().__init__(optimizer)

    def rate(self, t: int) -> float:
        if t < self.warmup_steps:
            return self.base_lr * (t + 1) / self.warmup_steps
        return _cosine(self.base_lr, self.eta_min, (t - self.warmup_steps) / (self.total_steps - self.warmup_steps))


def _cosine(start: float, end: float, progress: float) -> float:
    """From start to end along half a cosine, as progress goes from 0 to 1."""
    return end + (start - end) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


def _at_least_one(name: str, argument: str, steps: int) -> int:
    if steps < 1:
        raise ArgumentError(f"{name}: {argument} = {steps}, wanted 1 or more")
    return steps
