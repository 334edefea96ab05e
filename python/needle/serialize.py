"""Save and load tensors and whole states of training as safetensors files, which hold data only, never code.

A file holds the tensors under dotted names, as other libraries read and write them, and, as JSON in its header, how
dicts, lists, numbers and text lay around them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .core import Tensor, Value
from .errors import ArgumentError, ArgumentTypeError, describe

__all__ = ["load", "load_checkpoint", "save", "save_checkpoint"]

Filename = str | os.PathLike


def save(values: Any, path: Filename) -> None:
    """Write tensors, and dicts and lists of tensors, numbers, text and None, to a file.

    The file appears at once and whole, or not at all: it is written under another name and then renamed.
    Raises ArgumentTypeError for anything that is not data, OSError if the file cannot be written, ImportError if
    safetensors is not installed.
    """
    safetensors = _safetensors("save")
    arrays: dict[str, np.ndarray] = {}
    layout = json.dumps(_packed(values, "", arrays))
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"save: there is no folder {Path(path).parent}")
    unfinished = f"{os.fspath(path)}.{os.getpid()}.unfinished"
    try:
        Path(unfinished).touch()
        mode = os.stat(unfinished).st_mode  # what the user's umask gives a new file; safetensors keeps it to its owner
        safetensors.numpy.save_file(arrays, unfinished, metadata={"needle": layout})
        os.chmod(unfinished, mode)
        os.replace(unfinished, path)
    except safetensors.SafetensorError as error:
        raise OSError(f"save: {os.fspath(path)}: {error}") from error
    finally:
        Path(unfinished).unlink(missing_ok=True)


def load(path: Filename, device: Any = None) -> Any:
    """What `save` wrote; of a file from elsewhere, {name: tensor}.  Tensors require no gradient.

    Raises FileNotFoundError if there is no such file, ArgumentError if it is damaged or of another format.
    """
    safetensors = _safetensors("load")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"load: there is no file {os.fspath(path)}")
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            layout = (file.metadata() or {}).get("needle")
            names = list(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
            layout = json.loads(layout) if layout else {"dict": {name: {"tensor": name} for name in names}}
            return _unpacked(layout, arrays, device)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(f"load: {os.fspath(path)} is damaged or no file of needle's: {error}") from error


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def save_checkpoint(
    path: Filename, model: Any, optimizer: Any = None, scheduler: Any = None, extra: Any = None
) -> None:
    """Write all that training needs to go on as if it had never stopped.

    That is the state of model, optimizer and scheduler (the latter two if given), of NumPy's global generator, and
    extra: any data of yours, such as the number of the epoch.
    """
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    states = {name: part.state_dict() for name, part in parts.items() if part is not None}
    save({**states, "generator": _generator_state(), "extra": extra}, path)


def load_checkpoint(path: Filename, model: Any, optimizer: Any = None, scheduler: Any = None) -> Any:
    """Bring model, optimizer, scheduler and NumPy's global generator to where `save_checkpoint` found them.

    Returns extra.  Raises ArgumentError, and leaves everything as it was, if a part is missing or does not fit.
    """
    checkpoint = load(path)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    parts = {name: part for name, part in parts.items() if part is not None}
    kept = checkpoint if isinstance(checkpoint, dict) else {}
    missing = [name for name in [*parts, "generator"] if name not in kept]
    if missing:
        raise ArgumentError(f"load_checkpoint: {os.fspath(path)} holds no state of {', '.join(missing)}")
    before = {name: part.state_dict() for name, part in parts.items()}
    try:
        for name, part in parts.items():
            part.load_state_dict(checkpoint[name])
    except ArgumentError:
        for name, part in parts.items():
            part.load_state_dict(before[name])
        raise
    _set_generator_state(checkpoint["generator"])
    return checkpoint["extra"]


def _generator_state() -> dict[str, Any]:
    state: Any = np.random.get_state(legacy=False)
    return {**state, "state": {name: _plain(value) for name, value in state["state"].items()}}


def _set_generator_state(state: dict[str, Any]) -> None:
    inner = {k: v.numpy().astype(np.uint32) if isinstance(v, Tensor) else v for k, v in state["state"].items()}
    np.random.set_state({**state, "state": inner})


def _plain(value: Any) -> Any:
    """The generator's words, uint32, as int64, which tensors have."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


# ---- how a file is laid out ------------------------------------------------------------------------------------------


def _packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The layout of value as JSON data; its tensors go into arrays under their dotted names."""
    if isinstance(value, (Tensor, np.ndarray)) or hasattr(value, "__dlpack__"):
        while name in arrays:  # {"a": {"b": x}, "a.b": y}
            name += "'"
        arrays[name] = np.array(value if isinstance(value, np.ndarray) else value.numpy(), order="C")
        return {"tensor": name}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    below = f"{name}." if name else ""
    if isinstance(value, Mapping):
        return {"dict": {str(key): _packed(part, f"{below}{key}", arrays) for key, part in value.items()}}
    if isinstance(value, (list, tuple)) and not isinstance(value, Value):
        return {"list": [_packed(part, f"{below}{i}", arrays) for i, part in enumerate(value)]}
    place = f" at {name}" if name else ""
    raise ArgumentTypeError(
        f"save: got {describe(value)}{place}, wanted tensors, numbers, text, or dicts or lists of them"
    )


def _unpacked(layout: dict[str, Any], arrays: dict[str, np.ndarray], device: Any) -> Any:
    """The value of which `_packed` made the layout and the arrays."""
    ((kind, content),) = layout.items()
    if kind == "tensor":
        array = arrays[content]
        return Tensor(array, device=device, dtype=array.dtype, requires_grad=False)
    if kind == "dict":
        return {key: _unpacked(part, arrays, device) for key, part in content.items()}
    if kind == "list":
        return [_unpacked(part, arrays, device) for part in content]
    return content


def _safetensors(op: str) -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError(f"{op}: needs safetensors; install it with `pip install safetensors`") from None
    return safetensors
