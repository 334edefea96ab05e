"""Every row of the table of operators: forward against NumPy, gradients against differences, in every memory layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import needle.ops
import numpy as np
import pytest
from needle import Tensor, kernels
from needle.autograd import Op
from needle.execution import execution_hook
from needle.functional import jvp
from needle.testing import gradient_check, second_order_check

from tests.op_cases import CASES, LAYOUTS, Layout, OpCase

all_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
smooth_cases = pytest.mark.parametrize("case", [c for c in CASES if c.smooth], ids=lambda case: case.name)


def leaves(case: OpCase, dtype: str = "float64") -> list[Tensor]:
    return [Tensor(array, dtype=dtype) for array in case.arrays()]


def agrees(got: Tensor, expected: np.ndarray, tolerance: float) -> bool:
    """Equal in shape, but that a full reduction of an NDArray has shape (1,), and in value."""
    expected = np.asarray(expected)
    same_shape = got.shape == expected.shape or (expected.shape, got.shape) == ((), (1,))
    scale = max(1.0, np.abs(expected).max(initial=0))
    return same_shape and np.abs(got.numpy().reshape(expected.shape) - expected).max(initial=0) <= tolerance * scale


@all_cases
def test_forward_in_float64(case: OpCase) -> None:
    out = case.op(*leaves(case))
    assert str(out.dtype) == "float64"
    assert agrees(out, case.reference(*case.arrays()), 1e-13)


@all_cases
def test_forward_in_float32(case: OpCase) -> None:
    if case.name == "cast":
        return  # its row asks for float64
    out = case.op(*leaves(case, "float32"))
    assert str(out.dtype) == "float32"
    assert agrees(out, case.reference(*case.arrays()), 2e-6)  # a dozen roundings of 6e-8


@pytest.mark.parametrize("mode", kernels.MODES)
@all_cases
def test_gradient_agrees_with_differences(case: OpCase, mode: str) -> None:
    """By the operators' own rules, and by the whole operations that may stand in for them."""
    with kernels.use(mode):
        gradient_check(case.op, *case.arrays())


@smooth_cases
def test_second_order_agrees_with_differences(case: OpCase) -> None:
    second_order_check(case.op, *case.arrays(), tol=1e-5)  # of differences of rounded gradients


@all_cases
def test_forward_mode_agrees_with_differences(case: OpCase) -> None:
    arrays = case.arrays()
    random = np.random.RandomState(2)
    directions = [np.asarray(random.randn(*array.shape)) for array in arrays]
    tangents = [Tensor(d, dtype="float64", requires_grad=False) for d in directions]
    _, tangent = jvp(case.op, leaves(case), tangents)
    step = 1e-6
    ahead, behind = (
        np.asarray(case.reference(*(a + sign * step * d for a, d in zip(arrays, directions)))) for sign in (1, -1)
    )
    assert agrees(tangent, (ahead - behind) / (2 * step), 1e-7)


@all_cases
def test_gradient_keeps_shape_and_float32_U066(case: OpCase) -> None:
    inputs = leaves(case, "float32")
    case.op(*inputs).sum().backward()
    for x in inputs:
        assert (x.grad.shape, x.grad.dtype, x.grad.device) == (x.shape, x.dtype, x.device)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@all_cases
def test_layout_makes_no_difference_U056(case: OpCase, layout: Layout) -> None:
    wanted = case.arrays()
    stored = [Tensor(layout.stored(array), dtype="float64") for array in wanted]
    views = [layout.seen(t, array.shape) for t, array in zip(stored, wanted)]
    copies = [Tensor(view.numpy(), dtype="float64") for view in views]
    out, expected = case.op(*views), case.op(*copies)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-14, atol=1e-14)  # sums may go another way round

    weights = np.random.RandomState(1).randn(*out.shape)
    out.backward(weights)
    got = [t.grad.numpy() for t in stored]
    expected.backward(weights)
    for t, array, copy, grad in zip(stored, wanted, copies, got):
        layout.seen(t, array.shape).backward(copy.grad.detach())
        np.testing.assert_allclose(grad, t.grad.numpy(), rtol=1e-12, atol=1e-12)


def subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def test_every_operator_has_a_row() -> None:
    met: set[type] = set()

    def note(phase: str, op: Op, inputs: Any, call: Any) -> Any:
        met.add(type(op))
        return call()

    with execution_hook(note):
        for case in CASES:
            case.op(*leaves(case)).sum().backward()
    operators = {cls for cls in subclasses(Op) if cls.__module__.startswith(needle.ops.__name__)}
    abstract = {cls for cls in operators if cls.__name__ in ("Reduction", "FusedOp")}
    assert not operators - met - abstract
