"""Checks of homework 4, part 3: stack, pad, flip, dilate, convolution, ResNet9.

python -m pytest tests/hw4 -k pad_forward      and likewise: flip, dilate, "op_conv and forward",
"op_conv and backward", kaiming_uniform, nn_conv_forward, nn_conv_backward, resnet9, train_cifar10

Values are compared with float64 NumPy; gradients with central differences, or with the adjoint of the definition.
"""

from __future__ import annotations

import math

import needle as ndl
import numpy as np
import pytest
import simple_ml
from needle import backend_ndarray as nd
from needle import nn
from stages import assert_close, assert_same, assert_within, devices, numerical_gradients, upstream, write_cifar10

from apps.models import ConvBN, ResNet9

on_devices = pytest.mark.parametrize("device", devices())


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def check_backward(f, reference, *arrays, device, terms=500):
    leaves = [ndl.Tensor(a, device=device) for a in arrays]
    out = f(*leaves)
    weights = upstream(out.shape)
    out.backward(ndl.Tensor(weights, device=device))
    for leaf, want in zip(leaves, numerical_gradients(reference, arrays, weights), strict=True):
        assert_close(leaf.grad, want, terms)


# ---- stack ----------------------------------------------------------------------------------------------------------

STACKS = [((5,), 0, 1), ((3, 4), 0, 3), ((3, 4), 1, 2), ((3, 4), 2, 3), ((2, 3, 4), 1, 4)]  # shape, axis, how many


@on_devices
@pytest.mark.parametrize("shape, axis, count", STACKS)
def test_stack_forward(shape, axis, count, device):
    arrays = [numbers(*shape, seed=seed) for seed in range(count)]
    out = ndl.stack([ndl.Tensor(a, device=device) for a in arrays], axis)
    assert_same(out.numpy(), np.stack(arrays, axis))


@on_devices
@pytest.mark.parametrize("shape, axis, count", STACKS)
def test_stack_backward(shape, axis, count, device):
    arrays = [numbers(*shape, seed=seed) for seed in range(count)]
    check_backward(lambda *a: ndl.stack(a, axis), lambda *a: np.stack(a, axis), *arrays, device=device)


def test_stack_vs_pytorch():
    # what PyTorch computes for this graph, in closed form: the stacked rows are used twice, the input three times
    a, b = ndl.Tensor(numbers(3, 2)), ndl.Tensor(numbers(3, 2, seed=1))
    out = ndl.stack([a, b, a], 1)
    (out * out).sum().backward()
    assert_close(a.grad, 4 * a.numpy())
    assert_close(b.grad, 2 * b.numpy())


# ---- pad, flip, dilate ----------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("shape, padding", [
    ((10, 32, 32, 8), ((0, 0), (2, 2), (2, 2), (0, 0))), ((2, 3), ((1, 0), (0, 4))), ((3,), ((0, 0),)),
    ((2, 1, 3), ((1, 2), (3, 0), (0, 1))),
])  # fmt: skip
def test_pad_forward(shape, padding, device):
    A = numbers(*shape)
    assert_same(nd.array(A, device=device).pad(padding).numpy(), np.pad(A, padding))
    turned = nd.array(A.T, device=device).permute(tuple(reversed(range(A.ndim))))
    assert_same(turned.pad(padding).numpy(), np.pad(A, padding))


FLIPS = [((10, 5), (0,)), ((10, 5), (1,)), ((10, 5), (0, 1)), ((2, 4, 3), (1, 2)), ((2, 4, 3), (0, 1, 2)),
         ((10, 32, 4, 8), (1,)), ((3, 3, 6, 8), (0, 3))]  # fmt: skip


@on_devices
@pytest.mark.parametrize("shape, axes", FLIPS)
def test_flip_forward(shape, axes, device):
    A = numbers(*shape)
    out = ndl.flip(ndl.Tensor(A, device=device), axes=axes)
    assert_same(out.numpy(), np.flip(A, axes))


