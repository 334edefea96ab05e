"""Every layer and loss: forward against NumPy in float64, gradients against differences, dtype, device, modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, nn
from needle.testing import gradient_check, second_order_check

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def standard(x: Array, axes: Any, eps: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def over_channels(vector: Array, ndim: int) -> Array:
    return vector.reshape(1, -1, *(1,) * (ndim - 2))


def cross_correlation(x: Array, weight: Array, bias: Array | None, stride: int, before: int, after: int) -> Array:
    """(N, C, H, W), (K, K, C, D) → (N, D, H', W'), a loop over the kernel."""
    size, channels_out = weight.shape[0], weight.shape[3]
    padded = np.pad(x, ((0, 0), (0, 0), (before, after), (before, after)))
    rows, columns = ((extent - size) // stride + 1 for extent in padded.shape[2:])
    out = np.zeros((len(x), channels_out, rows, columns)) + (0 if bias is None else over_channels(bias, 4))
    for i in range(size):
        for j in range(size):
            seen = padded[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride]
            out += np.einsum("nchw,cd->ndhw", seen, weight[i, j])
    return out


def windows(x: Array, size: int, stride: int, padding: int, fill: float) -> Array:
    """(N, C, H, W) → (N, C, H', W', size · size)."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=fill)
    seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    return seen.reshape(*seen.shape[:4], -1)


@dataclass(frozen=True)
class LayerCase:
    """A module, an input shape, and what NumPy would compute from the input and the module's parameters."""

    name: str
    make: Callable[[str], nn.Module]  # from a dtype
    shape: tuple[int, ...]
    reference: Callable[..., Array]
    smooth: bool = True

    def build(self, dtype: str = "float64") -> nn.Module:
        module = self.make(dtype)
        random = np.random.RandomState(7)
        for p in module.parameters():
            p.data = Tensor(random.uniform(0.5, 1.5, p.shape) * random.choice([-1, 1], p.shape), dtype=p.dtype)
        return module

    def input(self) -> Array:
        return np.random.RandomState(3).randn(*self.shape)


def conv_case(size: int, stride: int, bias: bool = True) -> LayerCase:
    before, after = (size - 1) // 2, size // 2
    return LayerCase(
        f"Conv-{size}-{stride}-{bias}",
        lambda dtype: nn.Conv(2, 3, size, stride, bias=bias, dtype=dtype),
        (2, 2, 6, 5),
        lambda x, w, b=None: cross_correlation(x, w, b, stride, before, after),
    )


