"""What `backward` computes and what it leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, autograd, execution, ops
from needle.autograd import find_topo_sort
from needle.errors import GraphError, ShapeError


def tensor(*numbers: float, **options: object) -> Tensor:
    return Tensor(np.array(numbers), dtype="float64", **options)


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Reference counting alone must do."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ---- values ----------------------------------------------------------------------------------------------------------


def test_gradient_sums_over_uses_and_paths() -> None:
    x, y = tensor(3.0), tensor(5.0)
    (x * x + x * y + x).backward()
    assert (float(x.grad), float(y.grad)) == (12, 3)


def test_out_grad_weighs_entries() -> None:
    x = tensor(1, 2)
    (x * x).backward(tensor(10, 100))
    np.testing.assert_array_equal(x.grad.numpy(), [20, 400])
    (x * x).backward(gradient=np.array([1, 0]), retain_graph=True)
    np.testing.assert_array_equal(x.grad.numpy(), [2, 0])


def test_out_grad_of_another_shape_raises() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        (tensor(1, 2) * 2).backward(tensor(1, 2, 3))


def test_backward_of_a_constant_raises() -> None:
    with pytest.raises(GraphError, match="requires a gradient"):
        tensor(1.0, requires_grad=False).backward()


def test_backward_overwrites_U035() -> None:
    x = tensor(3.0)
    y = x * x
    y.backward()
    y.backward()
    assert float(x.grad) == 6  # neither 12 nor 18
    (x * 5).backward()
    assert float(x.grad) == 5


def test_shared_parameter_gets_one_sum_U085() -> None:
    w = tensor(2.0)
    (w * (w * 1)).backward()
    assert float(w.grad) == 4


def test_sum_of_contributions_has_one_add_and_keeps_dtype_U063() -> None:
    x = Tensor([2.0], dtype="float32")
    grad = ndl.grad(lambda x: (x * 3 + x * x).sum())(x)
    names = [type(node.op).__name__ for node in find_topo_sort([grad]) if node.op is not None]
    # 3 g for the scalar product, x g for each factor of the square: three contributions, two sums
    assert names.count("EWiseAdd") == 2
    assert "AddScalar" not in names
    assert str(grad.dtype) == "float32"


def test_gradient_has_the_float_type_of_its_leaf_U066() -> None:
    single, double = Tensor([1.0, 2.0], dtype="float32"), tensor(3, 4)
    (single * double).sum().backward()
    assert (str(single.grad.dtype), str(double.grad.dtype)) == ("float32", "float64")


def test_long_chain_U033() -> None:
    x = tensor(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.sum().backward()
    assert float(x.grad) == 1
    assert float(y) == 20_001
    del y  # must not overflow the C stack


def test_long_chain_of_gradients_is_freed_too_U033() -> None:
    x = tensor(1.0)
    y = x
    for _ in range(5_000):
        y = y * 1.0001
    out = y * y
    out.backward()
    x.grad.backward()  # walks the recorded graph of the gradient, some 20,000 nodes
    assert np.isfinite(float(x.grad))
    del y, out


def test_sixty_doublings_walk_each_node_once() -> None:
    x = tensor(1.0)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert float(x.grad) == 2.0**60


def test_gradient_through_the_parts_of_a_tuple_takes_steps_in_proportion_to_their_number() -> None:
    def steps(parts: int) -> int:
        x, taken = Tensor(np.ones((parts, 2)), dtype="float64"), []
        y = sum(part * k for k, part in enumerate(ops.split(x, 0)))
        with ndl.execution_hook(lambda phase, op, inputs, call: (taken.append(op), call())[1]):
            y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy()[:, 0], np.arange(parts))
        return len(taken)

    assert steps(80) <= 2 * steps(40)


def test_parts_of_a_tuple_that_nobody_used_or_many_did() -> None:
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), dtype="float64")
    parts = ops.split(x, 0)
    loss = (parts[0] * parts[0] + parts[2] * parts[0] + parts[2]).sum()
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2 + 5, 4 + 6], [0, 0], [2, 3]])
    x.grad.sum().backward()  # d/dx of 2a + c, of nothing, of a + 1
    np.testing.assert_array_equal(x.grad.numpy(), [[3, 3], [0, 0], [1, 1]])


def test_part_of_the_graph_without_gradient_is_left_alone() -> None:
    x, constant = tensor(1.0), tensor(2.0, requires_grad=False)
    (x * constant).backward()
    assert constant.grad is None


# ---- what stays ------------------------------------------------------------------------------------------------------


def test_leaves_keep_a_gradient_and_other_nodes_do_not() -> None:
    x = tensor(2.0)
    y = x * x
    z = y * 3
    z.backward()
    assert float(x.grad) == 12
    assert y.grad is None
    assert z.grad is None


def alive_on_the_way(mode: str, retained: int | None = None) -> list[int]:
    """How many of five nodes in a row hold a gradient at each step of the walk back."""
    nodes = [tensor(1.0, 2.0)]
    for _ in range(5):
        nodes.append(ops.exp(nodes[-1] * 0.1))
    if retained is not None:
        nodes[retained].retain_grad()
    counts = []

    def watch(phase, op, inputs, call):
        counts.append(sum(node.grad is not None for node in nodes))
        return call()

    with ndl.kernels.use(mode), execution.execution_hook(watch):
        nodes[-1].backward()
    assert nodes[0].grad is not None
    return counts


@pytest.mark.skipif(ndl.core.BACKEND == "np", reason="np mode has no fast kernels")
def test_gradients_in_between_are_dropped_once_they_are_passed_on() -> None:
    assert max(alive_on_the_way("fast")) == 1
    assert max(alive_on_the_way("fast", retained=3)) == 2
    assert max(alive_on_the_way("course")) == 5  # a learner's walk may look at them again


def test_gradients_of_inner_nodes_are_there_for_who_asks_within_backward() -> None:
    x = tensor(1.0, 2.0)
    y = x * x
    z = y * y
    with execution.forgetting(True):
        grads = autograd.gradients_below(z, autograd.seed_for(z, None))
    np.testing.assert_array_equal(grads[y].numpy(), 2 * y.numpy())


def test_retain_grad_keeps_one_on_a_node_in_between() -> None:
    x = tensor(2.0)
    y = (x * x).retain_grad()
    (y * 3).backward()
    assert float(y.grad) == 3


def test_gradient_of_a_leaf_itself() -> None:
    x = tensor(2.0)
    x.backward()
    assert float(x.grad) == 1


def test_higher_derivatives_by_backward_on_the_gradient() -> None:
    x = tensor(2.0)
    y = x**4
    y.backward()
    assert float(x.grad) == 32
    x.grad.backward()
    assert float(x.grad) == 48  # 12 x²
    x.grad.backward()
    assert float(x.grad) == 48  # 24 x
    x.grad.backward()
    assert float(x.grad) == 24


def test_second_derivative_where_the_gradient_is_the_seed() -> None:
    x = tensor(2.0)
    y = x + 1
    y.backward()
    grad = x.grad
    (grad * x).backward()
    assert float(x.grad) == 1


def test_gradient_can_be_part_of_a_loss() -> None:
    w, b = tensor(1.0, 2.0), tensor(0.5)
    loss = ((w * w * w).sum() + w.sum() * b * b).sum()
    loss.backward()
    penalty = (w.grad * w.grad).sum() + (b.grad * b.grad).sum()
    penalty.backward()
    wv, bv = np.array([1.0, 2.0]), 0.5
    to_w, to_b = 3 * wv**2 + bv**2, 2 * bv * wv.sum()
    np.testing.assert_allclose(w.grad.numpy(), 2 * to_w * 6 * wv + 2 * to_b * 2 * bv)
    np.testing.assert_allclose(b.grad.numpy(), 2 * (to_w * 2 * bv).sum() + 2 * to_b * 2 * wv.sum())


def test_derivative_by_the_seed() -> None:
    x, seed = tensor(3.0), tensor(1.0)
    y = x * x
    y.backward(seed)
    x.grad.backward()  # d (2 x s) / ds = 2 x
    assert float(seed.grad) == 6
    assert float(x.grad) == 2


def test_gradient_whose_output_is_gone_says_so() -> None:
    x = tensor(2.0)
    (x * x).backward()
    grad = x.grad
    assert float(grad) == 4  # the value stays
    with pytest.raises(GraphError, match="keep its output"):
        (grad * grad).backward()


def test_gradient_of_a_gradient_outlives_the_first() -> None:
    x = tensor(2.0)
    y = x**3
    y.backward()
    x.grad.backward()  # the first x.grad dies here
    x.grad.backward()
    assert float(x.grad) == 6


def test_failed_backward_leaves_nothing_half_done() -> None:
    class Broken(ndl.ops.Exp):
        def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
            raise ZeroDivisionError

    x = tensor(2.0)
    y = Broken()(x)
    with pytest.raises(ZeroDivisionError):
        (y * x).backward()
    assert ndl.is_recording()
    assert x.grad is None
    assert y.grad is None
    (x * x).backward()
    assert float(x.grad) == 4


# ---- memory ----------------------------------------------------------------------------------------------------------


def step(x: Tensor, w: Tensor) -> None:
    loss = ((x @ w).relu() ** 2).sum()
    loss.backward()
    w.data = w.data - 0.01 * w.grad.data


def living_after(steps: int, run: object) -> list[int]:
    counts = []
    for _ in range(steps):
        run()
        counts.append(autograd.TENSOR_COUNTER)
    return counts


def test_steps_leave_no_tensors_behind(without_collector: None) -> None:
    x, w = Tensor(np.ones((4, 3)), dtype="float64"), Tensor(np.ones((3, 2)), dtype="float64")
    counts = living_after(100, lambda: step(x, w))
    assert counts[2] == counts[-1]


def test_higher_order_leaves_no_tensors_behind(without_collector: None) -> None:
    x = tensor(1.0, 2.0)

    def penalty() -> None:
        y = (x**3).sum()
        y.backward()
        total = (x.grad * x.grad).sum() + y
        total.backward()
        x.grad.backward()

    counts = living_after(50, penalty)
    assert counts[2] == counts[-1]


def test_transforms_leave_no_tensors_behind(without_collector: None) -> None:
    x = tensor(1.0, 2.0)

    def transform() -> None:
        ndl.grad(lambda x: (ndl.grad(lambda x: (x**3).sum())(x) ** 2).sum())(x)
        ndl.jvp(lambda x: x.exp(), [x], [x.detach()])
        ndl.hessian(lambda x: (x**3).sum())(x)

    counts = living_after(20, transform)
    assert counts[2] == counts[-1]


def test_writes_leave_no_tensors_behind(without_collector: None) -> None:
    x = tensor(1.0, 2.0)

    def write() -> None:
        y = x * 1
        y[0] = y[1] * 2
        y[1] = 3
        y.sum().backward()

    counts = living_after(50, write)
    assert counts[2] == counts[-1]


def test_kept_tensors_would_be_seen() -> None:
    kept: list[Tensor] = []
    x = tensor(1.0)
    counts = living_after(10, lambda: kept.append(x * 2))
    assert counts[-1] - counts[2] == 7
