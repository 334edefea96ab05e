"""The gradient check itself: it passes what is right, fails what is not, and guesses why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from needle import Tensor, TensorTuple, ops
from needle.autograd import TensorOp
from needle.errors import ArgumentError, DTypeError
from needle.testing import GradientError, gradient_check, second_order_check, suspected_cause


class Squares(TensorOp):
    """a², its gradient changed at will."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        self.change = change

    def compute(self, a: object) -> object:
        return a * a

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return self.change(out_grad * 2 * node.inputs[0])


def last_row_forgotten(grad: Tensor) -> Tensor:
    return ops.concatenate([grad[:-1], grad[-1:] * 0], 0)


MATRIX = np.random.RandomState(0).uniform(0.5, 2, (3, 3))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda g: -g, "sign"),
        (lambda g: g * 0, "zero everywhere"),
        (lambda g: g.T, "transposed"),
        (lambda g: g * 0.37, "constant factor 0.37"),
        (lambda g: g / 9, "averaged where it should be summed"),
        (lambda g: g * 3, "summed where it should be averaged"),
        (lambda g: ops.flip(g, (1,)), "reversed along the last axis"),
        (lambda g: ops.flip(g, (0,)), "reversed along the first axis"),
        (lambda g: g.broadcast_to((2, 3, 3)), "not summed over the axes"),
        (lambda g: g.reshape((9,)), r"it has shape \(9,\)"),
        (lambda g: g * np.inf, "not finite"),
        (lambda g: g[np.array([1, 2, 0])], "the sum is right"),
        (last_row_forgotten, "only the last row"),
        (lambda g: g * g, "no known pattern"),
    ],
)
def test_wrong_gradient_is_found_and_explained(change: Callable, cause: str) -> None:
    with pytest.raises(GradientError, match=cause):
        gradient_check(Squares(change), MATRIX)


def test_one_percent_is_found() -> None:
    with pytest.raises(GradientError, match=r"constant factor 1.01"):
        gradient_check(Squares(lambda g: g * 1.01), MATRIX)


def test_gradient_right_for_equal_weights_only_is_found() -> None:
    with pytest.raises(GradientError):
        gradient_check(Squares(lambda g: g * 0 + g.mean() * 1), np.ones((3, 3)))


def test_report_names_the_worst_entry() -> None:
    def f(a: Tensor, b: Tensor) -> Tensor:
        return a + Squares(lambda g: g * np.array([1.0, 2.0]))(b)

    report = gradient_check(f, np.ones(2), np.array([3.0, 4.0]), raises=False)
    assert not report.passed
    assert (report.input, report.index) == (1, (1,))
    assert report.ratio == pytest.approx(2)
    assert report.got == pytest.approx(2 * report.expected)
    text = str(report)
    assert "input 1 at [1]" in text
    assert "ratio 2" in text


def test_right_gradients_pass_and_say_so() -> None:
    report = gradient_check(lambda a, b: a @ b, np.ones((2, 3)), np.ones((3, 4)))
    assert report.passed
    assert report.entries == 18
    assert "18 entries agree" in str(report)


def test_several_results_are_checked_together() -> None:
    assert gradient_check(lambda a: (a.exp(), [a.sin(), ops.split(a, 0)]), np.ones((2, 2))).passed
    with pytest.raises(TypeError, match="returned int"):
        gradient_check(lambda a: 1, np.ones(2))
    assert isinstance(ops.split(Tensor(np.ones((2, 2))), 0), TensorTuple)


def test_cut_graph_is_found_U043() -> None:
    with pytest.raises(GradientError, match="graph is cut"):
        gradient_check(lambda a: Tensor(a.numpy(), dtype="float64") * 2, np.ones(2))
    with pytest.raises(GradientError, match="graph is cut"):
        gradient_check(lambda a: a.detach() * 2, np.ones(2))


def test_parameters_are_moved_and_put_back() -> None:
    w = Tensor(np.array([1.0, 2.0]), dtype="float64")
    data = w.cached_data
    assert gradient_check(lambda x: x * w * w, np.ones(2), parameters=[w]).entries == 4
    assert w.cached_data is data
    assert w.grad is None
    with pytest.raises(GradientError, match="input 1"):
        gradient_check(lambda x: x + Squares(lambda g: -g)(w), np.ones(2), parameters=[w])
    with pytest.raises(DTypeError, match="float32"):
        gradient_check(lambda x: x, np.ones(2), parameters=[Tensor([1.0], dtype="float32")])


def test_numbers_of_any_kind_can_be_checked() -> None:
    assert gradient_check(lambda a, b, c: a * b + c, 2, [1.0, 2.0], Tensor([3.0, 4.0])).passed
    with pytest.raises(ArgumentError):
        gradient_check(lambda: Tensor([1.0]))
    with pytest.raises(TypeError):
        gradient_check(lambda a: a, "text")


def test_second_order_finds_what_the_first_cannot_see() -> None:
    class CutSecond(ops.Exp):
        def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
            return out_grad * node.detach()

    gradient_check(CutSecond(), MATRIX)
    with pytest.raises(GradientError):
        second_order_check(CutSecond(), MATRIX)
    second_order_check(ops.Exp(), MATRIX)


def test_suspected_cause_of_shapes() -> None:
    assert "transposed" in suspected_cause(np.ones((2, 3)), np.ones((3, 2)))
    assert "not summed" in suspected_cause(np.ones((2, 3)), np.ones((1, 3)))
    assert "shape" in suspected_cause(np.ones(4), np.ones((2, 3)))
