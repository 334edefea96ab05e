"""Operators that change the element type or the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Tensor, TensorOp, dtype_name
from ..backend_selection import BACKEND, NDArray, as_device
from ..errors import named

__all__ = ["Cast", "ToDevice", "cast", "to_device"]


class Cast(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype_name("cast", dtype)

    def __call__(self, a: Tensor) -> Tensor:
        rounds = np.dtype(self.dtype).kind != "f"  # a step function: its slope is 0, so the result is a constant
        return Tensor.make_from_op(self, (a.detach() if rounds and isinstance(a, Tensor) else a,))

    def compute(self, a: NDArray) -> NDArray:
        return a.astype(self.dtype)

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return cast(out_grad, node.inputs[0].dtype)


def cast(a: Tensor, dtype: Any) -> Tensor:
    """a in another element type; the gradient comes back in the old one.  A type that is no float: a constant."""
    return Cast(dtype)(a)


class ToDevice(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, device: Any) -> None:
        self.device = as_device(device)

    def compute(self, a: NDArray) -> NDArray:
        if BACKEND == "nd":
            return a.to(self.device)
        if not self.device.enabled():
            self.device.refuse()
        return a

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return to_device(out_grad, node.inputs[0].device)


@named
def to_device(a: Tensor, device: Any) -> Tensor:
    """a on another device, such as ndl.cpu() or "cuda"; the gradient comes back on the old one."""
    return ToDevice(device)(a)
