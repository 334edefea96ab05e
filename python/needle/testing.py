"""Checks of gradients against central differences, with a guess at what went wrong.

gradient_check(lambda a, b: a @ b, np.random.randn(3, 4), np.random.randn(4, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .core import Tensor, TensorTuple, no_grad, vjp
from .errors import ArgumentError, ArgumentTypeError, DTypeError, NeedleError, describe

__all__ = ["GradientError", "GradientReport", "gradient_check", "second_order_check", "suspected_cause"]


class GradientError(NeedleError, AssertionError):
    """A gradient does not agree with differences; `report` holds the details."""

    def __init__(self, report: GradientReport) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass(frozen=True)
class GradientReport:
    """What gradient_check found: that all is well, or where the worst entry is and what may have gone wrong there."""

    passed: bool
    entries: int  # how many were compared
    error: float  # the largest deviation, as a multiple of what is tolerated
    input: int  # the number of the tensor it belongs to, from 0; parameters follow the arguments
    index: tuple[int, ...]
    got: float
    expected: float
    cause: str

    @property
    def ratio(self) -> float:
        """got / expected at the worst entry."""
        return self.got / self.expected if self.expected else float("inf")

    def __str__(self) -> str:
        if self.passed:
            return f"gradient_check: {self.entries} entries agree, the worst is at {self.error:.2g} of the tolerance"
        return (
            f"gradient_check: input {self.input} at {list(self.index)}: got {self.got:.6g}, expected "
            f"{self.expected:.6g}, ratio {self.ratio:.4g}: {self.cause}"
        )


# ---- the checks ------------------------------------------------------------------------------------------------------


def gradient_check(
    f: Callable[..., Any],
    *args: Any,
    parameters: Sequence[Tensor] = (),
    tol: float = 1e-6,
    eps: float = 1e-5,
    seed: int = 0,
    raises: bool = True,
    device: Any = None,
) -> GradientReport:
    """Compare the gradients of f by every argument with central differences, in float64.

    f takes as many tensors as there are args (tensors, arrays or numbers, made float64) and returns a tensor or
    several; called again it must return the same.  `parameters` are float64 tensors that f reads by itself, such as
    those of a module; they are moved and put back.  Every entry of the result gets a weight of its own (drawn with
    seed), so that a gradient that is right only for equal weights is found out.  An entry may deviate by tol ·
    max(1, the largest expected entry of its tensor); eps is the step of the differences, times the entry if that is
    above 1.  The device is that of the first tensor among args unless said otherwise.

    Raises GradientError (an AssertionError) naming input, index, got, expected, ratio and a suspected cause; with
    raises=False the report is returned instead.  ArgumentError without anything to differentiate by.
    """
    where = device or next((a.device for a in (*args, *parameters) if isinstance(a, Tensor)), None)
    inputs = [Tensor(_as_float64(a), device=where, dtype="float64") for a in args]
    leaves = [*inputs, *map(_checked_parameter, parameters)]
    if not leaves:
        raise ArgumentError("gradient_check: no arguments to differentiate by")
    random = np.random.RandomState(seed)
    outputs = _outputs(f(*inputs))
    weights = [random.uniform(0.5, 1.5, out.shape) * random.choice([-1, 1], out.shape) for out in outputs]

    def weighed_sum() -> float:
        with no_grad():
            return sum(float((w * out.numpy()).sum()) for w, out in zip(weights, _outputs(f(*inputs)), strict=True))

    got = _gradients(outputs, weights, leaves)
    expected = [_differences(weighed_sum, leaf, eps) for leaf in leaves]
    report = _compare(got, expected, tol)
    if raises and not report.passed:
        raise GradientError(report)
    return report


def second_order_check(f: Callable[..., Any], *args: Any, seed: int = 0, **options: Any) -> GradientReport:
    """Compare the second derivatives of f with central differences of its gradient.

    It is gradient_check of Σ ⟨gradient, v⟩ for a random v, by the args and by the weights of f's result, too; the
    options are gradient_check's.  f returns one tensor and must be smooth around args.
    """
    arrays = [_as_float64(a) for a in args]
    random = np.random.RandomState(seed)
    directions = [random.uniform(0.5, 1.5, a.shape) for a in arrays]
    device = options.get("device") or next((a.device for a in args if isinstance(a, Tensor)), None)
    with no_grad():
        shape = f(*(Tensor(a, dtype="float64", device=device) for a in arrays)).shape

    def along(*values: Tensor) -> Tensor:
        pulled = vjp(f, *values[:-1])[1](values[-1])
        terms = [(g * _constant(v, g.device)).sum() for g, v in zip(pulled, directions)]
        return sum(terms[1:], terms[0])

    return gradient_check(along, *arrays, random.uniform(0.5, 1.5, shape), seed=seed, **{**options, "device": device})


def _constant(array: np.ndarray, device: Any) -> Tensor:
    return Tensor(array, device=device, dtype="float64", requires_grad=False)


def _as_float64(value: Any) -> np.ndarray:
    value = value.numpy() if hasattr(value, "numpy") else value
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"gradient_check: got {describe(value)}, wanted a Tensor, an array or a number"
        ) from None


def _checked_parameter(parameter: Any) -> Tensor:
    if not isinstance(parameter, Tensor) or str(parameter.dtype) != "float64":
        raise DTypeError(f"gradient_check: a parameter is {describe(parameter)}, wanted a Tensor of float64")
    return parameter


def _outputs(result: Any) -> list[Tensor]:
    """What f returned, as a list of tensors."""
    if isinstance(result, Tensor):
        return [result]
    if not isinstance(result, (tuple, list, TensorTuple)):
        raise ArgumentTypeError(f"gradient_check: the function returned {describe(result)}, wanted tensors")
    return [tensor for part in result for tensor in _outputs(part)]


def _gradients(outputs: Sequence[Tensor], weights: Sequence[np.ndarray], leaves: Sequence[Tensor]) -> list[np.ndarray]:
    """The gradients that `backward` leaves; zeros where it does not arrive."""
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    terms = [(out * _constant(w, out.device)).sum() for out, w in zip(outputs, weights) if out.requires_grad]
    if terms:
        sum(terms[1:], terms[0]).backward()
    got = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    for leaf, grad in zip(leaves, before):
        leaf.grad = grad
    return got


def _differences(value: Callable[[], float], leaf: Tensor, eps: float) -> np.ndarray:
    """(value(x + h) - value(x - h)) / 2h for every entry x of leaf, which is put back afterwards."""
    here, data = leaf.numpy(), leaf.data
    slopes = np.zeros(here.shape)
    for index in np.ndindex(*here.shape):
        step = eps * max(1.0, abs(here[index]))
        sides = []
        for sign in (1, -1):
            there = here.copy()
            there[index] += sign * step
            leaf.data = _constant(there, leaf.device)
            sides.append(value())
        slopes[index] = (sides[0] - sides[1]) / (2 * step)
    leaf.data = data
    return slopes


# ---- the verdict -----------------------------------------------------------------------------------------------------


def _compare(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tol: float) -> GradientReport:
    """The report on the input with the largest deviation."""
    reports = [_compare_one(i, g, e, tol) for i, (g, e) in enumerate(zip(got, expected))]
    worst = max(reports, key=lambda report: (not report.passed, report.error))
    entries = sum(report.entries for report in reports)
    return GradientReport(**{**vars(worst), "entries": entries})


def _compare_one(number: int, got: np.ndarray, expected: np.ndarray, tol: float) -> GradientReport:
    tolerated = tol * max(1.0, float(np.abs(expected).max(initial=0.0)))
    comparable = got if got.shape == expected.shape else np.full(expected.shape, np.nan)
    errors = np.nan_to_num(np.abs(comparable - expected) / tolerated, nan=np.inf)
    index = np.unravel_index(int(errors.argmax()), errors.shape) if errors.size else ()
    place = tuple(int(i) for i in index)
    error = float(errors[place]) if errors.size else 0.0
    passed = error <= 1 and got.shape == expected.shape
    there = (float(comparable[place]), float(expected[place])) if errors.size else (0.0, 0.0)
    cause = "" if passed else suspected_cause(got, expected, tolerated)
    return GradientReport(passed, expected.size, error, number, place, *there, cause)


def suspected_cause(got: np.ndarray, expected: np.ndarray, tolerated: float = 1e-6) -> str:
    """What often makes a gradient look like `got` where `expected` was wanted, in a few words.

    A deviation up to `tolerated` counts as agreement.
    """
    if got.shape != expected.shape:
        return _cause_of_shape(got.shape, expected.shape)
    if not np.isfinite(got).all():
        return "not finite: an overflow, 0 · inf, or a logarithm or division of 0"
    if not got.any():
        return "zero everywhere: the graph is cut (a tensor rebuilt from raw data?), or the gradient returns zeros"
    for cause, change in _PATTERNS:
        changed = change(expected) if expected.ndim else -expected
        if changed.shape == got.shape and bool((np.abs(got - changed) <= tolerated).all()):
            return cause
    factor = float((got * expected).sum() / (expected * expected).sum()) if expected.any() else 0.0
    if factor and bool((np.abs(got - factor * expected) <= tolerated).all()):
        return _cause_of_factor(factor, expected)
    if abs(got.sum() - expected.sum()) <= tolerated * expected.size:
        return "the sum is right, the places are not: an index, an order of axes, a reshape?"
    if expected.ndim and len(got) > 1 and bool((np.abs(got - expected)[:-1] <= tolerated).all()):
        return "only the last row is wrong: a loop or a slice that stops too early?"
    return "no known pattern; look at the formula"


_PATTERNS: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("the sign is wrong", lambda grad: -grad),
    ("it is transposed", lambda grad: np.moveaxis(grad, -1, grad.ndim - 2) if grad.ndim > 1 else -grad),
    ("it is reversed along the last axis", lambda grad: grad[..., ::-1]),
    ("it is reversed along the first axis", lambda grad: grad[::-1]),
]


def _cause_of_factor(factor: float, expected: np.ndarray) -> str:
    extents = {*expected.shape, expected.size} - {1}
    if any(np.isclose(factor * extent, 1, rtol=1e-4) for extent in extents):
        return f"averaged where it should be summed: the constant factor 1 / {1 / factor:.4g}"
    if any(np.isclose(factor, extent, rtol=1e-4) for extent in extents):
        return f"summed where it should be averaged, or counted several times: the constant factor {factor:.4g}"
    return f"off by the constant factor {factor:.4g}"


def _cause_of_shape(got: tuple[int, ...], expected: tuple[int, ...]) -> str:
    if got == expected[::-1]:
        return f"it is transposed: shape {got}, wanted {expected}"
    try:
        stretched = np.broadcast_shapes(got, expected) == got
    except ValueError:
        stretched = False
    if stretched:
        return f"not summed over the axes that broadcasting stretched: shape {got}, wanted {expected}"
    return f"it has shape {got}, wanted {expected}"
