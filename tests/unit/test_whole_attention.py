"""Attention in one operator gives what the plain path gives; so does the gradient of an embedding in one pass."""

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
from needle.ops.ops_attention import Attention
from needle.testing import gradient_check

cpu_kernels: Any = native.load("kernels_cpu")
pytestmark = pytest.mark.skipif(cpu_kernels is None, reason="kernels_cpu is not built")

Array = np.ndarray
ISAS = cpu_kernels.available_isas() if cpu_kernels else []


@pytest.fixture(autouse=True)
def settings_put_back() -> Iterator[None]:
    isa, threads = cpu_kernels.isa(), cpu_kernels.num_threads()
    yield
    cpu_kernels.set_isa(isa)
    cpu_kernels.set_num_threads(threads)


def numbers(*shape: int) -> Array:
    return np.random.RandomState(sum(shape)).randn(*shape)


def tensor(array: Array, dtype: str = "float64") -> Tensor:
    return Tensor(array, device=ndl.cpu(), dtype=dtype)


def attended(q: Array, k: Array, v: Array, causal: bool, dtype: str, mode: str) -> list[Array]:
    """The result and the gradients; q comes as a strided view."""
    with kernels.use(mode):
        leaves = [tensor(q.swapaxes(1, 2), dtype), tensor(k, dtype), tensor(v, dtype)]
        out = Attention(causal)(ops.transpose(leaves[0], (1, 2)), *leaves[1:])
        (out * tensor(numbers(*out.shape), dtype)).sum().backward()
        return [out.numpy(), *(x.grad.numpy() for x in leaves)]


def assert_agree(wanted: list[Array], got: list[Array], dtype: str, terms: int) -> None:
    """Equal but for rounding: sums of so many terms, of products whose factors have such sums in them."""
    for a, b in zip(wanted, got, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=0, atol=8 * terms * np.finfo(dtype).eps * max(1, np.abs(a).max()))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 120), st.integers(1, 40)),
    more_keys=st.integers(-20, 20),
    causal=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
    isa=st.sampled_from(ISAS or ["baseline"]),
    threads=st.integers(1, 3),
)
def test_attention_agrees_with_the_plain_path(
    sizes: tuple[int, int, int, int], more_keys: int, causal: bool, dtype: str, isa: str, threads: int
) -> None:
    cpu_kernels.set_isa(isa)
    cpu_kernels.set_num_threads(threads)
    batch, heads, queries, depth = sizes
    keys = max(1, queries + more_keys)
    q, k, v = (numbers(batch, steps, heads, depth) for steps in (queries, keys, keys + 0))
    wanted = attended(q, k, v, causal, "float64", "course")
    got = attended(q, k, v, causal, dtype, "fast")
    assert_agree(wanted, got, dtype, terms=queries + keys + depth)


@pytest.mark.parametrize("causal", [False, True])
def test_threads_do_not_change_a_bit(causal: bool) -> None:
    q, k, v = (numbers(3, 200, 3, 16 + extra)[..., :16] for extra in range(3))
    results = []
    for threads in (1, 2, 3):
        cpu_kernels.set_num_threads(threads)
        results.append(attended(q, k, v, causal, "float32", "fast"))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mode", ["course", "fast"])
def test_gradients_of_any_order_are_those_of_differences(causal: bool, mode: str) -> None:
    inputs = [tensor(numbers(2, steps, 2, 3)) for steps in (3, 4, 4)]

    def slope(*inputs: Tensor) -> Tensor:
        grads = ndl.grad(lambda *args: ops.tanh(Attention(causal)(*args)).sum(), argnums=(0, 1, 2))(*inputs)
        return sum((ops.tanh(g).sum() for g in grads[1:]), ops.tanh(grads[0]).sum())

    with kernels.use(mode):
        gradient_check(lambda *args: ops.tanh(Attention(causal)(*args)), *inputs)
        gradient_check(slope, *inputs)


def test_large_logits_do_not_overflow_and_later_keys_do_not_matter() -> None:
    q, k, v = (numbers(1, 5, 1, 4) for _ in range(3))
    out = attended(1e4 * q, k, v, True, "float32", "fast")
    assert all(np.isfinite(x).all() for x in out)
    k[0, 3:] = np.nan
    out = Attention(True)(tensor(q), tensor(k), tensor(v)).numpy()
    assert np.isfinite(out[0, :3]).all()
    assert np.isnan(out[0, 3:]).all()


# ---- layers ----------------------------------------------------------------------------------------------------------


def layer_results(module: nn.Module, arrays: list[Array], mode: str, **kwargs: Any) -> list[Array]:
    with kernels.use(mode):
        inputs = [tensor(array) for array in arrays]
        out = module(*inputs, **kwargs)
        out = out[0] if isinstance(out, tuple) else out
        (out * out).sum().backward()
        return [out.numpy(), *(x.grad.numpy() for x in inputs), *(p.grad.numpy() for p in module.parameters())]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("inputs", [1, 3])
def test_attention_layer_agrees_with_the_plain_path(causal: bool, inputs: int) -> None:
    module = nn.AttentionLayer(6, 2, 5, causal=causal, dtype="float64", device=ndl.cpu())
    arrays = [numbers(2, steps, 6) for steps in (4, 5, 5)[:inputs]]
    results = [layer_results(module, arrays, mode) for mode in ("course", "fast")]
    assert_agree(*results, dtype="float64", terms=200)


def operators(out: Tensor) -> set[str]:
    return {type(node.op).__name__ for node in ndl.autograd.find_topo_sort([out]) if node.op is not None}


def test_one_operator_runs_only_where_nothing_is_dropped_padded_or_watched() -> None:
    x = tensor(numbers(2, 4, 6))

    def layer(**how: Any) -> nn.Module:
        return nn.AttentionLayer(6, 2, 5, dtype="float64", device=ndl.cpu(), **how)

    dropping, watched = layer(dropout=0.5), layer()
    watched.attn.register_forward_hook(lambda *_: None)
    padding = Tensor(np.zeros((2, 4)), device=ndl.cpu(), requires_grad=False)
    assert "Attention" in operators(layer()(x))
    assert "Attention" not in operators(dropping(x))
    assert "Attention" not in operators(watched(x))
    assert "Attention" not in operators(layer()(x, padding_mask=padding))
    dropping.eval()
    assert "Attention" in operators(dropping(x))


# ---- the gradient of an embedding ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 300), st.integers(0, 90)),
    axis=st.integers(0, 2),
    count=st.integers(0, 50),
    dtype=st.sampled_from(["float32", "float64"]),
    threads=st.integers(1, 3),
)
def test_the_gradient_of_a_gather_is_the_sum_at_every_place(
    shape: tuple[int, int, int], axis: int, count: int, dtype: str, threads: int
) -> None:
    cpu_kernels.set_num_threads(threads)
    random = np.random.RandomState(count)
    ids = random.randint(-shape[axis], max(shape[axis], 1), count) if shape[axis] else np.zeros(0, int)
    a = tensor(random.randint(-9, 9, shape), dtype)
    picked = ops.gather(a, ids, axis)
    weights = random.randint(-9, 9, picked.shape)
    (picked * tensor(weights, dtype)).sum().backward()
    wanted = np.zeros(shape)
    np.add.at(wanted, (slice(None),) * axis + (ids,), weights)  # whole numbers: sums are exact in any order
    np.testing.assert_array_equal(a.grad.numpy(), wanted)
