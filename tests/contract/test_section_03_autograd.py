"""Section 3: operators, values, tensors, differentiation."""

from __future__ import annotations

import gc

import needle as ndl
import numpy as np
import pytest
from needle.autograd import find_topo_sort

from .tools import SCALAR, T, close, normal


def new_nodes(result: ndl.Tensor, *known: ndl.Tensor) -> list[str]:
    """The operators above the known tensors, in topological order; leaves count as 'leaf'."""
    order = [node for node in find_topo_sort([result]) if not any(node is k for k in known)]
    return [type(node.op).__name__ if node.op is not None else "leaf" for node in order]


# ---- 3.1 module state ------------------------------------------------------------------------------------------------


def test_tensors_run_at_once() -> None:
    assert ndl.autograd.LAZY_MODE is False
    assert (T([1.0]) + 1).cached_data is not None


def test_tensor_counter_goes_up_at_birth_and_down_at_death() -> None:
    gc.collect()
    before = ndl.autograd.TENSOR_COUNTER
    x = T([1.0, 2.0])
    y = x + x
    assert before + 2 == ndl.autograd.TENSOR_COUNTER
    del x, y
    assert before == ndl.autograd.TENSOR_COUNTER


# ---- 3.2 operators ---------------------------------------------------------------------------------------------------


class Twice(ndl.TensorOp):
    """An operator as a student writes it."""

    returns = staticmethod(lambda grad: grad)

    def compute(self, a):
        assert not isinstance(a, ndl.Tensor)
        return a + a

    def gradient(self, out_grad, node):
        assert isinstance(out_grad, ndl.Tensor) and isinstance(node, ndl.Tensor)
        return self.returns(out_grad * 2)


@pytest.mark.parametrize("kind", [lambda g: g, lambda g: (g,), lambda g: [g]], ids=["value", "tuple", "list"])
def test_gradient_may_return_a_value_a_tuple_or_a_list(kind, monkeypatch) -> None:
    monkeypatch.setattr(Twice, "returns", staticmethod(kind))
    x = T([1.0, 2.0])
    y = Twice()(x)
    assert isinstance(y, ndl.Tensor)
    grads = y.op.gradient_as_tuple(T([1.0, 3.0]), y)
    assert isinstance(grads, tuple) and len(grads) == 1
    close(grads[0], [2.0, 6.0])


def test_compute_of_an_operator_gets_raw_arrays() -> None:
    close(Twice()(T([1.0, 2.0])), [2.0, 4.0])


def test_tuple_operator_yields_a_tuple_and_its_compute_meets_python_tuples() -> None:
    class Halves(ndl.TensorTupleOp):
        def compute(self, a):
            return a / 2, a / 2

        def gradient(self, out_grad, node):
            return (out_grad[0] + out_grad[1]) / 2

    class Join(ndl.TensorOp):
        def compute(self, pair):
            assert isinstance(pair, tuple)
            return pair[0] + pair[1]

        def gradient(self, out_grad, node):
            return ndl.make_tuple(out_grad, out_grad)

    x = T([1.0, 3.0])
    halves = Halves()(x)
    assert isinstance(halves, ndl.TensorTuple)
    y = Join()(halves)
    close(y, [1.0, 3.0])
    y.backward()
    close(x.grad, [1.0, 1.0])


# ---- 3.3 values ------------------------------------------------------------------------------------------------------


def test_leaf_fields() -> None:
    x = T([1.0])
    assert x.op is None and list(x.inputs) == [] and x.requires_grad and x.is_leaf()
    assert x.cached_data is not None


def test_node_fields() -> None:
    x, y = T([1.0]), T([2.0])
    z = x * y
    assert isinstance(z.op, ndl.EWiseMul) and not z.is_leaf()
    assert z.inputs[0] is x and z.inputs[1] is y


def test_make_const_holds_by_reference() -> None:
    data = T([1.0, 2.0]).cached_data
    const = ndl.Tensor.make_const(data)
    assert const.cached_data is data and const.is_leaf() and not const.requires_grad
    assert ndl.Tensor.make_const(data, requires_grad=True).requires_grad


