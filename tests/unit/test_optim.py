"""Optimizers against NumPy loops of their formulas; what every step must keep; clipping, schedules, state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, kernels, nn, optim
from needle.optimizers.optimizer import has_fast_twin

Array = np.ndarray
STEPS = 12


def sgd(
    theta: Array, grads: list[Array], lr: float, momentum: float = 0.0, weight_decay: float = 0.0, variant: str = ""
) -> Array:
    u = np.zeros_like(theta)
    for t, grad in enumerate(grads, 1):
        g = grad + weight_decay * theta
        u = momentum * u + (1 - momentum) * g
        direction = momentum * u + (1 - momentum) * g if variant == "nesterov" else u
        theta = theta - lr * (direction / (1 - momentum**t) if variant == "unbiased" else direction)
    return theta


def adam(
    theta: Array, grads: list[Array], lr: float, decay: float = 0.0, decoupled: float = 0.0, b1: float = 0.9
) -> Array:
    m = v = np.zeros_like(theta)
    for t, grad in enumerate(grads, 1):
        g = grad + decay * theta
        m, v = b1 * m + (1 - b1) * g, 0.999 * v + 0.001 * g**2
        step = lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        theta = (1 - lr * decoupled) * theta - step
    return theta


def rmsprop(theta: Array, grads: list[Array], lr: float, momentum: float = 0.0, decay: float = 0.0) -> Array:
    v = u = np.zeros_like(theta)
    for grad in grads:
        g = grad + decay * theta
        v = 0.9 * v + 0.1 * g**2
        u = momentum * u + g / (np.sqrt(v) + 1e-8)
        theta = theta - lr * u
    return theta


OPTIMIZERS: dict[str, tuple[Callable[[Any], optim.Optimizer], Callable[[Array, list[Array]], Array]]] = {
    "SGD": (lambda p: optim.SGD(p, lr=0.1), lambda t, g: sgd(t, g, 0.1)),
    "SGD-momentum": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda t, g: sgd(t, g, 0.1, 0.9, 0.01),
    ),
    "SGD-nesterov": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda t, g: sgd(t, g, 0.1, 0.9, variant="nesterov"),
    ),
    "SGD-unbiased": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, unbiased=True),
        lambda t, g: sgd(t, g, 0.1, 0.9, variant="unbiased"),
    ),
    "Adam": (lambda p: optim.Adam(p, lr=0.1), lambda t, g: adam(t, g, 0.1)),
    "Adam-decay": (
        lambda p: optim.Adam(p, lr=0.1, beta1=0.8, weight_decay=0.1),
        lambda t, g: adam(t, g, 0.1, decay=0.1, b1=0.8),
    ),
    "AdamW": (lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1), lambda t, g: adam(t, g, 0.1, decoupled=0.1)),
    "RMSProp": (
        lambda p: optim.RMSProp(p, lr=0.1, alpha=0.9, momentum=0.5, weight_decay=0.1),
        lambda t, g: rmsprop(t, g, 0.1, 0.5, 0.1),
    ),
}
all_optimizers = pytest.mark.parametrize("name", OPTIMIZERS)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).randn(*shape)


def parameter(values: Array, dtype: str = "float64") -> nn.Parameter:
    return nn.Parameter(values, dtype=dtype)


def give_gradient(p: Tensor, grad: Array) -> None:
    p.grad = Tensor(grad, dtype=p.dtype, device=p.device, requires_grad=False)


@all_optimizers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_follow_the_formula(name: str, dtype: str) -> None:
    make, reference = OPTIMIZERS[name]
    theta, grads = numbers(3, 4), [numbers(3, 4, seed=step) for step in range(1, STEPS)]
    p = parameter(theta, dtype)
    optimizer = make([p])
    for grad in grads:
        give_gradient(p, grad)
        optimizer.step()
    # a sum of STEPS steps in float32; Adam's first steps divide by the root of a number about as small as its rounding
    tolerance = {"float32": 1e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(p.numpy(), reference(theta, grads), rtol=tolerance, atol=tolerance)


@all_optimizers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_keeps_what_a_parameter_is_U081(name: str, dtype: str) -> None:
    parameters = [parameter(numbers(2, 3), dtype), parameter(numbers(1, 3), dtype), parameter(np.array([2.0]), dtype)]
    optimizer = OPTIMIZERS[name][0](parameters)
    before = [(id(p), p.shape, p.dtype, p.device, p.requires_grad) for p in parameters]
    for _ in range(2):
        optimizer.reset_grad()
        loss = sum(((p * p).sum() for p in parameters[1:]), (parameters[0] * parameters[0]).sum())
        loss.backward()
        grads = [p.grad.numpy() for p in parameters]
        optimizer.step()
        for p, grad in zip(parameters, grads, strict=True):
            np.testing.assert_array_equal(p.grad.numpy(), grad)  # the step reads gradients, it does not change them
    assert [(id(p), p.shape, p.dtype, p.device, p.requires_grad) for p in parameters] == before
    assert all(p.is_leaf() for p in parameters)


def test_first_step_of_adam_U081() -> None:
    p = parameter(np.array([1.0]))
    optimizer = optim.Adam([p], lr=0.1)
    give_gradient(p, np.array([1.0]))
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), [0.9], rtol=1e-7)


@all_optimizers
def test_numpy_numbers_as_settings_do_not_widen_U081(name: str) -> None:
    p = parameter(numbers(3), "float32")
    optimizer = OPTIMIZERS[name][0]([p])
    optimizer.lr = np.float64(0.05)
    give_gradient(p, numbers(3))
    optimizer.step()
    assert str(p.dtype) == "float32"


@all_optimizers
def test_parameters_without_gradient_stay(name: str) -> None:
    still, moved = parameter(numbers(3)), parameter(numbers(3))
    optimizer = OPTIMIZERS[name][0]([still, moved])
    give_gradient(moved, numbers(3))
    optimizer.step()
    np.testing.assert_array_equal(still.numpy(), numbers(3))
    assert not np.array_equal(moved.numpy(), numbers(3))


@all_optimizers
def test_a_parameter_given_twice_is_stepped_once_U085(name: str) -> None:
    make, reference = OPTIMIZERS[name]
    p = parameter(numbers(3))
    optimizer = make(p for p in [p, p])  # a generator will do, too
    give_gradient(p, numbers(3, seed=1))
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), reference(numbers(3), [numbers(3, seed=1)]))


@all_optimizers
def test_steps_record_nothing(name: str) -> None:
    p = parameter(numbers(3))
    optimizer = OPTIMIZERS[name][0]([p])
    (p * p).sum().backward()
    optimizer.step()
    memory = [t for value in vars(optimizer).values() if isinstance(value, dict) for t in value.values()]
    assert all(t.is_leaf() and not t.requires_grad for t in memory)


def test_reset_grad_forgets_all_gradients() -> None:
    p = parameter(numbers(3))
    for reset in ("reset_grad", "zero_grad"):
        give_gradient(p, numbers(3))
        getattr(optim.SGD([p]), reset)()
        assert p.grad is None


def test_the_registry_may_replace_a_step() -> None:
    class Halving(optim.Optimizer):
        @has_fast_twin
        def step(self) -> None:
            for p in self.params:
                p.data = p.data / 2

    p = parameter(np.array([8.0]), "float32")
    optimizer = Halving([p])
    place = getattr(getattr(p.cached_data, "device", None), "name", "numpy")
    answers = iter([None, NotImplemented])
    kernels.register_operation(Halving, place, "float32", forward=lambda _: next(answers))
    with kernels.use("fast"):
        optimizer.step()
        assert p.item() == 8  # the twin did what it does: nothing
        optimizer.step()
        assert p.item() == 4  # it declined
    with kernels.use("course"):
        optimizer.step()
        assert p.item() == 2  # it was not asked: its answers are used up


@pytest.mark.parametrize(
    ("params", "word"), [([], "no parameters"), ([3], "int 3"), (parameter(np.ones(2)), "list"), (None, "list")]
)
def test_what_is_no_list_of_parameters_is_refused(params: Any, word: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^SGD: .*{word}"):
        optim.SGD(params)


# ---- Newton ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "error"),
    [
        ("SGD", {"lr": "fast"}, TypeError),
        ("SGD", {"lr": -0.1}, ValueError),
        ("SGD", {"momentum": 1.5}, ValueError),
        ("Adam", {"beta2": 1.0}, ValueError),
        ("AdamW", {"weight_decay": float("nan")}, ValueError),
        ("RMSProp", {"alpha": None}, TypeError),
    ],
)
def test_settings_that_make_no_sense_are_named_U090(name: str, settings: dict[str, Any], error: type) -> None:
    with pytest.raises(error, match=f"{name}: {next(iter(settings))} = "):
        getattr(optim, name)([parameter(np.ones(2), "float32")], **settings)


def test_newton_solves_a_linear_regression_in_one_step() -> None:
    np.random.seed(0)
    x, y = numbers(20, 3), numbers(20, 1, seed=1)
    model = nn.Linear(3, 1, dtype="float64")
    optimizer = optim.Newton(model.parameters())
    inputs, target = (Tensor(a, dtype="float64", requires_grad=False) for a in (x, y))
    loss = optimizer.step(lambda: nn.MSELoss()(model(inputs), target))
    solution = np.linalg.lstsq(np.c_[x, np.ones(20)], y, rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.weight.numpy(), model.bias.numpy()], solution, rtol=1e-10)
    assert loss.item() > ((np.c_[x, np.ones(20)] @ solution - y) ** 2).mean()


def test_newton_converges_quadratically_on_a_curved_loss() -> None:
    p = parameter(np.array([0.5, -0.5]))
    optimizer = optim.Newton([p])
    errors = []
    for _ in range(7):
        optimizer.step(lambda: (p.exp() - 2 * p).sum())
        errors.append(np.abs(p.numpy() - np.log(2)).max())
    assert errors[-1] < 1e-14
    for before, after in pairwise(errors[:-1]):
        assert after < before**2  # the constant is f''' / 2 f'' = 1/2 at the minimum


def test_newton_needs_a_closure_and_an_invertible_matrix() -> None:
    p = parameter(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="Newton: step needs a function"):
        optim.Newton([p]).step()
    with pytest.raises(ValueError, match="damping"):
        optim.Newton([p]).step(lambda: (p[0] * p[0]).sum())
    optim.Newton([p], damping=1e-6).step(lambda: (p[0] * p[0]).sum())
    np.testing.assert_allclose(p.numpy(), [0, 2], atol=1e-6)


# ---- clipping --------------------------------------------------------------------------------------------------------


def test_clipping_scales_all_gradients_by_one_factor() -> None:
    a, b, c = parameter(numbers(2)), parameter(numbers(3)), parameter(numbers(1))
    give_gradient(a, np.array([3.0, 0.0]))
    give_gradient(b, np.array([0.0, 4.0, 0.0]))
    optimizer = optim.SGD([a, b, c])
    assert optimizer.clip_grad_norm(10.0) == 5
    np.testing.assert_array_equal(a.grad.numpy(), [3, 0])
    assert optimizer.clip_grad_norm(1.0) == 5
    np.testing.assert_allclose(a.grad.numpy(), [0.6, 0])
    np.testing.assert_allclose(b.grad.numpy(), [0, 0.8, 0])
    assert c.grad is None
    optimizer.clip_grad_norm()
    np.testing.assert_allclose(np.hypot(a.grad.numpy()[0], b.grad.numpy()[1]), 0.25)


def test_clipping_by_value_cuts_each_entry() -> None:
    p = parameter(numbers(3), "float32")
    give_gradient(p, np.array([-3.0, 0.5, 2.0]))
    optim.clip_grad_value_([p], 1)
    np.testing.assert_array_equal(p.grad.numpy(), [-1, 0.5, 1])
    assert str(p.grad.dtype) == "float32"


@pytest.mark.parametrize("bound", [0, -1.0, float("nan")])
def test_clipping_wants_a_positive_bound(bound: float) -> None:
    for clip in (optim.clip_grad_norm_, optim.clip_grad_value_):
        with pytest.raises(ValueError, match="positive"):
            clip([parameter(numbers(2))], bound)


# ---- schedules -------------------------------------------------------------------------------------------------------

SCHEDULES = {
    "StepLR": (lambda o: optim.StepLR(o, 3, gamma=0.5), [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]),
    "CosineAnnealingLR": (
        lambda o: optim.CosineAnnealingLR(o, 4, eta_min=0.2),
        [1, 0.6 + 0.4 * np.sqrt(0.5), 0.6, 0.6 - 0.4 * np.sqrt(0.5), 0.2, 0.2, 0.2, 0.2],
    ),
    "LinearWarmup": (lambda o: optim.LinearWarmup(o, 4), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
    "WarmupCosine": (
        lambda o: optim.WarmupCosine(o, 2, 6),
        [0.5, 1, 1, 0.5 + np.sqrt(0.125), 0.5, 0.5 - np.sqrt(0.125), 0, 0],
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    make, factors = SCHEDULES[name]
    optimizer = optim.SGD([parameter(numbers(2))], lr=0.4)
    if name == "CosineAnnealingLR":
        optimizer.lr = 1.0  # eta_min is a rate, not a factor
    base, rates = optimizer.lr, []
    schedule = make(optimizer)
    for _ in factors:
        rates.append(optimizer.lr)
        schedule.step()
    np.testing.assert_allclose(rates, base * np.array(factors), atol=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_its_state(name: str) -> None:
    make = SCHEDULES[name][0]
    first, second = (optim.SGD([parameter(numbers(2))], lr=lr) for lr in (0.4, 0.1))
    schedule, resumed = make(first), make(second)
    for _ in range(3):
        schedule.step()
    resumed.load_state_dict(schedule.state_dict())
    assert second.lr == first.lr
    schedule.step()
    resumed.step()
    assert second.lr == first.lr


def test_schedules_refuse_what_makes_no_sense() -> None:
    optimizer = optim.SGD([parameter(numbers(2))])
    for make in (lambda: optim.StepLR(optimizer, 0), lambda: optim.WarmupCosine(optimizer, 5, 5)):
        with pytest.raises(ValueError, match="wanted"):
            make()
    with pytest.raises(TypeError, match="optimizer"):
        optim.StepLR(3, 1)
    with pytest.raises(ValueError, match="load_state_dict: StepLR"):
        optim.StepLR(optimizer, 1).load_state_dict({"t": 3})


# ---- state -----------------------------------------------------------------------------------------------------------


@all_optimizers
def test_an_optimizer_goes_on_from_its_state_bit_for_bit(name: str) -> None:
    make = OPTIMIZERS[name][0]
    p = parameter(numbers(4), "float32")
    optimizer = make([p])
    for step in range(3):
        give_gradient(p, numbers(4, seed=step))
        optimizer.step()
    q = parameter(p.numpy(), "float32")
    resumed = make([q])
    resumed.load_state_dict(optimizer.state_dict())
    for step in range(3, 6):
        for x, o in ((p, optimizer), (q, resumed)):
            give_gradient(x, numbers(4, seed=step))
            o.step()
    np.testing.assert_array_equal(q.numpy(), p.numpy())


def test_optimizer_state_is_checked_before_it_is_taken() -> None:
    p, q = parameter(numbers(4)), parameter(numbers(5))
    first, second = optim.Adam([p], lr=0.5), optim.Adam([q])
    for x, o in ((p, first), (q, second)):
        give_gradient(x, np.ones(x.shape))
        o.step()
    with pytest.raises(ValueError, match=r"load_state_dict: Adam: .*m\.0 \(4,\)"):
        second.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match=r"missing: .*beta1.*unexpected: .*momentum"):
        second.load_state_dict(optim.SGD([q]).state_dict())
    assert second.lr == 0.01


def test_repr_shows_the_settings() -> None:
    text = repr(optim.SGD([parameter(numbers(2))], lr=0.3))
    assert text.startswith("SGD(1 parameter") and "lr=0.3" in text and "momentum=0.0" in text


def test_a_model_learns_with_every_optimizer() -> None:
    for name, (make, _) in OPTIMIZERS.items():
        np.random.seed(0)
        x = Tensor(np.random.randn(64, 2), dtype="float32", requires_grad=False)
        y = Tensor((x.numpy()[:, 0] * x.numpy()[:, 1] > 0).astype("int64"), dtype="int64", requires_grad=False)
        model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer, loss_of = make(model.parameters()), nn.SoftmaxLoss()
        first = loss_of(model(x), y).item()
        for _ in range(40):
            optimizer.reset_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
        assert loss.item() < 0.8 * first, name


def test_ndl_seed_starts_the_stream_anew_U078() -> None:
    ndl.seed(0)
    first, second = ndl.rand(4).numpy(), ndl.rand(4).numpy()
    ndl.seed(0)
    np.testing.assert_array_equal(ndl.rand(4).numpy(), first)
    assert not np.array_equal(first, second)
