"""Convolution and batch norm in one piece on the CPU: every layout, instruction set and number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import needle.nn as nn
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle import Tensor, grad, kernels, ops
from needle.ops.ops_convolution import Convolution

from tests.op_cases import convolution

native = pytest.importorskip("needle.backend_ndarray.kernels_cpu", reason="the native modules are not built")

ISAS = native.available_isas()
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    isa, threads = native.isa(), native.num_threads()
    yield
    native.set_isa(isa)
    native.set_num_threads(threads)


@st.composite
def problems(draw: Any) -> dict[str, Any]:
    """Images, kernel and settings of which a convolution can be made."""
    number = st.integers
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 5]))
    depth, filters = draw(st.sampled_from([1, 1, 2, 3, 17])), draw(st.sampled_from([1, 1, 3, 16, 33]))
    kh, kw, dilation, stride = draw(number(1, 4)), draw(number(1, 4)), draw(number(1, 3)), draw(number(1, 4))
    ph, pw = draw(number(0, 4)), draw(number(0, 4))
    least_h, least_w = (max(1, dilation * (k - 1) + 1 - 2 * p) for k, p in ((kh, ph), (kw, pw)))
    images = (draw(number(1, 3)), least_h + draw(number(0, 7)), least_w + draw(number(0, 7)), depth * groups)
    return {
        "images": images,
        "kernel": (kh, kw, depth, filters * groups),
        "how": (stride, (ph, pw), dilation, groups),
        "first": draw(st.booleans()),
        "compact": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "isa": draw(st.sampled_from(ISAS)),
        "threads": draw(number(1, 3)),
    }


def answers(problem: dict[str, Any], mode: str, dtype: str) -> list[np.ndarray]:
    """The result and all gradients."""
    rng = np.random.RandomState(0)
    layout = (0, 3, 1, 2) if problem["first"] else (0, 1, 2, 3)
    shape = [problem["images"][axis] for axis in layout]
    filters = problem["kernel"][3]
    arrays = [rng.randn(*shape), rng.randn(*problem["kernel"]), *([rng.randn(filters)] if problem["bias"] else [])]
    with kernels.use(mode):
        if problem["compact"]:
            x = images = Tensor(arrays[0], device="cpu", dtype=dtype)
        else:  # a permuted view
            x = Tensor(arrays[0].transpose(1, 3, 0, 2), device="cpu", dtype=dtype)
            images = ops.permute(x, (2, 0, 3, 1))
        parameters = [Tensor(a, device="cpu", dtype=dtype) for a in arrays[1:]]
        out = Convolution(*problem["how"], problem["first"])(images, *parameters)
        seed = Tensor(rng.randn(*out.shape), device="cpu", dtype=dtype)
        out.backward(seed)
    return [out.numpy(), *(t.grad.numpy() for t in (x, *parameters))]


def rounding(problem: dict[str, Any], dtype: str) -> float:
    """Of a sum of n products of normal numbers, none above 6: n · eps · n · 36 bounds it; sums are in blocks of 256."""
    (n, h, w, _), (kh, kw, depth, filters) = problem["images"], problem["kernel"]
    terms = max(kh * kw * max(depth, filters), n * (h + 8) * (w + 8))
    return 36 * EPS[dtype] * terms


@given(problems())
def test_convolution_gives_what_the_plain_path_gives(problem: dict[str, Any]) -> None:
    native.set_isa(problem["isa"])
    native.set_num_threads(problem["threads"])
    wanted, got = answers(problem, "course", "float64"), answers(problem, "fast", problem["dtype"])
    for a, b in zip(wanted, got):
        np.testing.assert_allclose(b, a, rtol=0, atol=rounding(problem, problem["dtype"]))


LARGE = {"images": (5, 31, 30, 34), "kernel": (3, 3, 34, 70), "how": (1, 1, 1, 1), "first": True, "bias": True}
LARGE |= {"compact": True, "dtype": "float32"}  # several pieces, panels, and blocks of depth


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "how, filters", [((1, 1, 1, 1), 70), ((2, 1, 1, 1), 70), ((1, 2, 2, 2), 70), ((1, 1, 1, 1), 64)]
)
def test_convolution_in_many_pieces_is_right_and_the_same_for_any_number_of_threads(
    isa: str, how: tuple, filters: int
) -> None:
    problem = {**LARGE, "how": how, "kernel": (3, 3, 34 // how[3], filters)}
    native.set_isa(isa)
    results = []
    for threads in (1, 2, 3):
        native.set_num_threads(threads)
        results.append(answers(problem, "fast", "float32"))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(answers(problem, "fast", "float64"), results[0]):
        np.testing.assert_allclose(b, a, rtol=0, atol=rounding(problem, "float32"))


@pytest.mark.parametrize("isa", ISAS)
def test_depthwise_convolution(isa: str) -> None:
    native.set_isa(isa)
    rng = np.random.RandomState(1)
    images, kernel = rng.randn(2, 6, 7, 37), rng.randn(3, 3, 1, 37)
    got = ops.conv2d(Tensor(images, device="cpu"), Tensor(kernel, device="cpu"), 2, 1, 1, 37)
    np.testing.assert_allclose(got.numpy(), convolution(images, kernel, 2, 1, 1, 37), rtol=0, atol=9 * 36 * 2.0**-23)


@pytest.mark.parametrize("relu", [False, True])
def test_the_kernel_adds_the_bias_and_cuts_at_zero_but_keeps_nan(relu: bool) -> None:
    images, kernel, bias = np.array([1.0, -3.0, np.nan, 2.0]), np.array([1.0, -1.0]), np.array([0.5, -0.5])
    handles = [native.wrap(a.astype("float32")) for a in (images, kernel, bias, np.empty(8))]
    view = (1, 2, 2, 1), (4, 2, 1, 1), 0
    native.convolution(*handles, *view, (1, 1, 1, 2), (1, 1), (0, 0), (1, 1), 1, relu)
    wanted = images[:, None] * kernel + bias
    wanted = np.where(wanted < 0, 0, wanted) if relu else wanted
    np.testing.assert_array_equal(np.asarray(handles[-1]).reshape(4, 2), wanted)


def test_gradients_of_a_broadcast_sum_and_of_a_frozen_kernel() -> None:
    x, k = Tensor(np.ones((1, 3, 3, 1)), device="cpu"), Tensor(np.ones((2, 2, 1, 1)), device="cpu", requires_grad=False)
    ops.conv(x, k, padding=0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy().reshape(3, 3), [[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    assert k.grad is None


@pytest.mark.parametrize("mode", ["course", "fast"])
def test_second_order_of_a_layer(mode: str) -> None:
    """Σ (∂/∂x Σ conv(x, w)²)² by its derivative, against central differences in float64."""
    rng = np.random.RandomState(2)
    layer = nn.Sequential(nn.Conv(2, 3, 3, 2, device="cpu", dtype="float64"), nn.BatchNorm2d(3, dtype="float64"))
    x = rng.randn(2, 2, 4, 4)

    def penalty(a: Tensor) -> Tensor:
        slope = grad(lambda t: (layer(t) ** 3).sum())(a)
        return (slope * slope).sum()

    with kernels.use(mode):
        got = grad(penalty)(Tensor(x, device="cpu", dtype="float64")).numpy()
        for place in [(0, 0, 0, 0), (1, 1, 2, 3)]:
            step = np.zeros_like(x)
            step[place] = 1e-5
            high, low = (float(penalty(Tensor(x + s, device="cpu", dtype="float64"))) for s in (step, -step))
            assert got[place] == pytest.approx((high - low) / 2e-5, rel=1e-6, abs=1e-6 * np.abs(got).max())


@given(
    shape=st.sampled_from(
        [(2, 3), (40, 17), (3000, 5), (1, 7), (3, 5, 2, 2), (2, 33, 7, 5), (70, 16, 9, 8), (4, 3, 1, 1)]
    ),
    dtype=st.sampled_from(["float32", "float64"]),
    last=st.booleans(),
    isa=st.sampled_from(ISAS),
    threads=st.integers(1, 3),
)
def test_batch_norm_gives_what_the_plain_path_gives(
    shape: tuple[int, ...], dtype: str, last: bool, isa: str, threads: int
) -> None:
    native.set_isa(isa)
    native.set_num_threads(threads)
    rng = np.random.RandomState(0)
    a, seed = rng.randn(*shape) + 3, rng.randn(*shape)
    results = []
    for mode, kind in (("course", "float64"), ("fast", dtype)):
        with kernels.use(mode):
            layer = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(shape[1], eps=0.1, device="cpu", dtype=kind)
            layer.weight.data = Tensor(np.linspace(0.5, 2, shape[1]), device="cpu", dtype=kind)
            x = Tensor(a, device="cpu", dtype=kind)
            if last and len(shape) == 4:
                x = Tensor(np.ascontiguousarray(a.transpose(0, 2, 3, 1)), device="cpu", dtype=kind)
            out = layer(ops.permute(x, (0, 3, 1, 2)) if last and len(shape) == 4 else x)
            out.backward(Tensor(seed, device="cpu", dtype=kind))
            statistics = layer.running_mean, layer.running_var
            results.append([t.numpy() for t in (out, x.grad, layer.weight.grad, layer.bias.grad, *statistics)])
    count = a.size // shape[1]
    for wanted, got in zip(*results):
        # sums of `count` numbers, none above 64; (a - mean) keeps 1 / eps = 10 of the rounding of a at most
        np.testing.assert_allclose(got, wanted, rtol=0, atol=64 * EPS[dtype] * min(count, 256) * 10)


def test_elementwise_results_stay_in_the_order_of_memory() -> None:
    """What a convolution leaves, N H W C seen as N C H W, is not copied into another order by what follows."""
    pixels = Tensor(np.arange(24.0).reshape(1, 2, 3, 4) - 9, device="cpu", requires_grad=False)
    images = ops.permute(pixels, (0, 3, 1, 2)).cached_data
    for result in (images + images, images * 2.0, images.maximum(0), images > 0):
        assert result.strides == images.strides
    wanted = pixels.numpy().transpose(0, 3, 1, 2)
    np.testing.assert_array_equal((images + images).numpy(), 2 * wanted)
    np.testing.assert_array_equal((images + wanted).numpy(), 2 * wanted)  # a NumPy array is in its own order
    np.testing.assert_array_equal((images > 0).numpy(), wanted > 0)