CASES = [
    LayerCase("Identity", lambda dtype: nn.Identity(), (3, 4), lambda x: x),
    LayerCase("Linear", lambda dtype: nn.Linear(4, 3, dtype=dtype), (5, 4), lambda x, w, b: x @ w + b),
    LayerCase("Linear-no-bias", lambda dtype: nn.Linear(4, 3, bias=False, dtype=dtype), (5, 4), lambda x, w: x @ w),
    LayerCase("Linear-3d", lambda dtype: nn.Linear(4, 3, dtype=dtype), (2, 5, 4), lambda x, w, b: x @ w + b),
    LayerCase("Linear-1d", lambda dtype: nn.Linear(4, 3, dtype=dtype), (4,), lambda x, w, b: x @ w + b[0]),
    LayerCase("Flatten", lambda dtype: nn.Flatten(), (2, 3, 2, 2), lambda x: x.reshape(2, 12)),
    LayerCase("ReLU", lambda dtype: nn.ReLU(), (3, 4), lambda x: np.maximum(x, 0), smooth=False),
    LayerCase("Tanh", lambda dtype: nn.Tanh(), (3, 4), np.tanh),
    LayerCase("Sigmoid", lambda dtype: nn.Sigmoid(), (3, 4), sigmoid),
    LayerCase("SiLU", lambda dtype: nn.SiLU(), (3, 4), lambda x: x * sigmoid(x)),
    LayerCase(
        "GELU",
        lambda dtype: nn.GELU(),
        (3, 4),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    LayerCase(
        "LeakyReLU", lambda dtype: nn.LeakyReLU(0.1), (3, 4), lambda x: np.where(x > 0, x, 0.1 * x), smooth=False
    ),
    LayerCase("Softplus", lambda dtype: nn.Softplus(), (3, 4), lambda x: np.log1p(np.exp(x))),
    LayerCase("Softmax", lambda dtype: nn.Softmax(1), (2, 3, 4), lambda x: softmax(x, 1)),
    LayerCase(
        "Residual", lambda dtype: nn.Residual(nn.Linear(4, 4, dtype=dtype)), (5, 4), lambda x, w, b: x @ w + b + x
    ),
    LayerCase(
        "Sequential",
        lambda dtype: nn.Sequential(nn.Linear(4, 5, dtype=dtype), nn.Tanh(), nn.Linear(5, 2, dtype=dtype)),
        (3, 4),
        lambda x, w, b, v, c: np.tanh(x @ w + b) @ v + c,
    ),
    LayerCase(
        "BatchNorm1d", lambda dtype: nn.BatchNorm1d(4, dtype=dtype), (6, 4), lambda x, w, b: w * standard(x, 0) + b
    ),
    LayerCase(
        "BatchNorm2d",
        lambda dtype: nn.BatchNorm2d(3, dtype=dtype),
        (2, 3, 4, 2),
        lambda x, w, b: over_channels(w, 4) * standard(x, (0, 2, 3)) + over_channels(b, 4),
    ),
    LayerCase(
        "LayerNorm1d", lambda dtype: nn.LayerNorm1d(5, dtype=dtype), (3, 5), lambda x, w, b: w * standard(x, 1) + b
    ),
    LayerCase(
        "LayerNorm",
        lambda dtype: nn.LayerNorm((3, 2), dtype=dtype),
        (2, 4, 3, 2),
        lambda x, w, b: w * standard(x, (2, 3)) + b,
    ),
    LayerCase(
        "GroupNorm",
        lambda dtype: nn.GroupNorm(2, 4, dtype=dtype),
        (3, 4, 2, 3),
        lambda x, w, b: over_channels(w, 4) * standard(x.reshape(3, 2, -1), 2).reshape(x.shape) + over_channels(b, 4),
    ),
    LayerCase(
        "MaxPool2d",
        lambda dtype: nn.MaxPool2d(3, 2, 1),
        (2, 2, 5, 6),
        lambda x: windows(x, 3, 2, 1, -np.inf).max(-1),
        smooth=False,
    ),
    LayerCase("AvgPool2d", lambda dtype: nn.AvgPool2d(2), (2, 2, 4, 6), lambda x: windows(x, 2, 2, 0, 0).mean(-1)),
    *[conv_case(*setting) for setting in [(1, 1), (3, 1), (3, 2), (5, 3), (2, 1), (4, 1), (4, 2), (3, 1, False)]],
]

all_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@all_cases
def test_forward_equals_numpy(case: LayerCase) -> None:
    module = case.build()
    expected = case.reference(case.input(), *(p.numpy() for p in module.parameters()))
    out = module(Tensor(case.input(), dtype="float64"))
    assert out.shape == expected.shape
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-12)


@all_cases
def test_gradients_of_input_and_parameters(case: LayerCase) -> None:
    module = case.build()
    gradient_check(module, case.input(), parameters=module.parameters())


