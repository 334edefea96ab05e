"""Whole operations on single entries, on the CPU in float32: activations and gradients in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable

from .. import kernels
from ..autograd import Op, Tensor
from ..backend_selection import NDArray
from .ops_activation import Gelu, Sigmoid, Silu
from .ops_fused import Dropout
from .ops_mathematic import EWiseMul, ReLU, Tanh
from .whole_operations import DTYPE, empty, has_kernel, run

# ---- activations -----------------------------------------------------------------------------------------------------


def by_kernel(name: str) -> Callable:
    """A forward pass that is one kernel."""

    def forward(op: Op, a: NDArray) -> NDArray:
        if not has_kernel(name, a):
            return NotImplemented
        out = empty(a.shape, a)
        run(name, a, out)
        return out

    return forward


def backward_by_kernel(name: str, reads_output: bool = False) -> Callable:
    """A backward pass that is one kernel, of the input or of the output, and of out_grad."""

    def backward(op: Op, out_grad: Tensor, node: Tensor) -> Tensor:
        a = node.cached_data if reads_output else node.inputs[0].cached_data
        if a.dtype != DTYPE or not has_kernel(name, a):  # the input of a function of integers is no float
            return NotImplemented
        grad = out_grad.cached_data
        if not a.is_compact() and (order := a._memory_order(grad)):  # what a convolution leaves: no copy is needed
            return Tensor.make_const(a._in_order(order, in_one_pass, grad))
        return Tensor.make_const(in_one_pass(a, grad))

    def in_one_pass(a: NDArray, grad: NDArray) -> NDArray:
        out = empty(a.shape, a)
        run(name, a, grad, out)
        return out

    return backward


kernels.register_operation(ReLU, "cpu", DTYPE, backward=backward_by_kernel("relu_backward"))
kernels.register_operation(Tanh, "cpu", DTYPE, backward=backward_by_kernel("tanh_backward", reads_output=True))
kernels.register_operation(
    Sigmoid,
    "cpu",
    DTYPE,
    forward=by_kernel("sigmoid"),
    backward=backward_by_kernel("sigmoid_backward", reads_output=True),
)
for cls, name in ((Silu, "silu"), (Gelu, "gelu")):
    kernels.register_operation(
        cls, "cpu", DTYPE, forward=by_kernel(name), backward=backward_by_kernel(f"{name}_backward")
    )

# ---- dropout ---------------------------------------------------------------------------------------------------------


def dropped(op: Dropout, a: NDArray) -> NDArray:
    """Mask and scale in one pass."""
    if not has_kernel("dropout", a):
        return NotImplemented
    out = empty(a.shape, a)
    run("dropout", a, op.uniform, op.keep, out)
    return out


def dropout_backward(op: Dropout, out_grad: Tensor, node: Tensor) -> Tensor:
    grad = dropped(op, out_grad.cached_data)
    return grad if grad is NotImplemented else Tensor.make_const(grad)


kernels.register_operation(Dropout, "cpu", DTYPE, forward=dropped, backward=dropout_backward)

# ---- products with constants -----------------------------------------------------------------------------------------


def multiply_backward(op: EWiseMul, out_grad: Tensor, node: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What EWiseMul.gradient gives; None for an input that requires no gradient, as a mask does not."""
    a, b = node.inputs
    return out_grad * b if a.requires_grad else None, out_grad * a if b.requires_grad else None


kernels.register_operation(EWiseMul, "cpu", DTYPE, backward=multiply_backward)
