"""PyTorch's way of doing each kind of task, as its users would write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import STEPS_COMPARED, Answer, Work, in_turn, normal, operands, training_data

variant = ""  # "compile", "fused" or "foreach"


def set_up(wanted: str, threads: int) -> None:
    global variant
    variant = wanted
    torch.set_num_threads(threads)
    torch.manual_seed(0)


def facts() -> dict[str, str]:
    return {"PyTorch": torch.__version__}


# ---- kinds ----------------------------------------------------------------------------------------------------------


def product(m: int, k: int, n: int) -> Work:
    a, b = torch.from_numpy(normal(0, m, k)), torch.from_numpy(normal(1, k, n))
    return Work(lambda: a @ b, lambda: {"product": (a @ b).numpy()})


def convolution(batch: int, i: int, o: int, kernel: int, stride: int, side: int, to_images: bool) -> Work:
    layer = nn.Conv2d(i, o, kernel, stride, kernel // 2)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(normal(1, kernel, kernel, i, o)).permute(3, 2, 0, 1))
        layer.bias.copy_(torch.from_numpy(normal(2, o)))  # type: ignore[union-attr]
    images = torch.from_numpy(normal(0, batch, i, side, side)).requires_grad_(to_images)
    out_grad = torch.from_numpy(normal(3, *layer(images).shape))

    def run() -> torch.Tensor:
        layer.weight.grad = layer.bias.grad = images.grad = None  # type: ignore[union-attr]
        out = layer(images)
        out.backward(out_grad)
        return out

    def answer() -> Answer:
        out = run()
        kernel_gradient = layer.weight.grad.permute(2, 3, 1, 0)  # type: ignore[union-attr]
        grads = {"kernel gradient": kernel_gradient, "bias gradient": layer.bias.grad}  # type: ignore[union-attr]
        if to_images:
            grads["image gradient"] = images.grad
        return {name: value.detach().numpy() for name, value in {"out": out, **grads}.items()}

    return Work(run, answer)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add,
    "multiply": torch.mul,
    "scale": lambda a: a * 3.0,
    "relu": torch.relu,
    "sum": torch.sum,
    "max": torch.max,
    "sum of rows": lambda a: a.sum(1),
    "sum of columns": lambda a: a.sum(0),
    "exp": torch.exp,
    "tanh": torch.tanh,
    "log": torch.log,
    "softmax": lambda a: torch.softmax(a, 1),
}


def operation(name: str, n: int, width: int) -> Work:
    tensors = [torch.from_numpy(a) for a in operands({"name": name, "n": n, "width": width})]
    if "both ways" in name:
        return _both_ways(name, tensors[0].requires_grad_())
    function = _layer_norm(width) if name == "layer norm" else FUNCTIONS[name]
    run = in_turn(function, name, lambda: [a.clone() for a in tensors])
    return Work(torch.no_grad()(run), lambda: {"out": run().detach().numpy()})


def _layer_norm(width: int) -> Callable[..., torch.Tensor]:
    weight, bias = torch.ones(width, requires_grad=True), torch.zeros(width, requires_grad=True)
    return lambda a: F.layer_norm(a, (width,), weight, bias)


def _both_ways(name: str, a: torch.Tensor) -> Work:
    rows, width = a.shape
    out_grad = None
    if name.startswith("cross-entropy"):
        labels = torch.arange(rows) % width
        function: Callable[..., torch.Tensor] = lambda a: F.cross_entropy(a, labels)
    else:
        function = _layer_norm(width) if name.startswith("layer norm") else FUNCTIONS["softmax"]
        out_grad = torch.from_numpy(normal(5, rows, width))

    def run() -> torch.Tensor:
        a.grad = None
        out = function(a)
        out.backward(out_grad)
        return out

    return Work(run, lambda: {"out": run().detach().numpy(), "gradient": a.grad.numpy()})  # type: ignore[union-attr]


def adam(n: int) -> Work:
    parameters = [nn.Parameter(torch.from_numpy(normal(i, n // 10))) for i in range(10)]
    for i, p in enumerate(parameters):
        p.grad = torch.from_numpy(normal(10 + i, n // 10))
    optimizer = torch.optim.Adam(parameters, lr=1e-3, **({variant: True} if variant else {}))

    def answer() -> Answer:
        optimizer.step()
        return {str(i): p.detach().numpy() for i, p in enumerate(parameters)}

    return Work(optimizer.step, answer)


def small(name: str) -> Work:
    operator, _, how = name.partition(", ")
    a, b = (torch.from_numpy(normal(i, 8, 8)).requires_grad_(how != "detached") for i in range(2))
    function = {"add": lambda: a + b, "matmul": lambda: a @ b}[operator]
    if how != "both ways":
        return Work(function, lambda: {"out": function().detach().numpy()})
    out_grad = torch.from_numpy(normal(2, 8, 8))

    def run() -> None:
        a.grad = b.grad = None
        function().backward(out_grad)

    return Work(run, lambda: (run(), {"gradient": a.grad.numpy()})[1])  # type: ignore[union-attr]


# ---- networks: twins of those in apps/ ------------------------------------------------------------------------------


class Residual(nn.Module):
    """x + f(x)"""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def mlp(dim: int, hidden: int, blocks: int, **_: Any) -> nn.Module:
    def block() -> nn.Module:
        first = nn.Linear(hidden, hidden // 2), nn.BatchNorm1d(hidden // 2), nn.ReLU(), nn.Dropout(0.1)
        return nn.Sequential(Residual(*first, nn.Linear(hidden // 2, hidden), nn.BatchNorm1d(hidden)), nn.ReLU())

    middle = [block() for _ in range(blocks)]
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), *middle, nn.Linear(hidden, 10))


def resnet9(**_: Any) -> nn.Module:
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


class LSTM(nn.Module):
    """Words (T, B) → logits (T * B, words)"""

    def __init__(self, words: int, embedding: int, hidden: int, **_: Any) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(words, embedding), nn.LSTM(embedding, hidden)
        self.linear = nn.Linear(hidden, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(x))
        return self.linear(states.flatten(0, 1))


class Attention(nn.Module):
    """Causal attention with a norm before each projection.  (B, T, F) → (B, T, F)"""

    def __init__(self, features: int, heads: int = 8, width: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(features) for _ in range(3))
        self.projections = nn.ModuleList(nn.Linear(features, heads * width, bias=False) for _ in range(3))
        self.out = nn.Linear(heads * width, features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = zip(self.norms, self.projections, strict=True)
        q, k, v = (project(norm(x)).unflatten(2, (self.heads, -1)).transpose(1, 2) for norm, project in pairs)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Words (T, B) → logits (T * B, words)"""

    def __init__(self, words: int, steps: int, embedding: int, layers: int, **_: Any) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(words, embedding), nn.Embedding(steps, embedding)
        width = 4 * embedding
        feed = lambda: (nn.LayerNorm(embedding), nn.Linear(embedding, width), nn.ReLU(), nn.Linear(width, embedding))
        blocks = [block for _ in range(layers) for block in (Residual(Attention(embedding)), Residual(*feed()))]
        self.blocks, self.linear = nn.Sequential(*blocks), nn.Linear(embedding, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.embedding(x).transpose(0, 1)
        out = self.blocks(rows + self.positions(torch.arange(rows.shape[1])))
        return self.linear(out.transpose(0, 1).flatten(0, 1))


MODELS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "resnet9": resnet9, "lstm": LSTM, "transformer": Transformer}