@pytest.mark.parametrize("case", [c for c in CASES if c.smooth], ids=lambda case: case.name)
def test_second_derivatives(case: LayerCase) -> None:
    second_order_check(case.build(), case.input(), tol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@all_cases
def test_dtype_goes_through_forward_and_backward_U066(case: LayerCase, dtype: str) -> None:
    module = case.build(dtype)
    x = Tensor(case.input(), dtype=dtype)
    out = module(x)
    assert str(out.dtype) == dtype
    out.sum().backward()
    for leaf in (x, *module.parameters()):
        assert str(leaf.grad.dtype) == dtype
        assert leaf.grad.shape == leaf.shape


@all_cases
def test_every_gradient_arrives_U043(case: LayerCase) -> None:
    module = case.build()
    x = Tensor(case.input(), dtype="float64")
    out = module(x)
    out.backward(Tensor(np.random.RandomState(1).randn(*out.shape), dtype="float64"))
    for leaf in (x, *module.parameters()):
        grad = leaf.grad.numpy()
        assert np.isfinite(grad).all()
        assert np.any(grad != 0)


@pytest.mark.skipif(ndl.core.BACKEND == "np", reason="np mode has one device")
@all_cases
def test_device_is_respected_U066(case: LayerCase) -> None:
    device = ndl.cpu_numpy()
    with ndl.device(device):
        module = case.build()
        x = Tensor(case.input(), dtype="float64")
    if device == ndl.default_device():
        pytest.skip("the native device is not built")
    out = module(x)  # outside the block: whatever forward makes must follow its input
    out.sum().backward()
    assert {t.device for t in (out, x.grad, *(p.grad for p in module.parameters()))} == {device}


# ---- losses ----------------------------------------------------------------------------------------------------------


def cross_entropy(logits: Array, y: Array, smoothing: float = 0.0) -> float:
    n, classes = logits.shape
    target = np.full((n, classes), smoothing / classes)
    target[np.arange(n), y] += 1 - smoothing
    return float(-(target * np.log(softmax(logits))).sum() / n)


LOGITS = 3 * np.random.RandomState(0).randn(6, 4)
LABELS = np.array([0, 3, 1, 1, 2, 0])
TARGET = np.random.RandomState(1).rand(6, 4)


@pytest.mark.parametrize(
    ("loss", "smoothing"),
    [(nn.SoftmaxLoss(), 0.0), (nn.CrossEntropyLoss(), 0.0), (nn.CrossEntropyLoss(label_smoothing=0.2), 0.2)],
)
@pytest.mark.parametrize("label_type", ["int64", "int32", "uint8", "float32", "float64"])
def test_cross_entropy(loss: nn.Module, smoothing: float, label_type: str) -> None:
    y = Tensor(LABELS.astype(label_type), dtype=label_type)
    value = loss(Tensor(LOGITS, dtype="float64"), y)
    assert value.size == 1
    np.testing.assert_allclose(value.item(), cross_entropy(LOGITS, LABELS, smoothing), rtol=1e-13)
    gradient_check(lambda logits: loss(logits, y), LOGITS)


@pytest.mark.parametrize("loss", [nn.SoftmaxLoss(), nn.CrossEntropyLoss()])
def test_cross_entropy_of_huge_logits_U070(loss: nn.Module) -> None:
    logits = Tensor([[0.0, 1e8]], dtype="float64")
    value = loss(logits, Tensor([0]))
    value.backward()
    assert value.item() == 1e8
    np.testing.assert_array_equal(logits.grad.numpy(), [[-1, 1]])


def test_cross_entropy_with_a_class_ruled_out() -> None:
    logits = Tensor([[0.0, 0.0, -np.inf]], dtype="float64")
    value = nn.CrossEntropyLoss()(logits, Tensor([1]))
    value.backward()
    np.testing.assert_allclose(value.item(), np.log(2))
    np.testing.assert_allclose(logits.grad.numpy(), [[0.5, -0.5, 0]])


def test_mse() -> None:
    loss = nn.MSELoss()
    np.testing.assert_allclose(
        loss(Tensor(LOGITS, dtype="float64"), Tensor(TARGET, dtype="float64")).item(), ((LOGITS - TARGET) ** 2).mean()
    )
    gradient_check(loss, LOGITS, TARGET)


def test_bce_with_logits() -> None:
    loss = nn.BCEWithLogitsLoss()
    expected = -(TARGET * np.log(sigmoid(LOGITS)) + (1 - TARGET) * np.log(1 - sigmoid(LOGITS))).mean()
    got = loss(Tensor(LOGITS, dtype="float64"), Tensor(TARGET, dtype="float64")).item()
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    gradient_check(loss, LOGITS, TARGET)


def test_bce_with_huge_logits_U073() -> None:
    logits = Tensor([-1000.0, 1000.0], dtype="float64")
    value = nn.BCEWithLogitsLoss()(logits, Tensor([1.0, 1.0], dtype="float64", requires_grad=False))
    value.backward()
    assert value.item() == 500
    np.testing.assert_array_equal(logits.grad.numpy(), [-0.5, 0])


# ---- layers that draw, remember or count -----------------------------------------------------------------------------


def test_conv_with_an_even_kernel_keeps_the_size_U086() -> None:
    for size in (2, 4, 6):
        assert nn.Conv(1, 1, size)(ndl.zeros(1, 1, 4, 4)).shape == (1, 1, 4, 4)


def test_conv_counts_a_tuple_by_its_first_entry() -> None:
    conv = nn.Conv(1, 2, (3, 9), (2, 9))
    assert conv.weight.shape == (3, 3, 1, 2)
    assert conv(ndl.zeros(1, 1, 5, 5)).shape == (1, 2, 3, 3)


def test_linear_takes_a_bias_without_its_row_axis() -> None:
    linear = nn.Linear(2, 3)
    linear.bias.data = Tensor([1, 2, 3], dtype="float32")
    np.testing.assert_array_equal(linear(ndl.zeros(2, 2)).numpy(), [[1, 2, 3]] * 2)


def test_weights_are_drawn_in_the_order_of_the_contract() -> None:
    np.random.seed(4)
    linear, conv, embedding = nn.Linear(3, 5), nn.Conv(2, 4, 3), nn.Embedding(6, 2)
    np.random.seed(4)
    bound = np.sqrt(6 / 3)
    expected = [
        np.random.rand(3, 5) * 2 * bound - bound,
        (np.random.rand(5, 1) * 2 * np.sqrt(6 / 5) - np.sqrt(6 / 5)).reshape(1, 5),
        np.random.rand(3, 3, 2, 4) * 2 * np.sqrt(6 / 18) - np.sqrt(6 / 18),
        np.random.rand(4) * 2 / np.sqrt(18) - 1 / np.sqrt(18),
        np.random.randn(6, 2),
    ]
    for p, values in zip([linear.weight, linear.bias, conv.weight, conv.bias, embedding.weight], expected, strict=True):
        np.testing.assert_allclose(p.numpy(), values, atol=4e-7 * np.abs(values).max())


def test_batch_norm_remembers_the_biased_variance_U071() -> None:
    norm = nn.BatchNorm1d(1, momentum=1.0)
    mean, var = norm.running_mean, norm.running_var
    norm(Tensor([[2.0], [2.0], [-4.0]], dtype="float32"))
    assert norm.running_mean is mean and norm.running_var is var
    assert (mean.item(), var.item()) == (0, 8)


def test_batch_norm_mixes_old_and_new_statistics() -> None:
    x = np.random.RandomState(0).randn(10, 3)
    norm = nn.BatchNorm1d(3, momentum=0.25, dtype="float64")
    norm(Tensor(x, dtype="float64"))
    norm(Tensor(2 * x, dtype="float64"))
    mean, var = x.mean(0), x.var(0)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.75 * 0.25 * mean + 0.25 * 2 * mean)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.75 * (0.75 + 0.25 * var) + 0.25 * 4 * var)


