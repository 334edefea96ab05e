"""Transforms of functions: against formulas, differences and dual numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, ops
from needle.errors import ArgumentError, ShapeError
from needle.testing import gradient_check


def tensor(*numbers: float, **options: object) -> Tensor:
    return Tensor(np.array(numbers), dtype="float64", **options)


# ---- grad ------------------------------------------------------------------------------------------------------------


def test_grad_is_a_function_of_the_same_arguments() -> None:
    slope = ndl.grad(lambda x, y: (x * x * y).sum())
    np.testing.assert_array_equal(slope(tensor(1, 2), tensor(3, 4)).numpy(), [6, 16])


def test_value_and_grad_by_several_arguments() -> None:
    value, (to_x, to_y) = ndl.value_and_grad(lambda x, y, z: (x * y).sum() + z, (0, 1))(tensor(2), tensor(5), 100)
    assert (float(value), float(to_x), float(to_y)) == (110, 5, 2)


def test_grads_of_grads() -> None:
    f: Callable = lambda x: (x**4).sum()
    for expected in (4 * 27, 12 * 9, 24 * 3, 24, 0):
        f_here = f
        f = lambda x, f=f_here: ndl.grad(f)(x).sum()
        assert float(f(tensor(3))) == expected


def test_grad_takes_numbers_and_arrays() -> None:
    assert float(ndl.grad(lambda x: x * x)(3.0)) == 6
    np.testing.assert_array_equal(ndl.grad(lambda x: (x * x).sum())(np.array([1.0, 2])).numpy(), [2, 4])


def test_grad_leaves_grad_alone_and_records_inside_no_grad() -> None:
    x = tensor(3)
    (x * 5).backward()
    with ndl.no_grad():
        assert float(ndl.grad(lambda x: x * x)(x)) == 6
    assert float(x.grad) == 5


def test_grad_sees_what_the_function_closes_over_as_constant() -> None:
    x, w = tensor(3), tensor(2)
    assert float(ndl.grad(lambda x: x * w)(x)) == 2
    assert w.grad is None


def test_gradient_of_a_loss_made_of_grad_reaches_the_closure() -> None:
    x, w = tensor(3), tensor(2)
    slope = ndl.grad(lambda x: (x * x * w).sum())(x)  # 2 x w
    (slope * slope).backward()
    assert (float(w.grad), float(x.grad)) == (2 * 12 * 6, 2 * 12 * 4)


def test_grad_of_a_function_that_ignores_its_argument_is_zero() -> None:
    np.testing.assert_array_equal(ndl.grad(lambda x: tensor(1.0))(tensor(1, 2)).numpy(), [0, 0])


def test_grad_refuses_more_than_one_number_and_missing_arguments() -> None:
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        ndl.grad(lambda x: x)(tensor(1, 2))
    with pytest.raises(ArgumentError, match="argnums 1"):
        ndl.grad(lambda x: x, 1)(tensor(1))
    with pytest.raises(TypeError, match="returned float"):
        ndl.grad(lambda x: 1.0)(tensor(1))


def test_grad_can_be_checked_by_differences() -> None:
    gradient_check(lambda x: ndl.grad(lambda x: (x.sin() * x.exp()).sum())(x), np.array([0.3, -1.2]))


# ---- vjp, jvp --------------------------------------------------------------------------------------------------------


def test_vjp_and_jvp_are_the_two_sides_of_one_matrix() -> None:
    random = np.random.RandomState(0)
    a, x = random.randn(3, 4), random.randn(4)

    def f(x: Tensor) -> Tensor:
        return (Tensor(a, dtype="float64", requires_grad=False) @ x.reshape((4, 1))).reshape((3,)).tanh()

    jacobian = (1 - np.tanh(a @ x) ** 2)[:, None] * a
    v, t = random.randn(3), random.randn(4)
    out, pull_back = ndl.vjp(f, tensor(*x))
    np.testing.assert_allclose(out.numpy(), np.tanh(a @ x))
    np.testing.assert_allclose(pull_back(tensor(*v))[0].numpy(), v @ jacobian)
    np.testing.assert_allclose(pull_back(tensor(*(2 * v)))[0].numpy(), 2 * v @ jacobian)
    np.testing.assert_allclose(ndl.jvp(f, [tensor(*x)], [tensor(*t)])[1].numpy(), jacobian @ t)


def test_jvp_refuses_tangents_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        ndl.jvp(lambda x: x * x, [tensor(1, 2)], [tensor(1, 2, 3)])
    with pytest.raises(ArgumentError):
        ndl.jvp(lambda x: x, [tensor(1)], [])


def test_jvp_of_a_constant_function_is_zero() -> None:
    out, tangent = ndl.jvp(lambda x: tensor(1, 2, requires_grad=False), [tensor(1)], [tensor(1)])
    np.testing.assert_array_equal(tangent.numpy(), [0, 0])
    assert out.shape == (2,)


@dataclass
class Dual:
    """value + slope ε with ε² = 0: arithmetic on it differentiates forward."""

    value: np.ndarray
    slope: np.ndarray

    def __add__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = _dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + _dual(other) * -1

    def __truediv__(self, other: Any) -> Dual:
        other = _dual(other)
        return self * Dual(1 / other.value, -other.slope / other.value**2)

    def __pow__(self, n: float) -> Dual:
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope)

    def __matmul__(self, other: Dual) -> Dual:
        return Dual(self.value @ other.value, self.slope @ other.value + self.value @ other.slope)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Dual:
        return _dual(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return _dual(other) / self

    def __rpow__(self, base: float) -> Dual:
        return (self * math.log(base)).exp()

    def exp(self) -> Dual:
        return Dual(np.exp(self.value), np.exp(self.value) * self.slope)

    def log(self) -> Dual:
        return Dual(np.log(self.value), self.slope / self.value)

    def sin(self) -> Dual:
        return Dual(np.sin(self.value), np.cos(self.value) * self.slope)

    def tanh(self) -> Dual:
        return Dual(np.tanh(self.value), (1 - np.tanh(self.value) ** 2) * self.slope)

    def sum(self, axes: Any = None) -> Dual:
        return Dual(self.value.sum(axes), self.slope.sum(axes))

    def reshape(self, shape: Any) -> Dual:
        return Dual(self.value.reshape(shape), self.slope.reshape(shape))

    def __getitem__(self, index: Any) -> Dual:
        return Dual(self.value[index], self.slope[index])


def _dual(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(np.asarray(value, dtype=float), np.zeros(np.shape(value)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * y + x / y - 3,
        lambda x, y: (x.exp() * y.sin()).sum(1),
        lambda x, y: 1 / (1 + (-1 * x).exp()) + 2**y,
        lambda x, y: (x @ y.reshape((3, 2))).tanh(),
        lambda x, y: (x**3 - 5 - y[:, ::-1]) * 0.5 + (2 - x),
        lambda x, y: ((x * x + 1).log() / y)[0, 1:],
        lambda x, y: y,
    ],
)
def test_jvp_agrees_with_dual_numbers(f: Callable) -> None:
    random = np.random.RandomState(0)
    primals = random.randn(2, 3), random.uniform(0.5, 2, (2, 3))
    tangents = random.randn(2, 3), random.randn(2, 3)
    expected = f(*(Dual(p, t) for p, t in zip(primals, tangents)))
    inputs = [Tensor(p, dtype="float64") for p in primals]
    out, tangent = ndl.jvp(f, inputs, [Tensor(t, dtype="float64") for t in tangents])
    np.testing.assert_allclose(out.numpy(), expected.value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(tangent.numpy(), expected.slope, rtol=1e-12, atol=1e-14)


# ---- second order ----------------------------------------------------------------------------------------------------


def test_hessian_and_hvp_of_a_quadratic() -> None:
    random = np.random.RandomState(0)
    a, x, v = random.randn(3, 3), random.randn(3), random.randn(3)

    def f(x: Tensor) -> Tensor:
        matrix = Tensor(a, dtype="float64", requires_grad=False)
        return (x.reshape((1, 3)) @ matrix @ x.reshape((3, 1))).sum()

    np.testing.assert_allclose(ndl.hessian(f)(tensor(*x)).numpy(), a + a.T)
    np.testing.assert_allclose(ndl.hvp(f, [tensor(*x)], [tensor(*v)])[0].numpy(), (a + a.T) @ v)


def test_hvp_by_two_arguments() -> None:
    x, y = tensor(2.0), tensor(3.0)
    to_x, to_y = ndl.hvp(lambda x, y: (x * x * y).sum(), [x, y], [tensor(1.0), tensor(10.0)])
    assert (float(to_x), float(to_y)) == (2 * 3 * 1 + 2 * 2 * 10, 2 * 2 * 1)


def test_jvp_and_hvp_of_one_argument_take_it_alone() -> None:
    x, v = tensor(1, 2), tensor(3, 5)
    value, moved = ndl.jvp(lambda x: x**3, x, v)
    np.testing.assert_array_equal(value.numpy(), [1, 8])
    np.testing.assert_array_equal(moved.numpy(), [9, 60])
    np.testing.assert_array_equal(ndl.hvp(lambda x: (x**3).sum(), x, v).numpy(), [18, 60])


def test_hessian_has_the_shape_of_its_argument_twice() -> None:
    x = Tensor(np.arange(1.0, 5).reshape(2, 2), dtype="float64")
    got = ndl.hessian(lambda x: (x**3).sum())(x)
    assert got.shape == (2, 2, 2, 2)
    np.testing.assert_allclose(got.numpy().reshape(4, 4), np.diag([6.0, 12, 18, 24]))


def test_hessian_of_a_linear_function_is_zero() -> None:
    np.testing.assert_array_equal(ndl.hessian(lambda x: (3 * x).sum())(tensor(1, 2)).numpy(), np.zeros((2, 2)))


def test_newton_step_reaches_the_minimum_of_a_quadratic() -> None:
    f: Callable = lambda x: ((x - np.array([1.0, 2.0])) ** 2 * np.array([1.0, 10.0])).sum()
    x = tensor(5, 5)
    step = np.linalg.solve(ndl.hessian(f)(x).numpy(), ndl.grad(f)(x).numpy())
    np.testing.assert_allclose(x.numpy() - step, [1, 2])


def test_transforms_keep_float32() -> None:
    x = Tensor([1.0, 2.0], dtype="float32")
    assert str(ndl.grad(lambda x: ops.square(x).sum())(x).dtype) == "float32"
    assert str(ndl.hessian(lambda x: ops.square(x).sum())(x).dtype) == "float32"
