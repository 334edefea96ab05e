"""Steps of all parameters at once on the CPU: the kernels against NumPy, and what a step leaves to those who look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import needle as ndl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle import Tensor, backend_ndarray, kernels, nn, optim
from needle.backend_ndarray import kernels_cpu
from needle.errors import GraphError

from tests.unit.test_optim import OPTIMIZERS, give_gradient, numbers, parameter

Array = np.ndarray


every_optimizer = pytest.mark.parametrize("make", [row[0] for row in OPTIMIZERS.values()], ids=OPTIMIZERS)


@pytest.fixture(autouse=True)
def fast_kernels() -> Iterator[None]:
    threads, isa = kernels_cpu.num_threads(), kernels_cpu.isa()
    with kernels.use("fast"), ndl.device("cpu"):
        yield
    kernels_cpu.set_num_threads(threads)
    kernels_cpu.set_isa(isa)


def address(p: Tensor) -> int:
    return p.cached_data._handle.ptr()


# ---- the kernels -----------------------------------------------------------------------------------------------------


def sgd(p: Array, g: Array, u: Array) -> list[Array]:
    g = g + 0.01 * p
    u = 0.9 * u + (1 - 0.9) * g
    return [p - 0.1 * ((0.9 * u + (1 - 0.9) * g) / 0.7), u]


def adam(p: Array, g: Array, m: Array, v: Array) -> list[Array]:
    g = g + 0.01 * p
    m, v = 0.9 * m + (1 - 0.9) * g, 0.99 * v + (1 - 0.99) * g * g
    return [(1 - 0.02) * p - 0.1 * (m / 0.7) / (np.sqrt(v / 0.6) + 1e-8), m, v]


def rmsprop(p: Array, g: Array, u: Array, v: Array) -> list[Array]:
    g = g + 0.01 * p
    v = 0.99 * v + (1 - 0.99) * g * g
    u = 0.9 * u + g / (np.sqrt(v) + 1e-8)
    return [p - 0.1 * u, u, v]


KERNELS: dict[str, tuple[Callable, tuple]] = {
    "sgd_steps": (sgd, (0.1, 0.9, 0.01, 0.7, True)),
    "adam_steps": (adam, (0.1, 0.9, 0.99, 1e-8, 0.01, 0.02, 0.7, 0.6)),
    "rmsprop_steps": (rmsprop, (0.1, 0.99, 1e-8, 0.9, 0.01)),
}
SIZES = st.lists(st.sampled_from([0, 1, 3, 15, 16, 17, 33, 100, 1 << 15, (1 << 15) + 5]), min_size=1, max_size=4)


def run_kernel(name: str, rows: list[list[Array]], states: int, in_place: bool) -> list[list[Array]]:
    """The new arrays, from copies of the old ones."""
    old = [[kernels_cpu.wrap(a.copy()) for a in row] for row in rows]
    new = [old[0], *old[2:]]
    if not in_place:
        new = [[kernels_cpu.Buffer(a.size, str(a.dtype)) for a in rows[0]] for _ in range(1 + states)]
    getattr(kernels_cpu, name)(*old, *new, *KERNELS[name][1])
    return [[np.array(handle) for handle in row] for row in new]


@pytest.mark.parametrize("isa", kernels_cpu.available_isas())
@pytest.mark.parametrize("name", KERNELS)
@given(sizes=SIZES, dtype=st.sampled_from(["float32", "float64"]), seed=st.integers(0, 99), in_place=st.booleans())
def test_kernels_follow_the_formula_on_any_number_of_threads(
    name: str, isa: str, sizes: list[int], dtype: str, seed: int, in_place: bool
) -> None:
    formula, _ = KERNELS[name]
    states, rng = 1 if name == "sgd_steps" else 2, np.random.default_rng(seed)
    rows = [[rng.standard_normal(size).astype(dtype) for size in sizes] for _ in range(2 + states)]
    rows[-1] = [a * a for a in rows[-1]]  # a mean of squares
    kernels_cpu.set_isa(isa)
    results = []
    for threads in (1, 2, 3):
        kernels_cpu.set_num_threads(threads)
        results.append(run_kernel(name, rows, states, in_place))
    # some ten operations, each off by half an ulp of numbers that may be larger than what is left of them
    rounding = 16 * np.finfo(dtype).eps
    for i in range(len(sizes)):
        wanted = formula(*(row[i].astype("float64") for row in rows))
        for new, exact in zip(results[0], wanted, strict=True):
            scale = 1 + sum(np.abs(row[i]) for row in rows) + np.abs(exact)
            assert np.all(np.abs(new[i] - exact) <= rounding * scale * (1 + np.abs(exact)))
        assert all(np.array_equal(a[i], b[i]) for other in results[1:] for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("isa", kernels_cpu.available_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_of_squares(isa: str, dtype: str) -> None:
    kernels_cpu.set_isa(isa)
    arrays = [numbers(size, seed=size).astype(dtype) for size in (0, 1, 31, 33, 70_001)]
    sums = []
    for threads in (1, 2, 3):
        kernels_cpu.set_num_threads(threads)
        sums.append(kernels_cpu.sum_of_squares([kernels_cpu.wrap(a) for a in arrays]))
    exact = sum(float(np.sum(a.astype("longdouble") ** 2)) for a in arrays)
    # the sums of 70,000 doubles run in parts of a thousand: an ulp for each step of the longest chain
    assert abs(sums[0] - exact) <= 2000 * np.finfo("float64").eps * exact
    assert len(set(sums)) == 1


def test_the_norm_of_gradients_is_the_plain_paths() -> None:
    grads, norms = [numbers(5, 3), numbers(3, 5, seed=1).T, np.full((2, 2), 1e20)], []
    for mode in ("course", "fast"):
        params = [parameter(g, "float64") for g in grads]
        for p, grad in zip(params, grads, strict=True):
            p.grad = ndl.transpose(Tensor(grad.T.copy(), dtype="float64", requires_grad=False))
        with kernels.use(mode):
            norms.append(optim.clip_grad_norm_(params, 1.0))
        assert sum(float((p.grad.numpy() ** 2).sum()) for p in params) == pytest.approx(1)
    assert norms[0] == pytest.approx(norms[1], rel=1e-15)


def test_kernels_pass_nan_and_infinity_on() -> None:
    p, g = np.array([1, 2, 3, 4], "float32"), np.array([np.nan, np.inf, 0, 1], "float32")
    rows = [[p], [g], [np.zeros(4, "float32")], [np.zeros(4, "float32")]]
    new = run_kernel("adam_steps", rows, 2, False)[0][0]
    assert np.isnan(new[:2]).all() and np.isfinite(new[2:]).all()  # inf / √inf is not a number


def test_kernels_refuse_lists_that_do_not_fit() -> None:
    a, b = kernels_cpu.Buffer(3, "float32"), kernels_cpu.Buffer(4, "float32")
    numbers = KERNELS["sgd_steps"][1]
    with pytest.raises(ValueError, match="sgd_steps: grads are 2 arrays, wanted 1, one for each parameter"):
        kernels_cpu.sgd_steps([a], [a, a], [a], [a], [a], *numbers)
    with pytest.raises(ValueError, match="sgd_steps: grads has 4 elements, wanted 3"):
        kernels_cpu.sgd_steps([a], [b], [a], [a], [a], *numbers)
    with pytest.raises(TypeError, match="sgd_steps: None among params"):
        kernels_cpu.sgd_steps([None], [a], [a], [a], [a], *numbers)
    with pytest.raises(TypeError, match="int64"):
        kernels_cpu.sum_of_squares([kernels_cpu.Buffer(1, "int64")])


# ---- who sees what ---------------------------------------------------------------------------------------------------


def stepped(optimizer: optim.Optimizer, *params: Tensor) -> None:
    for seed, p in enumerate(params):
        give_gradient(p, numbers(*p.shape, seed=seed))
    optimizer.step()


@every_optimizer
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_nobody_else_sees_is_changed_in_place(make: Callable, dtype: str) -> None:
    p = parameter(numbers(5, 3), dtype)
    optimizer = make([p])
    stepped(optimizer, p)
    places = [address(p), *map(address, kept_by(optimizer))]
    stepped(optimizer, p)
    assert [address(p), *map(address, kept_by(optimizer))] == places


def kept_by(optimizer: optim.Optimizer) -> list[Tensor]:
    return [tensor for state in vars(optimizer).values() if isinstance(state, dict) for tensor in state.values()]


HOLDERS: dict[str, Callable[[Tensor], Any]] = {
    "detach": lambda t: t.detach(),
    "view": lambda t: Tensor.make_const(t.cached_data.permute((1, 0))),
    "array": lambda t: t.cached_data,
    "memory": lambda t: np.asarray(t.cached_data._handle),
    "graph": lambda t: ndl.transpose(t),
}


@every_optimizer
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_others_hold_stays_as_it_is(make: Callable, holder: str) -> None:
    p = parameter(numbers(4, 3), "float32")
    optimizer = make([p])
    stepped(optimizer, p)
    held = [HOLDERS[holder](t) for t in (p, *kept_by(optimizer))]
    before = [np.array(x if isinstance(x, np.ndarray) else x.numpy()) for x in held]
    value = p.numpy()
    stepped(optimizer, p)
    for x, values in zip(held, before, strict=True):
        np.testing.assert_array_equal(x if isinstance(x, np.ndarray) else x.numpy(), values)
    assert np.abs(p.numpy() - value).max() > 0


def test_a_remembered_tensor_that_a_user_holds_stays_as_it_is() -> None:
    p = parameter(numbers(4, 3), "float32")
    optimizer = optim.Adam([p])
    stepped(optimizer, p)
    held = optimizer.m[p]
    before = held.numpy()
    stepped(optimizer, p)
    np.testing.assert_array_equal(held.numpy(), before)
    assert optimizer.m[p] is not held


def test_memory_of_numpy_is_not_changed() -> None:
    memory = np.ones(6, "float32")
    array = backend_ndarray.NDArray.make((6,), device=ndl.cpu(), handle=ndl.cpu().wrap(memory))
    p = nn.Parameter(Tensor.make_const(array))
    del array
    stepped(optim.SGD([p], 0.1), p)
    assert (memory == 1).all() and not (p.numpy() == 1).any()


def test_a_graph_notices_that_a_parameter_changed_in_place() -> None:
    p = parameter(numbers(3), "float32")
    loss = (p * p).sum()
    loss.backward()
    optim.SGD([p], 0.1).step()
    with pytest.raises(GraphError, match="changed in place"):
        loss.backward()


def test_parameters_that_share_memory_both_step() -> None:
    values = numbers(4)
    p = parameter(values, "float32")
    q = nn.Parameter(p)
    assert q is not p and address(q) == address(p)
    stepped(optim.SGD([p, q], 0.5), p, q)
    for seed, each in enumerate((p, q)):
        np.testing.assert_allclose(each.numpy(), values - 0.5 * numbers(4, seed=seed), rtol=1e-6)


def test_views_and_nothing_are_parameters_and_gradients_too() -> None:
    values = numbers(3, 4)
    p, nothing = nn.Parameter(ndl.transpose(Tensor(values.T.copy())).detach()), parameter(np.zeros((0, 2)), "float32")
    p.grad = ndl.transpose(Tensor(numbers(4, 3, seed=1), requires_grad=False))
    give_gradient(nothing, np.zeros((0, 2)))
    optim.SGD([p, nothing], 0.5).step()
    np.testing.assert_allclose(p.numpy(), values - 0.5 * numbers(4, 3, seed=1).T, rtol=1e-6, atol=1e-7)


def test_parameters_of_two_dtypes_take_the_plain_path() -> None:
    p, q = parameter(numbers(3), "float32"), parameter(numbers(3), "float64")
    stepped(optim.SGD([p, q], 0.5), p, q)
    np.testing.assert_allclose(q.numpy(), numbers(3) - 0.5 * numbers(3, seed=1), rtol=1e-12)