@on_devices
@pytest.mark.parametrize("shape, axes", FLIPS)
def test_flip_of_an_array(shape, axes, device):
    A = numbers(*shape)
    a = nd.array(A, device=device)
    flipped = a.flip(axes)
    assert flipped.shape == A.shape
    assert_same(flipped, np.flip(A, axes))
    assert_same(a, A)
    turned = nd.array(A.T, device=device).permute(tuple(reversed(range(A.ndim))))
    assert_same(turned.flip(axes), np.flip(A, axes))
    behind = (slice(1, None),) * A.ndim  # a view that does not begin where its storage does
    assert_same(a[behind].flip(axes), np.flip(A[behind], axes))


@on_devices
@pytest.mark.parametrize("shape, axes", FLIPS[:5])
def test_flip_backward(shape, axes, device):
    check_backward(lambda a: ndl.flip(a, axes=axes), lambda a: np.flip(a, axes), numbers(*shape), device=device)


def dilated(A, axes, dilation):
    """Every element, then `dilation` zeros, along each of the axes; those that A lacks do not count."""
    axes = [axis for axis in axes if axis < A.ndim]
    out = np.zeros([n * (dilation + 1) if axis in axes else n for axis, n in enumerate(A.shape)])
    out[tuple(slice(None, None, dilation + 1) if axis in axes else slice(None) for axis in range(A.ndim))] = A
    return out


DILATIONS = [((2, 5), (0,), 0), ((2, 5), (0,), 1), ((2, 5), (1,), 2), ((2, 5), (0, 1), 1), ((2, 2), (2,), 1),
             ((2, 2, 2, 3), (1, 2), 1), ((3, 3, 2, 2), (0, 1, 3), 3)]  # fmt: skip


@on_devices
def test_dilate_forward(device):
    for shape, axes, dilation in DILATIONS:
        A = numbers(*shape)
        out = ndl.dilate(ndl.Tensor(A, device=device), dilation=dilation, axes=axes)
        assert_same(out.numpy(), dilated(A, axes, dilation))
    assert_close(
        ndl.dilate(ndl.Tensor([[6.0, 1], [4, 4]], device=device), axes=(1,), dilation=1), [[6, 0, 1, 0], [4, 0, 4, 0]]
    )


@on_devices
@pytest.mark.parametrize("shape, axes, dilation", DILATIONS)
def test_dilate_backward(shape, axes, dilation, device):
    check_backward(
        lambda a: ndl.dilate(a, axes=axes, dilation=dilation), lambda a: dilated(a, axes, dilation), numbers(*shape),
        device=device,
    )  # fmt: skip


@on_devices
@pytest.mark.parametrize("shape, axes, dilation", DILATIONS)
def test_undilate(shape, axes, dilation, device):
    A = numbers(*shape)
    full = (
        1 + numbers(*dilated(A, axes, dilation).shape, seed=1) ** 2
    )  # what lies between is thrown away, whatever it is
    places = tuple(slice(None, None, dilation + 1 if axis in axes else 1) for axis in range(A.ndim))
    out = ndl.undilate(ndl.Tensor(full, device=device), dilation=dilation, axes=axes)
    assert_same(out, full[places])


@on_devices
@pytest.mark.parametrize("shape, axes, dilation", DILATIONS[:6])
def test_undilate_backward(shape, axes, dilation, device):
    A = numbers(*shape)
    x = ndl.Tensor(dilated(A, axes, dilation), device=device)
    out = ndl.undilate(x, dilation=dilation, axes=axes)
    weights = upstream(out.shape)
    out.backward(ndl.Tensor(weights, device=device))
    assert_close(x.grad, dilated(weights, axes, dilation))


@on_devices
@pytest.mark.parametrize("shape, axes, dilation", [((7,), (0,), 1), ((5, 8), (0, 1), 2), ((2, 9, 4), (1,), 3)])
def test_undilate_of_a_rest(shape, axes, dilation, device):
    """Extents that dilation + 1 does not divide: what lies behind the last entry taken gets a gradient of zero."""
    places = tuple(slice(None, None, dilation + 1 if axis in axes else 1) for axis in range(len(shape)))
    check_backward(
        lambda a: ndl.undilate(a, axes=axes, dilation=dilation), lambda a: a[places], numbers(*shape), device=device
    )


# ---- convolution ----------------------------------------------------------------------------------------------------


