"""Recurrent layers on the CPU: the kernels of a forward and a backward pass, and the products around them."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..autograd import Tensor, TensorTuple
from ..backend_selection import NDArray, array_api
from .ops_recurrent import GRULayer, LSTMLayer, RNNLayer
from .whole_operations import empty

# ---- forward ---------------------------------------------------------------------------------------------------------


def rnn_forward(op: RNNLayer, *inputs: NDArray) -> NDArray:
    if not fits("rnn_forward", *inputs):
        return NotImplemented
    x, h0, W_ih, W_hh, b_ih, b_hh = inputs
    hidden = empty(states_shape(x, h0), x)
    run("rnn_forward", of_inputs(x, W_ih), W_hh, b_ih, b_hh, h0, hidden, *hidden.shape, op.nonlinearity == "relu")
    return hidden


def lstm_forward(op: LSTMLayer, *inputs: NDArray) -> tuple[NDArray, NDArray]:
    if not fits("lstm_forward", *inputs):
        return NotImplemented
    x, h0, c0, W_ih, W_hh, b_ih, b_hh = inputs
    gates, hidden, memory = of_inputs(x, W_ih), *(empty(states_shape(x, h0), x) for _ in range(2))
    run("lstm_forward", gates, W_hh, b_ih, b_hh, h0, c0, hidden, memory, *hidden.shape)
    op.saved = gates, memory, hidden
    return hidden, memory[-1:].reshape(c0.shape)


def gru_forward(op: GRULayer, *inputs: NDArray) -> NDArray:
    if not fits("gru_forward", *inputs):
        return NotImplemented
    x, h0, W_ih, W_hh, b_ih, b_hh = inputs
    gates, hidden = of_inputs(x, W_ih), empty(states_shape(x, h0), x)
    of_h = empty(gates.shape, x)
    run("gru_forward", gates, of_h, W_hh, b_ih, b_hh, h0, hidden, *hidden.shape)
    op.saved = gates, of_h
    return hidden


# ---- backward --------------------------------------------------------------------------------------------------------


def rnn_backward(op: RNNLayer, out_grad: Tensor, node: Tensor) -> Any:
    inputs = [t.cached_data for t in node.inputs]
    if not fits("rnn_backward", *inputs):
        return NotImplemented
    (x, h0, _, W_hh, *_), hidden = inputs, node.cached_data
    grads, to_h0 = empty(hidden.shape, x), empty(h0.shape, x)
    relu = op.nonlinearity == "relu"
    run("rnn_backward", W_hh, hidden, out_grad.cached_data, grads, to_h0, *hidden.shape, relu)
    return constants(node, to_x(node, grads), to_h0, *to_weights(x, h0, hidden, grads, grads))


def lstm_backward(op: LSTMLayer, out_grad: TensorTuple, node: TensorTuple) -> Any:
    if op.saved is None:
        return NotImplemented
    x, h0, c0, _, W_hh, *_ = (t.cached_data for t in node.inputs)
    gates, memory, hidden = op.saved
    to_hidden, to_c = out_grad.realize_cached_data()
    grads, to_h0, to_c0 = empty(gates.shape, x), empty(h0.shape, x), to_c.copy()
    run("lstm_backward", gates, W_hh, c0, memory, to_hidden, grads, to_h0, to_c0, *hidden.shape)
    return constants(node, to_x(node, grads), to_h0, to_c0, *to_weights(x, h0, hidden, grads, grads))


def gru_backward(op: GRULayer, out_grad: Tensor, node: Tensor) -> Any:
    if op.saved is None:
        return NotImplemented
    x, h0, _, W_hh, *_ = (t.cached_data for t in node.inputs)
    (gates, of_h), hidden = op.saved, node.cached_data
    grads, h_grads, to_h0 = empty(gates.shape, x), empty(gates.shape, x), empty(h0.shape, x)
    run("gru_backward", gates, of_h, W_hh, h0, hidden, out_grad.cached_data, grads, h_grads, to_h0, *hidden.shape)
    return constants(node, to_x(node, grads), to_h0, *to_weights(x, h0, hidden, grads, h_grads))


# ---- what they share -------------------------------------------------------------------------------------------------


def fits(name: str, x: NDArray, *others: NDArray) -> bool:
    """Whether there is a kernel, a dtype that all share, and something to compute; else the plain path decides."""
    if kernels.device_kernel(name, x.device.name, x.dtype) is None or x.ndim != 3 or not x.size:
        return False
    return all(a.dtype == x.dtype and a.size for a in others)


def run(name: str, *arguments: Any) -> None:
    """Call a kernel on the memory of arrays, compact copies where they are not compact themselves."""
    first = arguments[0]
    kernel: Any = kernels.device_kernel(name, first.device.name, first.dtype)
    kernel(*(a.compact()._handle if isinstance(a, NDArray) else a for a in arguments))


def states_shape(x: NDArray, h0: NDArray) -> tuple[int, ...]:
    return (x.shape[0], *h0.shape)


def of_inputs(x: NDArray, W_ih: NDArray) -> NDArray:
    """x W_ih for all steps, as one product.  (T, B, I), (I, G) → (T B, G)."""
    return rows_of(x) @ W_ih


def rows_of(a: NDArray) -> NDArray:
    return a.reshape((-1, a.shape[-1]))


def to_x(node: Any, grads: NDArray) -> NDArray | None:
    """grads (T B, G) times W_ihᵀ, if somebody wants it."""
    if not node.inputs[0].requires_grad:
        return None
    W_ih = node.inputs[-4].cached_data
    return (rows_of(grads) @ W_ih.permute((1, 0))).reshape(node.inputs[0].cached_data.shape)


def to_weights(x: NDArray, h0: NDArray, hidden: NDArray, x_grads: NDArray, h_grads: NDArray) -> tuple[NDArray, ...]:
    """The gradients of W_ih, W_hh, b_ih and b_hh from those of what x and h add to the gates of all steps."""
    x_rows, h_rows, batch = rows_of(x_grads), rows_of(h_grads), len(h0)
    to_b_ih = array_api.sum(x_rows, axis=0)
    to_b_hh = to_b_ih if h_grads is x_grads else array_api.sum(h_rows, axis=0)
    to_W_hh = h0.permute((1, 0)) @ h_rows[:batch]
    if len(hidden) > 1:
        to_W_hh = to_W_hh + rows_of(hidden[:-1]).permute((1, 0)) @ h_rows[batch:]
    return rows_of(x).permute((1, 0)) @ x_rows, to_W_hh, to_b_ih, to_b_hh


def constants(node: Any, *grads: NDArray | None) -> tuple[Tensor | None, ...]:
    """The gradients as tensors, for the inputs that want one."""
    return tuple(
        Tensor.make_const(grad) if x.requires_grad else None for x, grad in zip(node.inputs, grads, strict=True)
    )


for dtype in ("float32", "float64"):
    kernels.register_operation(RNNLayer, "cpu", dtype, forward=rnn_forward, backward=rnn_backward)
    kernels.register_operation(LSTMLayer, "cpu", dtype, forward=lstm_forward, backward=lstm_backward)
    kernels.register_operation(GRULayer, "cpu", dtype, forward=gru_forward, backward=gru_backward)