def test_batch_norm_in_evaluation_uses_only_running_values_U071() -> None:
    norm = nn.BatchNorm1d(2, dtype="float64").eval()
    norm.running_mean.data = Tensor([1.0, 2.0], dtype="float64")
    norm.running_var.data = Tensor([4.0, 9.0], dtype="float64")
    norm.weight.data = Tensor([1.0, 3.0], dtype="float64")
    out = norm(Tensor([[3.0, 5.0], [1.0, 2.0]], dtype="float64"))
    np.testing.assert_allclose(out.numpy(), [[1, 3], [0, 0]], atol=1e-5)  # eps is 1e-5 of variances above 1
    np.testing.assert_array_equal(norm.running_mean.numpy(), [1, 2])
    gradient_check(norm, np.random.RandomState(0).randn(3, 2), parameters=norm.parameters())


def test_batch_norm_of_one_sample_U071() -> None:
    norm = nn.BatchNorm1d(3)
    x = Tensor([[1.0, -2.0, 5.0]], dtype="float32")
    out = norm(x)
    out.sum().backward()
    np.testing.assert_array_equal(out.numpy(), np.zeros((1, 3)))
    for leaf in (x, *norm.parameters()):
        assert np.isfinite(leaf.grad.numpy()).all()


def test_batch_norm_statistics_keep_their_dtype() -> None:
    norm = nn.BatchNorm1d(3)
    norm(Tensor(np.random.RandomState(0).randn(4, 3), dtype="float64"))
    assert str(norm.running_mean.dtype) == str(norm.running_var.dtype) == "float32"


def test_dropout_keeps_where_the_draw_is_at_most_1_minus_p() -> None:
    x = np.random.RandomState(0).randn(50, 4).astype("float32")
    np.random.seed(9)
    out = nn.Dropout(0.3)(Tensor(x, dtype="float32"))
    np.random.seed(9)
    expected = np.where(np.random.rand(50, 4) <= 0.7, x / 0.7, 0)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_dropout_gradient_is_its_mask() -> None:
    x = Tensor(np.ones((40, 5)), dtype="float64")
    out = nn.Dropout(0.25)(x)
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), out.numpy())
    assert set(np.unique(x.grad.numpy())) == {0, 1 / 0.75}


def test_dropout_at_the_ends_U075() -> None:
    x = Tensor([[1.0, -2.0]], dtype="float64")
    out = nn.Dropout(1)(x)
    out.sum().backward()
    np.testing.assert_array_equal(out.numpy(), [[0, 0]])
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 0]])
    np.testing.assert_array_equal(nn.Dropout(0)(x).numpy(), x.numpy())
    np.testing.assert_array_equal(nn.Dropout(0.5).eval()(x).numpy(), x.numpy())
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="dropout"):
            nn.Dropout(p)


def test_evaluation_is_deterministic_in_nested_modules_U083() -> None:
    np.random.seed(0)
    model = nn.Sequential(nn.Residual(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))), nn.BatchNorm1d(3))
    x = Tensor(np.random.randn(8, 3), dtype="float32")
    assert not np.array_equal(model(x).numpy(), model(x).numpy())
    model.eval()
    np.testing.assert_array_equal(model(x).numpy(), model(x).numpy())


