"""Section 9: optimizers, against their formulas in NumPy."""

from __future__ import annotations

import math

import needle as ndl
import numpy as np
import pytest
from needle import nn, optim

from .tools import T, close, normal


def problem() -> tuple[list[nn.Parameter], list[list[np.ndarray]]]:
    """Two parameters, and the gradients of five steps for each."""
    params = [nn.Parameter(T(normal(3, 4))), nn.Parameter(T(normal(4)))]
    return params, [[normal(*p.shape) for p in params] for _ in range(5)]


def run(optimizer: optim.Optimizer, params, grads) -> None:
    for step in grads:
        for p, g in zip(params, step, strict=True):
            p.grad = T(g, requires_grad=False)
        optimizer.step()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_sgd(momentum: float, weight_decay: float) -> None:
    params, grads = problem()
    expected = [p.numpy().astype("float64") for p in params]
    u = [np.zeros_like(e) for e in expected]
    for step in grads:
        for i, g in enumerate(step):
            g = g + weight_decay * expected[i]
            u[i] = momentum * u[i] + (1 - momentum) * g
            expected[i] = expected[i] - 0.1 * u[i]
    run(optim.SGD(params, lr=0.1, momentum=momentum, weight_decay=weight_decay), params, grads)
    for p, e in zip(params, expected, strict=True):
        close(p, e)


@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_adam(weight_decay: float) -> None:
    params, grads = problem()
    expected = [p.numpy().astype("float64") for p in params]
    m, v = [[np.zeros_like(e) for e in expected] for _ in range(2)]
    for t, step in enumerate(grads, start=1):
        for i, g in enumerate(step):
            g = g + weight_decay * expected[i]
            m[i] = 0.8 * m[i] + 0.2 * g
            v[i] = 0.95 * v[i] + 0.05 * g**2
            top, bottom = m[i] / (1 - 0.8**t), v[i] / (1 - 0.95**t)
            expected[i] = expected[i] - 0.1 * top / (np.sqrt(bottom) + 1e-3)
    run(optim.Adam(params, 0.1, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=weight_decay), params, grads)
    for p, e in zip(params, expected, strict=True):
        close(p, e)


def test_defaults() -> None:
    p = nn.Parameter(T([1.0]))
    for optimizer, moved in ((optim.SGD([p]), 0.01 * 2), (optim.Adam([p]), 0.01)):
        before = float(p.numpy()[0])
        p.grad = T([2.0], requires_grad=False)
        optimizer.step()
        assert math.isclose(before - float(p.numpy()[0]), moved, rel_tol=1e-3)
    assert optim.SGD([p]).params == [p]


OPTIMIZERS = [
    lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01),
    lambda ps: optim.Adam(ps, lr=0.1, weight_decay=0.01),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_keeps_identity_shape_dtype_and_grad_of_a_parameter(make, dtype: str) -> None:
    p = nn.Parameter(T(normal(3, 4), dtype))
    optimizer = make([p])
    for _ in range(2):
        (p * p).sum().backward()
        before = p.grad.numpy()
        optimizer.step()
        np.testing.assert_array_equal(p.grad.numpy(), before)
        assert optimizer.params[0] is p and (p.shape, p.dtype, p.requires_grad) == ((3, 4), dtype, True)
        assert p.is_leaf()


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_reset_grad_and_parameters_without_a_gradient(make) -> None:
    p, untouched = nn.Parameter(T([1.0])), nn.Parameter(T([2.0]))
    optimizer = make([p, untouched])
    (p * 3).backward()
    optimizer.step()
    close(untouched, [2.0])
    optimizer.reset_grad()
    assert p.grad is None and untouched.grad is None
    value = p.numpy()
    optimizer.step()
    close(p, value)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_state_is_detached(make) -> None:
    p = nn.Parameter(T(normal(3)))
    optimizer = make([p])
    counts = []
    for _ in range(6):
        (p * p).sum().backward()
        optimizer.step()
        counts.append(ndl.autograd.TENSOR_COUNTER)
    assert counts[2] == counts[-1]


def test_clip_grad_norm() -> None:
    p, q = nn.Parameter(T([3.0, 0.0])), nn.Parameter(T([0.0, 4.0]))
    optimizer = optim.SGD([p, q])
    p.grad, q.grad = T([3.0, 0.0]), T([0.0, 4.0])
    optimizer.clip_grad_norm(max_norm=10.0)
    close(p.grad, [3.0, 0.0])
    optimizer.clip_grad_norm(max_norm=1.0)
    close(p.grad, [0.6, 0.0], 1e-4)
    close(q.grad, [0.0, 0.8], 1e-4)
    optimizer.clip_grad_norm()
    norm = math.sqrt(float((p.grad.numpy() ** 2).sum() + (q.grad.numpy() ** 2).sum()))
    assert math.isclose(norm, 0.25, rel_tol=1e-3)


def test_training_a_small_network_lowers_its_loss() -> None:
    for make in OPTIMIZERS:
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        x, y = T(normal(30, 4)), T(np.arange(30) % 3)
        optimizer = make(model.parameters())
        losses = []
        for _ in range(15):
            optimizer.reset_grad()
            loss = nn.SoftmaxLoss()(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.numpy().reshape(-1)[0]))
        assert losses[-1] < losses[0]
