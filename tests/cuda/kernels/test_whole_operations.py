"""What the registry puts in place of operators, modules and steps on a CUDA device gives what the plain path gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Op, Tensor, kernels, nn, ops, optim

from tests.op_cases import WHOLE, OpCase, assert_ways_agree, check_whole_operation

pytestmark = pytest.mark.usefixtures("emulator")

ENTRIES = [cls for cls, device, _ in kernels.operations() if device == "cuda_emu"]
ROWS = [case for cls in ENTRIES for case in WHOLE.get(cls, [])]


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers on the device."""
    return Tensor(np.random.RandomState(seed).randn(*shape), device=ndl.cuda_emu(), dtype="float32")


def assert_both_ways_agree(run: Callable[[], Any]) -> None:
    """Run once by the plain path, and once with what the registry has; the arrays that it returns agree."""
    results = []
    for mode in ("course", "fast"):
        with kernels.use(mode):
            results.append([t.numpy() for t in run()])
    assert_ways_agree(*results)


@pytest.mark.parametrize("case", ROWS, ids=[case.name for case in ROWS])
def test_an_operator_agrees_with_the_plain_path(case: OpCase) -> None:
    check_whole_operation(case, "cuda_emu", "float32")


def test_gpu_and_emulator_have_the_same_entries() -> None:
    on = {device: {cls for cls, d, _ in kernels.operations() if d == device} for device in ("cuda", "cuda_emu")}
    assert on["cuda"] == on["cuda_emu"]
    assert on["cuda"] >= {
        ops.Conv,
        ops.LogSumExp,
        ops.LogSoftmax,
        ops.Softmax,
        nn.SoftmaxLoss,
        nn.LayerNorm1d,
        optim.Adam,
    }


def test_every_operator_with_an_entry_is_tested() -> None:
    assert {cls for cls in ENTRIES if issubclass(cls, Op)} <= set(WHOLE)


def test_softmax_loss() -> None:
    labels = Tensor(np.arange(8) % 5, device=ndl.cuda_emu())

    def run() -> Any:
        logits = randn(8, 5)
        loss = nn.SoftmaxLoss()(logits, labels)
        loss.backward()
        return loss, logits.grad

    assert_both_ways_agree(run)


def test_the_gradient_of_a_gradient_of_softmax_loss() -> None:
    labels = Tensor(np.arange(8) % 5, device=ndl.cuda_emu())

    def run() -> Any:
        def steepness(x: Tensor) -> Tensor:
            return (ndl.grad(lambda z: nn.SoftmaxLoss()(z, labels))(x) ** 2).sum()

        return [ndl.grad(steepness)(randn(8, 5))]

    assert_both_ways_agree(run)


@pytest.mark.parametrize("mode", ["course", "fast"])
def test_a_label_that_is_no_class_is_an_argument_error(mode: str) -> None:
    with kernels.use(mode), pytest.raises(ndl.errors.ArgumentError, match="9"):
        nn.SoftmaxLoss()(randn(2, 5), Tensor(np.array([0, 9]), device=ndl.cuda_emu()))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda d: nn.LayerNorm1d(30, device=d), (9, 30)),
        (lambda d: nn.LayerNorm((5, 6), device=d), (3, 4, 5, 6)),
        (lambda d: nn.LayerNorm(6, device=d), (2, 1, 6)),
    ],
)
def test_layer_norm(make: Callable, shape: tuple[int, ...]) -> None:
    def run() -> Any:
        x, module = randn(*shape), make(ndl.cuda_emu())
        module.weight.data = randn(*module.weight.shape, seed=1)
        out = module(x)
        (out * randn(*shape, seed=2)).sum().backward()
        return out, x.grad, module.weight.grad, module.bias.grad

    assert_both_ways_agree(run)


def test_inputs_of_conv_that_require_no_gradient_get_none() -> None:
    images, kernel = randn(1, 5, 5, 2), randn(3, 3, 2, 4)
    images.requires_grad = False
    ops.conv(images, kernel, padding=1).sum().backward()
    assert images.grad is None
    assert kernel.grad.shape == kernel.shape


STEPS = {
    "sgd": lambda p: optim.SGD(p, 0.1),
    "sgd with everything": lambda p: optim.SGD(p, 0.1, 0.9, 0.01, nesterov=True, unbiased=True),
    "adam": lambda p: optim.Adam(p, 0.01, weight_decay=0.01),
    "adamw": lambda p: optim.AdamW(p, 0.01),
}


@pytest.mark.parametrize("make", STEPS.values(), ids=STEPS)
def test_steps(make: Callable) -> None:
    """Four of them, of which one finds no gradient; what an optimizer remembers agrees, too."""

    def run() -> Any:
        params = [nn.Parameter(randn(7, 3)), nn.Parameter(randn(5, seed=1))]
        optimizer = make(params)
        for step in range(4):
            optimizer.reset_grad()
            sum((p * p * p).sum() for p in params[: 1 if step == 2 else 2]).backward()
            optimizer.step()
        assert optimizer.t == 4
        kept = [t for state in vars(optimizer).values() if isinstance(state, dict) for t in state.values()]
        return *params, *kept

    assert_both_ways_agree(run)


def test_a_step_leaves_what_others_hold_of_a_parameter() -> None:
    p = nn.Parameter(randn(4))
    before, kept = p.numpy().copy(), p.detach()
    (p * p).sum().backward()
    optim.SGD([p], 0.1).step()
    np.testing.assert_array_equal(kept.numpy(), before)
    assert np.abs(p.numpy() - before).min() > 0


def test_memory_of_a_device_is_told_by_its_name() -> None:
    ndl.empty_cache("cuda_emu")
    ndl.reset_peak_memory(ndl.cuda_emu())
    before = ndl.memory_stats("cuda_emu")
    kept = Tensor(np.zeros(1 << 17), device=ndl.cuda_emu(), dtype="float64")
    stats = ndl.memory_stats("cuda_emu")
    assert stats["live"] - before["live"] == kept.size * 8
    assert stats["peak"] >= stats["live"]
    assert stats["system_allocations"] > before["system_allocations"]
