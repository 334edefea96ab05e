"""Whole operations of matrix products on the CPU: x W + b in one kernel, and gradients only for what asks for one.

Backward passes run while nothing records.  Transposing costs nothing: the kernel takes operands by their strides.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Tensor
from ..backend_selection import NDArray
from .ops_fused import Affine
from .ops_mathematic import MatMul, reshape, sum_to_shape, summation, transpose


def matmul_backward(op: MatMul, out_grad: Tensor, node: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What MatMul.gradient gives; None for an input that requires no gradient."""
    a, b = node.inputs
    to_a = to_b = None
    if a.requires_grad:
        to_a = sum_to_shape(out_grad @ transpose(b), a.shape)
    if b.requires_grad:
        to_b = _to_right(a, out_grad, b)
    return to_a, to_b


def _to_right(a: Tensor, out_grad: Tensor, b: Tensor) -> Tensor:
    """aᵀ @ out_grad; where all rows of a batch met the same matrix, as one product instead of a sum of many."""
    if b.ndim == 2 and a.ndim > 2 and a.size and out_grad.size:
        a, out_grad = reshape(a, (-1, a.shape[-1])), reshape(out_grad, (-1, out_grad.shape[-1]))
    return sum_to_shape(transpose(a) @ out_grad, b.shape)


def affine_forward(op: Affine, x: NDArray, weight: NDArray, bias: NDArray) -> NDArray:
    kernel = kernels.device_kernel("linear", x.device.name, x.dtype)
    if kernel is None or not x.dtype == weight.dtype == bias.dtype:
        return NotImplemented
    out = x._new((x.shape[0], weight.shape[1]), x.dtype)
    sizes = (*x.shape, weight.shape[1])
    handles = x._handle, weight._handle, bias.compact()._handle, out._handle
    kernel(*handles, sizes, x.strides, x._offset, weight.strides, weight._offset)
    return out


def affine_backward(op: Affine, out_grad: Tensor, node: Tensor) -> tuple[Any, Any, Any]:
    x, weight, bias = node.inputs
    return (
        out_grad @ transpose(weight) if x.requires_grad else None,
        transpose(x) @ out_grad if weight.requires_grad else None,
        reshape(summation(out_grad, 0), bias.shape) if bias.requires_grad else None,
    )


for dtype in ("float32", "float64"):
    kernels.register_operation(MatMul, "cpu", dtype, backward=matmul_backward)
    kernels.register_operation(Affine, "cpu", dtype, forward=affine_forward, backward=affine_backward)
