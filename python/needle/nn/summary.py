"""A table of a model: its modules, what comes out of each, and how many numbers each learns."""

from __future__ import annotations

import math
from typing import Any

from ..core import Tensor, init, no_grad
from ..errors import ArgumentTypeError, describe


def summary(model: Any, *inputs: Any) -> str:
    """One row per module: name and kind, shape of its output, number of its own parameters; then the totals.

    inputs are what `model(...)` takes: tensors, or shapes, for which zeros stand in.  They run through the model once,
    in evaluation mode.  Without inputs the shapes are left out.
    """
    shapes = _output_shapes(model, [_as_input(x) for x in inputs]) if inputs else {}
    own = _own_parameters(model)
    rows = [("module", "output shape", "parameters")]
    for name, module in model.named_modules():
        depth = sum(name.startswith(f"{other}.") for other in own if other) + bool(name)
        label = "  " * depth + (f"{name}: " if name else "") + type(module).__name__
        rows.append((label, shapes.get(name, "-"), f"{sum(p.size for p in own[name]):,}"))
    parameters = model.parameters()
    trainable = sum(p.size for p in parameters if p.requires_grad)
    size = sum(math.prod(p.shape) * _item_size(p) for p in parameters)
    total = f"{sum(p.size for p in parameters):,} parameters, {trainable:,} trainable, {_in_units(size)}"
    return "\n".join([*_aligned(rows), total])


def _as_input(x: Any) -> Any:
    if isinstance(x, (tuple, list)) and all(isinstance(extent, int) for extent in x):
        return init.zeros(*x)
    if isinstance(x, (Tensor, tuple, list)) or x is None:
        return x
    raise ArgumentTypeError(f"summary: got {describe(x)}, wanted a tensor or a shape")


def _output_shapes(model: Any, inputs: list[Any]) -> dict[str, str]:
    """{name of module: shape of its (last) output} of one run in evaluation mode; the modes come back afterwards."""
    shapes: dict[str, str] = {}
    modules = list(model.named_modules())
    modes = [module.training for _, module in modules]
    handles = [
        module.register_forward_hook(lambda _, args, output, name=name: shapes.update({name: _shape_text(output)}))
        for name, module in modules
    ]
    try:
        model.eval()
        with no_grad():
            model(*inputs)
    finally:
        for (_, module), mode, handle in zip(modules, modes, handles, strict=True):
            module.training = mode
            handle.remove()
    return shapes


def _shape_text(output: Any) -> str:
    if isinstance(output, (tuple, list)):
        return ", ".join(map(_shape_text, output))
    return str(output.shape) if hasattr(output, "shape") else type(output).__name__


def _own_parameters(model: Any) -> dict[str, list[Tensor]]:
    """{name of module: parameters that belong to it and to no module inside it}."""
    own: dict[str, list[Tensor]] = {name: [] for name, _ in model.named_modules()}
    for name, parameter in model.named_parameters():
        while name not in own:
            name = name.rpartition(".")[0]
        own[name].append(parameter)
    return own


def _item_size(parameter: Tensor) -> int:
    return int(str(parameter.dtype)[-2:]) // 8  # float32 and float64 carry their bits in their names


def _in_units(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"


def _aligned(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
