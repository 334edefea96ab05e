"""The networks of apps/ in PyTorch, with needle's weights."""

from __future__ import annotations

from collections.abc import Callable

import needle as ndl
import numpy as np
import torch
from torch import nn


class Residual(nn.Module):
    """x + f(x)"""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def mlp_resnet(dim: int = 784, hidden: int = 100, blocks: int = 3) -> nn.Module:
    def block(inner: int) -> nn.Module:
        first = nn.Linear(hidden, inner), nn.BatchNorm1d(inner), nn.ReLU(), nn.Dropout(0.1)
        return nn.Sequential(Residual(*first, nn.Linear(inner, hidden), nn.BatchNorm1d(hidden)), nn.ReLU())

    middle = [block(hidden // 2) for _ in range(blocks)]
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), *middle, nn.Linear(hidden, 10))


def resnet9() -> nn.Module:
    def conv(i: int, o: int, size: int, stride: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(i, o, size, stride, size // 2), nn.BatchNorm2d(o), nn.ReLU())

    return nn.Sequential(
        conv(3, 16, 7, 4),
        conv(16, 32, 3, 2),
        Residual(conv(32, 32, 3, 1), conv(32, 32, 3, 1)),
        conv(32, 64, 3, 2),
        conv(64, 128, 3, 2),
        Residual(conv(128, 128, 3, 1), conv(128, 128, 3, 1)),
        nn.Flatten(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp_resnet": mlp_resnet, "resnet9": resnet9}


def copy_weights(model: ndl.nn.Module, twin: nn.Module) -> None:
    """Both list their parameters in the order in which the layers run; only the order of axes differs."""
    with torch.no_grad():
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            weights = ours.numpy()
            axes = {4: (3, 2, 0, 1), 2: (1, 0)}.get(theirs.dim(), tuple(range(weights.ndim)))
            theirs.copy_(torch.from_numpy(np.ascontiguousarray(weights.transpose(axes))).reshape(theirs.shape))


def evaluate(twin: nn.Module, images: np.ndarray) -> np.ndarray:
    twin.eval()
    with torch.no_grad():
        logits = twin(torch.from_numpy(images)).numpy()
    twin.train()
    return logits


def step(twin: nn.Module, images: np.ndarray, labels: np.ndarray) -> Callable[[], float]:
    """One training step, as suites.needle_step does it."""
    x, y, loss_of = torch.from_numpy(images), torch.from_numpy(labels), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = loss_of(twin(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