def conv_by_definition(X, W, stride, before, behind=None):
    """Cross-correlation, one position of the kernel after the other.  NHWC, (K, K, Cin, Cout) → NHWC

    So many zeros are put before each row and column of X, and as many behind it if nothing else is said.
    Returns the result, and a function from an upstream gradient to the gradients of X and W.
    """
    X, W = X.astype(np.float64), W.astype(np.float64)
    behind = before if behind is None else behind
    padded = np.pad(X, ((0, 0), (before, behind), (before, behind), (0, 0)))
    K = W.shape[0]
    high, wide = ((extent - K) // stride + 1 for extent in padded.shape[1:3])
    places = {
        (i, j): np.s_[:, i : i + stride * high : stride, j : j + stride * wide : stride, :]
        for i in range(K)
        for j in range(K)
    }
    out = sum(padded[place] @ W[i, j] for (i, j), place in places.items())

    def adjoint(out_grad):
        grad_padded, grad_W = np.zeros_like(padded), np.zeros_like(W)
        for (i, j), place in places.items():
            grad_padded[place] += out_grad @ W[i, j].T
            grad_W[i, j] = np.tensordot(padded[place], out_grad, axes=([0, 1, 2], [0, 1, 2]))
        inner = slice(before, -behind or None)
        return grad_padded[:, inner, inner, :], grad_W

    return out, adjoint


CONVOLUTIONS = [  # X, W, stride, padding
    ((3, 14, 14, 8), (3, 3, 8, 16), 1, 0),
    ((3, 14, 14, 8), (3, 3, 8, 16), 1, 1),
    ((3, 16, 16, 8), (3, 3, 8, 14), 2, 1),
    ((3, 16, 16, 8), (3, 3, 8, 14), 2, 0),
    ((3, 17, 17, 8), (3, 3, 8, 16), 1, 2),
    ((3, 16, 16, 24), (3, 3, 24, 14), 1, 0),
    ((3, 14, 14, 8), (5, 5, 8, 16), 1, 2),
    ((2, 16, 16, 3), (7, 7, 3, 4), 1, 3),
    ((2, 16, 16, 3), (7, 7, 3, 4), 4, 3),
    ((3, 14, 14, 8), (1, 1, 8, 16), 1, 0),
    ((1, 1, 1, 2), (1, 1, 2, 3), 1, 0),
    ((2, 6, 10, 3), (3, 3, 3, 2), 1, 1),
    ((3, 14, 14, 2), (2, 2, 2, 2), 2, 0),
]


@on_devices
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("x_shape, w_shape, stride, padding", CONVOLUTIONS)
def test_op_conv(x_shape, w_shape, stride, padding, backward, device):
    X, W = numbers(*x_shape), numbers(*w_shape, seed=1)
    wanted, adjoint = conv_by_definition(X, W, stride, padding)
    x, w = ndl.Tensor(X, device=device), ndl.Tensor(W, device=device)
    out = ndl.conv(x, w, padding=padding, stride=stride)
    assert_close(out, wanted, terms=W[..., 0].size)
    if backward:
        weights = upstream(out.shape)
        out.backward(ndl.Tensor(weights, device=device))
        for leaf, want in zip((x, w), adjoint(weights), strict=True):
            assert_close(leaf.grad, want, terms=200)


def nn_conv_by_definition(X, W, b, stride):
    """nn.Conv: NCHW in and out, padding that keeps the size at stride 1."""
    out, adjoint = conv_by_definition(X.transpose(0, 2, 3, 1), W, stride, W.shape[0] // 2)

    def nchw_adjoint(out_grad):
        grad_X, grad_W = adjoint(out_grad.transpose(0, 2, 3, 1))
        return grad_X.transpose(0, 3, 1, 2), grad_W, out_grad.sum(axis=(0, 2, 3))

    return (out + b).transpose(0, 3, 1, 2), nchw_adjoint


LAYERS = [  # size of the image, Cin, Cout, K, stride
    (4, 8, 16, 3, 1), (32, 8, 8, 3, 2), (32, 8, 16, 3, 1), (32, 3, 4, 7, 4), (8, 2, 3, 1, 1), (8, 16, 4, 5, 1),
    (6, 3, 2, 3, 2),
]  # fmt: skip


def check_layer(size, c_in, c_out, k, stride, device, backward):
    np.random.seed(0)
    layer = nn.Conv(c_in, c_out, k, stride=stride, device=device)
    X = numbers(3, c_in, size, size)
    wanted, adjoint = nn_conv_by_definition(X, layer.weight.numpy(), layer.bias.numpy().astype(float), stride)
    x = ndl.Tensor(X, device=device)
    out = layer(x)
    assert_close(out, wanted, terms=c_in * k * k)
    if backward:
        weights = upstream(out.shape)
        out.backward(ndl.Tensor(weights, device=device))
        for leaf, want in zip((x, layer.weight, layer.bias), adjoint(weights), strict=True):
            assert_close(leaf.grad, want, terms=200)


@on_devices
def test_nn_conv_init(device):
    np.random.seed(0)
    drawn = list(drawn_parameters([("conv", 3, 4, 5, 1)]))[:2]
    np.random.seed(0)
    layer = nn.Conv(3, 4, 5, stride=2, device=device)
    for parameter, want in zip((layer.weight, layer.bias), drawn, strict=True):
        assert isinstance(parameter, nn.Parameter) and parameter.device == device
        assert_close(parameter, want)
    bare = nn.Conv(3, 4, 3, bias=False, device=device)
    assert bare.bias is None and len(bare.parameters()) == 1


@on_devices
@pytest.mark.parametrize("size, c_in, c_out, k, stride", LAYERS)
def test_nn_conv_forward(size, c_in, c_out, k, stride, device):
    check_layer(size, c_in, c_out, k, stride, device, backward=False)


@on_devices
@pytest.mark.parametrize("size, c_in, c_out, k, stride", LAYERS)
def test_nn_conv_backward(size, c_in, c_out, k, stride, device):
    check_layer(size, c_in, c_out, k, stride, device, backward=True)


@on_devices
def test_nn_conv_without_bias(device):
    layer = nn.Conv(3, 4, 3, bias=False, device=device)
    assert len(layer.parameters()) == 1
    X = numbers(2, 3, 6, 6)
    assert_close(layer(ndl.Tensor(X, device=device)), nn_conv_by_definition(X, layer.weight.numpy(), 0, 1)[0], terms=27)


# ---- initialisation -------------------------------------------------------------------------------------------------


@on_devices
def test_init_kaiming_uniform(device):
    for shape in ((3, 3, 16, 8), (7, 7, 4, 5), None):
        fan_in, fan_out = (math.prod(shape[:3]), shape[0] * shape[1] * shape[3]) if shape else (6, 4)
        np.random.seed(0)
        wanted = (2 * np.random.rand(*(shape or (6, 4))) - 1) * math.sqrt(6 / fan_in)
        np.random.seed(0)
        got = ndl.init.kaiming_uniform(fan_in, fan_out, shape=shape, device=device)
        assert got.device == device
        assert_close(got, wanted)


def drawn_parameters(layers):
    """What the layers' parameters are if they are drawn one layer after the other, the weight before the bias."""
    for kind, *sizes in layers:
        if kind == "conv":
            c_in, c_out, k, _ = sizes
            yield (2 * np.random.rand(k, k, c_in, c_out) - 1) * math.sqrt(6 / (c_in * k * k))
            yield (2 * np.random.rand(c_out) - 1) / math.sqrt(c_in * k * k)
            yield from (np.ones(c_out), np.zeros(c_out))  # of the batch norm behind it
        else:
            c_in, c_out = sizes
            yield (2 * np.random.rand(c_in, c_out) - 1) * math.sqrt(6 / c_in)
            yield (2 * np.random.rand(1, c_out) - 1) * math.sqrt(6 / c_out)


# ---- ResNet9 --------------------------------------------------------------------------------------------------------

BLOCKS = [(3, 16, 7, 4), (16, 32, 3, 2), (32, 32, 3, 1), (32, 32, 3, 1), (32, 64, 3, 2), (64, 128, 3, 2),
          (128, 128, 3, 1), (128, 128, 3, 1)]  # fmt: skip


def conv_bn_by_definition(X, parameters, stride, training=True):
    """Before any training the running mean is 0 and the running variance 1: with these an evaluation normalizes."""
    W, b, scale, shift = (next(parameters) for _ in range(4))
    X, _ = nn_conv_by_definition(X, W, b, stride)
    mean, variance = 0.0, 1.0
    if training:
        mean, variance = X.mean(axis=(0, 2, 3), keepdims=True), X.var(axis=(0, 2, 3), keepdims=True)
    normal = (X - mean) / np.sqrt(variance + 1e-5)
    return np.maximum(normal * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1), 0)


def resnet9_by_definition(X, parameters, training=True):
    parameters = iter(parameters)
    for first_of_pair in (2, 6):
        for block in (first_of_pair - 2, first_of_pair - 1):
            X = conv_bn_by_definition(X, parameters, BLOCKS[block][3], training)
        before = X
        for _ in range(2):
            X = conv_bn_by_definition(X, parameters, 1, training)
        X = X + before
    hidden = np.maximum(X.reshape(len(X), -1) @ next(parameters) + next(parameters), 0)
    return hidden @ next(parameters) + next(parameters)


@on_devices
@pytest.mark.parametrize("c_in, c_out, k, stride", [(3, 4, 3, 1), (2, 5, 7, 4)])
def test_resnet9_conv_bn(c_in, c_out, k, stride, device):
    np.random.seed(0)
    drawn = list(drawn_parameters([("conv", c_in, c_out, k, stride)]))
    np.random.seed(0)
    block = ConvBN(c_in, c_out, k, stride, device=device)
    assert [p.shape for p in block.parameters()] == [d.shape for d in drawn]
    X = numbers(2, c_in, 8, 8)
    out = block(ndl.Tensor(X, device=device))
    assert out.device == device
    assert_close(out, conv_bn_by_definition(X.astype(float), iter(drawn), stride), terms=1000)


@on_devices
def test_resnet9_parameters(device):
    np.random.seed(0)
    drawn = list(drawn_parameters([("conv", *block) for block in BLOCKS] + [("linear", 128, 128), ("linear", 128, 10)]))
    np.random.seed(0)
    parameters = ResNet9(device=device, dtype="float32").parameters()
    assert [p.shape for p in parameters] == [d.shape for d in drawn]
    for parameter, want in zip(parameters, drawn, strict=True):
        assert parameter.device == device
        assert_close(parameter, want)


@on_devices
def test_resnet9(device):
    np.random.seed(0)
    drawn = list(drawn_parameters([("conv", *block) for block in BLOCKS] + [("linear", 128, 128), ("linear", 128, 10)]))
    np.random.seed(0)
    model = ResNet9(device=device, dtype="float32")
    parameters = model.parameters()
    assert [p.shape for p in parameters] == [d.shape for d in drawn]
    for parameter, want in zip(parameters, drawn, strict=True):
        assert parameter.device == device
        assert_close(parameter, want)

    X = np.random.RandomState(1).randn(2, 3, 32, 32).astype(np.float32)
    # of a batch of two, batch norm may blow up rounding; in an evaluation it only scales, so a percent shows
    model.eval()
    logits = model(ndl.Tensor(X, device=device))
    assert_close(logits, resnet9_by_definition(X.astype(float), drawn, training=False), terms=1000)
    model.train()
    logits = model(ndl.Tensor(X, device=device))
    assert logits.shape == (2, 10)
    assert_within(logits.numpy(), resnet9_by_definition(X.astype(float), drawn), rtol=1e-2, atol=1e-2)
    logits.sum().backward()
    assert all(p.grad is not None and np.isfinite(p.grad.numpy()).all() for p in parameters)


# ---- training -------------------------------------------------------------------------------------------------------


def small_model(device, seed=0):
    """A network that is quick to train, with a batch norm, so that the mode of the model shows."""
    np.random.seed(seed)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(3072, 8, device=device), nn.BatchNorm1d(8, device=device), nn.ReLU(),
        nn.Linear(8, 10, device=device),
    )  # fmt: skip


