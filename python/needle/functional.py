"""Function transforms: from a function of tensors to its gradient, products with its Jacobian, its Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .autograd import Tensor, gradients_below, seed_for
from .backend_selection import array_api
from .errors import ArgumentError, ArgumentTypeError, ShapeError, describe
from .execution import enable_grad
from .init import zeros_like
from .ops import Identity, summation

# >>> hw2
# isort: split
import numpy as np

from .ops import concatenate, reshape

# <<< hw2

__all__ = ["grad", "hvp", "jvp", "value_and_grad", "vjp"]

# >>> hw2
__all__ += ["hessian"]
# <<< hw2

Function = Callable[..., Tensor]


def _variable(x: Any) -> Tensor:
    """x as a node to differentiate by: still tied to its own graph if it has one, so that transforms nest."""
    if not isinstance(x, Tensor):
        x = Tensor(x)
    return Identity()(x) if x.requires_grad else Tensor.make_const(x.realize_cached_data(), requires_grad=True)


def _check_function(name: str, f: Any) -> None:
    if not callable(f):
        raise ArgumentTypeError(f"{name}: got {describe(f)}, wanted a function of tensors")


def _pairs(name: str, primals: Any, vectors: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Primals and vectors as lists, of one tensor each where that was given alone; an error unless they are as long."""
    primals, vectors = ([given] if isinstance(given, Tensor) else given for given in (primals, vectors))
    for given in (primals, vectors):
        if not isinstance(given, (list, tuple)):
            raise ArgumentTypeError(f"{name}: got {describe(given)}, wanted a list with a tensor for each argument")
    if len(primals) != len(vectors):
        raise ArgumentError(f"{name}: {len(primals)} primals and {len(vectors)} vectors, wanted as many")
    return primals, vectors


def _check_one_number(name: str, value: Tensor) -> None:
    if value.size != 1:
        raise ShapeError(f"{name}: the function returned shape {value.shape}, wanted one number; sum it, or use vjp")


def _call(name: str, f: Function, args: Sequence[Any]) -> Tensor:
    out = f(*args)
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{name}: the function returned {describe(out)}, wanted a Tensor")
    return out


def _gradients(output: Tensor, inputs: Sequence[Tensor], out_grad: Any = None) -> tuple[Tensor, ...]:
    """The gradient of output by each input, as a graph; zeros where output does not depend on it."""
    grads = gradients_below(output, seed_for(output, out_grad)) if output.requires_grad else {}
    return tuple(grads[x] if x in grads else zeros_like(x) for x in inputs)


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., tuple[Tensor, Any]]:
    """From f, whose result is one number, to a function that returns (f(...), its gradient by argument argnums).

    Several argnums give a tuple of gradients; negative ones count from the end.  Gradients can be differentiated
    again: `grad(grad(f))` works.
    """
    _check_function("value_and_grad", f)
    several = isinstance(argnums, (list, tuple))
    numbers: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, (list, tuple)) else (argnums,)
    if not all(isinstance(n, int) for n in numbers):
        raise ArgumentTypeError(
            f"grad: argnums are {describe(argnums)}, wanted the position of an argument, or several"
        )

    @enable_grad()
    def wrapped(*args: Any) -> tuple[Tensor, Any]:
        if not all(-len(args) <= n < len(args) for n in numbers):
            raise ArgumentError(f"grad: argnums {argnums} of a call with {len(args)} arguments")
        chosen = [n % len(args) for n in numbers]
        args = tuple(_variable(a) if i in chosen else a for i, a in enumerate(args))
        value = _call("grad", f, args)
        _check_one_number("grad", value)
        grads = _gradients(value, [args[i] for i in chosen])
        return value, grads if several else grads[0]

    return wrapped


def grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """From f, whose result is one number, to the function that returns its gradient by argument argnums."""
    both = value_and_grad(f, argnums)
    return lambda *args: both(*args)[1]