def test_embedding_adds_up_repeated_ids_U036() -> None:
    embedding = nn.Embedding(3, 2)
    for ids in (Tensor([0, 0]), Tensor([0.0, 0.0]), Tensor([[0, 0]])):
        out = embedding(ids)
        assert out.shape == (*ids.shape, 2)
        out.sum().backward()
        np.testing.assert_array_equal(embedding.weight.grad.numpy(), [[2, 2], [0, 0], [0, 0]])


def test_embedding_looks_rows_up_even_beside_infinities() -> None:
    embedding = nn.Embedding(3, 2)
    embedding.weight.data = Tensor([[1, 2], [np.inf, np.nan], [5, 6]], dtype="float32")
    np.testing.assert_array_equal(embedding(Tensor([[2, 0]])).numpy(), [[[5, 6], [1, 2]]])


WRONG = [
    (lambda: nn.Linear(3, 2)(ndl.zeros(4, 5)), "linear", "(4, 5)"),
    (lambda: nn.Conv(3, 2, 3)(ndl.zeros(4, 5, 6, 6)), "conv", "(4, 5, 6, 6)"),
    (lambda: nn.Conv(3, 2, 0), "conv", "0"),
    (lambda: nn.Flatten()(ndl.zeros()), "flatten", "()"),
    (lambda: nn.BatchNorm1d(3)(ndl.zeros(4, 5)), "batch_norm", "(4, 5)"),
    (lambda: nn.BatchNorm1d(3)(ndl.zeros(2, 4, 3)), "batch_norm", "(2, 4, 3)"),
    (lambda: nn.BatchNorm2d(3)(ndl.zeros(4, 3)), "batch_norm_2d", "(4, 3)"),
    (lambda: nn.LayerNorm1d(3)(ndl.zeros(4, 5)), "layer_norm_1d", "(4, 5)"),
    (lambda: nn.LayerNorm((2, 3))(ndl.zeros(4, 2)), "layer_norm", "(4, 2)"),
    (lambda: nn.GroupNorm(2, 4)(ndl.zeros(2, 3, 4)), "group_norm", "(2, 3, 4)"),
    (lambda: nn.GroupNorm(2, 3), "group_norm", "2 groups"),
    (lambda: nn.MaxPool2d(3)(ndl.zeros(2, 3)), "max_pool2d", "(2, 3)"),
    (lambda: nn.SoftmaxLoss()(ndl.zeros(4, 3), ndl.zeros(4, 3)), "softmax_loss", "(4, 3)"),
    (lambda: nn.SoftmaxLoss()(ndl.zeros(4, 3), Tensor([0, 1, 2, 3])), "one_hot", "0 to 3"),
    (lambda: nn.CrossEntropyLoss()(ndl.zeros(4, 3), ndl.zeros(5)), "cross_entropy_loss", "(5,)"),
    (lambda: nn.CrossEntropyLoss(1.5), "cross_entropy_loss", "1.5"),
    (lambda: nn.MSELoss()(ndl.zeros(4, 1), ndl.zeros(4)), "mse_loss", "(4, 1)"),
    (lambda: nn.BCEWithLogitsLoss()(ndl.zeros(4, 1), ndl.zeros(4)), "bce_with_logits_loss", "(4, 1)"),
    (lambda: nn.Embedding(3, 2)(Tensor([0, 3])), "embedding", "0 to 3"),
    (lambda: nn.Embedding(3, 2)(Tensor([-1])), "embedding", "-1"),
]


@pytest.mark.parametrize(("call", "op", "came"), WRONG)
def test_errors_name_the_layer_and_what_came_U090(call: Callable[[], Any], op: str, came: str) -> None:
    with pytest.raises(ValueError, match=f"^{op}: ") as caught:
        call()
    assert came in str(caught.value)
    assert isinstance(caught.value, AssertionError)  # which the course promises


def test_a_float64_model_trains_in_float64_U066() -> None:
    np.random.seed(0)
    model = nn.Sequential(
        nn.Linear(3, 8, dtype="float64"),
        nn.BatchNorm1d(8, dtype="float64"),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(8, 2, dtype="float64"),
    )
    optimizer = ndl.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    x, y = Tensor(np.random.randn(16, 3), dtype="float64"), Tensor(np.random.randint(0, 2, 16))
    losses = []
    for _ in range(30):
        loss = nn.SoftmaxLoss()(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert {str(value.dtype) for value in model.state_dict().values()} == {"float64"}
    assert losses[-1] < 0.9 * losses[0]
