"""What a graph is made of: nodes, their order, leaves, constants, tuples; and what a Tensor answers."""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, autograd
from needle.autograd import Value, find_topo_sort
from needle.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, ShapeError


def tensor(*numbers: float, **options: object) -> Tensor:
    return Tensor(np.array(numbers), dtype="float64", **options)


def operators(root: Value) -> list[str]:
    return [type(node.op).__name__ for node in find_topo_sort([root]) if node.op is not None]


# ---- nodes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda t, u: t + u, ["EWiseAdd"]),
        (lambda t, u: t * u, ["EWiseMul"]),
        (lambda t, u: t / u, ["EWiseDiv"]),
        (lambda t, u: t**u, ["EWisePow"]),
        (lambda t, u: t.reshape((1, 2)) @ u.reshape((2, 1)), ["Reshape", "Reshape", "MatMul"]),
        (lambda t, u: t - u, ["Negate", "EWiseAdd"]),
        (lambda t, u: t + 3, ["AddScalar"]),
        (lambda t, u: 3 + t, ["AddScalar"]),
        (lambda t, u: t - 3, ["AddScalar"]),
        (lambda t, u: t * 3, ["MulScalar"]),
        (lambda t, u: 3 * t, ["MulScalar"]),
        (lambda t, u: t / 3, ["DivScalar"]),
        (lambda t, u: t**3, ["PowerScalar"]),
        (lambda t, u: -t, ["Negate"]),
        (lambda t, u: t * np.float64(3), ["MulScalar"]),
        (lambda t, u: t / np.array([3.0]), ["DivScalar"]),
        (lambda t, u: t.reshape((2, 1)) + u, ["Reshape", "BroadcastTo", "BroadcastTo", "EWiseAdd"]),
    ],
)
def test_expression_makes_these_nodes(call: Callable[[Tensor, Tensor], Tensor], expected: list[str]) -> None:
    assert operators(call(tensor(1, 2), tensor(3, 4))) == expected


def test_topological_order_is_post_order_from_the_left() -> None:
    a, b = tensor(2.0), tensor(3.0)
    c = (b + a) * a - b
    assert [float(node) for node in find_topo_sort([c])] == [3, 2, 5, 10, -3, 7]


def test_topological_order_of_several_roots_visits_each_node_once() -> None:
    a = tensor(2.0)
    left, right = a * 10, a * 100
    assert [float(node) for node in find_topo_sort([right, left, right])] == [2, 200, 20]


def test_nodes_are_themselves_only() -> None:
    a, b = tensor(1.0), tensor(1.0)
    assert a == a
    assert a != b
    assert (a, b) == (a, b)
    assert (a, b) != (b, a)
    assert len({a, b, a}) == 2


def test_constants_build_no_graph() -> None:
    a, b = tensor(1.0, requires_grad=False), tensor(2.0, requires_grad=False)
    c = a + b
    assert c.is_leaf()
    assert not c.requires_grad
    assert (c * tensor(1.0)).requires_grad


def test_make_const_holds_data_by_reference() -> None:
    data = tensor(1, 2).cached_data
    assert Tensor.make_const(data).cached_data is data
    assert not Tensor.make_const(data).requires_grad
    assert Tensor.make_const(data, requires_grad=True).requires_grad


def test_counter_counts_the_living() -> None:
    before = autograd.TENSOR_COUNTER
    x = tensor(1.0)
    y = x * 2 + 1
    assert before + 3 == autograd.TENSOR_COUNTER
    del x, y
    assert before == autograd.TENSOR_COUNTER


def test_counter_counts_copies_and_what_could_not_be_made() -> None:
    x = tensor(1.0)
    gc.collect()
    before = autograd.TENSOR_COUNTER
    kept = copy.deepcopy(x)
    assert before + 1 == autograd.TENSOR_COUNTER
    del kept
    for wrong in (lambda: Tensor("a"), lambda: Tensor(None), lambda: x @ x):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    gc.collect()  # an exception and its frames refer to each other
    assert before == autograd.TENSOR_COUNTER