def test_make_from_op_needs_one_input_that_requires_a_gradient() -> None:
    x, c = T([1.0]), T([2.0], requires_grad=False)
    assert (x + c).requires_grad and (c + x).op is not None
    plain = c + c
    assert plain.op is None and not plain.requires_grad and len(plain.inputs) == 0
    close(plain, [4.0])


def test_realize_cached_data_is_the_array() -> None:
    x = T([1.0])
    assert x.realize_cached_data() is x.cached_data


def test_values_compare_and_hash_by_identity() -> None:
    x, y = T([1.0]), T([1.0])
    assert x == x and x != y and len({x, y, x}) == 2
    assert (x, y) != (y, x)
    assert ((x, y) != (x, y)) is False


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0], []])
def test_a_tensor_is_always_true(values: list) -> None:
    assert T(values)


# ---- 3.4 tensors -----------------------------------------------------------------------------------------------------


def test_tensor_takes_tensors_arrays_lists_and_numbers() -> None:
    for source in (T([1.0, 2.0]), np.array([1.0, 2.0]), [1.0, 2.0], (1.0, 2.0), [1, 2], np.array([1, 2])):
        close(ndl.Tensor(source), [1.0, 2.0])
    for source in (3, 3.0, np.float64(3.0), np.float32(3.0)):
        assert float(np.asarray(ndl.Tensor(source).numpy()).reshape(-1)[0]) == 3.0


def test_tensor_of_a_tensor_shares_its_storage() -> None:
    x = T([1.0, 2.0])
    assert ndl.Tensor(x).cached_data is x.cached_data
    assert ndl.Tensor(x, device=x.device, dtype=x.dtype).cached_data is x.cached_data


def test_tensor_of_an_array_copies() -> None:
    source = np.array([1.0, 2.0], dtype="float32")
    x = ndl.Tensor(source)
    source[0] = 7
    close(x, [1.0, 2.0])


def test_requires_grad_is_on_for_tensor_and_off_for_init() -> None:
    assert ndl.Tensor([1.0]).requires_grad
    assert not ndl.Tensor([1.0], requires_grad=False).requires_grad
    for made in (ndl.init.rand(2), ndl.init.randn(2), ndl.init.ones(2), ndl.init.zeros(2), ndl.init.constant(2)):
        assert not made.requires_grad


@pytest.mark.parametrize("dtype", ["float32", np.float32])
def test_dtype_by_name_and_by_class(dtype: object) -> None:
    assert ndl.Tensor([1.0], dtype=dtype).dtype == "float32"


def test_data_is_detached_and_shares_storage() -> None:
    x = T([1.0])
    y = x * 2
    assert y.data.cached_data is y.cached_data and y.data.is_leaf() and not y.data.requires_grad


def test_data_assigned_takes_over_the_storage() -> None:
    x, new = T([1.0, 2.0]), T([3.0, 4.0])
    x.data = new
    assert x.cached_data is new.cached_data
    close(x, [3.0, 4.0])


def test_data_assigned_does_not_check_the_shape() -> None:
    bias = T([[1.0, 2.0]])
    bias.data = T([5.0, 6.0])
    assert bias.shape == (2,)


def test_data_refuses_what_is_no_tensor_of_its_dtype() -> None:
    x = T([1.0])
    for wrong in (np.array([1.0]), [1.0], T([1.0], "float64")):
        with pytest.raises(AssertionError) as caught:
            x.data = wrong
        assert str(caught.value)


def test_detach_cuts_off_and_shares() -> None:
    y = T([1.0]) * 2
    cut = y.detach()
    assert cut.is_leaf() and not cut.requires_grad and cut.cached_data is y.cached_data


def test_numpy_of_a_scalar_still_has_sum_and_shape() -> None:
    total = T([[1.0, 2.0]]).sum()
    assert total.shape == SCALAR
    assert total.numpy().sum() == 3.0 and total.numpy().shape == SCALAR


def test_repr_and_str() -> None:
    x = T([1.0, 2.0])
    assert repr(x).startswith("needle.Tensor(") and "2." in str(x)


def test_grad_is_none_before_backward() -> None:
    assert T([1.0]).grad is None


