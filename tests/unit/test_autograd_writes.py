"""Tensors that change in place: what the graph makes of it, and when `backward` refuses."""

from __future__ import annotations

from collections.abc import Callable

import needle as ndl
import numpy as np
import pytest
from needle import Tensor
from needle.errors import GraphError
from needle.testing import gradient_check, second_order_check


def tensor(*numbers: float, **options: object) -> Tensor:
    return Tensor(np.array(numbers), dtype="float64", **options)


def grid(**options: object) -> Tensor:
    return Tensor(np.arange(6.0).reshape(2, 3), dtype="float64", **options)


# ---- x[index] = value ------------------------------------------------------------------------------------------------


def test_write_cuts_the_gradient_where_it_writes_U045() -> None:
    x = tensor(1, 2, 3)
    y = x * 1
    y[0] = 7
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [7, 2, 3])
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1, 1])
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3])


def test_gradient_flows_to_the_written_value() -> None:
    x, v = grid(), tensor(10, 20)
    y = x * 2
    y[:, 1] = v * v
    (y * y).sum().backward()
    np.testing.assert_array_equal(v.grad.numpy(), 4 * np.array([10.0, 20]) ** 3)
    np.testing.assert_array_equal(x.grad.numpy(), 8 * x.numpy() * [1, 0, 1])


def test_value_computed_from_the_tensor_itself() -> None:
    x = tensor(1, 2, 3)
    y = x * x
    y[0] = y[1] * y[2]
    y[1:] = y[:2]
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [36, 36, 4])  # x₁² x₂² twice, then x₁²
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2 * 2 * 2 * 9 + 4, 2 * 4 * 2 * 3])


def test_tensor_written_to_itself() -> None:
    x = tensor(1, 2, 3)
    y = x * x
    y[:] = y
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])


def test_augmented_assignment_to_a_part() -> None:
    x = tensor(1, 2, 3)
    y = x * 1
    y[1] += 10
    y[1:] *= 2
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [1, 24, 6])
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2, 2])


def test_rows_collected_in_a_buffer() -> None:
    x = tensor(1, 2)
    buffer = Tensor(np.zeros((3, 2)), dtype="float64", requires_grad=False)
    for i in range(3):
        buffer[i] = x * (i + 1)
    assert buffer.requires_grad
    buffer.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6, 6])


def test_chain_of_writes_agrees_with_differences() -> None:
    def f(x: Tensor, v: Tensor) -> Tensor:
        y = x * x
        y[0] = v * y[1]
        y[np.array([1, 1]), np.array([0, 2])] = y[0, :2] * 3
        y[y > 8] = v.sum()
        return y.exp()

    arrays = np.arange(6).reshape(2, 3) / 4, np.array([0.5, -0.3, 0.2])
    gradient_check(f, *arrays)
    second_order_check(f, *arrays, tol=1e-5)


def test_use_before_the_write_raises_on_backward() -> None:
    x = tensor(1, 2, 3)
    y = x * 1
    z = y.exp()
    y[0] = 7
    with pytest.raises(GraphError, match="exp was changed in place"):
        (z.sum() + y.sum()).backward()


def test_use_after_the_write_is_fine() -> None:
    x = tensor(1, 2)
    y = x * 1
    y[0] = 7
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 4])


def test_write_to_a_leaf_is_in_place() -> None:
    x = grid()
    data, before = x.cached_data, x.detach()
    x[0, 1:] = tensor(8, 9, requires_grad=False)
    x[1] = 5
    assert x.cached_data is data
    assert x.is_leaf()
    np.testing.assert_array_equal(before.numpy(), [[0, 8, 9], [5, 5, 5]])


def test_computed_value_for_a_leaf_that_requires_a_gradient_is_refused() -> None:
    x, v = tensor(1, 2), tensor(3)
    with pytest.raises(GraphError, match="detach"):
        x[0] = v.sum()
    with ndl.no_grad():
        x[0] = v.sum()
    np.testing.assert_array_equal(x.numpy(), [3, 2])


def test_write_to_a_computed_tensor_without_recording_keeps_its_graph() -> None:
    x = tensor(1, 2)
    y = x * 3
    with ndl.no_grad():
        y[0] = 7
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 3])


def test_write_to_a_stretched_constant_changes_one_entry_only() -> None:
    row = tensor(1, 2, requires_grad=False)
    wide = row.broadcast_to((2, 2))
    wide[0, 0] = 9
    np.testing.assert_array_equal(wide.numpy(), [[9, 2], [1, 2]])
    np.testing.assert_array_equal(row.numpy(), [1, 2])


