"""needle's way of doing each kind of task."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "apps")]  # this tree's needle, whatever else is installed

import needle as ndl
from mlp_resnet import MLPResNet
from models import LanguageModel, ResNet9
from needle import backend_ndarray as nd

from . import STEPS_COMPARED, Absent, Answer, Work, in_turn, normal, operands, training_data


def set_up(variant: str, threads: int) -> None:
    """Variant "plain": the kernels that learners write, and none of the fast ones."""
    if not ndl.cpu().enabled():
        raise Absent("the native kernels are not built; run 'make lib'")
    ndl.kernels.use("course" if variant == "plain" else "fast")


def facts() -> dict[str, str]:
    from needle.backend_ndarray import kernels_cpu

    return {"needle": f"this tree, {kernels_cpu.isa()} kernels"}


def constant(values: np.ndarray) -> ndl.Tensor:
    return ndl.Tensor(values.astype(np.float32), requires_grad=False)


# ---- kinds ----------------------------------------------------------------------------------------------------------


def product(m: int, k: int, n: int) -> Work:
    a, b = nd.array(normal(0, m, k)), nd.array(normal(1, k, n))
    return Work(lambda: a @ b, lambda: {"product": (a @ b).numpy()})


def convolution(batch: int, i: int, o: int, kernel: int, stride: int, side: int, to_images: bool) -> Work:
    layer = ndl.nn.Conv(i, o, kernel, stride=stride, bias=True)
    layer.weight.data = ndl.Tensor(normal(1, kernel, kernel, i, o))
    layer.bias.data = ndl.Tensor(normal(2, o))
    images = ndl.Tensor(normal(0, batch, i, side, side), requires_grad=to_images)
    out_grad = constant(normal(3, *layer(images).shape))

    def run() -> ndl.Tensor:
        out = layer(images)
        out.backward(out_grad)
        return out

    def answer() -> Answer:
        out = run()
        grads = {"kernel gradient": layer.weight.grad.numpy(), "bias gradient": layer.bias.grad.numpy()}
        if to_images:
            grads["image gradient"] = images.grad.numpy()
        return {"out": out.numpy(), **grads}

    return Work(run, answer)


def operation(name: str, n: int, width: int) -> Work:
    arrays = operands({"name": name, "n": n, "width": width})
    if "both ways" in name:
        return _both_ways(name, ndl.Tensor(arrays[0]))
    run = in_turn(_function(name, width), name, lambda: [constant(a.copy()) for a in arrays])
    return Work(run, lambda: {"out": run().numpy()})


def _function(name: str, width: int) -> Callable[..., ndl.Tensor]:
    ops = ndl.ops
    functions: dict[str, Callable[..., ndl.Tensor]] = {
        "add": lambda a, b: a + b,
        "multiply": lambda a, b: a * b,
        "scale": lambda a: a * 3.0,
        "relu": ops.relu,
        "sum": lambda a: a.sum(),
        "max": lambda a: ops.max(a),
        "sum of rows": lambda a: a.sum(1),
        "sum of columns": lambda a: a.sum(0),
        "exp": ops.exp,
        "tanh": ops.tanh,
        "log": ops.log,
        "softmax": lambda a: ops.softmax(a, 1),
        "layer norm": ndl.nn.LayerNorm1d(width),
    }
    return functions[name]


def _both_ways(name: str, a: ndl.Tensor) -> Work:
    rows, width = a.shape
    if name.startswith("cross-entropy"):
        labels, loss_of = constant(np.arange(rows) % width), ndl.nn.SoftmaxLoss()
        function, out_grad = (lambda a: loss_of(a, labels)), None
    else:
        function, out_grad = _function(name.split(",")[0], width), constant(normal(5, rows, width))

    def run() -> ndl.Tensor:
        out = function(a)
        out.backward(out_grad)
        return out

    return Work(run, lambda: {"out": run().numpy(), "gradient": a.grad.numpy()})


def adam(n: int) -> Work:
    """Ten parameters with n numbers together."""
    parameters = [ndl.nn.Parameter(ndl.Tensor(normal(i, n // 10))) for i in range(10)]
    for i, p in enumerate(parameters):
        p.grad = constant(normal(10 + i, n // 10))
    optimizer = ndl.optim.Adam(parameters, lr=1e-3)

    def answer() -> Answer:
        optimizer.step()
        return {str(i): p.numpy() for i, p in enumerate(parameters)}

    return Work(optimizer.step, answer)


def small(name: str) -> Work:
    operator, _, how = name.partition(", ")
    a, b = (ndl.Tensor(normal(i, 8, 8), requires_grad=how != "detached") for i in range(2))
    function = {"add": lambda: a + b, "matmul": lambda: a @ b}[operator]
    if how != "both ways":
        return Work(function, lambda: {"out": function().numpy()})
    out_grad = constant(normal(2, 8, 8))
    run = lambda: function().backward(out_grad)
    return Work(run, lambda: (run(), {"gradient": a.grad.numpy()})[1])


# ---- training steps -------------------------------------------------------------------------------------------------


def step(model: str, **sizes: Any) -> Work:
    np.random.seed(0)
    network = _network(model, sizes)
    x, y = map(constant, training_data(sizes))
    optimizer, loss_of = ndl.optim.Adam(network.parameters(), lr=1e-3), ndl.nn.SoftmaxLoss()

    def run() -> float:
        optimizer.reset_grad()
        out = network(x)
        loss = loss_of(out[0] if isinstance(out, tuple) else out, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def answer() -> Answer:
        weights = {f"weights/{i:03}": p.numpy().copy() for i, p in enumerate(network.parameters())}
        dropouts = [m for _, m in network.named_modules() if isinstance(m, ndl.nn.Dropout)]
        shares = [m.p for m in dropouts]
        for m in dropouts:
            m.p = 0.0  # chance differs between peers
        losses = np.array([run() for _ in range(STEPS_COMPARED)])
        for m, share in zip(dropouts, shares, strict=True):
            m.p = share
        return {"losses": losses, **weights}

    return Work(run, answer)


def _network(model: str, sizes: dict[str, Any]) -> ndl.nn.Module:
    if model == "mlp":
        return MLPResNet(sizes["dim"], hidden_dim=sizes["hidden"], num_blocks=sizes["blocks"])
    if model == "resnet9":
        return ResNet9()
    words, embedding = sizes["words"], sizes["embedding"]
    if model == "lstm":
        return LanguageModel(embedding, words, sizes["hidden"], seq_model="lstm", seq_len=sizes["steps"])
    width, layers = 4 * embedding, sizes["layers"]
    return LanguageModel(embedding, words, width, layers, seq_model="transformer", seq_len=sizes["steps"])


def smaller_step(sizes: dict[str, Any]) -> Work:
    """The same code on little data, to have it loaded before memory is measured."""
    return step(**{**sizes, "batch": 2})