def test_operators_have_their_values() -> None:
    a, b = normal(3, 4), np.abs(normal(3, 4)) + 0.5
    x, y = T(a), T(b)
    for got, expected in (
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (y**x, b**a),
        (x @ T(b.T), a @ b.T),
        (-x, -a),
        (x + 2, a + 2),
        (2 + x, a + 2),
        (x - 2, a - 2),
        (x * 2, a * 2),
        (2 * x, a * 2),
        (x / 2, a / 2),
        (x**2, a**2),
        (x.matmul(T(b.T)), a @ b.T),
        (x.sum(0), a.sum(0)),
        (x.sum((1,)), a.sum(1)),
        (x.reshape((4, 3)), a.reshape(4, 3)),
        (x.transpose(), a.T),
        (x.transpose((0, 1)), a.T),
        (x.reshape((1, 3, 4)).broadcast_to((2, 3, 4)), np.stack([a, a])),
    ):
        close(got, expected, 1e-4)


def test_a_binary_operator_on_tensors_makes_one_node() -> None:
    a, b = T(np.ones((2, 2))), T(np.ones((2, 2)))
    for result, name in (
        (a + b, "EWiseAdd"),
        (a * b, "EWiseMul"),
        (a / b, "EWiseDiv"),
        (a @ b, "MatMul"),
        (a**b, "EWisePow"),
    ):
        assert new_nodes(result, a, b) == [name]


def test_a_number_beside_a_tensor_makes_one_node_and_no_constant() -> None:
    a = T([1.0, 2.0])
    for result, name in (
        (a + 3, "AddScalar"),
        (3 + a, "AddScalar"),
        (a * 3, "MulScalar"),
        (3 * a, "MulScalar"),
        (a / 3, "DivScalar"),
        (a**3, "PowerScalar"),
        (a - 3, "AddScalar"),
        (-a, "Negate"),
    ):
        assert new_nodes(result, a) == [name]
    assert (a - 3).op.scalar == -3


def test_a_difference_of_tensors_makes_two_nodes() -> None:
    a, b = T([1.0]), T([2.0])
    assert new_nodes(a - b, a, b) == ["Negate", "EWiseAdd"]
    assert (a - b).inputs[0] is a and (a - b).inputs[1].inputs[0] is b


# ---- 3.5 tuples ------------------------------------------------------------------------------------------------------


def test_tensor_tuple_members() -> None:
    x, y = T([1.0]), T([2.0])
    pair = ndl.make_tuple(x, y)
    assert isinstance(pair, ndl.TensorTuple) and len(pair) == 2
    assert isinstance(pair.tuple(), tuple)
    for parts in (pair.tuple(), tuple(pair), (pair[0], pair[1])):
        close(parts[0], [1.0])
        close(parts[1], [2.0])
    assert pair[0] is x  # an index into a tuple just made folds to what it was made of


def test_tensor_tuples_add_entry_by_entry() -> None:
    total = ndl.make_tuple(T([1.0]), T([2.0])) + ndl.make_tuple(T([10.0]), T([20.0]))
    assert isinstance(total, ndl.TensorTuple)
    close(total[0], [11.0])
    close(total[1], [22.0])


def test_tensor_tuple_detach() -> None:
    cut = ndl.split(T([[1.0], [2.0]]), axis=0).detach()
    assert isinstance(cut, ndl.TensorTuple) and cut.is_leaf() and not cut.requires_grad
    assert not cut[1].requires_grad
    close(cut[1], [2.0])


def test_tensor_tuple_iteration_ends() -> None:
    assert len(list(iter(ndl.split(T(np.ones((3, 2))), axis=0)))) == 3


# ---- 3.6 differentiation ---------------------------------------------------------------------------------------------


def test_topological_order_by_values() -> None:
    a, b = T([[2.0]]), T([[5.0]])
    c = a * 3  # 6
    d = c + b  # 11
    e = a / b  # 0.4
    f = d * e + c  # 4.4, 10.4
    order = [round(float(node.numpy()[0, 0]), 5) for node in find_topo_sort([f])]
    assert order == [2.0, 6.0, 5.0, 11.0, 0.4, 4.4, 10.4]


