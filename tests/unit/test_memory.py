"""Training holds no more after 100 steps than after 3, although the cyclic collector never runs.

Live tensors are counted and the bytes of the storages behind them measured; only what this test makes counts, so it
may run alone or anywhere among other tests.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, autograd, nn, optim
from needle.write_log import storage

Step = Callable[[], None]


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Reference counting must do: the cyclic collector is off."""
    gc.collect()
    gc.disable()
    np.random.seed(0)
    yield
    gc.enable()


def held() -> tuple[int, int]:
    """Live tensors, and the bytes of the storages behind them, each counted once."""
    storages = {}
    for thing in gc.get_objects():  # that finds what hangs in cycles, too
        if issubclass(type(thing), autograd.Value):
            data = thing.cached_data
            for array in data if isinstance(data, tuple) else (data,):
                owner = storage(array)
                storages[id(owner)] = owner.size * np.dtype(str(array.dtype)).itemsize
    return autograd.TENSOR_COUNTER, sum(storages.values())


def grows(step: Step) -> bool:
    """Is more, or less, held after step 100 than after step 3?"""
    for _ in range(3):
        step()
    before = held()
    for _ in range(97):
        step()
    return held() != before


def network(*extra: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), *extra, nn.Linear(6, 3))


def training(model: nn.Module, optimizer: optim.Optimizer, draw: Callable[[], Tensor]) -> Step:
    """One step of training on a fresh batch, a Tensor that requires a gradient."""
    loss_of = nn.SoftmaxLoss()

    def step() -> None:
        x = draw()
        y = Tensor(np.random.randint(0, 3, x.shape[0]))
        optimizer.reset_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def batch() -> Tensor:
    return Tensor(np.random.randn(5, 4), dtype="float32", requires_grad=True)


OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD-nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, unbiased=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "RMSProp": lambda p: optim.RMSProp(p, lr=0.01, momentum=0.5),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_holds_no_more_after_100_steps_U048(optimizer: str) -> None:
    model = network(nn.Dropout(0.2), nn.Residual(nn.LayerNorm1d(6)))
    step = training(model, OPTIMIZERS[optimizer](model.parameters()), batch)
    assert not grows(step)


def test_gradients_that_are_never_reset_are_replaced_U048() -> None:
    model = network()
    optimizer = optim.Adam(model.parameters())
    optimizer.reset_grad = lambda: None  # type: ignore[method-assign]
    assert not grows(training(model, optimizer, batch))


def test_clipping_and_schedules_hold_nothing_U048() -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), momentum=0.9)
    scheduler = optim.CosineAnnealingLR(optimizer, 50)
    train = training(model, optimizer, batch)

    def step() -> None:
        train()
        optimizer.clip_grad_norm(0.1)
        scheduler.step()

    assert not grows(step)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_carried_state_holds_one_step_U048(kind: str) -> None:
    rnn, head = getattr(nn, kind)(4, 6), nn.Linear(6, 3)
    optimizer = optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    loss_of, carried = nn.SoftmaxLoss(), [None]

    def step() -> None:
        x = Tensor(np.random.randn(3, 2, 4), dtype="float32", requires_grad=True)
        optimizer.reset_grad()
        output, state = rnn(x, carried[0])
        loss = loss_of(head(output.reshape((6, 6))), Tensor(np.random.randint(0, 3, 6)))
        loss.backward()
        optimizer.step()
        carried[0] = tuple(part.detach() for part in state) if kind == "LSTM" else state.detach()

    assert not grows(step)


def test_convolution_pooling_and_batch_norm_hold_nothing_U048() -> None:
    model = nn.Sequential(
        nn.Conv(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )
    optimizer = optim.Adam(model.parameters())
    draw = lambda: Tensor(np.random.randn(2, 2, 4, 4), dtype="float32", requires_grad=True)
    assert not grows(training(model, optimizer, draw))


def test_the_transformer_holds_nothing_U048() -> None:
    model = nn.Transformer(4, 6, 1, num_head=2, dim_head=3, dropout=0.1, sequence_len=8)
    optimizer = optim.AdamW(model.parameters())

    def step() -> None:
        x = Tensor(np.random.randn(3, 2, 4), dtype="float32", requires_grad=True)
        optimizer.reset_grad()
        output, _ = model(x)
        (output * output).sum().backward()
        optimizer.step()

    assert not grows(step)


def test_newton_and_second_order_hold_nothing_U048() -> None:
    p = nn.Parameter([1.0, 2.0], dtype="float64")
    optimizer = optim.Newton([p], lr=0.1)
    assert not grows(lambda: optimizer.step(lambda: (p * p * p * p).sum()))


def test_evaluation_holds_nothing_U048() -> None:
    model = network().eval()

    def step() -> None:
        with ndl.no_grad():
            model(batch())

    assert not grows(step)


# ---- a leak is seen --------------------------------------------------------------------------------------------------


class LeakyMomentum(optim.SGD):
    """Its memory is a graph: each step holds all earlier ones."""

    def step(self) -> None:
        for p in self.params:
            self.u[p] = self.u.get(p, 0) * 0.9 + p.grad * 0.1
            p.data = p.data - 0.1 * self.u[p].data


class LeakyNorm(nn.BatchNorm1d):
    """Its statistics are a graph."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.sum(0) / x.shape[0]
        self.running_mean = self.running_mean * 0.9 + mean * 0.1
        return x - ndl.broadcast_to(mean, x.shape)


def test_a_momentum_that_records_is_seen_U050() -> None:
    model = network()
    assert grows(training(model, LeakyMomentum(model.parameters()), batch))


def test_statistics_that_record_are_seen_U050() -> None:
    model = nn.Sequential(nn.Linear(4, 6), LeakyNorm(6), nn.Linear(6, 3))
    assert grows(training(model, optim.SGD(model.parameters()), batch))


def test_a_state_that_is_not_detached_is_seen_U050() -> None:
    rnn, carried = nn.RNN(4, 6), [None]

    def step() -> None:
        output, carried[0] = rnn(Tensor(np.random.randn(1, 2, 4), dtype="float32"), carried[0])
        output.sum().backward()

    for _ in range(3):
        step()
    before = held()
    for _ in range(5):
        step()
    assert held() != before


def test_one_tensor_per_step_is_seen_U050() -> None:
    model, kept = network(), []
    train = training(model, optim.SGD(model.parameters()), batch)

    def step() -> None:
        train()
        kept.append(ndl.zeros(1))

    assert grows(step)


def test_a_cycle_is_seen_since_the_collector_is_off_U050() -> None:
    def step() -> None:
        x = batch()
        x.itself = x

    assert grows(step)