def test_tensors_that_outlive_the_program_make_no_noise() -> None:
    code = "import needle; x = needle.Tensor([1.0]); y = x * 2; x[0] = 3; needle.kept = [x, y, needle.Tensor]"
    path = str(Path(ndl.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_lazy_mode_computes_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autograd, "LAZY_MODE", True)
    x = tensor(1.0, 2.0)
    y = x
    for _ in range(5000):  # deeper than Python's recursion limit
        y = y + 1
    assert y.cached_data is None
    np.testing.assert_array_equal(y.numpy(), [5001, 5002])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_gradient_as_tuple_is_a_tuple_whatever_gradient_returns() -> None:
    a, b = tensor(2.0), tensor(3.0)
    out = a * b
    to_a, to_b = out.op.gradient_as_tuple(tensor(1.0), out)
    assert (float(to_a), float(to_b)) == (3, 2)
    single = -a
    assert isinstance(single.op.gradient_as_tuple(tensor(1.0), single), tuple)


def test_gradient_with_too_few_values_is_named() -> None:
    class Forgetful(ndl.ops.EWiseMul):
        def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
            return out_grad

    with pytest.raises(GraphError, match="forgetful: gradient returned 1 values for 2 inputs"):
        Forgetful()(tensor(1.0), tensor(2.0)).backward()


# ---- recording -------------------------------------------------------------------------------------------------------


def test_no_grad_and_enable_grad_nest() -> None:
    x = tensor(1.0)
    with ndl.no_grad():
        assert not (x * 2).requires_grad
        with ndl.enable_grad():
            assert (x * 2).requires_grad
        assert not ndl.is_recording()
    assert (x * 2).requires_grad


def test_no_grad_ends_with_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), ndl.no_grad():
        _ = 1 / 0
    assert ndl.is_recording()


def test_no_grad_decorates_functions_that_call_themselves() -> None:
    x = tensor(1.0)

    @ndl.no_grad()
    def countdown(n: int) -> bool:
        return (x * 2).requires_grad or (n > 0 and countdown(n - 1))

    assert not countdown(3)
    assert ndl.is_recording()


def test_no_grad_holds_in_its_own_thread_only() -> None:
    seen = []
    with ndl.no_grad():
        thread = threading.Thread(target=lambda: seen.append(ndl.is_recording()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_no_grad_decorates_a_function_that_two_threads_run_at_once() -> None:
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))

    @ndl.no_grad()
    def meet(mine: threading.Event, awaited: threading.Event) -> None:
        mine.set()
        assert awaited.wait(10)

    after: dict[str, bool] = {}

    def first() -> None:
        with ndl.no_grad():
            meet(first_is_in, second_is_in)
            after["first"] = ndl.is_recording()
        first_is_out.set()

    def second() -> None:
        assert first_is_in.wait(10)
        meet(second_is_in, first_is_out)
        after["second"] = ndl.is_recording()

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert after == {"first": False, "second": True}


# ---- tensors ---------------------------------------------------------------------------------------------------------


def test_tensor_of_a_tensor_shares_storage_of_an_array_does_not() -> None:
    x = tensor(1, 2)
    assert Tensor(x).cached_data is x.cached_data
    assert Tensor(x, dtype="float32").cached_data is not x.cached_data
    array = np.array([1.0, 2.0])
    y = Tensor(array)
    array[0] = 9
    np.testing.assert_array_equal(y.numpy(), [1, 2])


def test_tensor_requires_grad_by_default() -> None:
    assert Tensor([1.0]).requires_grad
    assert not Tensor([1.0], requires_grad=False).requires_grad


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([1j]), object()])
def test_tensor_of_what_is_no_number_raises(wrong: object) -> None:
    with pytest.raises((DTypeError, ArgumentTypeError)):
        Tensor(wrong)


def test_tensor_names_an_unknown_argument() -> None:
    with pytest.raises(TypeError, match="requires_gard"):
        Tensor([1.0], requires_gard=True)