@pytest.fixture
def pictures(tmp_path):
    """CIFAR-10's layout with random pictures: the data set, and a loader whose last batch is short."""
    write_cifar10(tmp_path, 8)
    dataset = ndl.data.CIFAR10Dataset(str(tmp_path), train=True)
    return dataset, ndl.data.DataLoader(dataset, batch_size=16, shuffle=False)


def accuracy_and_loss(model, dataset, device):
    """Of all pictures at once: a mean over batches would count the short last one too much."""
    logits = model(ndl.Tensor(dataset[:][0], device=device)).numpy().astype(float)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), dataset.y]
    return np.mean(logits.argmax(axis=1) == dataset.y), losses.mean()


def values_of(model):
    return [p.numpy() for p in model.parameters()]


class HalfLoss(nn.SoftmaxLoss):
    """A loss of one's own: whoever takes the usual one in its place is seen."""

    def forward(self, logits, y):
        return super().forward(logits, y) / 2


@on_devices
def test_train_cifar10_epoch(device, pictures):
    dataset, loader = pictures
    model = small_model(device)
    before = values_of(model)
    accuracy, loss = simple_ml.epoch_general_cifar10(loader, model)
    assert not model.training, "without an optimizer it is an evaluation"
    wanted_accuracy, wanted_loss = accuracy_and_loss(model, dataset, device)
    assert_within(float(accuracy), wanted_accuracy, rtol=1e-6)
    assert_within(float(loss), wanted_loss, rtol=1e-5)
    for now, then in zip(values_of(model), before, strict=True):
        assert_same(now, then)

    opt = ndl.optim.SGD(model.parameters(), lr=0.05)
    losses = [simple_ml.epoch_general_cifar10(loader, model, opt=opt)[1] for _ in range(4)]
    assert model.training
    assert losses[-1] < losses[0]
    assert any((now != then).any() for now, then in zip(values_of(model), before, strict=True))


