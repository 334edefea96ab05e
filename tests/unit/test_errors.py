"""Whatever is passed to a public callable, what comes back is a result or one line that says who complains (U090).

The operators' own messages are in test_ops_errors.py; here every public callable of every module is called with the
same pile of wrong things.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import backend_ndarray as nd
from needle import data, functional, init, kernels, nn, ops, optim, visualize
from needle.errors import ArgumentError, ArgumentTypeError, NeedleError, describe, in_the_name_of, named


def tensor(*shape: int, dtype: str = "float32", device: Any = None) -> ndl.Tensor:
    return ndl.Tensor(np.ones(shape), dtype=dtype, device=device)


JUNK = [
    None,
    object(),
    "text",
    -1,
    2.5,
    float("nan"),
    1j,
    [],
    [1, 2],
    (0, 0),
    {},
    slice(1),
    lambda *args: None,
    np.ones((2, 3)),
    np.ones(3, dtype="complex64"),
    np.array(["a"]),
    tensor(2, 3),
    tensor(5),
    tensor(),
    tensor(0, 3),
    tensor(2, 3, dtype="bool"),
    tensor(2, 3, dtype="int32"),
    tensor(2, 3, device=ndl.cpu_numpy()),
    ndl.make_tuple(tensor(2), tensor(2)),
]
# what would draw, download, open windows or change the process; and plain records, which check nothing
LEFT_ALONE = {"seed", "fetch", "data_dir", "load_digits", "device", "BackendDevice", "HookHandle"}
LEFT_ALONE |= {"GraphPicture", "LiveReport", "LiveTensor", "Picture", "cpu", "cpu_numpy", "cuda", "cuda_emu"}

MODULES = {"ops": ops, "init": init, "nn": nn, "optim": optim, "data": data, "nd": nd, "visualize": visualize}
CALLABLES: dict[str, Callable] = {
    f"{module}.{name}": getattr(where, name)
    for module, where in MODULES.items()
    for name in where.__all__
    if callable(getattr(where, name)) and name not in LEFT_ALONE
}
CALLABLES |= {f"functional.{name}": getattr(functional, name) for name in functional.__all__}


def complaints(call: Callable, arguments: Iterator[tuple]) -> Iterator[tuple[tuple, Exception]]:
    for args in arguments:
        try:
            call(*args)
        except Exception as error:
            yield args, error


def fault_of(error: Exception, name: str) -> str:
    """What is wrong with an error; empty for a good one."""
    text = str(error)
    if not text.strip():
        return "says nothing"
    if not isinstance(
        error, (NeedleError, TypeError, ValueError, IndexError, NotImplementedError, OSError, BufferError)
    ):
        return "is not of a kind that callers expect"
    if "has no attribute" in text and not isinstance(error, NeedleError):
        return "is an accident, not a message"
    if "incompatible function arguments" in text and not isinstance(error, NeedleError):
        return "is a dump of the binding's signature"
    word = name.rpartition(".")[2].replace("_", "").lower()
    if not re.match(r"[\w.]+(: |\(\) )", text) and word not in text.replace("_", "").lower():
        return "does not say who complains"
    return ""


def verdict(name: str, found: Iterator[tuple[tuple, Exception]]) -> list[str]:
    bad = []
    for args, error in found:
        if fault := fault_of(error, name):
            bad.append(f"{name}({', '.join(map(describe, args))}): {type(error).__name__} {fault}: {error}")
    return bad[:5]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLABLES)
def test_wrong_arguments_end_in_a_line_that_names_who_complains_U090(name: str) -> None:
    calls = [
        (),
        *product(JUNK),
        *product(JUNK, JUNK),
        *((tensor(2, 3), a, b) for a, b in product(JUNK[::3], JUNK[::2])),
    ]
    bad = verdict(name, complaints(CALLABLES[name], iter(calls)))
    assert not bad, "\n".join(bad)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: nn.Linear(3, 4),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "BatchNorm2d": lambda: nn.BatchNorm2d(3),
    "LayerNorm1d": lambda: nn.LayerNorm1d(3),
    "LayerNorm": lambda: nn.LayerNorm(3),
    "GroupNorm": lambda: nn.GroupNorm(1, 3),
    "Conv": lambda: nn.Conv(3, 4, 3),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
    "AvgPool2d": lambda: nn.AvgPool2d(2),
    "Embedding": lambda: nn.Embedding(4, 3),
    "RNNCell": lambda: nn.RNNCell(3, 4),
    "LSTMCell": lambda: nn.LSTMCell(3, 4),
    "GRUCell": lambda: nn.GRUCell(3, 4),
    "RNN": lambda: nn.RNN(3, 4),
    "LSTM": lambda: nn.LSTM(3, 4),
    "GRU": lambda: nn.GRU(3, 4),
    "Dropout": lambda: nn.Dropout(0.5),
    "Flatten": nn.Flatten,
    "ReLU": nn.ReLU,
    "Softmax": nn.Softmax,
    "SoftmaxLoss": nn.SoftmaxLoss,
    "MSELoss": nn.MSELoss,
    "BCEWithLogitsLoss": nn.BCEWithLogitsLoss,
    "CrossEntropyLoss": nn.CrossEntropyLoss,
    "MultiHeadAttention": nn.MultiHeadAttention,
    "AttentionLayer": lambda: nn.AttentionLayer(3, 1, 2),
    "TransformerLayer": lambda: nn.TransformerLayer(3, 1, 2, 4),
    "Transformer": lambda: nn.Transformer(3, 4, 1, num_head=1, dim_head=2),
    "Sequential": lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
    "Residual": lambda: nn.Residual(nn.Linear(3, 3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_says_what_came_instead_of_its_input_U090(name: str) -> None:
    layer = LAYERS[name]()
    bad = verdict(name, complaints(layer, iter([(), *product(JUNK), *product(JUNK, JUNK)])))
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ("Flatten", "ReLU", "Softmax", "Dropout")])
def test_a_layer_refuses_a_shape_that_does_not_fit_and_shows_it_U068(name: str) -> None:
    layer, wrong = LAYERS[name](), tensor(7, 1, 2, 9, 1)
    args = (
        (wrong,) if name not in ("SoftmaxLoss", "MSELoss", "BCEWithLogitsLoss", "CrossEntropyLoss") else (wrong, wrong)
    )
    args = (wrong, tensor(3), tensor(4)) if name == "MultiHeadAttention" else args
    if name in ("MSELoss", "BCEWithLogitsLoss"):
        args = (wrong, tensor(3))
    if name == "Embedding":
        args = (ndl.Tensor([4.0]),)
    with pytest.raises(ValueError, match=r"\d") as caught:
        layer(*args)
    assert name == "Embedding" or "(7, 1, 2, 9, 1)" in str(caught.value)


@pytest.mark.parametrize("name", [name for name in LAYERS if list(LAYERS[name]().parameters())])
def test_a_layer_refuses_a_tensor_from_elsewhere_and_names_both_devices_U066(name: str) -> None:
    shapes = {"BatchNorm2d": (2, 3, 4, 4), "GroupNorm": (2, 3, 4, 4), "Conv": (2, 3, 4, 4)}
    shapes |= dict.fromkeys(("RNN", "LSTM", "GRU", "AttentionLayer", "TransformerLayer", "Transformer"), (2, 2, 3))
    if name == "Embedding":
        return  # its input is numbers of rows, which are read on the host wherever they live
    with pytest.raises(TypeError, match=r"cpu_numpy\(\)") as caught:
        LAYERS[name]()(tensor(*shapes.get(name, (2, 3)), device=ndl.cpu_numpy()))
    assert "cpu()" in str(caught.value)


def test_matmul_shows_both_shapes_U068() -> None:
    for left, right in (((2, 1), (3, 4)), ((2, 3), (2, 3)), ((3,), (3, 4)), ((2, 3, 4), (3, 4, 5))):
        with pytest.raises(ValueError, match="matmul") as caught:
            tensor(*left) @ tensor(*right)
        assert str(left) in str(caught.value) and str(right) in str(caught.value)
    assert (tensor(2, 3, 4) @ tensor(2, 4, 5)).shape == (2, 3, 5)
    assert (tensor(2, 3, 4) @ tensor(4, 5)).shape == (2, 3, 5)


@pytest.mark.parametrize("module", ["nn", "optim"])
def test_constructors_say_which_class_was_meant(module: str) -> None:
    for name, maker in CALLABLES.items():
        if name.startswith(f"{module}.") and isinstance(maker, type) and maker not in (nn.Sequential, nn.Residual):
            with pytest.raises((TypeError, ValueError), match=f"{name.rpartition('.')[2]}|Tensor|Module"):
                maker(
                    object(), object(), object(), object(), object(), object(), object(), object(), object(), object()
                )


# ---- native code -----------------------------------------------------------------------------------------------------


def test_a_missing_kernel_is_named_and_the_process_lives_on_U018(monkeypatch) -> None:
    x = nd.array([1.0, 2.0])
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "device_kernel", lambda name, device, dtype: None)
        with pytest.raises(NotImplementedError, match=r"log.*cpu.*float32"):
            x.log()
    np.testing.assert_allclose(x.log().numpy(), np.log([1.0, 2.0]), rtol=1e-6)


def test_a_blank_kernel_is_a_python_exception_U018() -> None:
    def blank(*args: object) -> None:
        raise NotImplementedError("hw3/ewise_log is not implemented yet")

    original = kernels.device_kernel("ewise_log", "cpu", "float64")
    kernels.register("ewise_log", "cpu", "float64", blank)
    try:
        with pytest.raises(NotImplementedError, match=r"hw3/ewise_log is not implemented yet"):
            ndl.log(tensor(2, dtype="float64"))
    finally:
        kernels.register("ewise_log", "cpu", "float64", original)


def test_a_device_that_is_not_there_says_how_to_get_it_U011() -> None:
    if ndl.cuda().enabled():
        pytest.skip("there is a GPU here")
    for use in (lambda: tensor(2, device=ndl.cuda()), lambda: tensor(2).cuda(), lambda: nn.Linear(2, 2, device="cuda")):
        with pytest.raises(TypeError, match="cuda") as caught:
            use()
        assert "\n" not in str(caught.value) and "make lib" in str(caught.value)


def test_no_bare_assert_in_the_library() -> None:
    root = Path(ndl.__file__).parent
    bare = [
        f"{path.relative_to(root)}:{number}"
        for path in sorted(root.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.match(r"\s*assert\b", line)
    ]
    assert not bare


@pytest.mark.parametrize("junk", ["None", "-1", "10**30", "'x'", "float('nan')", "object()", "[1]", "np.zeros(0)"])
def test_native_functions_survive_anything_U018(junk: str) -> None:
    code = f"""
