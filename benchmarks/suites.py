"""What is measured: matrix products, training steps, the overhead of a small operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import needle as ndl
import numpy as np
from mlp_resnet import MLPResNet
from models import ResNet9

from benchmarks.harness import Task

try:
    import torch

    from benchmarks import torch_peers
except ImportError:  # an optional peer
    torch = None

# ---- matrix products ------------------------------------------------------------------------------------------------


def gemm() -> Iterator[Task]:
    """Products of square matrices of float32."""
    return map(product, (256, 511, 1024))


def product(n: int) -> Task:
    a, b = (np.random.default_rng(seed).standard_normal((n, n), np.float32) for seed in (0, 1))
    ours = [ndl.backend_ndarray.array(x) for x in (a, b)]
    np.testing.assert_allclose((ours[0] @ ours[1]).numpy(), a @ b, rtol=0, atol=n * 1e-5)
    peers: dict[str, Callable] = {"needle": lambda: ours[0] @ ours[1], "numpy": lambda: a @ b}
    if torch:
        theirs = [torch.from_numpy(x) for x in (a, b)]
        peers["torch"] = lambda: theirs[0] @ theirs[1]
    return Task(f"{n} × {n} @ {n} × {n}", peers, calls=max(1, 2**28 // n**3), work=2 * n**3)


# ---- training steps -------------------------------------------------------------------------------------------------


def models() -> Iterator[Task]:
    """Eager training steps with Adam: forward, backward, update."""
    yield training_step("MLPResNet, batch 100", MLPResNet(784), (100, 784), "mlp_resnet", calls=10)
    yield training_step("ResNet9, batch 128", ResNet9(), (128, 3, 32, 32), "resnet9", calls=1)


def training_step(name: str, model: ndl.nn.Module, shape: tuple[int, ...], peer: str, calls: int) -> Task:
    generator = np.random.default_rng(0)
    images, labels = generator.standard_normal(shape, np.float32), generator.integers(0, 10, shape[0])
    peers: dict[str, Callable] = {"needle": needle_step(model, images, labels)}
    if torch:
        twin = torch_peers.MODELS[peer]()
        torch_peers.copy_weights(model, twin)
        compare(model, twin, images)
        peers["torch"] = torch_peers.step(twin, images, labels)
    return Task(name, peers, calls)


def needle_step(model: ndl.nn.Module, images: np.ndarray, labels: np.ndarray) -> Callable[[], float]:
    x, y, loss_of = ndl.Tensor(images, requires_grad=False), ndl.Tensor(labels), ndl.nn.SoftmaxLoss()
    optimizer = ndl.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.reset_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def compare(model: ndl.nn.Module, twin: object, images: np.ndarray) -> None:
    """Both networks, with the same weights, must say the same of the same images."""
    model.eval()
    ours, theirs = model(ndl.Tensor(images)).numpy(), torch_peers.evaluate(twin, images)
    model.train()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-3 * np.abs(theirs).max())


# ---- overhead -------------------------------------------------------------------------------------------------------


def overhead() -> Iterator[Task]:
    """What an operator costs beside its arithmetic."""
    a, b = (ndl.Tensor(np.full((8, 8), value, np.float32)) for value in (1, 2))
    np.testing.assert_array_equal((a + b).numpy(), 3)
    peers: dict[str, Callable] = {"needle": lambda: a + b}
    if torch:
        c, d = (torch.full((8, 8), float(value), requires_grad=True) for value in (1, 2))
        peers["torch"] = lambda: c + d
    yield Task("8 × 8 add that records", peers, calls=5000)


SUITES = {"gemm": gemm, "models": models, "overhead": overhead}
