"""The operators of the course."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd import ElementwiseOp, Shape, Tensor, TensorOp
from ..backend_selection import NDArray, array_api
from ..errors import ShapeError

# >>> hw4
# isort: split
from ..autograd import TensorTuple, TensorTupleOp, device_of
from ..backend_selection import as_strided
from ..errors import ArgumentError, ArgumentTypeError, describe, named
from .ops_tuple import make_tuple, several

# <<< hw4

__all__ = [
    "AddScalar",
    "BroadcastTo",
    "DivScalar",
    "EWiseAdd",
    "EWiseDiv",
    "EWiseMul",
    "EWisePow",
    "Exp",
    "Log",
    "MatMul",
    "MulScalar",
    "Negate",
    "PowerScalar",
    "ReLU",
    "Reshape",
    "Summation",
    "Transpose",
    "add",
    "add_scalar",
    "broadcast_to",
    "divide",
    "divide_scalar",
    "exp",
    "log",
    "matmul",
    "mul_scalar",
    "multiply",
    "negate",
    "power",
    "power_scalar",
    "relu",
    "reshape",
    "summation",
    "transpose",
]

# >>> hw4
__all__ += [
    "Conv",
    "Dilate",
    "Flip",
    "Split",
    "Stack",
    "Tanh",
    "UnDilate",
    "conv",
    "dilate",
    "flip",
    "split",
    "stack",
    "tanh",
    "undilate",
]

# <<< hw4


def quiet(function: Callable) -> Callable:
    """Without the warnings that NumPy gives where inf or NaN is the right answer."""

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return function(*args)

    return wrapped


class EWiseAdd(ElementwiseOp):
    name = "add"
    reads_inputs = reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return a + b

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        return out_grad, out_grad


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b."""
    return EWiseAdd()(a, b)


class AddScalar(ElementwiseOp):
    reads_inputs = reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    def compute(self, a: NDArray) -> NDArray:
        return a + self.scalar

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad


def add_scalar(a: Tensor, scalar: Any) -> Tensor:
    """a + scalar, a number."""
    return AddScalar(scalar)(a)


class EWiseMul(ElementwiseOp):
    name = "multiply"
    reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        return a * b

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        a, b = node.inputs
        return out_grad * b, out_grad * a


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b, entry by entry."""
    return EWiseMul()(a, b)


class MulScalar(ElementwiseOp):
    reads_inputs = reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    def compute(self, a: NDArray) -> NDArray:
        return a * self.scalar

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return out_grad * self.scalar


def mul_scalar(a: Tensor, scalar: Any) -> Tensor:
    """a * scalar, a number."""
    return MulScalar(scalar)(a)


class EWisePow(ElementwiseOp):
    name = "power"

    @quiet  # 0⁻¹ is inf, and a negative number has no real logarithm
    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/ewise_pow_forward
        return a**b
        ### END YOUR SOLUTION hw1/ewise_pow_forward

    @quiet
    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        ### BEGIN YOUR SOLUTION hw1/ewise_pow_backward
        a, b = node.inputs
        # where a or b is 0 the factor beside the critical term is 0, too: lift the term away from 0⁻¹ and log 0
        a_is_zero = Tensor.make_const(a.realize_cached_data() == 0)
        b_is_zero = Tensor.make_const(b.realize_cached_data() == 0)
        grad_a = out_grad * b * a ** (b - 1 + b_is_zero)
        grad_b = out_grad * node * log(a + a_is_zero)
        return grad_a, grad_b
        ### END YOUR SOLUTION hw1/ewise_pow_backward


def power(a: Tensor, b: Tensor) -> Tensor:
    """a to the power of b, entry by entry."""
    return EWisePow()(a, b)


class PowerScalar(ElementwiseOp):
    reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    @quiet
    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/power_scalar_forward hw4/nd_power_scalar
        return a**self.scalar
        ### END YOUR SOLUTION hw1/power_scalar_forward hw4/nd_power_scalar

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/power_scalar_backward
        if self.scalar == 0:
            return out_grad * 0  # not 0 · a⁻¹, which is NaN at a = 0
        return out_grad * self.scalar * node.inputs[0] ** (self.scalar - 1)
        ### END YOUR SOLUTION hw1/power_scalar_backward


def power_scalar(a: Tensor, scalar: Any) -> Tensor:
    """a to the power of scalar, a number."""
    return PowerScalar(scalar)(a)


class EWiseDiv(ElementwiseOp):
    name = "divide"

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/ewise_div_forward hw4/nd_ewise_div
        return a / b
        ### END YOUR SOLUTION hw1/ewise_div_forward hw4/nd_ewise_div

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        ### BEGIN YOUR SOLUTION hw1/ewise_div_backward
        b = node.inputs[1]
        grad_a = out_grad / b
        return grad_a, -grad_a * node  # node is a / b: no b² that could overflow
        ### END YOUR SOLUTION hw1/ewise_div_backward


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b, entry by entry."""
    return EWiseDiv()(a, b)


