"""What the design promises beyond the contract, in both backends: registry, backward, broadcasting, truth, modules."""

from __future__ import annotations

import gc

import needle as ndl
import numpy as np
import pytest
from needle import kernels, nn

from .tools import BACKEND, SCALAR, T, close, normal

# ---- what backward leaves --------------------------------------------------------------------------------------------


def test_backward_leaves_gradients_on_leaves_alone() -> None:
    x = T([1.0, 2.0])
    y = x * 3
    z = (y * y).sum()
    z.backward()
    assert x.grad is not None and y.grad is None and z.grad is None


def test_retain_grad_asks_for_one_elsewhere() -> None:
    x = T([1.0, 2.0])
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward()
    close(y.grad, [6.0, 12.0])


def test_graphs_go_by_reference_counting_alone() -> None:
    x = T(normal(3, 3))
    gc.collect()
    gc.disable()
    try:
        before = ndl.autograd.TENSOR_COUNTER
        for _ in range(5):
            y = ndl.tanh(x @ x).sum()
            y.backward()
            x.grad.backward()
        x.grad = None
        del y
        assert before == ndl.autograd.TENSOR_COUNTER
    finally:
        gc.enable()


def test_a_gradient_whose_output_is_gone_says_what_to_keep() -> None:
    x = T([2.0])
    (x * x).backward()
    close(x.grad, [4.0])
    with pytest.raises(RuntimeError, match=r"keep.*output|needle\.grad"):
        x.grad.backward()


def test_backward_takes_retain_graph_and_gradient() -> None:
    x = T([2.0, 3.0])
    y = x * x
    y.backward(gradient=T([1.0, 10.0]), retain_graph=False)
    close(x.grad, [4.0, 60.0])
    y.backward(retain_graph=True)
    close(x.grad, [4.0, 6.0])


def test_long_graphs_need_no_recursion() -> None:
    y = x = T([1.0])
    for _ in range(20_000):
        y = y + 1
    y.backward()
    close(x.grad, [1.0])
    del y


def test_doublings_are_walked_once() -> None:
    y = x = T([1.0], "float64")
    for _ in range(60):
        y = y + y
    y.backward()
    close(x.grad, [2.0**60], 1e-12)


def test_no_grad_builds_no_graph() -> None:
    x = T([1.0])
    with ndl.no_grad():
        y = x * 2
    assert y.is_leaf() and not y.requires_grad


# ---- in-place changes ------------------------------------------------------------------------------------------------


def test_a_tensor_changed_after_use_makes_backward_raise() -> None:
    for change in (lambda t: t.__setitem__(0, 9.0), lambda t: setattr(t, "data", T([9.0, 9.0]))):
        x = T([1.0, 2.0])
        y = x * x
        change(x)
        with pytest.raises(RuntimeError, match=r"multiply.*changed in place"):
            y.backward()


def test_a_change_that_no_gradient_reads_is_harmless() -> None:
    x = T([1.0, 2.0])
    y = x + 1
    x.data = T([9.0, 9.0])
    y.backward()
    close(x.grad, [1.0, 1.0])


# ---- broadcasting and truth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left, right", [((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1,), (2, 2))], ids=str
)
def test_tensor_arithmetic_broadcasts_by_a_node(left, right) -> None:
    a, b = normal(*left), normal(*right)
    for f in (lambda p, q: p + q, lambda p, q: p * q, lambda p, q: p - q, lambda p, q: p / q):
        x, y = T(a), T(b)
        z = f(x, y)
        close(z, f(a, b), 1e-4)
        z.backward()
        assert x.grad.shape == left and y.grad.shape == right


def test_comparisons_are_constants_of_bool_and_have_a_truth() -> None:
    x, y = T([1.0, 5.0]), T([2.0, 2.0])
    for got, expected in (
        (x < y, [1, 0]),
        (x <= y, [1, 0]),
        (x > y, [0, 1]),
        (x >= 5, [0, 1]),
        (ndl.equal(x, 5), [0, 1]),
    ):
        assert got.dtype == "bool" and not got.requires_grad
        np.testing.assert_array_equal(got.numpy(), np.array(expected, dtype=bool))
    assert bool(T([1.0]) < 2) is True and bool(T([3.0]) < 2) is False
    with pytest.raises(ValueError):
        bool(x < y)
    assert (x == y) is False and (x != y) is True


