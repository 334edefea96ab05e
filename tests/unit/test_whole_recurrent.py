"""Recurrent layers in one operator give what the step-by-step path gives: values, gradients, gradients of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import needle as ndl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needle import Tensor, kernels, nn, ops
from needle.backend_ndarray import native
from needle.ops.ops_recurrent import GRULayer, LSTMLayer, RNNLayer
from needle.testing import gradient_check

cpu_kernels: Any = native.load("kernels_cpu")
pytestmark = pytest.mark.skipif(cpu_kernels is None, reason="kernels_cpu is not built")

Array = np.ndarray
KINDS = ("rnn-tanh", "rnn-relu", "lstm", "gru")
ISAS = cpu_kernels.available_isas() if cpu_kernels else []


@pytest.fixture(autouse=True)
def settings_put_back() -> Iterator[None]:
    isa, threads = cpu_kernels.isa(), cpu_kernels.num_threads()
    yield
    cpu_kernels.set_isa(isa)
    cpu_kernels.set_num_threads(threads)


def build(kind: str, size: int, H: int, layers: int = 1, bias: bool = True, dtype: str = "float64") -> nn.Module:
    """A layer with the same weights in every dtype."""
    name, _, nonlinearity = kind.partition("-")
    how: dict[str, Any] = {"nonlinearity": nonlinearity} if nonlinearity else {}
    module = getattr(nn, name.upper())(size, H, num_layers=layers, bias=bias, dtype=dtype, device=ndl.cpu(), **how)
    random = np.random.RandomState(size + H)
    for p in module.parameters():
        p.data = tensor(random.uniform(-1, 1, p.shape) / np.sqrt(H), dtype)
    return module


def tensor(array: Array, dtype: str = "float64") -> Tensor:
    return Tensor(array, device=ndl.cpu(), dtype=dtype)


def numbers(*shape: int) -> Array:
    return np.random.RandomState(sum(shape)).randn(*shape)


def run(module: nn.Module, X: Array, states: list[Array], dtype: str, mode: str) -> list[Array]:
    """Output, final states, and the gradients of all inputs and parameters."""
    with kernels.use(mode):
        x = tensor(X.T, dtype)
        h = [tensor(state, dtype) for state in states]
        out, final = module(x.T, None if not h else tuple(h) if len(h) == 2 else h[0])  # X comes as a strided view
        final = final if isinstance(final, tuple) else (final,)
        loss = (out * tensor(numbers(*out.shape), dtype)).sum()
        for weight, state in enumerate(final, 2):
            loss = loss + (state * state * weight).sum()
        loss.backward()
        leaves = [x, *h, *module.parameters()]
        return [out.numpy(), *(state.numpy() for state in final), *(leaf.grad.numpy() for leaf in leaves)]


def assert_agree(wanted: list[Array], got: list[Array], dtype: str, terms: int) -> None:
    """Equal but for rounding: sums of so many terms, each off by half a unit in the last place, the bends by two."""
    tolerance = 4 * terms * np.finfo(dtype).eps
    for a, b in zip(wanted, got, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=0, atol=tolerance * max(1, np.abs(a).max()))


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 7), st.integers(1, 35)),
    layers=st.integers(1, 3),
    bias=st.booleans(),
    given_state=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
    isa=st.sampled_from(ISAS or ["baseline"]),
    threads=st.integers(1, 3),
)
def test_layers_agree_with_the_plain_path(
    kind: str,
    sizes: tuple[int, int, int, int],
    layers: int,
    bias: bool,
    given_state: bool,
    dtype: str,
    isa: str,
    threads: int,
) -> None:
    cpu_kernels.set_isa(isa)
    cpu_kernels.set_num_threads(threads)
    T, B, size, H = sizes
    X = numbers(T, B, size)
    states = [numbers(layers, B, H)] * (2 if kind == "lstm" else 1) if given_state else []
    wanted = run(build(kind, size, H, layers, bias), X, states, "float64", "course")
    got = run(build(kind, size, H, layers, bias, dtype), X, states, dtype, "fast")
    assert_agree(wanted, got, dtype, terms=T * layers * (B + size + H))


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_a_bit(kind: str) -> None:
    X, results = numbers(8, 40, 16), []
    for threads in (1, 2, 3):
        cpu_kernels.set_num_threads(threads)
        results.append(run(build(kind, 16, 48, dtype="float32"), X, [], "float32", "fast"))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a[:], b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given_state", [False, True])
def test_cells_agree_with_the_plain_path(kind: str, given_state: bool) -> None:
    cell, x = getattr(build(kind, 5, 6), f"{kind[:4].rstrip('-')}_cells")[0], numbers(3, 5)
    state = [tensor(numbers(3, 6)) for _ in range(2 if kind == "lstm" else 1)] if given_state else []
    results = []
    for mode in ("course", "fast"):
        with kernels.use(mode):
            X = tensor(x)
            out = cell(X, None if not state else tuple(state) if kind == "lstm" else state[0])
            h, *c = out if kind == "lstm" else (out,)
            sum((part.sum() for part in c), (h * h).sum()).backward()
            leaves = [X, *state, *cell.parameters()]
            results.append([h.numpy(), *(leaf.grad.numpy() for leaf in leaves)])
    assert_agree(*results, dtype="float64", terms=20)


# ---- the operators ---------------------------------------------------------------------------------------------------

BLOCKS = {"rnn-tanh": 1, "rnn-relu": 1, "lstm": 4, "gru": 3}


def operator(kind: str) -> Any:
    return {"lstm": LSTMLayer, "gru": GRULayer}[kind]() if "-" not in kind else RNNLayer(kind[4:])


def inputs_of(kind: str, T: int = 3, B: int = 2, size: int = 3, H: int = 2) -> list[Tensor]:
    """x, the states, W_ih, W_hh, b_ih, b_hh."""
    width = BLOCKS[kind] * H
    states = [(B, H)] * (2 if kind == "lstm" else 1)
    return [tensor(numbers(*s)) for s in ((T, B, size), *states, (size, width), (H, width), (width,), (width,))]


def value(kind: str, *inputs: Tensor) -> Tensor:
    out = operator(kind)(*inputs)
    if kind == "lstm":
        return ops.tanh(out[0]).sum() + (out[1] * out[1]).sum()
    return ops.tanh(out).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["course", "fast"])
def test_gradients_are_those_of_differences(kind: str, mode: str) -> None:
    with kernels.use(mode):
        gradient_check(lambda *inputs: value(kind, *inputs), *inputs_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients_are_those_of_differences(kind: str) -> None:
    inputs = inputs_of(kind)

    def slope(*inputs: Tensor) -> Tensor:
        grads = ndl.grad(lambda *args: value(kind, *args), argnums=tuple(range(len(inputs))))(*inputs)
        return sum((ops.tanh(g).sum() for g in grads[1:]), ops.tanh(grads[0]).sum())

    gradient_check(slope, *inputs)


def test_a_gradient_for_the_last_memory_alone() -> None:
    inputs = inputs_of("lstm")
    results = []
    for mode in ("course", "fast"):
        with kernels.use(mode):
            operator("lstm")(*inputs)[1].sum().backward()
            results.append([x.grad.numpy() for x in inputs])
    assert_agree(*results, dtype="float64", terms=20)


def test_a_graph_is_walked_twice_with_one_result() -> None:
    inputs = inputs_of("lstm")
    loss = value("lstm", *inputs)
    loss.backward()
    first = [x.grad.numpy() for x in inputs]
    loss.backward()
    for a, x in zip(first, inputs, strict=True):
        np.testing.assert_array_equal(a, x.grad.numpy())


# ---- when it runs, and when not --------------------------------------------------------------------------------------


def made_of(out: Tensor) -> set[str]:
    return {type(node.op).__name__ for node in ndl.autograd.find_topo_sort([out]) if node.op is not None}


def test_a_layer_is_one_operator_in_mode_fast_and_steps_in_mode_course() -> None:
    module, X = build("gru", 3, 2), tensor(numbers(4, 2, 3))
    assert "GRULayer" in made_of(module(X)[0])
    with kernels.use("course"):
        assert "GRULayer" not in made_of(module(X)[0])


def test_cells_of_ones_own_and_watched_ones_run_step_by_step() -> None:
    X, seen = tensor(numbers(4, 2, 3)), []
    module = build("lstm", 3, 2)
    module.lstm_cells[0].register_forward_hook(lambda *_: seen.append(1))
    module(X)
    assert len(seen) == 4

    class OwnCell(nn.LSTMCell):
        pass

    module = build("lstm", 3, 2)
    module.lstm_cells[0].__class__ = OwnCell
    assert "LSTMLayer" not in made_of(module(X)[0])


def test_nothing_is_recorded_without_gradients() -> None:
    with ndl.no_grad():
        out, (h, c) = build("lstm", 3, 2)(tensor(numbers(4, 2, 3)))
    assert not any(t.requires_grad for t in (out, h, c))


@pytest.mark.parametrize("kind", KINDS)
def test_nan_in_one_text_stays_there(kind: str) -> None:
    X = numbers(3, 2, 4)
    X[1, 0, 2] = np.nan
    out = build(kind, 4, 5)(tensor(X))[0].numpy()
    assert np.isnan(out[1:, 0]).all()
    assert np.isfinite(out[:, 1]).all()
    assert np.isfinite(out[0]).all()


def test_what_does_not_fit_is_refused_as_by_the_plain_path() -> None:
    module = build("lstm", 3, 2)
    for X, h in (((4, 2, 5), None), ((2, 3), None), ((4, 2, 3), (1, 1, 2))):
        state = None if h is None else (tensor(numbers(*h)), tensor(numbers(*h)))
        with pytest.raises(ndl.errors.ShapeError, match="lstm"):
            module(tensor(numbers(*X)), state)