class DivScalar(ElementwiseOp):
    name = "divide_scalar"
    reads_inputs = reads_output = False

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/divide_scalar_forward hw4/nd_divide_scalar
        return a / self.scalar
        ### END YOUR SOLUTION hw1/divide_scalar_forward hw4/nd_divide_scalar

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/divide_scalar_backward
        return out_grad / self.scalar
        ### END YOUR SOLUTION hw1/divide_scalar_backward


def divide_scalar(a: Tensor, scalar: Any) -> Tensor:
    """a / scalar, a number."""
    return DivScalar(scalar)(a)


class Transpose(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axes: tuple[int, int] | None = None) -> None:
        self.axes = axes

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/transpose_forward hw4/nd_transpose
        first, second = (-2, -1) if self.axes is None else self.axes
        return array_api.swapaxes(a, first, second)
        ### END YOUR SOLUTION hw1/transpose_forward hw4/nd_transpose

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/transpose_backward
        return transpose(out_grad, self.axes)
        ### END YOUR SOLUTION hw1/transpose_backward


def transpose(a: Tensor, axes: tuple[int, int] | None = None) -> Tensor:
    """Swap two axes, the last two unless axes names others.  (2, 3, 4) → (2, 4, 3)."""
    return Transpose(axes)(a)


class Reshape(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/reshape_forward hw4/nd_reshape
        return array_api.reshape(a, self.shape)
        ### END YOUR SOLUTION hw1/reshape_forward hw4/nd_reshape

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/reshape_backward
        return reshape(out_grad, node.inputs[0].shape)
        ### END YOUR SOLUTION hw1/reshape_backward


def reshape(a: Tensor, shape: Shape) -> Tensor:
    """The same numbers in row-major order under another shape; one extent may be -1."""
    return Reshape(shape)(a)


class BroadcastTo(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/broadcast_to_forward hw4/nd_broadcast_to
        return array_api.broadcast_to(a, self.shape)
        ### END YOUR SOLUTION hw1/broadcast_to_forward hw4/nd_broadcast_to

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        return sum_to_shape(out_grad, node.inputs[0].shape)


def broadcast_to(a: Tensor, shape: Shape) -> Tensor:
    """Repeat a along new leading axes and along axes of extent 1.  (3, 1) → (2, 3, 4)."""
    return BroadcastTo(shape)(a)


def sum_to_shape(a: Tensor, shape: Shape) -> Tensor:
    """Sum over the axes along which shape would be stretched to a.shape: the adjoint of broadcast_to."""
    ### BEGIN YOUR SOLUTION hw1/broadcast_to_backward
    if a.shape == shape:
        return a
    padded = (1,) * (len(a.shape) - len(shape)) + tuple(shape)
    stretched = tuple(axis for axis, (new, old) in enumerate(zip(a.shape, padded)) if new != old)
    return reshape(summation(a, stretched) if stretched else a, shape)
    ### END YOUR SOLUTION hw1/broadcast_to_backward


class Summation(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axes: int | tuple[int, ...] | None = None) -> None:
        self.axes = axes

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/summation_forward hw4/nd_summation
        return array_api.sum(a, axis=_as_axis(self.axes))
        ### END YOUR SOLUTION hw1/summation_forward hw4/nd_summation

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/summation_backward
        shape = node.inputs[0].shape
        return broadcast_to(reshape(out_grad, shape_with_ones(shape, self.axes)), shape)
        ### END YOUR SOLUTION hw1/summation_backward


def summation(a: Tensor, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """Sum over axes (all by default), which disappear.  (B, T, C) → (B, C) for axes=1."""
    return Summation(axes)(a)


def shape_with_ones(shape: Shape, axes: int | Sequence[int] | None) -> Shape:
    """shape with extent 1 at the reduced axes: what keepdims would give.  (2, 3, 4), 1 → (2, 1, 4)."""
    if axes is None:
        return (1,) * len(shape)
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    reduced = {axis % len(shape) for axis in axes}
    return tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))


def _as_axis(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, list) else axes


class MatMul(TensorOp):
    name = "matmul"
    reads_output = False

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        left, right = a.shape, b.shape
        if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:
            raise ShapeError(f"matmul: {left} @ {right}, wanted (…, m, n) @ (…, n, p)")
        ### BEGIN YOUR SOLUTION hw1/matmul_forward hw4/nd_matmul
        return a @ b
        ### END YOUR SOLUTION hw1/matmul_forward hw4/nd_matmul

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        ### BEGIN YOUR SOLUTION hw1/matmul_backward
        a, b = node.inputs
        return (
            sum_to_shape(out_grad @ transpose(b), a.shape),
            sum_to_shape(transpose(a) @ out_grad, b.shape),
        )
        ### END YOUR SOLUTION hw1/matmul_backward


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Matrix product over the last two axes; leading axes broadcast.  (B, M, N) @ (N, P) → (B, M, P)."""
    return MatMul()(a, b)


class Negate(ElementwiseOp):
    reads_inputs = reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/negate_forward hw4/nd_negate
        return -a
        ### END YOUR SOLUTION hw1/negate_forward hw4/nd_negate

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/negate_backward
        return -out_grad
        ### END YOUR SOLUTION hw1/negate_backward


def negate(a: Tensor) -> Tensor:
    """-a."""
    return Negate()(a)


class Log(ElementwiseOp):
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/log_forward hw4/nd_log
        return array_api.log(a)
        ### END YOUR SOLUTION hw1/log_forward hw4/nd_log

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/log_backward
        return out_grad / node.inputs[0]
        ### END YOUR SOLUTION hw1/log_backward


def log(a: Tensor) -> Tensor:
    """Natural logarithm."""
    return Log()(a)


class Exp(ElementwiseOp):
    reads_inputs = False

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/exp_forward hw4/nd_exp
        return array_api.exp(a)
        ### END YOUR SOLUTION hw1/exp_forward hw4/nd_exp

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/exp_backward
        return out_grad * node
        ### END YOUR SOLUTION hw1/exp_backward


def exp(a: Tensor) -> Tensor:
    """e to the power of a."""
    return Exp()(a)


class ReLU(ElementwiseOp):
    name = "relu"
    reads_output = False

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw1/relu_forward hw4/nd_relu
        return array_api.maximum(a, 0)
        ### END YOUR SOLUTION hw1/relu_forward hw4/nd_relu

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw1/relu_backward
        return out_grad * Tensor.make_const(node.inputs[0].realize_cached_data() > 0)
        ### END YOUR SOLUTION hw1/relu_backward


def relu(a: Tensor) -> Tensor:
    """max(a, 0); the slope at 0 is taken as 0."""
    return ReLU()(a)


# >>> hw4
class Tanh(ElementwiseOp):
    reads_inputs = False

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/tanh_forward
        return array_api.tanh(a)
        ### END YOUR SOLUTION hw4/tanh_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/tanh_backward
        return out_grad * (1 - node * node)
        ### END YOUR SOLUTION hw4/tanh_backward


def tanh(a: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return Tanh()(a)


class Stack(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def compute(self, arrays: tuple[NDArray, ...]) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/stack_forward
        return array_api.concatenate([array_api.expand_dims(a, self.axis) for a in arrays], self.axis)
        ### END YOUR SOLUTION hw4/stack_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> TensorTuple:
        ### BEGIN YOUR SOLUTION hw4/stack_backward
        return split(out_grad, self.axis)
        ### END YOUR SOLUTION hw4/stack_backward


def stack(args: Sequence[Tensor], axis: int) -> Tensor:
    """Join tensors of one shape on a new axis.  n × (3, 4), axis=1 → (3, n, 4)."""
    return Stack(axis)(args if isinstance(args, TensorTuple) else make_tuple(*several("stack", args)))


class Split(TensorTupleOp):
    reads_inputs = reads_output = False

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def compute(self, a: NDArray) -> tuple[NDArray, ...]:
        if not -a.ndim <= self.axis < a.ndim:
            raise ShapeError(f"split: axis {self.axis} of shape {a.shape}")
        ### BEGIN YOUR SOLUTION hw4/split_forward
        axis = self.axis % a.ndim
        shape = a.shape[:axis] + a.shape[axis + 1 :]
        before = (slice(None),) * axis
        return tuple(array_api.reshape(a[before + (slice(i, i + 1),)], shape) for i in range(a.shape[axis]))
        ### END YOUR SOLUTION hw4/split_forward

    def gradient(self, out_grad: TensorTuple, node: TensorTuple) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/split_backward
        return stack(out_grad, self.axis)
        ### END YOUR SOLUTION hw4/split_backward


def split(a: Tensor, axis: int) -> TensorTuple:
    """Cut a into its slices along axis, which disappears.  (3, n, 4), axis=1 → n × (3, 4)."""
    return Split(axis)(a)


class Flip(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axes: tuple[int, ...] | None = None) -> None:
        self.axes = axes

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/flip_forward
        return array_api.flip(a, self.axes)
        ### END YOUR SOLUTION hw4/flip_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/flip_backward
        return flip(out_grad, self.axes)
        ### END YOUR SOLUTION hw4/flip_backward


def flip(a: Tensor, axes: tuple[int, ...] | None = None) -> Tensor:
    """Reverse a along axes, along all by default."""
    return Flip(axes)(a)


class Dilate(TensorOp):
    reads_inputs = reads_output = False

    def __init__(self, axes: tuple[int, ...], dilation: int) -> None:
        self.axes, self.dilation = axes, dilation
        if not isinstance(dilation, int) or dilation < 0:
            raise ArgumentError(f"{self.name}: dilation {dilation!r}, wanted a whole number ≥ 0")

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/dilate_forward
        step = self.dilation + 1
        axes = _existing(self.axes, a.ndim)
        shape = tuple(s * step if i in axes else s for i, s in enumerate(a.shape))
        out = device_of(a).zeros(*shape, dtype=a.dtype)
        out[tuple(slice(None, None, step if i in axes else 1) for i in range(a.ndim))] = a
        return out
        ### END YOUR SOLUTION hw4/dilate_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/dilate_backward
        return undilate(out_grad, self.axes, self.dilation)
        ### END YOUR SOLUTION hw4/dilate_backward


def dilate(a: Tensor, axes: tuple[int, ...], dilation: int) -> Tensor:
    """Put `dilation` zeros after every entry along axes.  [1 2], dilation 1 → [1 0 2 0]."""
    return Dilate(axes, dilation)(a)


class UnDilate(TensorOp):
    name = "undilate"
    reads_inputs = reads_output = False

    def __init__(self, axes: tuple[int, ...], dilation: int) -> None:
        self.axes, self.dilation = axes, dilation
        if not isinstance(dilation, int) or dilation < 0:
            raise ArgumentError(f"{self.name}: dilation {dilation!r}, wanted a whole number ≥ 0")

    def compute(self, a: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/undilate_forward
        axes, step = _existing(self.axes, a.ndim), self.dilation + 1
        return a[tuple(slice(None, None, step if i in axes else 1) for i in range(a.ndim))]
        ### END YOUR SOLUTION hw4/undilate_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw4/undilate_backward
        shape, spread = node.inputs[0].shape, dilate(out_grad, self.axes, self.dilation)
        return spread if spread.shape == shape else spread[tuple(map(slice, shape))]  # zeros that were not there
        ### END YOUR SOLUTION hw4/undilate_backward


def undilate(a: Tensor, axes: tuple[int, ...], dilation: int) -> Tensor:
    """Keep the first of every `dilation` + 1 entries along axes: takes back dilate."""
    return UnDilate(axes, dilation)(a)


def _existing(axes: Any, ndim: int) -> set[int]:
    """The axes that are there, counted from the front; others are ignored, as the course has it."""
    axes = (axes,) if isinstance(axes, int) else axes
    return {axis % ndim for axis in axes if -ndim <= axis < ndim}


class Conv(TensorOp):
    reads_output = False

    def __init__(self, stride: int | None = 1, padding: int | tuple[int, int] | None = 0) -> None:
        self.stride, self.padding = 1 if stride is None else stride, 0 if padding is None else padding
        if not isinstance(self.stride, int) or self.stride < 1 or min(pair(self.padding)) < 0:
            raise ArgumentError(f"conv: stride {stride}, padding {padding}; wanted stride ≥ 1 and padding ≥ 0")

    def compute(self, a: NDArray, b: NDArray) -> NDArray:
        ### BEGIN YOUR SOLUTION hw4/conv_forward
        columns, out_shape = self.im2col(a, b.shape)
        return array_api.reshape(columns @ array_api.reshape(b, (-1, b.shape[3])), (*out_shape, b.shape[3]))

    def im2col(self, images: NDArray, kernel_shape: Shape) -> tuple[NDArray, Shape]:
        """Every window of the padded images as a row.  (N, H, W, C) → (N·H'·W', K·K·C) and (N, H', W')."""
        (kh, kw, channels), (ph, pw), stride = kernel_shape[:3], pair(self.padding), self.stride
        padded = array_api.pad(images, ((0, 0), (ph, ph), (pw, pw), (0, 0))) if ph or pw else images
        n, h, w, c = padded.shape
        if c != channels or h < kh or w < kw:
            raise ShapeError(
                f"conv: padded images (N, H, W, C) = {padded.shape} with a kernel (K, K, Cin, Cout) = {kernel_shape}"
            )
        out_h, out_w = (h - kh) // stride + 1, (w - kw) // stride + 1
        strides = (h * w * c, stride * w * c, stride * c, w * c, c, 1)
        windows = as_strided(padded, (n, out_h, out_w, kh, kw, c), strides)
        return array_api.reshape(windows, (n * out_h * out_w, kh * kw * c)), (n, out_h, out_w)
        ### END YOUR SOLUTION hw4/conv_forward

    def gradient(self, out_grad: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        ### BEGIN YOUR SOLUTION hw4/conv_backward
        images, kernel = node.inputs
        return self._image_gradient(out_grad, images, kernel), self._kernel_gradient(out_grad, images, kernel)

    def _image_gradient(self, out_grad: Tensor, images: Tensor, kernel: Tensor) -> Tensor:
        """Every output pixel pays into the window it saw: the spread-out gradient convolved with the turned kernel."""
        spread = dilate(out_grad, (1, 2), self.stride - 1)
        turned = transpose(flip(kernel, (0, 1)), (2, 3))
        reach = [k - 1 - p for k, p in zip(kernel.shape, pair(self.padding))]  # how far a window sticks out; < 0: cut
        full = conv(spread, turned, padding=tuple(max(r, 0) for r in reach))
        top, left = (max(-r, 0) for r in reach)
        return full[:, top : top + images.shape[1], left : left + images.shape[2], :]

    def _kernel_gradient(self, out_grad: Tensor, images: Tensor, kernel: Tensor) -> Tensor:
        """The images convolved with the spread-out gradient, batch and channels having changed places."""
        height, width = (self.stride * (extent - 1) + 1 for extent in out_grad.shape[1:3])
        spread = dilate(out_grad, (1, 2), self.stride - 1)[:, :height, :width, :]
        as_kernel = transpose(transpose(spread, (0, 1)), (1, 2))  # N H W C → H W N C
        full = conv(transpose(images, (0, 3)), as_kernel, padding=self.padding)
        return transpose(transpose(full, (0, 1)), (1, 2))[: kernel.shape[0], : kernel.shape[1]]
        ### END YOUR SOLUTION hw4/conv_backward


@named
def conv(a: Tensor, b: Tensor, stride: int = 1, padding: int | tuple[int, int] = 1) -> Tensor:
    """Slide a kernel over images.  (N, H, W, Cin), (K, K, Cin, Cout) → (N, H', W', Cout), H' = ⌊(H+2p-K)/s⌋+1.

    Cross-correlation with zero padding on all sides; raises ShapeError where channels differ or the kernel sticks out.
    """
    return Conv(stride, padding)(a, b)


def pair(size: int | tuple[int, int]) -> tuple[int, int]:
    """A size for both directions: one number stands for two equal ones."""
    sizes = (size, size) if isinstance(size, int) else tuple(size) if isinstance(size, (tuple, list)) else ()
    if len(sizes) != 2 or not all(isinstance(extent, int) for extent in sizes):
        raise ArgumentTypeError(f"conv: got {describe(size)} as a size, wanted a whole number or two")
    return sizes


# <<< hw4
