"""Steps of optimizers as one kernel in place of some ten operations: for each parameter on CUDA devices, for all
parameters at once on the CPU.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import write_log
from ..backend_selection import NDArray, array_api
from ..core import Tensor, kernels
from ..ops.whole_operations import CUDA_DEVICES, DTYPE, empty, has_kernel, run

State = dict[Tensor, Tensor]
Step = Callable[[Any], Any]

# ---- CUDA devices ----------------------------------------------------------------------------------------------------


def sgd(optimizer: Any) -> Any:
    """What SGD.step does; new arrays for parameters and velocities, since graphs may still hold the old ones."""
    params = fitting(optimizer, "sgd_step")
    if params is None:
        return NotImplemented
    how = _sgd_numbers(optimizer)
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
    how = _adam_numbers(optimizer, decay, shrink)
    for p in params:
        value = p.realize_cached_data()
        new, m, v = (empty(p.shape, value) for _ in range(3))
        old = remembered(optimizer.m, p), remembered(optimizer.v, p)
        run("adam_step", value, p.grad.realize_cached_data(), *old, new, m, v, *how)
        p.data, optimizer.m[p], optimizer.v[p] = (Tensor.make_const(x) for x in (new, m, v))
    return None


def fitting(optimizer: Any, kernel: str) -> list[Tensor] | None:
    """The parameters that have a gradient; None unless all are of one kind, and their device has the kernel."""
    params = [p for p in optimizer.params if p.grad is not None]
    first = optimizer.params[0]
    same = all(t.dtype == DTYPE and t.device == first.device for p in params for t in (p, p.grad))
    return params if same and has_kernel(kernel, first.realize_cached_data()) else None


def remembered(state: State, p: Tensor) -> NDArray:
    """What is remembered of a parameter; before the first step, zeros."""
    if p in state:
        return state[p].realize_cached_data()
    return array_api.zeros(p.shape, dtype=p.dtype, device=p.device)


# ---- the numbers of a step -------------------------------------------------------------------------------------------


def _sgd_numbers(optimizer: Any) -> tuple:
    optimizer.t += 1
    correction = 1 - optimizer.momentum**optimizer.t if optimizer.unbiased else 1.0
    numbers = map(float, (optimizer.lr, optimizer.momentum, optimizer.weight_decay, correction))
    return (*numbers, optimizer.nesterov)


def _adam_numbers(optimizer: Any, decay: float, shrink: float) -> tuple:
    optimizer.t += 1
    corrections = 1 - optimizer.beta1**optimizer.t, 1 - optimizer.beta2**optimizer.t
    how = (optimizer.lr, optimizer.beta1, optimizer.beta2, optimizer.eps, decay, shrink, *corrections)
    return tuple(map(float, how))


# ---- the CPU ---------------------------------------------------------------------------------------------------------


def sgd_at_once(optimizer: Any) -> Any:
    """What SGD.step does."""
    return _at_once(optimizer, "sgd_steps", (optimizer.u,), _sgd_numbers)


def adam_at_once(optimizer: Any) -> Any:
    """What Adam.step does."""
    numbers = functools.partial(_adam_numbers, decay=optimizer.weight_decay, shrink=0.0)
    return _at_once(optimizer, "adam_steps", (optimizer.m, optimizer.v), numbers)


def adamw_at_once(optimizer: Any) -> Any:
    """What AdamW.step does."""
    numbers = functools.partial(_adam_numbers, decay=0.0, shrink=optimizer.lr * optimizer.weight_decay)
    return _at_once(optimizer, "adam_steps", (optimizer.m, optimizer.v), numbers)


def rmsprop_at_once(optimizer: Any) -> Any:
    """What RMSProp.step does."""
    return _at_once(optimizer, "rmsprop_steps", (optimizer.u, optimizer.v), _rmsprop_numbers)


def _rmsprop_numbers(optimizer: Any) -> tuple:
    how = (optimizer.lr, optimizer.alpha, optimizer.eps, optimizer.momentum, optimizer.weight_decay)
    return tuple(map(float, how))


def _at_once(optimizer: Any, kernel: str, states: Sequence[State], numbers: Callable[[Any], tuple]) -> Any:
    """One kernel over all parameters that have a gradient, and over what is remembered of them.

    An array that nobody else sees is changed in place; for the others, which a graph or a user may hold, come new ones.
    """
    params = [p for p in optimizer.params if p.grad is not None]
    grads = [p.grad.realize_cached_data() for p in params]
    function = _common_kernel(kernel, params, grads)
    if function is None:
        return NotImplemented
    for state in states:
        _begin(state, params)
    alone = [[_is_alone(p) for p in params], *([_is_alone_in(state, p) for p in params] for state in states)]
    old = [_arrays(params), *(_arrays([state[p] for p in params]) for state in states)]
    new = [[a if own else empty(a.shape, a) for a, own in zip(*rows)] for rows in zip(old, alone)]
    function(*map(_handles, (old[0], grads, *old[1:], *new)), *numbers(optimizer))
    _replace(params, new[0], alone[0])
    for state, arrays, own in zip(states, new[1:], alone[1:]):
        state.update((p, Tensor.make_const(a)) for p, a, kept in zip(params, arrays, own) if not kept)
    return None


def _common_kernel(kernel: str, params: list[Tensor], grads: list[NDArray]) -> Callable | None:
    """The kernel that fits all parameters and their gradients, if there are any."""
    if not params:
        return None
    device, dtype = params[0].device, params[0].dtype
    for p, grad in zip(params, grads):
        for array in (p.realize_cached_data(), grad):
            if array.device is not device or array.dtype != dtype or array.shape != grad.shape:
                return None
    return kernels.device_kernel(kernel, device.name, dtype)


def _begin(state: State, params: list[Tensor]) -> None:
    """Before the first step, zeros are remembered."""
    for p in params:
        if p not in state:
            state[p] = Tensor.make_const(array_api.zeros(p.shape, dtype=p.dtype, device=p.device))


def _arrays(tensors: list[Tensor]) -> list[NDArray]:
    return [t.realize_cached_data().compact() for t in tensors]


def _replace(params: list[Tensor], arrays: list[NDArray], alone: list[bool]) -> None:
    """Give parameters their new values; of what was changed in place note that it was, as `.data =` does."""
    for p, array, own in zip(params, arrays, alone):
        if own:
            p.changed_at = write_log.tick()
        else:
            p.data = Tensor.make_const(array)


def _handles(arrays: list[NDArray]) -> list[Any]:
    return [a.compact()._handle for a in arrays]


# ---- who else sees an array? -----------------------------------------------------------------------------------------

# where threads run side by side, a count is old when it is read
COUNTS_TELL = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


def _is_alone(tensor: Tensor) -> bool:
    """Whether the tensor alone holds its array, and the array alone its memory: then it may be changed in place.

    A graph that needs the old value holds a view, or the tensor itself, which notes the change.
    """
    return COUNTS_TELL and _may_change(tensor) and _counts(tensor) == _counts_if_alone()[0]


def _is_alone_in(state: State, p: Tensor) -> bool:
    """The same of what is remembered of a parameter, of which nobody may hold the tensor either."""
    return COUNTS_TELL and _may_change(state[p]) and _counts_in(state, p) == _counts_if_alone()[1]


def _may_change(tensor: Tensor) -> bool:
    """Whether the array fills memory that is its device's own, and not NumPy's."""
    array = tensor.realize_cached_data()
    return array.is_compact() and getattr(array._handle, "owns_memory", False)


def _counts(tensor: Tensor) -> tuple[int, ...]:
    """How many hold the array, and its memory; Python's own references, which differ by its version, included."""
    array = tensor.cached_data
    return sys.getrefcount(array), sys.getrefcount(array._handle)


def _counts_in(state: State, p: Tensor) -> tuple[int, ...]:
    tensor = state[p]
    return sys.getrefcount(tensor), *_counts(tensor)


@functools.cache
def _counts_if_alone() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What both functions count where nobody else looks."""
    p = Tensor.make_const(array_api.zeros((1,)))
    return _counts(p), _counts_in({p: Tensor.make_const(array_api.zeros((1,)))}, p)


# ---- the registry ----------------------------------------------------------------------------------------------------


def register(cls: type, at_once: Step, one_by_one: Step | None = None) -> None:
    """Enter the step of an optimizer on the CPU, and its step on CUDA devices if there is one."""
    for dtype in ("float32", "float64"):
        kernels.register_operation(cls, "cpu", dtype, forward=at_once)
    for device in CUDA_DEVICES if one_by_one else ():
        kernels.register_operation(cls, device, DTYPE, forward=one_by_one)