def test_tensor_of_a_tuple_of_tensors_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="TensorTuple"):
        Tensor(ndl.make_tuple(tensor(1.0), tensor(2.0)))


def test_data_shares_storage_and_takes_another_shape_but_no_other_dtype() -> None:
    x = tensor(1, 2)
    assert x.data.cached_data is x.cached_data
    assert not x.data.requires_grad
    x.data = Tensor(np.ones((2, 1)), dtype="float64")
    assert x.shape == (2, 1)
    with pytest.raises(AssertionError, match="float64"):
        x.data = Tensor([1.0], dtype="float32")
    with pytest.raises(AssertionError):
        x.data = np.ones(2)


def test_numpy_gives_a_copy() -> None:
    x = tensor(1, 2)
    x.numpy()[0] = 9
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert x.sum().numpy().sum() == 3


def test_conveniences() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype="float64")
    assert (x.ndim, x.size, x.numel(), len(x)) == (2, 6, 6, 2)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    assert x.T.shape == (3, 2)
    assert (str(x.float().dtype), str(x.double().dtype)) == ("float32", "float64")
    assert x.double() is x
    assert x.to("cpu").device == ndl.cpu()
    assert str(x.to("float32").dtype) == "float32"
    np.testing.assert_array_equal(np.asarray(x), x.numpy())


def test_numpy_shares_the_memory_by_dlpack_and_copies_otherwise() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype="float64")
    for part in (x, x[:, ::2], x.T, x.sum(0), x[0:0]):
        np.testing.assert_array_equal(np.from_dlpack(part), part.numpy())
    assert np.from_dlpack(x.sum()).item() == 15
    shared, copied = np.from_dlpack(x), np.asarray(x)
    with ndl.no_grad():
        x[0, 0] = 7
    assert (shared[0, 0], copied[0, 0]) == (7, 0)
    with pytest.raises(ArgumentError, match=r"asarray: .*copy"):
        x.__array__(copy=False)


def test_one_element_is_a_number() -> None:
    x = tensor(2.5)
    assert (x.item(), float(x), int(x)) == (2.5, 2.5, 2)
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        tensor(1, 2).item()


def test_length_of_rank_0_is_refused() -> None:
    with pytest.raises(TypeError, match="no length"):
        len(Tensor(np.array(1.0)))


def test_truth() -> None:
    assert tensor(0.0)  # truthy, as code asks tensors for "was one given?"
    assert tensor()
    assert tensor(1.0) > 0
    assert not tensor(1.0) > 2
    with pytest.raises(ShapeError, match="truth"):
        bool(tensor(1, 2) > 0)


def test_python_control_flow_follows_values() -> None:
    def f(x: Tensor) -> Tensor:
        while x.sum() < 10:
            x = x * 2
        return x

    x = tensor(1, 2)
    f(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4, 4])


def test_attribute_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        tensor(1.0).frobnicate()
    assert "exp" in dir(tensor(1.0))


# ---- tuples ----------------------------------------------------------------------------------------------------------


def test_tensor_tuple() -> None:
    a, b = tensor(1, 2), tensor(3, 4)
    pair = ndl.make_tuple(a, b)
    assert isinstance(pair, ndl.TensorTuple)
    assert (len(pair), pair[0], pair[-1]) == (2, a, b)
    assert pair.tuple() == (a, b) == tuple(pair)
    np.testing.assert_array_equal((pair + ndl.make_tuple(b, b))[1].numpy(), [6, 8])
    assert not pair.detach()[0].requires_grad
    with pytest.raises(IndexError, match="index 2"):
        pair[2]
    with pytest.raises(ShapeError, match="one length"):
        pair + ndl.make_tuple(a)


def test_tuple_of_results_is_not_folded() -> None:
    x = tensor(1, 2)
    both = ndl.fused_add_scalars(x, 10, 20)
    (both[0] + 2 * both[1]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])