import itertools, numpy as np
from needle import backend_ndarray as nd
module = nd.cpu().mod
arguments = [{junk}, module.Array(4), 2]
for name in dir(module):
    function = getattr(module, name)
    if callable(function) and not name.startswith("_"):
        for count in range(6):
            for args in itertools.product(arguments, repeat=count):
                try:
                    function(*args)
                except Exception as error:
                    assert str(error), name
print("alive")
"""
    path = str(Path(ndl.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "alive", done.stderr[-2000:]


# ---- the machinery ---------------------------------------------------------------------------------------------------


def test_describe_says_type_shape_and_dtype() -> None:
    assert describe(tensor(2, 3)) == "Tensor of shape (2, 3), float32"
    assert describe(np.zeros((2, 0))) == "ndarray of shape (2, 0), float64"
    assert describe(None) == "NoneType None" and describe("a\n b") == r"str 'a\n b'"
    assert describe(ndl.Tensor).startswith("type ") or "Tensor" in describe(ndl.Tensor)
    assert len(describe("x" * 1000)) < 80


@pytest.mark.parametrize(
    "raised, kind",
    [(TypeError, TypeError), (AttributeError, TypeError), (ValueError, ValueError), (IndexError, IndexError)],
)
def test_named_functions_complain_in_their_own_name(raised: type, kind: type) -> None:
    @named
    def fold(paper: object) -> None:
        raise raised("too thick")

    with pytest.raises(kind, match=r"fold: got int 3: too thick"):
        fold(3)


def test_named_leaves_alone_what_names_it_already() -> None:
    error = ArgumentError("fold: got 3, wanted paper")
    assert in_the_name_of("fold", [3], error) is error
    assert str(in_the_name_of("cut", [3], error)) == "cut: fold: got 3, wanted paper"


def test_named_lets_other_exceptions_pass() -> None:
    @named
    def fold() -> None:
        raise NotImplementedError("hw1/fold is not implemented yet")

    with pytest.raises(NotImplementedError, match=r"^hw1/fold is not implemented yet$"):
        fold()


def test_a_model_s_own_errors_pass_unchanged() -> None:
    class Model(nn.Module):
        def forward(self, x: ndl.Tensor) -> ndl.Tensor:
            return self.not_there(x)

    with pytest.raises(AttributeError, match="not_there"):
        Model()(tensor(2))
    with pytest.raises(ArgumentTypeError, match=r"Model: got str 'x'.*not_there"):
        Model()("x")


def test_a_model_s_constructor_keeps_its_own_errors() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Model()
