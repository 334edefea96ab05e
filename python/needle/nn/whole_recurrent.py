"""Recurrent layers and cells on the CPU, each layer one operator over all steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import Tensor, init, kernels, ops
from ..ops.ops_recurrent import GRULayer, LSTMLayer, RNNLayer
from .nn_gru import GRU, GRUCell
from .nn_sequence import LSTM, RNN, LSTMCell, RNNCell

# ---- layers ----------------------------------------------------------------------------------------------------------


def rnn(module: RNN, X: Tensor, h0: Any = None) -> Any:
    return _layers(module.rnn_cells, RNNCell, lambda cell: RNNLayer(cell.nonlinearity), module, X, h0)


def gru(module: GRU, X: Tensor, h0: Any = None) -> Any:
    return _layers(module.gru_cells, GRUCell, lambda cell: GRULayer(), module, X, h0)


def _layers(cells: Sequence[Any], kind: type, layer: Any, module: Any, X: Tensor, h0: Any) -> Any:
    """Every layer over the whole sequence, the one above reading what it gives."""
    if X.ndim != 3 or not _plain(cells, kind, X) or not _states_fit(module, X, h0):
        return NotImplemented
    last = []
    for cell, h in zip(cells, _by_layer(module, X, h0), strict=True):
        X = layer(cell)(X, h, *_parameters(cell))
        last.append(X[-1])
    return X, ops.stack(last, 0)


def lstm(module: LSTM, X: Tensor, h: Any = None) -> Any:
    h0, c0 = (None, None) if h is None else h if _is_pair(h) else (NotImplemented, None)
    cells = module.lstm_cells
    if X.ndim != 3 or not _plain(cells, LSTMCell, X) or not _states_fit(module, X, h0, c0):
        return NotImplemented
    hidden, memory = [], []
    for cell, h, c in zip(cells, _by_layer(module, X, h0), _by_layer(module, X, c0), strict=True):
        X, c = LSTMLayer()(X, h, c, *_parameters(cell))
        hidden.append(X[-1])
        memory.append(c)
    return X, (ops.stack(hidden, 0), ops.stack(memory, 0))


def _states_fit(module: Any, X: Tensor, *states: Any) -> bool:
    shape = (module.num_layers, X.shape[1], module.hidden_size)
    return all(state is None or _like(state, X, shape) for state in states)


def _by_layer(module: Any, X: Tensor, states: Tensor | None) -> Sequence[Tensor]:
    """The state of every layer, zeros if there is none."""
    if states is None:
        return [_zeros(X, X.shape[1], module.hidden_size)] * module.num_layers
    return ops.split(states, 0).tuple()


# ---- cells: a sequence of one step -----------------------------------------------------------------------------------


def rnn_cell(module: RNNCell, X: Tensor, h: Any = None) -> Any:
    return _step(RNNLayer(module.nonlinearity), RNNCell, module, X, h)


def gru_cell(module: GRUCell, X: Tensor, h: Any = None) -> Any:
    return _step(GRULayer(), GRUCell, module, X, h)


def _step(op: Any, kind: type, cell: Any, X: Tensor, h: Any) -> Any:
    if X.ndim != 2 or not _plain([cell], kind, X) or not _state_fits(cell, X, h):
        return NotImplemented
    return op(_one_step(X), _state(cell, X, h), *_parameters(cell))[0]


def lstm_cell(module: LSTMCell, X: Tensor, h: Any = None) -> Any:
    h0, c0 = (None, None) if h is None else h if _is_pair(h) else (NotImplemented, None)
    if X.ndim != 2 or not _plain([module], LSTMCell, X) or not all(_state_fits(module, X, s) for s in (h0, c0)):
        return NotImplemented
    states = (_state(module, X, s) for s in (h0, c0))
    hidden, memory = LSTMLayer()(_one_step(X), *states, *_parameters(module))
    return hidden[0], memory


def _one_step(X: Tensor) -> Tensor:
    return ops.reshape(X, (1, *X.shape))


def _state_fits(cell: Any, X: Tensor, h: Any) -> bool:
    return h is None or _like(h, X, (X.shape[0], cell.hidden_size))


def _state(cell: Any, X: Tensor, h: Tensor | None) -> Tensor:
    return _zeros(X, X.shape[0], cell.hidden_size) if h is None else h


# ---- what they share -------------------------------------------------------------------------------------------------


def _plain(cells: Sequence[Any], kind: type, X: Tensor) -> bool:
    """Whether the cells are the library's own, unwatched by hooks, with parameters of X's kind, and X fits them."""
    return (
        X.size > 0
        and X.shape[-1] == cells[0].input_size
        and all(type(cell) is kind and "_hooks" not in cell.__dict__ for cell in cells)
        and all(p is None or (p.dtype == X.dtype and p.device == X.device) for cell in cells for p in _given(cell))
    )


def _is_pair(h: Any) -> bool:
    return isinstance(h, (tuple, list)) and len(h) == 2


def _like(state: Any, X: Tensor, shape: tuple[int, ...]) -> bool:
    return isinstance(state, Tensor) and state.shape == shape and state.dtype == X.dtype and state.device == X.device


def _given(cell: Any) -> tuple[Any, ...]:
    return cell.W_ih, cell.W_hh, cell.bias_ih, cell.bias_hh


def _parameters(cell: Any) -> list[Tensor]:
    """W_ih, W_hh and the biases, zeros if there are none."""
    W_ih, W_hh, *biases = _given(cell)
    return [W_ih, W_hh, *(_zeros(W_ih, W_ih.shape[1]) if bias is None else bias for bias in biases)]


def _zeros(like: Tensor, *shape: int) -> Tensor:
    return init.zeros(*shape, device=like.device, dtype=like.dtype, requires_grad=False)


WHOLE: dict[type, Any] = {RNN: rnn, LSTM: lstm, GRU: gru, RNNCell: rnn_cell, LSTMCell: lstm_cell, GRUCell: gru_cell}
for dtype in ("float32", "float64"):
    for cls, forward in WHOLE.items():
        kernels.register_operation(cls, "cpu", dtype, forward=forward)
