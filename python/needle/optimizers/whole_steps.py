"""Steps of optimizers on CUDA devices in float32: one kernel a parameter, in place of some ten operations."""

from __future__ import annotations

from typing import Any

from ..backend_selection import NDArray, array_api
from ..core import Tensor, kernels
from ..ops.whole_operations import CUDA_DEVICES, DTYPE, empty, has_kernel, run


def sgd(optimizer: Any) -> Any:
    """What SGD.step does; new arrays for parameters and velocities, since graphs may still hold the old ones."""
    params = fitting(optimizer, "sgd_step")
    if params is None:
        return NotImplemented
    optimizer.t += 1
    correction = 1 - optimizer.momentum**optimizer.t if optimizer.unbiased else 1.0
    numbers = map(float, (optimizer.lr, optimizer.momentum, optimizer.weight_decay, correction))
    how = (*numbers, optimizer.nesterov)
    for p in params:
        value = p.realize_cached_data()
        new, u = empty(p.shape, value), empty(p.shape, value)
        run("sgd_step", value, p.grad.realize_cached_data(), remembered(optimizer.u, p), new, u, *how)
        p.data, optimizer.u[p] = Tensor.make_const(new), Tensor.make_const(u)
    return None


def adam(optimizer: Any) -> Any:
    """What Adam.step does."""
    return _adam(optimizer, decay=optimizer.weight_decay, shrink=0.0)


def adamw(optimizer: Any) -> Any:
    """What AdamW.step does."""
    return _adam(optimizer, decay=0.0, shrink=optimizer.lr * optimizer.weight_decay)


def _adam(optimizer: Any, decay: float, shrink: float) -> Any:
    params = fitting(optimizer, "adam_step")
    if params is None:
        return NotImplemented
    optimizer.t += 1
    corrections = 1 - optimizer.beta1**optimizer.t, 1 - optimizer.beta2**optimizer.t
    how = (optimizer.lr, optimizer.beta1, optimizer.beta2, optimizer.eps, decay, shrink, *corrections)
    for p in params:
        value = p.realize_cached_data()
        new, m, v = (empty(p.shape, value) for _ in range(3))
        old = remembered(optimizer.m, p), remembered(optimizer.v, p)
        run("adam_step", value, p.grad.realize_cached_data(), *old, new, m, v, *map(float, how))
        p.data, optimizer.m[p], optimizer.v[p] = (Tensor.make_const(x) for x in (new, m, v))
    return None


def fitting(optimizer: Any, kernel: str) -> list[Tensor] | None:
    """The parameters that have a gradient; None unless all are of one kind, and their device has the kernel."""
    params = [p for p in optimizer.params if p.grad is not None]
    first = optimizer.params[0]
    same = all(t.dtype == DTYPE and t.device == first.device for p in params for t in (p, p.grad))
    return params if same and has_kernel(kernel, first.realize_cached_data()) else None


def remembered(state: dict[Tensor, Tensor], p: Tensor) -> NDArray:
    """What is remembered of a parameter; before the first step, zeros."""
    if p in state:
        return state[p].realize_cached_data()
    return array_api.zeros(p.shape, dtype=p.dtype, device=p.device)


def register(cls: type, step: Any) -> None:
    for device in CUDA_DEVICES:
        kernels.register_operation(cls, device, DTYPE, forward=step)
