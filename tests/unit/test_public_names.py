"""The public names are chosen: whoever adds or drops one says so here."""

from __future__ import annotations

import needle
from needle import init, nn, ops, optim


def words(text: str) -> set[str]:
    return set(text.split())


TENSORS = words("Tensor TensorTuple Value Op TensorOp TensorTupleOp NDArray")
DEVICES = words("""
    BACKEND Device all_devices array_api as_device cpu cpu_numpy cuda cuda_emu default_device device device_report
""")
TRANSFORMS = words("grad value_and_grad vjp jvp hvp hessian")
RECORDING = words("enable_grad no_grad is_recording execution_hook detect_anomaly")
FILES = words("save load save_checkpoint load_checkpoint")
MODULES = words("autograd backend_ndarray data init kernels nn ops optim profile resources serialize testing visualize")
RESOURCES = words("empty_cache memory_stats num_threads reset_peak_memory set_num_threads")

MAKERS = words("""
    arange constant empty eye from_numpy full kaiming_normal kaiming_uniform linspace one_hot ones ones_like rand randb
    randn seed tensor xavier_normal xavier_uniform zeros zeros_like
""")
LAYERS = words("""
    Module Parameter HookHandle
    BatchNorm1d BatchNorm2d Dropout Flatten Identity LayerNorm1d Linear ReLU Residual Sequential SoftmaxLoss
    Conv Embedding LSTM LSTMCell RNN RNNCell Sigmoid AttentionLayer MultiHeadAttention Transformer TransformerLayer
    AvgPool2d BCEWithLogitsLoss CrossEntropyLoss GELU GRU GRUCell GroupNorm LayerNorm LeakyReLU MSELoss MaxPool2d SiLU
    Softmax Softplus Tanh
""")
OPTIMIZERS = words("""
    Optimizer SGD Adam AdamW RMSProp Newton clip_grad_norm_ clip_grad_value_
    LRScheduler StepLR CosineAnnealingLR LinearWarmup WarmupCosine
""")


def test_names_at_the_top() -> None:
    assert set(init.__all__) == MAKERS
    chosen = TENSORS | DEVICES | TRANSFORMS | RECORDING | FILES | MODULES | MAKERS | RESOURCES | set(ops.__all__)
    assert set(needle.__all__) == chosen
    assert len(needle.__all__) == len(chosen)


def test_names_of_layers_and_optimizers() -> None:
    assert set(nn.__all__) == LAYERS
    assert set(optim.__all__) == OPTIMIZERS


def test_public_names_have_docstrings() -> None:
    for module, names in ((nn, LAYERS), (optim, OPTIMIZERS), (init, MAKERS), (needle, TRANSFORMS | FILES | RESOURCES)):
        silent = [name for name in sorted(names) if not getattr(module, name).__doc__]
        assert not silent, f"{module.__name__}: without a docstring: {silent}"