def vjp(f: Function, *primals: Any) -> tuple[Tensor, Callable[[Any], tuple[Tensor, ...]]]:
    """f(*primals), and the function v ↦ vᵀJ that pulls a gradient of the result back to each primal."""
    _check_function("vjp", f)
    with enable_grad():
        inputs = [_variable(p) for p in primals]
        out = _call("vjp", f, inputs)

    def pull_back(v: Any) -> tuple[Tensor, ...]:
        with enable_grad():
            return _gradients(out, inputs, v)

    return out, pull_back


def jvp(f: Function, primals: Any, tangents: Any) -> tuple[Tensor, Tensor]:
    """f(*primals), and J·tangents: how f moves when the primals move along the tangents.

    Lists with a tensor for each argument of f, or the tensors themselves where f has one.

    The pull-back v ↦ vᵀJ is linear in v; differentiating ⟨vᵀJ, t⟩ by v transposes it and gives J·t, so that no
    operator needs a rule of its own for the forward direction.
    """
    _check_function("jvp", f)
    primals, tangents = _pairs("jvp", primals, tangents)
    with enable_grad():
        inputs = [_variable(p) for p in primals]
        out = _call("jvp", f, inputs)
        v = Tensor.make_const(array_api.ones_like(out.realize_cached_data()), requires_grad=True)
        pulled = [(g, t) for g, t in zip(_gradients(out, inputs, v), tangents) if g.requires_grad]
        if not pulled:
            return out, zeros_like(out)
        return out, _gradients(_inner_products(pulled), [v])[0]


def hvp(f: Function, primals: Any, vectors: Any) -> Any:
    """The Hessian of f times vectors, by each primal, without ever building the Hessian.  (Pearlmutter 1994)

    Lists give a tuple; the tensors themselves, where f has one argument, give a tensor.
    """
    _check_function("hvp", f)
    if isinstance(primals, Tensor):
        return hvp(f, [primals], [vectors])[0]
    primals, vectors = _pairs("hvp", primals, vectors)
    with enable_grad():
        inputs = [_variable(p) for p in primals]
        out = _call("hvp", f, inputs)
        _check_one_number("hvp", out)
        pulled = [(g, v) for g, v in zip(_gradients(out, inputs), vectors) if g.requires_grad]
        if not pulled:
            return tuple(map(zeros_like, inputs))
        return _gradients(_inner_products(pulled), inputs)


# >>> hw2
def hessian(f: Function, argnum: int = 0) -> Callable[..., Tensor]:
    """From f, whose result is one number, to the function that returns its matrix of second derivatives.

    The result has shape (*x.shape, *x.shape).  One product per entry of x: meant for small problems.
    """
    _check_function("hessian", f)

    def wrapped(*args: Any) -> Tensor:
        if not isinstance(argnum, int) or not 0 <= argnum < len(args):
            raise ArgumentError(f"hessian: argnum {argnum!r} of a call with {len(args)} arguments")
        x = args[argnum] if isinstance(args[argnum], Tensor) else Tensor(args[argnum])

        def of_x(x: Tensor) -> Tensor:
            return f(*args[:argnum], x, *args[argnum + 1 :])

        basis = np.eye(x.size, dtype=str(x.dtype)).reshape(x.size, *x.shape)
        rows = [hvp(of_x, [x], [Tensor(e, device=x.device, dtype=x.dtype, requires_grad=False)])[0] for e in basis]
        entries = concatenate([reshape(row, (row.size,)) for row in rows]) if rows else x
        return reshape(entries, (*x.shape, *x.shape))

    return wrapped


# <<< hw2
def _inner_products(pairs: Sequence[tuple[Tensor, Any]]) -> Tensor:
    """Σ ⟨a, b⟩ over the pairs."""
    total: Any = None
    for a, b in pairs:
        b = b if isinstance(b, Tensor) else Tensor(b, device=a.device, dtype=a.dtype, requires_grad=False)
        if a.shape != b.shape:
            raise ShapeError(f"jvp/hvp: a tangent of shape {b.shape}, wanted {a.shape}")
        term = summation(a * b)
        total = term if total is None else total + term
    return total