@on_devices
def test_train_cifar10_is_epochs_of_an_optimizer(device, pictures):
    _, loader = pictures
    ours, theirs = small_model(device), small_model(device)
    result = simple_ml.train_cifar10(
        ours, loader, n_epochs=2, optimizer=ndl.optim.SGD, lr=0.03, weight_decay=0.1, loss_fn=HalfLoss
    )
    opt = ndl.optim.SGD(theirs.parameters(), lr=0.03, weight_decay=0.1)
    wanted = [simple_ml.epoch_general_cifar10(loader, theirs, HalfLoss(), opt) for _ in range(2)][-1]
    assert_within(np.array(result, float), np.array(wanted, float), rtol=1e-6)
    for now, want in zip(values_of(ours), values_of(theirs), strict=True):
        assert_same(now, want)


@on_devices
def test_train_cifar10_evaluates(device, pictures):
    dataset, loader = pictures
    model = small_model(device, seed=1)
    before = values_of(model)
    accuracy, loss = simple_ml.evaluate_cifar10(model, loader)
    assert not model.training
    wanted_accuracy, wanted_loss = accuracy_and_loss(model, dataset, device)
    assert_within(float(accuracy), wanted_accuracy, rtol=1e-6)
    assert_within(float(loss), wanted_loss, rtol=1e-5)
    assert_within(float(simple_ml.evaluate_cifar10(model, loader, HalfLoss)[1]), wanted_loss / 2, rtol=1e-5)
    for now, then in zip(values_of(model), before, strict=True):
        assert_same(now, then)


@on_devices
def test_train_cifar10(device, tmp_path):
    write_cifar10(tmp_path, 1)  # five pictures: an emulated GPU takes its time
    dataset = ndl.data.CIFAR10Dataset(str(tmp_path), train=True)
    loader = ndl.data.DataLoader(dataset, batch_size=3, shuffle=False)
    np.random.seed(0)
    model = ResNet9(device=device)
    _, first_loss = simple_ml.train_cifar10(model, loader, lr=0.001, weight_decay=0.001)
    accuracy, loss = simple_ml.train_cifar10(model, loader, lr=0.001, weight_decay=0.001)
    assert 0 <= accuracy <= 1 and model.training
    assert loss < first_loss
    accuracy, loss = simple_ml.evaluate_cifar10(model, loader)
    wanted_accuracy, wanted_loss = accuracy_and_loss(model, dataset, device)
    assert_within(float(loss), wanted_loss, rtol=1e-4)
    assert_within(float(accuracy), wanted_accuracy, rtol=1e-6)