def test_write_to_a_gradient() -> None:
    x = tensor(1, 2)
    (x * x).sum().backward()
    x.grad[0] = 0
    np.testing.assert_array_equal(x.grad.numpy(), [0, 4])


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, 9.0),
        ((1, 2), 9.0),
        ((slice(None), 0), np.array([8.0, 9.0])),
        ((slice(None, None, -1), slice(0, 2)), np.array([[1.0, 2], [3, 4]])),
        (np.array([1, 0]), np.array([[1.0, 2, 3], [4, 5, 6]])),
        ((np.array([0, 1]), np.array([2, 0])), np.array([8.0, 9.0])),
        (np.array([[True, False, True], [False, True, False]]), np.array([7.0, 8, 9])),
        ((0, ...), np.array([[1.0, 2, 3]])),
        ((slice(None), None, 1), np.array([[5.0], [6.0]])),
        (slice(0, 0), 9.0),
    ],
)
def test_write_follows_numpy(index: object, value: object) -> None:
    expected = np.arange(6.0).reshape(2, 3)
    expected[index] = value
    leaf, computed = grid(), grid() * 1
    leaf[index] = value
    computed[index] = value
    np.testing.assert_array_equal(leaf.numpy(), expected)
    np.testing.assert_array_equal(computed.numpy(), expected)


@pytest.mark.parametrize("x", [grid(), grid() * 1], ids=["leaf", "computed"])
def test_write_that_does_not_fit_raises_and_changes_nothing(x: Tensor) -> None:
    for index, value in [(0, np.zeros(2)), (5, 0.0), ((slice(None), 0), np.zeros((3, 2)))]:
        with pytest.raises((ValueError, IndexError)):
            x[index] = value
    np.testing.assert_array_equal(x.numpy(), np.arange(6).reshape(2, 3))


# ---- changes that backward must notice -------------------------------------------------------------------------------


def replace(x: Tensor) -> None:
    x.data = Tensor(np.full(x.shape, 5.0), dtype="float64")


def write(x: Tensor) -> None:
    x[0] = 5


def write_through_a_view(x: Tensor) -> None:
    x.detach().reshape((-1,))[0] = 5


changes = pytest.mark.parametrize("change", [replace, write, write_through_a_view])


@changes
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * x,
        lambda x: x.log(),
        lambda x: x.sin(),
        lambda x: x**2,
        lambda x: (x * 2).exp() * x,
        lambda x: x.max(),
    ],
)
def test_change_after_a_use_that_reads_raises(change: Callable, use: Callable) -> None:
    x = tensor(1, 2)
    y = use(x)
    change(x)
    with pytest.raises(GraphError, match="changed in place"):
        y.sum().backward()


def test_write_that_shows_in_a_view_raises_where_the_view_was_read() -> None:
    x = tensor(1, 2)
    y = x.reshape((1, 2)) @ x.reshape((2, 1))
    x[0] = 5
    with pytest.raises(GraphError, match="an input of matmul was changed in place"):
        y.backward()


@changes
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + x,
        lambda x: x * 3,
        lambda x: x.exp(),  # reads its result only
        lambda x: x.sum(),
        lambda x: x.reshape((2, 1)),
        lambda x: x.mean(),
        lambda x: x[:1],
    ],
)
def test_change_after_a_use_that_does_not_read_is_fine(change: Callable, use: Callable) -> None:
    x, same = tensor(1, 2), tensor(1, 2)
    y, expected = use(x), use(same)
    change(x)
    y.backward()
    expected.backward()
    np.testing.assert_array_equal(x.grad.numpy(), same.grad.numpy())


def test_change_of_a_result_that_the_gradient_reads_raises() -> None:
    x = tensor(1, 2)
    y = x.exp()
    y.data = tensor(0, 0)
    with pytest.raises(GraphError, match="result of exp"):
        y.sum().backward()


def test_change_before_the_use_is_fine() -> None:
    x = tensor(1, 2)
    for _ in range(3):
        y = (x * x).sum()
        y.backward()
        x.data = x.data - 0.5 * x.grad.data
    np.testing.assert_array_equal(x.numpy(), [0, 0])


def test_change_is_noticed_by_the_second_derivative_too() -> None:
    x = tensor(1, 2)
    y = (x**3).sum()
    y.backward()
    x.data = tensor(5, 5)
    with pytest.raises(GraphError, match="changed in place"):
        x.grad.backward()