def test_topological_order_of_several_roots() -> None:
    a, b = T([1.0]), T([2.0])
    p, q = a + b, b * a
    order = find_topo_sort([q, p])
    assert [id(node) for node in order] == [id(n) for n in (b, a, q, p)]


def test_topological_order_has_every_node_once_after_its_inputs() -> None:
    y = x = T([1.0])
    for _ in range(10):
        y = y * x + y
    order = find_topo_sort([y])
    place = {id(node): i for i, node in enumerate(order)}
    assert len(place) == len(order) and order[-1] is y
    assert all(place[id(i)] < place[id(node)] for node in order for i in node.inputs)


def test_topological_order_of_thousands_of_nodes() -> None:
    y = T([1.0])
    for _ in range(6000):
        y = y + 1
    assert len(find_topo_sort([y])) == 6001


def test_backward_of_a_polynomial() -> None:
    x = T([2.0, -3.0])
    (x * x * x + 4 * x).backward()
    close(x.grad, [16.0, 31.0])


def test_backward_takes_an_upstream_gradient() -> None:
    x = T([2.0, 3.0])
    (x * x).backward(T([1.0, 10.0]))
    close(x.grad, [4.0, 60.0])


def test_the_default_seed_is_ones_of_shape_dtype_and_device() -> None:
    x = T(np.ones((2, 3)))
    (x * 2).backward()
    assert x.grad.shape == (2, 3) and x.grad.dtype == x.dtype and x.grad.device == x.device
    close(x.grad, np.full((2, 3), 2.0))


def test_grad_is_overwritten_never_added_to() -> None:
    x = T([3.0])
    y = x * x
    y.backward()
    y.backward()
    close(x.grad, [6.0])
    (x * 2).backward()
    close(x.grad, [2.0])


def test_a_value_used_several_times_gets_the_sum() -> None:
    x = T([3.0])
    (x * x + x * 5 + x).backward()
    close(x.grad, [12.0])


def test_second_and_third_derivatives_through_grad() -> None:
    x = T([2.0])
    y = x * x * x * x
    y.backward()
    first = x.grad
    close(first, [32.0])
    first.backward()
    second = x.grad
    close(second, [48.0])
    second.backward()
    close(x.grad, [48.0])


def test_second_derivative_of_two_variables() -> None:
    x1, x2 = T([3.0]), T([4.0])
    y = x1 * x1 * x2 + x2
    y.backward()
    g1, g2 = x1.grad, x2.grad
    close(g1, [24.0])
    close(g2, [10.0])
    g1.backward()
    close(x1.grad, [8.0])
    close(x2.grad, [6.0])


def test_backward_through_a_gradient_combined_with_other_things() -> None:
    x = T([2.0])
    y = x * x * x
    y.backward()
    penalty = x.grad * x.grad + x
    penalty.backward()
    close(x.grad, [2 * 12.0 * 12.0 + 1])


def test_sum_node_list_passes_one_node_on_and_folds_from_the_left() -> None:
    from needle.autograd import sum_node_list

    a, b, c = T([1.0]), T([2.0]), T([4.0])
    assert sum_node_list([a]) is a
    total = sum_node_list([a, b, c])
    close(total, [7.0])
    assert new_nodes(total, a, b, c) == ["EWiseAdd", "EWiseAdd"]
    assert total.inputs[1] is c


def test_compute_gradient_of_variables_sets_grad() -> None:
    x = T([1.0, 2.0])
    y = x * x
    ndl.autograd.compute_gradient_of_variables(y, T([1.0, 1.0]))
    close(x.grad, [2.0, 4.0])


def test_integer_leaves_work() -> None:
    x = ndl.Tensor(np.array([1, 2, 3]), dtype="int64")
    (x * x).sum().backward()
    close(x.grad, [2, 4, 6])


def test_a_leaf_that_requires_no_gradient_gets_none() -> None:
    x, c = T([1.0]), T([2.0], requires_grad=False)
    (x * c).backward()
    assert c.grad is None
    close(x.grad, [2.0])