def step(model: str, weights: list[np.ndarray] | None = None, **sizes: Any) -> Work:
    network = MODELS[model](**sizes)
    if weights is not None:
        copy_weights(weights, network)
    x, y = map(torch.from_numpy, training_data(sizes))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    forward = torch.compile(network) if variant == "compile" else network

    def run() -> float:
        optimizer.zero_grad()
        loss = loss_of(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def answer() -> Answer:
        dropouts = [m for m in network.modules() if isinstance(m, nn.Dropout)]
        for m in dropouts:
            m.p = 0.0  # chance differs between peers
        losses = np.array([run() for _ in range(STEPS_COMPARED)])
        for m in dropouts:
            m.p = 0.1
        return {"losses": losses}

    return Work(run, answer)


def copy_weights(weights: list[np.ndarray], network: nn.Module) -> None:
    """needle's, listed in the order in which the layers run; only the order of axes differs."""
    tables = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    parameters = list(network.parameters())
    if len(parameters) != len(weights):
        raise ValueError(f"copy_weights: {len(weights)} arrays for {len(parameters)} parameters")
    with torch.no_grad():
        for value, theirs in zip(weights, parameters, strict=True):
            axes = {4: (3, 2, 0, 1), 2: (0, 1) if id(theirs) in tables else (1, 0)}.get(theirs.dim())
            value = value.reshape(-1) if axes is None else value.transpose(axes)
            theirs.copy_(torch.from_numpy(np.ascontiguousarray(value)))


def smaller_step(sizes: dict[str, Any]) -> Work:
    """The same code on little data, to have it loaded before memory is measured."""
    return step(**{**sizes, "batch": 2})
