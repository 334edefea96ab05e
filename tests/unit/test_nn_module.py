"""Module: how it finds its parts, switches modes, saves and loads, calls hooks, and shows itself."""

from __future__ import annotations

from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, kernels, nn


class Nest(nn.Module):
    """Parameters at every depth, in lists, tuples and dicts, and one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter([2.0], dtype="float32")
        self.layers = [nn.Linear(2, 3), (nn.BatchNorm1d(3), [nn.Dropout(0.5)])]
        self.heads = {"a": nn.Linear(3, 2, bias=False), "b": {"inner": nn.Parameter([1.0], dtype="float32")}}
        self.again = self.layers[0]
        self.note = "no module"

    def forward(self, x: Tensor) -> Tensor:
        return self.heads["a"](self.layers[1][0](self.layers[0](x)))


NAMES = [
    "scale",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.0.weight",
    "layers.1.0.bias",
    "heads.a.weight",
    "heads.b.inner",
]
STATISTICS = ["layers.1.0.running_mean", "layers.1.0.running_var"]


def test_parameters_come_in_order_of_assignment_each_once_U085() -> None:
    model = Nest()
    named = dict(model.named_parameters())
    assert list(named) == NAMES
    assert [id(p) for p in model.parameters()] == [id(p) for p in named.values()]


def test_a_layer_used_twice_is_stepped_once_U085() -> None:
    w = nn.Parameter([2.0], dtype="float64")

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = w, [w]

    model = Twice()
    (w * (w * 1)).sum().backward()
    ndl.optim.SGD(model.parameters(), lr=0.1).step()
    np.testing.assert_allclose(w.numpy(), [1.6])


def test_plain_tensors_are_no_parameters() -> None:
    norm = nn.BatchNorm1d(3)
    assert [name for name, _ in norm.named_parameters()] == ["weight", "bias"]


def test_a_module_that_refers_to_itself_is_walked_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].parent = [model]
    assert len(model.parameters()) == 2


def test_modes_reach_every_depth_U083() -> None:
    model = Nest()
    inner = [module for _, module in model.named_modules()]
    assert len(inner) == 5
    assert model.eval() is model and not any(module.training for module in inner)
    assert model.train() is model and all(module.training for module in inner)


def test_a_module_without_parameters() -> None:
    model = nn.Sequential()
    assert model.parameters() == [] and model.state_dict() == {} and len(model) == 0
    model.load_state_dict({})
    assert model(3) == 3


def test_sequential_wants_modules_one_by_one() -> None:
    with pytest.raises(TypeError, match=r"^sequential: .*Sequential\(\*layers\)"):
        nn.Sequential([nn.ReLU(), nn.ReLU()])


def test_children_and_apply() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Residual(nn.Linear(2, 2)))
    assert model.children() == [model[0], model[1]]
    seen: list[nn.Module] = []
    assert model.apply(seen.append) is model
    assert seen[-1] is model and set(seen) == {module for _, module in model.named_modules()}
    assert seen.index(model[1].fn) < seen.index(model[1])


def test_forward_must_be_defined() -> None:
    with pytest.raises(NotImplementedError, match=r"Module\.forward"):
        nn.Module()(1)


def test_a_subclass_that_forgets_super_init_still_works() -> None:
    class Careless(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    model = Careless()
    assert model.training and not model.eval().training
    assert model(ndl.zeros(1, 1)).shape == (1, 1)


# ---- freezing and moving ---------------------------------------------------------------------------------------------


def test_frozen_parameters_get_no_gradient() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    assert model[0].freeze() is model[0]
    before = model[0].weight.numpy()
    model(ndl.ones(4, 2)).sum().backward()
    assert model[0].weight.grad is None and model[1].weight.grad is not None
    ndl.optim.SGD(model.parameters(), lr=1.0).step()
    np.testing.assert_array_equal(model[0].weight.numpy(), before)
    model.requires_grad_()
    model(ndl.ones(4, 2)).sum().backward()
    assert model[0].weight.grad is not None


def test_to_changes_dtype_and_keeps_the_parameters() -> None:
    model = Nest()
    parameters = model.parameters()
    assert model.to("float64") is model
    assert [id(p) for p in model.parameters()] == [id(p) for p in parameters]
    assert {str(t.dtype) for t in model.state_dict().values()} == {"float64"}
    assert all(p.requires_grad for p in parameters)
    out = model(ndl.ones(4, 2, dtype="float64"))
    out.sum().backward()
    assert str(parameters[1].grad.dtype) == "float64"


def test_to_a_dtype_leaves_counters_alone() -> None:
    model = nn.Linear(2, 2)
    model.steps = Tensor([3], dtype="int64", requires_grad=False)
    model.to("float64")
    assert str(model.steps.dtype) == "int64" and str(model.weight.dtype) == "float64"


@pytest.mark.skipif(ndl.core.BACKEND == "np", reason="np mode has one device")
def test_to_moves_to_a_device() -> None:
    model = nn.BatchNorm1d(3).to("cpu_numpy")
    assert {t.device for t in model.state_dict().values()} == {ndl.cpu_numpy()}


# ---- state -----------------------------------------------------------------------------------------------------------


def test_state_holds_parameters_and_statistics_as_copies() -> None:
    model = Nest()
    state = model.state_dict()
    assert sorted(state) == sorted(NAMES + STATISTICS)
    before = state["layers.0.weight"].numpy()
    model.layers[0].weight[0] = 99.0
    np.testing.assert_array_equal(state["layers.0.weight"].numpy(), before)
    assert not any(value.requires_grad for value in state.values())


def test_loading_gives_the_values_and_keeps_the_tensors() -> None:
    np.random.seed(0)
    source, target = Nest(), Nest()
    source(Tensor(np.random.randn(5, 2), dtype="float32"))  # moves the running statistics
    identities = [id(p) for p in target.parameters()]
    state = source.state_dict()
    target.load_state_dict(state)
    assert [id(p) for p in target.parameters()] == identities
    for name, value in target.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())
    target.layers[0].weight[0] = 99.0
    assert not np.any(source.layers[0].weight.numpy() == 99)


def test_loading_takes_numpy_arrays_and_casts() -> None:
    model = nn.Linear(2, 1)
    model.load_state_dict({"weight": np.ones((2, 1)), "bias": np.array([[3.0]])})
    assert str(model.weight.dtype) == "float32" and model.bias.item() == 3


def test_errors_of_loading_come_together_and_change_nothing() -> None:
    model = Nest()
    before = model.state_dict()
    state = {name: value for name, value in before.items() if name != "scale"}
    state["layers.0.bias"] = np.zeros((3, 3))
    state["surplus"] = np.zeros(1)
    state["layers.0.weight"] = np.full((2, 3), 7.0)
    with pytest.raises(ValueError, match="load_state_dict") as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert "missing: scale" in text and "unexpected: surplus" in text and "layers.0.bias (3, 3) for (1, 3)" in text
    assert "\n" not in text
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name].numpy())


def test_loading_without_strict_takes_what_there_is() -> None:
    model = nn.Linear(2, 1)
    model.load_state_dict({"bias": np.array([[5.0]]), "surplus": np.zeros(1)}, strict=False)
    assert model.bias.item() == 5
    with pytest.raises(ValueError, match="bias"):
        model.load_state_dict({"bias": np.zeros(7)}, strict=False)


# ---- hooks and the registry ------------------------------------------------------------------------------------------


def test_hooks_see_and_replace() -> None:
    model = nn.Identity()
    seen: list[Any] = []
    before = model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    after = model.register_forward_hook(lambda module, args, out: seen.append((args, out)))
    change = model.register_forward_hook(lambda module, args, out: out * 10)
    assert model(1) == 20 and seen == [((2,), 2)]
    before.remove()
    after.remove()
    assert model(1) == 10 and len(seen) == 1
    change.remove()
    change.remove()
    assert model(1) == 1


def test_one_hook_registered_twice_is_removed_once() -> None:
    model, calls = nn.Identity(), []

    def hook(*_: Any) -> None:
        calls.append(1)

    handle = model.register_forward_hook(hook)
    model.register_forward_hook(hook)
    handle.remove()
    model(0)
    assert calls == [1]


def test_a_hook_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="hook"):
        nn.Identity().register_forward_hook(3)


def test_hooks_are_no_part_of_the_state() -> None:
    model = nn.Linear(2, 2)
    other = nn.Linear(3, 3)
    model.register_forward_hook(other)
    assert len(model.parameters()) == 2


def test_the_registry_may_replace_forward() -> None:
    class Double(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + x

    x = ndl.ones(2)
    device, dtype = getattr(x.cached_data, "device", None), str(x.dtype)
    declines = [False]

    def twin(module: Double, x: Tensor) -> Any:
        return NotImplemented if declines[0] else x * 3

    kernels.register_operation(Double, getattr(device, "name", "numpy"), dtype, forward=twin)
    with kernels.use("fast"):
        assert Double()(x).numpy()[0] == 3
        declines[0] = True
        assert Double()(x).numpy()[0] == 2
        declines[0] = False
        with kernels.use("course"):
            assert Double()(x).numpy()[0] == 2


# ---- text ------------------------------------------------------------------------------------------------------------


def test_repr_shows_settings_and_shapes() -> None:
    assert repr(nn.ReLU()) == "ReLU()"
    assert repr(nn.Dropout(0.25)) == "Dropout(p=0.25)"
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, weight (2, 3), bias (1, 3))"
    text = repr(nn.Sequential(nn.Linear(2, 3), nn.Residual(nn.ReLU())))
    assert text.splitlines() == [
        "Sequential(",
        "  (modules.0): Linear(in_features=2, out_features=3, weight (2, 3), bias (1, 3))",
        "  (modules.1): Residual(",
        "    (fn): ReLU()",
        "  )",
        ")",
    ]


def test_summary_lists_modules_shapes_and_counts() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Residual(nn.Linear(3, 3)))
    model[0].freeze()
    model[1].eval()
    mean, state = model[1].running_mean.numpy(), np.random.get_state()[1].copy()
    lines = model.summary((7, 4)).splitlines()
    rows = [line.split() for line in lines]
    assert rows[0] == ["module", "output", "shape", "parameters"]
    assert rows[1] == ["Sequential", "(7,", "3)", "0"]
    assert rows[2] == ["modules.0:", "Linear", "(7,", "3)", "15"]
    assert rows[6] == ["modules.3.fn:", "Linear", "(7,", "3)", "12"]
    assert lines[-1] == "33 parameters, 18 trainable, 132 bytes"
    np.testing.assert_array_equal(model[1].running_mean.numpy(), mean)  # a look changes nothing
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    assert model.training and not model[1].training
    assert "_hooks" not in vars(model) or not any(vars(model)["_hooks"].values())


def test_summary_of_several_outputs_and_without_inputs() -> None:
    model = nn.LSTM(3, 2)
    assert "(5, 4, 2), (1, 4, 2), (1, 4, 2)" in model.summary(ndl.zeros(5, 4, 3))
    assert model.summary().splitlines()[1].split() == ["LSTM", "-", "0"]
    with pytest.raises(TypeError, match="summary"):
        model.summary("(5, 4, 3)")


def test_a_shared_parameter_counts_once() -> None:
    linear = nn.Linear(2, 2)
    assert nn.Sequential(linear, linear).summary().splitlines()[-1].startswith("6 parameters")