def test_conversions_and_iteration() -> None:
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert float(x.sum()) == 10.0 and int(T([7.0])) == 7 and x.sum().item() == 10.0 and len(x) == 2
    assert [row.numpy().tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    close(x.T, [[1.0, 3.0], [2.0, 4.0]])
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        x.item()


def test_indexing_follows_numpy() -> None:
    a = normal(4, 5, 6)
    x = T(a)
    for index in (0, -1, (1, 2), (slice(1, 3), 0), (..., 2), (None, 1), [2, 0, 2], (slice(None, None, -2), [0, 1])):
        close(x[index], a[index])
    ids = T([[0, 2], [2, 2]], "int64", requires_grad=False)
    close(x[ids], a[[[0, 2], [2, 2]]])
    close(x[x > 0.5], a[a.astype("float32") > 0.5])


def test_a_number_or_an_array_on_the_left() -> None:
    x = T([1.0, 2.0])
    close(5 - x, [4.0, 3.0])
    close(1 / x, [1.0, 0.5])
    close(2**x, [2.0, 4.0])
    left = np.array([3.0, 4.0], dtype="float32")
    for got, expected in ((left + x, [4, 6]), (left - x, [2, 2]), (left * x, [3, 8]), (left / x, [3, 2])):
        assert isinstance(got, ndl.Tensor)
        close(got, expected)


# ---- types -----------------------------------------------------------------------------------------------------------


def test_tensor_and_from_numpy_choose_and_keep_types() -> None:
    assert [ndl.tensor(v).dtype for v in ([1.5], [1], [True])] == ["float32", "int64", "bool"]
    assert not ndl.tensor([1.0]).requires_grad
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool"):
        assert ndl.tensor(np.ones(2, dtype=dtype)).dtype == dtype
        assert ndl.from_numpy(np.ones(2, dtype=dtype)).dtype == dtype
        assert T([1, 0], dtype).dtype == dtype


def test_from_numpy_shares_memory() -> None:
    a = np.zeros(3, dtype="float32")
    x = ndl.from_numpy(a)
    a[1] = 7
    close(x, [0.0, 7.0, 0.0])


def test_astype_gives_its_gradient_back_in_the_old_type() -> None:
    x = T([1.0, 2.0])
    y = x.astype("float64") * 2
    y.sum().backward()
    assert y.dtype == "float64" and x.grad.dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_compute_in_their_own_type(dtype: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4, dtype=dtype), nn.BatchNorm1d(4, dtype=dtype), nn.ReLU(), nn.Dropout(0.5))
    x = T(normal(5, 3), dtype)
    y = model(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype and all(p.grad.dtype == dtype for p in model.parameters())


# ---- devices and registry --------------------------------------------------------------------------------------------


def test_device_strings_and_the_default() -> None:
    assert ndl.Tensor([1.0], device="cpu").device == ndl.cpu()
    assert ndl.init.zeros(2, device="cpu").device == ndl.cpu()
    with ndl.device("cpu") as chosen:
        assert chosen == ndl.cpu() == ndl.default_device()
    with pytest.raises(TypeError, match="abacus"):
        ndl.Tensor([1.0], device="abacus")


def test_an_absent_device_is_an_object_that_answers() -> None:
    device = ndl.cuda()
    assert str(device).endswith("cuda()") and device.enabled() in (True, False)
    if not device.enabled():
        with pytest.raises(TypeError, match="cuda"):
            ndl.Tensor([1.0], device=device)


def test_registry_names_its_mode_and_prints_both_tables() -> None:
    assert kernels.mode() in ("course", "fast")
    before = kernels.mode()
    for mode in ("course", "fast"):
        with kernels.use(mode):
            assert kernels.mode() == mode
    assert kernels.mode() == before
    with pytest.raises(ValueError, match="turbo"):
        kernels.use("turbo")
    assert kernels.table().startswith(f"mode: {before}")


def test_a_whole_operation_stands_in_and_may_decline() -> None:
    class Triple(ndl.TensorOp):
        def compute(self, a):
            return a + a + a

        def gradient(self, out_grad, node):
            return out_grad * 3

    calls = []

    def forward(op, a):
        calls.append("forward")
        return NotImplemented if a.shape == (1,) else a * 30

    def backward(op, out_grad, node):
        calls.append("backward")
        return out_grad * 30

    device = "cpu" if BACKEND == "nd" else "numpy"
    kernels.register_operation(Triple, device, "float32", forward=forward, backward=backward)
    with kernels.use("fast"):
        x = T([1.0, 2.0])
        y = Triple()(x)
        close(y, [30.0, 60.0])
        y.backward()
        close(x.grad, [30.0, 30.0])
        close(Triple()(T([2.0])), [6.0])
    assert calls == ["forward", "backward", "forward"]
    with kernels.use("course"):
        close(Triple()(T([1.0, 2.0])), [3.0, 6.0])
    assert len(calls) == 3


def test_a_module_entry_may_stand_in_for_forward() -> None:
    class Twice(nn.Module):
        def forward(self, x):
            return x + x

    device = "cpu" if BACKEND == "nd" else "numpy"
    kernels.register_operation(Twice, device, "float32", forward=lambda module, x: x * 2)
    x = T([1.0, 2.0])
    with kernels.use("fast"):
        y = Twice()(x)
    assert type(y.op).__name__ == "MulScalar"
    with kernels.use("course"):
        assert type(Twice()(x).op).__name__ == "EWiseAdd"


# ---- transforms ------------------------------------------------------------------------------------------------------


def test_function_transforms_agree_with_analysis() -> None:
    a, b = normal(3), normal(3)

    def f(x):
        return (x * x * x).sum()

    close(ndl.grad(f)(T(a, "float64")), 3 * a**2)
    value, grad = ndl.value_and_grad(f)(T(a, "float64"))
    close(value, np.reshape((a**3).sum(), SCALAR))
    close(grad, 3 * a**2)
    out, pull = ndl.vjp(lambda x: x * x, T(a, "float64"))
    close(pull(T(b, "float64"))[0], 2 * a * b)
    out, moved = ndl.jvp(lambda x: x * x, [T(a, "float64")], [T(b, "float64")])
    close(out, a * a)
    close(moved, 2 * a * b)
    close(ndl.hvp(f, [T(a, "float64")], [T(b, "float64")])[0], 6 * a * b)
    close(ndl.hessian(f)(T(a, "float64")), np.diag(6 * a))
    close(ndl.grad(lambda x, y: (x * y).sum(), argnums=-1)(T(a, "float64"), T(b, "float64")), a)


def test_module_state_goes_out_and_in() -> None:
    m, other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    m(T(normal(4, 3)))
    other.load_state_dict(m.state_dict())
    close(other.running_mean, m.running_mean.numpy())
    with pytest.raises((KeyError, ValueError), match="weight"):
        other.load_state_dict({"bias": m.bias})
