"""Sections 1.2, 1.3 and 17: the names that programs written for the course import."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import needle as ndl
import pytest


def words(text: str) -> list[str]:
    return text.split()


TOP = words("""
    Tensor TensorTuple ones zeros zeros_like ones_like cpu all_devices cuda cpu_numpy default_device Device
    autograd init ops nn optim data
""")
OPERATORS = words("""
    add add_scalar multiply mul_scalar power power_scalar divide divide_scalar transpose reshape broadcast_to summation
    matmul negate log exp relu logsoftmax logsumexp make_tuple tuple_get_item fused_add_scalars tanh stack split flip
    dilate undilate conv EWiseAdd AddScalar EWiseMul MulScalar EWisePow PowerScalar EWiseDiv DivScalar Transpose Reshape
    BroadcastTo Summation MatMul Negate Log Exp ReLU LogSoftmax LogSumExp MakeTensorTuple TupleGetItem FusedAddScalars
    Tanh Stack Split Flip Dilate UnDilate Conv
""")
MEMBERS = {
    "autograd": "find_topo_sort topo_sort_dfs compute_gradient_of_variables sum_node_list TENSOR_COUNTER LAZY_MODE Op "
    "TensorOp TensorTupleOp Value Tensor TensorTuple",
    "init": "rand randn constant ones zeros randb one_hot zeros_like ones_like xavier_uniform xavier_normal "
    "kaiming_uniform kaiming_normal",
    "nn": "Parameter Module Identity Linear Flatten ReLU Sequential SoftmaxLoss BatchNorm1d BatchNorm2d LayerNorm1d "
    "Dropout Residual Conv Sigmoid RNNCell RNN LSTMCell LSTM Embedding MultiHeadAttention AttentionLayer "
    "TransformerLayer Transformer",
    "optim": "Optimizer SGD Adam",
    "data": "Dataset DataLoader NDArrayDataset MNISTDataset CIFAR10Dataset RandomFlipHorizontal RandomCrop Dictionary "
    "Corpus batchify get_batch",
    "backend_ndarray": "array empty full broadcast_to reshape maximum log exp tanh sum flip NDArray BackendDevice cpu "
    "cuda cpu_numpy default_device all_devices",
}
MODULES = words("""
    autograd backend_numpy backend_selection init ops nn optim data data.datasets ops.ops_mathematic ops.ops_logarithmic
    ops.ops_tuple nn.nn_basic nn.nn_conv nn.nn_sequence nn.nn_transformer init.init_basic init.init_initializers
    data.data_basic data.data_transforms data.datasets.mnist_dataset data.datasets.ndarray_dataset
    data.datasets.cifar10_dataset data.datasets.ptb_dataset backend_ndarray backend_ndarray.ndarray
    backend_ndarray.ndarray_backend_numpy
""")
TENSOR = words("""
    op inputs cached_data requires_grad num_outputs realize_cached_data is_leaf make_const make_from_op data detach
    shape dtype device numpy backward grad matmul sum broadcast_to reshape transpose
""")


@pytest.mark.parametrize("name", TOP + OPERATORS)
def test_top_level_name(name: str) -> None:
    assert hasattr(ndl, name)


@pytest.mark.parametrize("name", [f"{module}.{name}" for module, names in MEMBERS.items() for name in names.split()])
def test_member(name: str) -> None:
    module, member = name.split(".")
    assert hasattr(importlib.import_module(f"needle.{module}"), member)


@pytest.mark.parametrize("name", MODULES)
def test_module_imports(name: str) -> None:
    importlib.import_module(f"needle.{name}")


@pytest.mark.parametrize("name", TENSOR)
def test_tensor_member(name: str) -> None:
    assert hasattr(ndl.Tensor([1.0]), name)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_reached_both_ways(name: str) -> None:
    assert getattr(ndl, name) is getattr(ndl.ops, name)


def test_arrays_are_a_module_of_their_own() -> None:
    from needle import backend_ndarray as nd

    assert nd.NDArray and nd.array and nd.cpu and nd.cuda


def fresh(backend: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": path, "NEEDLE_BACKEND": backend}
    return subprocess.run([sys.executable, "-c", "import needle"], env=environment, capture_output=True, text=True)


def test_another_backend_is_a_runtime_error() -> None:
    done = fresh("jax")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("RuntimeError") and "jax" in last and "np" in last and "nd" in last
