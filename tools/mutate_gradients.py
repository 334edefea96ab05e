"""Spoil every rule of differentiation by 1 %, one input at a time, and see that a test notices.

    python tools/mutate_gradients.py [NAME ...]

The rules are the `gradient` of every operator that needle has, and the backward pass of every whole operation in the
registry.  The tests are the rows of tests/op_cases.py, checked as tests/unit checks them.  Names choose classes, all
by default.  Prints what survives and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT)]

from needle import Tensor, TensorTuple, kernels, ops  # noqa: E402
from needle.autograd import Op  # noqa: E402
from needle.core import as_device  # noqa: E402
from needle.errors import NeedleError  # noqa: E402
from needle.execution import execution_hook  # noqa: E402
from needle.testing import GradientError, gradient_check  # noqa: E402

from tests.op_cases import CASES, WHOLE, OpCase, check_whole_operation  # noqa: E402

FACTOR = 1.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="classes of operators, such as MatMul; all by default")
    chosen = set(parser.parse_args().names)
    start = time.monotonic()
    mutants = [m for m in (*gradient_mutants(), *whole_operation_mutants()) if not chosen or m.cls.__name__ in chosen]
    survivors = [mutant for mutant in mutants if not mutant.is_noticed()]
    for mutant in survivors:
        print(f"survives: {mutant}")
    print(f"{len(mutants)} spoiled gradients, {len(survivors)} survive ({time.monotonic() - start:.0f} s)")
    return 1 if survivors or not mutants else 0


class Mutant:
    """One gradient to be spoiled, and the checks that should notice."""

    def __init__(self, cls: type, what: str, number: int, spoil: Callable, checks: list[Callable[[], Any]]) -> None:
        self.cls, self.what, self.number, self.spoil, self.checks = cls, what, number, spoil, checks

    def __str__(self) -> str:
        return f"{self.cls.__name__}, {self.what}, input {self.number} ({len(self.checks)} rows reach it)"

    def is_noticed(self) -> bool:
        with self.spoil(self.cls, self.number):
            return any(map(_fails, self.checks))


def _fails(check: Callable[[], Any]) -> bool:
    try:
        check()
    except AssertionError as error:
        if isinstance(error, NeedleError) and not isinstance(error, GradientError):
            raise  # no verdict on a gradient: the check itself is broken
        return True
    return False


# ---- the gradient of operators ---------------------------------------------------------------------------------------


def gradient_mutants() -> Iterator[Mutant]:
    rows, inputs = rows_and_inputs()
    for cls in sorted(set(subclasses(Op)), key=lambda cls: cls.__name__):
        if "gradient" in vars(cls) and cls.__module__.startswith("needle."):
            checks = [partial(check_rules, case) for case in rows[cls]]
            for number in range(inputs.get(cls, 1)):
                yield Mutant(cls, "gradient", number, spoiled_gradient, checks)


def check_rules(case: OpCase) -> None:
    """The operators' own rules, without the whole operations that may stand in for them."""
    with kernels.use("course"):
        gradient_check(case.op, *case.arrays())


def subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def rows_and_inputs() -> tuple[dict[type, list[OpCase]], dict[type, int]]:
    """For every operator the rows that use its gradient, those with few others first, and how many inputs it has."""
    rows: dict[type, list[OpCase]] = defaultdict(list)
    inputs: dict[type, int] = {}
    crowd: dict[str, int] = {}
    for case in CASES:
        met: set[type] = set()

        def note(phase: str, op: Op, args: Any, call: Callable, met: set[type] = met) -> Any:
            if phase == "backward":
                met.add(type(op))
                inputs[type(op)] = max(len(args), inputs.get(type(op), 0))
            return call()

        with execution_hook(note):
            case.op(*(Tensor(array, dtype="float64") for array in case.arrays())).sum().backward()
        crowd[case.name] = len(met)
        for cls in met:
            rows[cls].append(case)
    return defaultdict(
        list, {cls: sorted(found, key=lambda case: crowd[case.name]) for cls, found in rows.items()}
    ), inputs


@contextmanager
def spoiled_gradient(cls: type, number: int) -> Iterator[None]:
    right = cls.gradient

    def wrong(self: Op, out_grad: Any, node: Any) -> Any:
        return scaled(right(self, out_grad, node), number)

    cls.gradient = wrong
    try:
        yield
    finally:
        cls.gradient = right


def scaled(grads: Any, number: int) -> list[Any]:
    """What a gradient returned, with the one for input `number` (if there are so many inputs) off by FACTOR."""
    grads = list(grads) if isinstance(grads, (tuple, list)) else [grads]
    if number >= len(grads):
        return grads
    if isinstance(grads[number], TensorTuple):
        grads[number] = ops.make_tuple(*map(off, grads[number]))
    else:
        grads[number] = off(grads[number])
    return grads


def off(grad: Tensor) -> Tensor:
    """grad times FACTOR; where it is 0 everywhere, as for steps, 1 % of 1 instead."""
    return grad * FACTOR if grad.numpy().any() else grad + (FACTOR - 1)


# ---- the backward pass of whole operations ---------------------------------------------------------------------------


def whole_operation_mutants() -> Iterator[Mutant]:
    for (cls, device, dtype), entry in list(kernels.operations().items()):
        if entry.backward is None or not as_device(device).enabled():
            continue
        checks = [partial(check_whole_operation, case, device, dtype) for case in WHOLE.get(cls, [])]
        for number in range(len(WHOLE[cls][0].inputs) if cls in WHOLE else 1):
            yield Mutant(cls, f"whole operation on {device} in {dtype}", number, spoiled_operation, checks)


@contextmanager
def spoiled_operation(cls: type, number: int) -> Iterator[None]:
    entries = {key: entry for key, entry in kernels.operations().items() if key[0] is cls}

    def wrong(right: Callable) -> Callable:
        def backward(op: Op, out_grad: Any, node: Any) -> Any:
            grads = right(op, out_grad, node)
            return grads if grads is NotImplemented else scaled(grads, number)

        return backward

    for key, entry in entries.items():
        kernels.register_operation(*key, forward=entry.forward, backward=wrong(entry.backward))
    try:
        yield
    finally:
        for key, entry in entries.items():
            kernels.register_operation(*key, forward=entry.forward, backward=entry.backward)


if __name__ == "__main__":
    sys.exit(main())
