"""Checks of homework 2, questions 0 to 3 and 5: initialisers, modules, optimizers, and an MLP on MNIST.

python -m pytest tests/hw2 -k test_init      and likewise: test_nn_linear … test_nn_residual, test_op_logsumexp,
test_op_logsoftmax, test_optim_sgd, test_optim_adam, test_mlp

Values are compared with float64 NumPy, gradients with central differences and an upstream gradient whose entries all
differ; bounds follow from float32 and the number of terms.
"""

from __future__ import annotations

import gc
import math

import mlp_resnet
import needle as ndl
import numpy as np
import pytest
from needle import nn
from stages import (
    assert_close,
    assert_same,
    assert_within,
    numerical_gradients,
    real_data,
    upstream,
    write_mnist,
    write_mnist_files,
)

# ---- what the checks share ------------------------------------------------------------------------------------------


def numbers(*shape, seed=0, scale=1.0):
    return (scale * np.random.RandomState(seed).randn(*shape)).astype(np.float32)


def scramble(module, seed=5):
    """Give every parameter random values around 1, so that a parameter that is left out shows."""
    random = np.random.RandomState(seed)
    for p in module.parameters():
        p.data = ndl.Tensor(random.uniform(0.5, 1.5, p.shape) * random.choice([-1, 1], p.shape), dtype=p.dtype)
    return module


def check_forward(f, reference, *arrays, terms=64):
    """f of float32 Tensors equals reference of float64 arrays and is float32; an unscaled second call agrees."""
    for _ in range(2):
        out = f(*(ndl.Tensor(a) for a in arrays))
        # NumPy 1 divides a float32 number without axes by an int as float64
        assert out.dtype == np.float32 or out.shape == (), f"dtype {out.dtype}, wanted float32"
        assert_close(out, reference(*(np.asarray(a, np.float64) for a in arrays)), terms, np.float32)


def check_backward(f, reference, *arrays, parameters=(), terms=4000):
    """Gradients of f in arguments and parameters, against central differences of reference(*arrays, *parameters)."""
    inputs = [ndl.Tensor(a) for a in arrays]
    out = f(*inputs)
    weights = upstream(out.shape)
    out.backward(ndl.Tensor(weights, dtype=out.dtype))
    leaves = [*inputs, *parameters]
    for leaf, want in zip(leaves, numerical_gradients(reference, [t.numpy() for t in leaves], weights), strict=True):
        assert leaf.grad.dtype == np.float32, f"a gradient has dtype {leaf.grad.dtype}, wanted float32"
        assert_close(leaf.grad, want, terms)


def log_sum_exp(Z, axes=None):
    largest = Z.max(axis=axes, keepdims=True)
    total = np.log(np.exp(Z - largest).sum(axis=axes, keepdims=True)) + largest
    return np.squeeze(total, axis=axes)


# ---- question 0: what homework 1 left -------------------------------------------------------------------------------


def test_check_prng_contact_us_if_this_fails_1():
    np.random.seed(0)  # the first numbers of NumPy's legacy generator, the same in all of its versions
    assert_within(np.random.rand(3), [0.5488135039, 0.7151893664, 0.6027633761], rtol=1e-9)


def test_op_power_scalar_forward_1():
    check_forward(lambda x: ndl.power_scalar(x, 2), lambda x: x**2, numbers(2, 2))


def test_op_power_scalar_forward_2():
    check_forward(lambda x: ndl.power_scalar(x, -1.5), lambda x: x**-1.5, np.abs(numbers(2, 2)) + 1)


def test_op_power_scalar_backward_1():
    check_backward(lambda x: ndl.power_scalar(x, 3), lambda x: x**3, numbers(2, 3))


# ---- question 1: initialisers ---------------------------------------------------------------------------------------


def check_init(initialise, draw, scale_of):
    """initialise(fan_in, fan_out) is draw(fan_in, fan_out) · scale, from the same state of the generator."""
    for fan_in, fan_out in ((3, 5), (40, 1), (1, 7)):
        np.random.seed(42)
        wanted = draw(fan_in, fan_out) * scale_of(fan_in, fan_out)
        np.random.seed(42)
        got = initialise(fan_in, fan_out)
        assert got.dtype == np.float32
        assert_close(got, wanted)


def uniform(*shape):
    return 2 * np.random.rand(*shape) - 1


def test_init_kaiming_uniform():
    check_init(ndl.init.kaiming_uniform, uniform, lambda fan_in, fan_out: math.sqrt(6 / fan_in))


def test_init_kaiming_normal():
    check_init(ndl.init.kaiming_normal, np.random.randn, lambda fan_in, fan_out: math.sqrt(2 / fan_in))


def test_init_xavier_uniform():
    check_init(ndl.init.xavier_uniform, uniform, lambda fan_in, fan_out: math.sqrt(6 / (fan_in + fan_out)))
    check_init(
        lambda *fans: ndl.init.xavier_uniform(*fans, gain=1.5), uniform, lambda i, o: 1.5 * math.sqrt(6 / (i + o))
    )


def test_init_xavier_normal():
    check_init(ndl.init.xavier_normal, np.random.randn, lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out)))
    check_init(
        lambda *fans: ndl.init.xavier_normal(*fans, gain=0.3),
        np.random.randn,
        lambda i, o: 0.3 * math.sqrt(2 / (i + o)),
    )


# ---- question 2: modules and their operators ------------------------------------------------------------------------


def test_nn_linear_weight_init_1():
    np.random.seed(1337)
    wanted = uniform(7, 4) * math.sqrt(6 / 7)
    np.random.seed(1337)
    weight = nn.Linear(7, 4).weight
    assert isinstance(weight, nn.Parameter) and weight.dtype == np.float32
    assert_close(weight, wanted)


def test_nn_linear_bias_init_1():
    np.random.seed(1337)
    uniform(7, 4)  # the weight is drawn first
    wanted = uniform(1, 4) * math.sqrt(6 / 4)
    np.random.seed(1337)
    bias = nn.Linear(7, 4).bias
    assert isinstance(bias, nn.Parameter) and bias.dtype == np.float32
    assert_close(bias, wanted)
    assert len(nn.Linear(7, 4, bias=False).parameters()) == 1


def test_nn_linear_forward_1():
    f = scramble(nn.Linear(10, 5))
    check_forward(f, lambda x: x @ f.weight.numpy().astype(float) + f.bias.numpy(), numbers(8, 10))


def test_nn_linear_forward_2():
    f = scramble(nn.Linear(10, 5, bias=False))
    check_forward(f, lambda x: x @ f.weight.numpy().astype(float), numbers(8, 10))


def test_nn_linear_forward_3():
    f = nn.Linear(4, 3)
    f.bias.data = ndl.Tensor(numbers(3), dtype="float32")  # a row without its leading axis will do
    check_forward(f, lambda x: x @ f.weight.numpy().astype(float) + f.bias.numpy(), numbers(2, 5, 4))


def test_nn_linear_backward_1():
    f = scramble(nn.Linear(5, 3))
    check_backward(f, lambda x, w, b: x @ w + b, numbers(4, 5), parameters=(f.weight, f.bias))


def test_nn_linear_backward_2():
    f = scramble(nn.Linear(5, 3, bias=False))
    check_backward(f, lambda x, w: x @ w, numbers(4, 5), parameters=(f.weight,))


def test_nn_linear_backward_3():
    f = scramble(nn.Linear(5, 3))
    check_backward(f, lambda x, w, b: x @ w + b, numbers(2, 3, 5), parameters=(f.weight, f.bias))


def test_nn_relu_forward_1():
    check_forward(nn.ReLU(), lambda x: np.maximum(x, 0), np.array([[-2.0, 0.0, 3.0], [0.5, -0.5, 0.0]], np.float32))


def test_nn_relu_backward_1():
    check_backward(nn.ReLU(), lambda x: np.maximum(x, 0), numbers(3, 4) + 0.01)


def sequential():
    return nn.Sequential(scramble(nn.Linear(5, 8)), nn.ReLU(), scramble(nn.Linear(8, 3), seed=6))


def sequential_reference(x, w, b, w2, b2):
    return np.maximum(x @ w + b, 0) @ w2 + b2


def test_nn_sequential_forward_1():
    f = sequential()
    parameters = [p.numpy().astype(float) for p in f.parameters()]
    check_forward(f, lambda x: sequential_reference(x, *parameters), numbers(3, 5))
    assert isinstance(f.modules[1], nn.ReLU)
    check_forward(nn.Sequential(), lambda x: x, numbers(3, 5))


def test_nn_sequential_backward_1():
    f = sequential()
    assert len(f.parameters()) == 4
    check_backward(f, sequential_reference, numbers(3, 5), parameters=f.parameters())


# operators


@pytest.mark.parametrize("shape", [(3, 3), (1, 6), (5, 1)])
def test_op_logsoftmax_forward_1(shape):
    check_forward(ndl.logsoftmax, lambda z: z - log_sum_exp(z, axes=1)[:, None], numbers(*shape, scale=3))


def test_op_logsoftmax_stable_forward_1():
    check_forward(ndl.logsoftmax, lambda z: z - log_sum_exp(z, axes=1)[:, None], numbers(3, 3, scale=1e5))


def test_op_logsoftmax_backward_1():
    check_backward(ndl.logsoftmax, lambda z: z - log_sum_exp(z, axes=1)[:, None], numbers(3, 4), terms=64)


def check_logsumexp(axes, shape, scale=1.0, backward=False):
    f, reference = lambda z: ndl.logsumexp(z, axes=axes), lambda z: log_sum_exp(z, axes)
    (check_backward if backward else check_forward)(f, reference, numbers(*shape, scale=scale))


def test_op_logsumexp_forward_1():
    check_logsumexp(None, (3, 3, 3))


def test_op_logsumexp_forward_2():
    check_logsumexp((0,), (3, 2, 3))


def test_op_logsumexp_forward_3():
    check_logsumexp((0, 1), (3, 2, 4))


def test_op_logsumexp_forward_4():
    check_logsumexp((1, 2), (3, 2, 4))


def test_op_logsumexp_forward_5():
    check_logsumexp((0, 2), (3, 2, 4), scale=1e10)
    check_logsumexp(None, (2, 2), scale=1e10)


def test_op_logsumexp_backward_1():
    check_logsumexp((1,), (3, 2), backward=True)


def test_op_logsumexp_backward_2():
    check_logsumexp((0,), (3, 2, 4), backward=True)


def test_op_logsumexp_backward_3():
    check_logsumexp((0, 1), (3, 2, 4), backward=True)


def test_op_logsumexp_backward_4():
    check_logsumexp((1, 2), (3, 2, 4), backward=True)


def test_op_logsumexp_backward_5():
    check_logsumexp(None, (3, 2, 4), backward=True)
    z = ndl.Tensor(np.array([[1e10, 1e9, -1e10]], np.float32))
    ndl.logsumexp(z, axes=(1,)).backward()
    assert_same(z.grad.numpy(), [[1, 0, 0]])  # exp(z - result), never exp(z) / exp(result)


# loss


def cross_entropy(logits, labels):
    return np.mean(log_sum_exp(logits, axes=1) - logits[np.arange(len(labels)), labels])


def check_softmax_loss(rows, classes, backward=False):
    logits, labels = numbers(rows, classes, scale=2), np.random.RandomState(1).randint(classes, size=rows)
    for dtype in ("int64", "uint8", "float32"):
        f = lambda z: nn.SoftmaxLoss()(z, ndl.Tensor(labels, dtype=dtype, requires_grad=False))  # noqa: B023
        (check_backward if backward else check_forward)(f, lambda z: cross_entropy(z, labels), logits)


def test_nn_softmax_loss_forward_1():
    check_softmax_loss(5, 10)


def test_nn_softmax_loss_forward_2():
    check_softmax_loss(3, 11)
    logits = np.array([[0, 1e8]], np.float32)
    check_forward(lambda z: nn.SoftmaxLoss()(z, ndl.Tensor([0])), lambda z: np.array(1e8), logits)


def test_nn_softmax_loss_backward_1():
    check_softmax_loss(5, 10, backward=True)


def test_nn_softmax_loss_backward_2():
    check_softmax_loss(3, 11, backward=True)


# layer norm


def layer_norm(x, w=1, b=0, eps=1e-5):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return w * (x - mean) / np.sqrt(variance + eps) + b


def check_first_values(layer, dim):
    """A normalisation starts as the identity behind it: weights 1, biases 0, both to be trained."""
    assert layer.parameters() == [layer.weight, layer.bias] or layer.parameters() == [layer.bias, layer.weight]
    for parameter, value in ((layer.weight, 1), (layer.bias, 0)):
        assert isinstance(parameter, nn.Parameter) and parameter.dtype == np.float32
        assert_same(parameter, np.full(dim, value))


def test_nn_layernorm_init_1():
    check_first_values(nn.LayerNorm1d(7), 7)


def test_nn_layernorm_forward_1():
    check_forward(nn.LayerNorm1d(8), layer_norm, numbers(8, 8))


def test_nn_layernorm_forward_2():
    f = scramble(nn.LayerNorm1d(12))
    check_forward(f, lambda x: layer_norm(x, f.weight.numpy(), f.bias.numpy()), numbers(5, 12) + 3)


def test_nn_layernorm_forward_3():
    check_forward(nn.LayerNorm1d(6, eps=0.5), lambda x: layer_norm(x, eps=0.5), numbers(2, 6, scale=0.3))
    check_forward(nn.LayerNorm1d(4), layer_norm, np.full((2, 4), 7, np.float32))  # no variance: 0, not NaN


def check_layernorm_backward(rows, dim):
    f = scramble(nn.LayerNorm1d(dim))
    check_backward(f, layer_norm, numbers(rows, dim), parameters=(f.weight, f.bias))


def test_nn_layernorm_backward_1():
    check_layernorm_backward(3, 5)


def test_nn_layernorm_backward_2():
    check_layernorm_backward(1, 6)


def test_nn_layernorm_backward_3():
    check_layernorm_backward(5, 2)


def test_nn_layernorm_backward_4():
    check_layernorm_backward(4, 16)


# batch norm


def batch_norm(x, w=1, b=0, eps=1e-5):
    return w * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) + b


def test_nn_batchnorm_check_model_eval_switches_training_flag_1():
    inner = nn.Sequential(nn.Dropout(0.1), nn.BatchNorm1d(3))
    model = nn.Sequential(nn.Linear(3, 3), nn.Residual(inner))
    model.in_a_dict, model.in_lists = {"a": nn.Dropout()}, [[nn.ReLU()], (nn.Linear(2, 2),)]
    everything = [model, inner, *inner.modules, model.in_a_dict["a"], model.in_lists[0][0], model.in_lists[1][0]]
    assert all(module.training for module in everything)
    model.eval()
    assert not any(module.training for module in everything)
    model.train()
    assert all(module.training for module in everything)
    assert len(model.parameters()) == 2 + 2 + 2


def test_nn_batchnorm_init_1():
    layer = nn.BatchNorm1d(6)
    check_first_values(layer, 6)
    for statistic, value in ((layer.running_mean, 0), (layer.running_var, 1)):
        assert not isinstance(statistic, nn.Parameter), "running statistics are not trained"
        assert statistic.dtype == np.float32
        assert_same(statistic, np.full(6, value))


def test_nn_batchnorm_forward_1():
    check_forward(nn.BatchNorm1d(4), batch_norm, numbers(8, 4) + 2)
    check_forward(nn.BatchNorm1d(4, eps=0.5), lambda x: batch_norm(x, eps=0.5), numbers(8, 4, scale=0.3))
    check_forward(nn.BatchNorm1d(4), batch_norm, np.full((1, 4), 7, np.float32))  # one row: 0, not NaN


def test_nn_batchnorm_forward_affine_1():
    f = scramble(nn.BatchNorm1d(4))
    check_forward(f, lambda x: batch_norm(x, f.weight.numpy(), f.bias.numpy()), numbers(8, 4))
    # evaluation: the running values, whatever the batch; weight and bias still apply
    f.running_mean.data, f.running_var.data = ndl.Tensor(numbers(4)), ndl.Tensor(np.abs(numbers(4, seed=1)))
    mean, variance = f.running_mean.numpy(), f.running_var.numpy().astype(float)
    f.eval()
    check_forward(
        f, lambda x: f.weight.numpy() * (x - mean) / np.sqrt(variance + 1e-5) + f.bias.numpy(), numbers(3, 4, seed=2)
    )


def test_nn_batchnorm_backward_1():
    f = nn.BatchNorm1d(3)
    check_backward(f, batch_norm, numbers(5, 3), parameters=(f.weight, f.bias))


def test_nn_batchnorm_backward_affine_1():
    f = scramble(nn.BatchNorm1d(4))
    check_backward(f, batch_norm, numbers(6, 4), parameters=(f.weight, f.bias))


def running_statistics(momentum=0.1, batches=4):
    """A BatchNorm1d after some batches, and what its running values should be."""
    f = nn.BatchNorm1d(3, momentum=momentum)
    mean, variance = np.zeros(3), np.ones(3)
    for seed in range(batches):
        x = 2 * numbers(7, 3, seed=seed) + 1
        f(ndl.Tensor(x))
        mean = (1 - momentum) * mean + momentum * x.mean(axis=0)
        variance = (1 - momentum) * variance + momentum * x.var(axis=0)  # biased: divided by the number of rows
    f.eval()
    f(ndl.Tensor(x + 100))  # evaluation must not move them
    assert f.running_mean.dtype == f.running_var.dtype == np.float32
    return f, mean, variance


def test_nn_batchnorm_running_mean_1():
    for momentum in (0.1, 0.7):
        f, mean, _ = running_statistics(momentum)
        assert_close(f.running_mean, mean)


def test_nn_batchnorm_running_var_1():
    for momentum in (0.1, 0.7):
        f, _, variance = running_statistics(momentum)
        assert_close(f.running_var, variance)


def test_nn_batchnorm_running_grad_1():
    f = scramble(nn.BatchNorm1d(3))
    f(ndl.Tensor(numbers(7, 3)))
    assert not f.running_mean.requires_grad and not f.running_var.requires_grad
    mean, variance = f.running_mean.numpy().astype(float), f.running_var.numpy().astype(float)
    f.eval()
    check_backward(
        f,
        lambda x, w, b: w * (x - mean) / np.sqrt(variance + 1e-5) + b,
        numbers(4, 3, seed=1),
        parameters=(f.weight, f.bias),
    )


# dropout


def dropout_mask(p, *shape):
    """What the next call of Dropout(p) multiplies by, in training."""
    np.random.seed(0)
    mask = (np.random.rand(*shape) <= 1 - p) / (1 - p)
    np.random.seed(0)
    return mask


def test_nn_dropout_forward_1():
    x = numbers(20, 30)
    for p in (0.5, 0.1, 0.9):
        mask = dropout_mask(p, 20, 30)
        out = nn.Dropout(p)(ndl.Tensor(x))
        assert out.dtype == np.float32
        assert_close(out, x * mask)
    off = nn.Dropout(0.5)
    off.eval()
    check_forward(off, lambda x: x, x)
    check_forward(nn.Dropout(0.0), lambda x: x, x)


def test_nn_dropout_backward_1():
    x, mask = ndl.Tensor(numbers(4, 5)), dropout_mask(0.3, 4, 5)
    weights = upstream((4, 5))
    nn.Dropout(0.3)(x).backward(ndl.Tensor(weights, dtype="float32"))
    assert_close(x.grad, weights * mask)


# residual and flatten


def test_nn_residual_forward_1():
    f = scramble(nn.Linear(4, 4))
    check_forward(nn.Residual(f), lambda x: x @ f.weight.numpy().astype(float) + f.bias.numpy() + x, numbers(3, 4))


def test_nn_residual_backward_1():
    f = nn.Residual(scramble(nn.Linear(4, 4)))
    assert len(f.parameters()) == 2
    check_backward(f, lambda x, w, b: x @ w + b + x, numbers(3, 4), parameters=f.parameters())


def check_flatten(*shape, backward=False):
    check = check_backward if backward else check_forward
    check(nn.Flatten(), lambda x: x.reshape(shape[0], -1), numbers(*shape))


def test_nn_flatten_forward_1():
    check_flatten(3, 3)


def test_nn_flatten_forward_2():
    check_flatten(3, 3, 3)


def test_nn_flatten_forward_3():
    check_flatten(1, 2, 3, 4)


def test_nn_flatten_forward_4():
    check_flatten(3, 2, 1, 4)


def test_nn_flatten_backward_1():
    check_flatten(3, 3, backward=True)


def test_nn_flatten_backward_2():
    check_flatten(3, 3, 3, backward=True)


def test_nn_flatten_backward_3():
    check_flatten(1, 2, 3, 4, backward=True)


def test_nn_flatten_backward_4():
    check_flatten(2, 2, 2, 1, 4, backward=True)


def test_nn_flatten_backward_5():
    check_flatten(4, 1, 2, backward=True)


# ---- question 3: optimizers -----------------------------------------------------------------------------------------


def sgd_by_hand(theta, gradients, lr, momentum=0.0, weight_decay=0.0):
    """theta after steps with these gradients; u written out as a sum over all past steps."""
    past = []
    for gradient in gradients:
        past.append(gradient + weight_decay * theta)
        u = sum((1 - momentum) * momentum**age * g for age, g in enumerate(reversed(past)))
        theta = theta - lr * u
    return theta


def adam_by_hand(theta, gradients, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    past = []
    for t, gradient in enumerate(gradients, start=1):
        past.append(gradient + weight_decay * theta)
        m = sum((1 - beta1) * beta1**age * g for age, g in enumerate(reversed(past))) / (1 - beta1**t)
        v = sum((1 - beta2) * beta2**age * g**2 for age, g in enumerate(reversed(past))) / (1 - beta2**t)
        theta = theta - lr * m / (np.sqrt(v) + eps)
    return theta


def small_model(*middle):
    np.random.seed(42)
    return nn.Sequential(nn.Linear(6, 8), *middle, nn.ReLU(), nn.Linear(8, 3))


def check_optimizer(optimizer, by_hand, model, steps=8, **settings):
    """Train for some steps; parameters must move as by_hand says, given the gradients that were there."""
    opt = optimizer(model.parameters(), **settings)
    start = [p.numpy() for p in model.parameters()]
    gradients = [[] for _ in start]
    loss_fn = nn.SoftmaxLoss()
    losses = []
    for step in range(steps):
        x, y = numbers(16, 6, seed=step % 2), np.random.RandomState(step % 2).randint(3, size=16)
        opt.reset_grad()
        assert all(p.grad is None for p in model.parameters())
        loss = loss_fn(model(ndl.Tensor(x)), ndl.Tensor(y, requires_grad=False))
        loss.backward()
        before = [p.grad.numpy() for p in model.parameters()]
        opt.step()
        for p, gradient, kept in zip(model.parameters(), before, gradients, strict=True):
            assert_same(p.grad.numpy(), gradient, what="a step must not change a gradient")
            kept.append(gradient.astype(np.float64))
        losses.append(loss.numpy())
    for p, theta, kept in zip(model.parameters(), start, gradients, strict=True):
        assert p.dtype == np.float32 and isinstance(p, nn.Parameter)
        wanted = by_hand(theta.astype(np.float64), kept, **settings)
        # a step's own rounding is far below this; a missing factor or term is far above
        assert_within(p.numpy() - theta, wanted - theta, rtol=1e-3, atol=1e-6)
    assert losses[-2] < losses[0] or steps < 4  # of the same batch
    return opt


def test_optim_sgd_vanilla_1():
    check_optimizer(ndl.optim.SGD, sgd_by_hand, small_model(), lr=0.01)


def test_optim_sgd_momentum_1():
    check_optimizer(ndl.optim.SGD, sgd_by_hand, small_model(), lr=0.1, momentum=0.9)


def test_optim_sgd_weight_decay_1():
    check_optimizer(ndl.optim.SGD, sgd_by_hand, small_model(), lr=0.1, weight_decay=0.01)


def test_optim_sgd_momentum_weight_decay_1():
    check_optimizer(ndl.optim.SGD, sgd_by_hand, small_model(), lr=0.1, momentum=0.9, weight_decay=0.1)


def test_optim_sgd_layernorm_residual_1():
    model = small_model(nn.LayerNorm1d(8), nn.Residual(nn.Linear(8, 8)))
    check_optimizer(ndl.optim.SGD, sgd_by_hand, model, lr=0.05, momentum=0.8, weight_decay=0.001)


def live_tensors_do_not_grow(optimizer, **settings):
    """As many tensors are alive after step 30 as after step 3, with Python's collector of cycles off."""
    model = small_model(nn.BatchNorm1d(8), nn.Dropout(0.2))
    opt, loss_fn = optimizer(model.parameters(), **settings), nn.SoftmaxLoss()
    x, y = ndl.Tensor(numbers(16, 6)), ndl.Tensor(np.arange(16) % 3)
    alive = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(30):
            opt.reset_grad()
            loss_fn(model(x), y).backward()
            opt.step()
            alive.append(ndl.autograd.TENSOR_COUNTER)
    finally:
        gc.enable()
    assert alive[-1] == alive[2], f"{alive[-1] - alive[2]} more tensors are alive than 27 steps before"


def test_optim_sgd_z_memory_check_1():
    live_tensors_do_not_grow(ndl.optim.SGD, lr=0.01, momentum=0.9, weight_decay=0.01)


def test_optim_adam_1():
    check_optimizer(ndl.optim.Adam, adam_by_hand, small_model(), lr=0.001)


def test_optim_adam_weight_decay_1():
    check_optimizer(ndl.optim.Adam, adam_by_hand, small_model(), lr=0.001, weight_decay=0.01)


def test_optim_adam_batchnorm_1():
    check_optimizer(ndl.optim.Adam, adam_by_hand, small_model(nn.BatchNorm1d(8)), lr=0.001, weight_decay=0.001)


def test_optim_adam_batchnorm_eval_mode_1():
    model = small_model(nn.BatchNorm1d(8))
    check_optimizer(ndl.optim.Adam, adam_by_hand, model, lr=0.001)
    model.eval()
    norm = model.modules[1]
    mean, variance = norm.running_mean.numpy().astype(float), norm.running_var.numpy().astype(float)
    w, b, scale, shift, w2, b2 = (p.numpy().astype(float) for p in model.parameters())
    check_forward(
        model,
        lambda x: np.maximum((x @ w + b - mean) / np.sqrt(variance + 1e-5) * scale + shift, 0) @ w2 + b2,
        numbers(4, 6),
    )


def test_optim_adam_layernorm_1():
    check_optimizer(ndl.optim.Adam, adam_by_hand, small_model(nn.LayerNorm1d(8)), lr=0.01, weight_decay=0.01)


def test_optim_adam_weight_decay_bias_correction_1():
    # one step from zero state moves every parameter by lr, whatever the size of its gradient; decay is part of it
    p = nn.Parameter(ndl.Tensor(np.array([1.0, -2.0, 0.5], np.float32)))
    opt = ndl.optim.Adam([p], lr=0.1, weight_decay=0.5)
    p.grad = ndl.Tensor(np.array([1.0, 1e-3, -0.25], np.float32))  # the last: gradient and decay cancel
    opt.step()
    assert_close(p, [0.9, -1.9, 0.5])
    check_optimizer(
        ndl.optim.Adam, adam_by_hand, small_model(), steps=3, lr=0.002, beta1=0.5, beta2=0.9, eps=1e-3, weight_decay=0.1
    )


def test_optim_adam_z_memory_check_1():
    live_tensors_do_not_grow(ndl.optim.Adam, lr=0.01, weight_decay=0.01)


# ---- question 5: an MLP on MNIST ------------------------------------------------------------------------------------


def size(model):
    return sum(int(np.prod(p.shape)) for p in model.parameters())


def test_mlp_residual_block_num_params_1():
    assert size(mlp_resnet.ResidualBlock(15, 2, nn.BatchNorm1d)) == 15 * 2 + 2 + 2 * 2 + 2 * 15 + 15 + 2 * 15


def test_mlp_residual_block_num_params_2():
    assert size(mlp_resnet.ResidualBlock(784, 100, nn.LayerNorm1d)) == 2 * 784 * 100 + 100 + 784 + 2 * (100 + 784)


def block_reference(x, parameters, norm, mask=1.0):
    w, b, scale, shift, w2, b2, scale2, shift2 = parameters
    hidden = np.maximum(norm(x @ w + b, scale, shift), 0) * mask
    return np.maximum(x + norm(hidden @ w2 + b2, scale2, shift2), 0)


def doubles(parameters):
    return [p.numpy().astype(float) for p in parameters]


@pytest.mark.parametrize("layer, reference", [(nn.BatchNorm1d, batch_norm), (nn.LayerNorm1d, layer_norm)])
def test_mlp_residual_block_forward_1(layer, reference):
    block = scramble(mlp_resnet.ResidualBlock(6, 4, layer, drop_prob=0.5))
    x, mask = numbers(7, 6), dropout_mask(0.5, 7, 4)
    assert_close(
        block(ndl.Tensor(x)), block_reference(x.astype(float), doubles(block.parameters()), reference, mask), 300
    )


def test_mlp_resnet_num_params_1():
    wanted = 150 * 100 + 100 + 100 * 10 + 10 + 5 * (2 * 100 * 50 + 50 + 100 + 2 * (50 + 100))
    assert size(mlp_resnet.MLPResNet(150, 100, 5, 10, nn.LayerNorm1d)) == wanted


def test_mlp_resnet_num_params_2():
    assert size(mlp_resnet.MLPResNet(10, 100, 0, 7)) == 10 * 100 + 100 + 100 * 7 + 7


def check_mlp_resnet(layer, reference, **settings):
    """The output from the parameters in the order of execution, with dropout drawn in that order too."""
    np.random.seed(2)
    model = mlp_resnet.MLPResNet(9, 8, norm=layer, **settings)
    x = numbers(6, 9)
    parameters = doubles(model.parameters())
    h = np.maximum(x @ parameters[0] + parameters[1], 0)
    p = settings.get("drop_prob", 0.1)
    np.random.seed(0)
    for first in range(2, len(parameters) - 2, 8):
        mask = (np.random.rand(6, 4) <= 1 - p) / (1 - p)
        h = block_reference(h, parameters[first : first + 8], reference, mask)
    np.random.seed(0)
    assert_close(model(ndl.Tensor(x)), h @ parameters[-2] + parameters[-1], 2000)


def test_mlp_resnet_forward_1():
    check_mlp_resnet(nn.LayerNorm1d, layer_norm, num_blocks=2, num_classes=5, drop_prob=0.5)


def test_mlp_resnet_forward_2():
    check_mlp_resnet(nn.BatchNorm1d, batch_norm)


def digits_loader(shuffle=False, batch_size=50):
    """Images that a network can tell apart, (n, 28, 28, 1), the last batch short."""
    labels = np.arange(280) * 7 % 10
    images = 0.2 * np.random.RandomState(0).rand(280, 28, 28, 1).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 3] += 0.5
    return ndl.data.DataLoader(ndl.data.NDArrayDataset(images, labels.astype(np.uint8)), batch_size, shuffle)


def one_epoch(seed_before):
    np.random.seed(1)
    model = mlp_resnet.MLPResNet(784, 16)
    opt = ndl.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.001)
    np.random.seed(seed_before)  # must not matter: an epoch seeds the generator itself
    first = mlp_resnet.epoch(digits_loader(shuffle=True), model, opt)
    assert model.training
    return model, first, mlp_resnet.epoch(digits_loader(shuffle=True), model, opt)


def test_mlp_train_epoch_1():
    _, (error, loss), (later_error, later_loss) = one_epoch(seed_before=7)
    assert all(isinstance(float(number), float) and np.shape(number) == () for number in (error, loss))
    assert 0 < later_error < error < 1, "epoch returns error rates, not accuracies"
    assert later_loss < loss
    assert one_epoch(seed_before=8)[1:] == ((error, loss), (later_error, later_loss))


def test_mlp_eval_epoch_1():
    model = one_epoch(seed_before=7)[0]
    before = doubles(model.parameters())
    error, loss = mlp_resnet.epoch(digits_loader(), model)
    assert not model.training
    logits, labels = [], []
    for images, y in digits_loader(batch_size=280):
        logits.append(model(ndl.Tensor(images.numpy().reshape(-1, 784))).numpy().astype(float))
        labels.append(y.numpy())
    logits, labels = np.concatenate(logits), np.concatenate(labels)
    assert_within(error, np.mean(logits.argmax(axis=1) != labels), rtol=1e-6)
    # a mean over batches would count the short last one too much
    assert_within(loss, cross_entropy(logits, labels), rtol=1e-5)
    for now, then in zip(doubles(model.parameters()), before, strict=True):
        assert_same(now, then)


def test_mlp_train_mnist_1(tmp_path, monkeypatch):
    epochs, epoch = [], mlp_resnet.epoch  # what each epoch returned
    loaders, optimizers = [], []

    class Noted(ndl.optim.Adam):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            optimizers.append(self)

    def noted(*args, **kwargs):
        error, loss = epoch(*args, **kwargs)
        loaders.append(args[0] if args else kwargs["dataloader"])
        epochs.append((error + 0.01, loss))  # so that no error is 0, of which every multiple is right
        return epochs[-1]

    monkeypatch.setattr(mlp_resnet, "epoch", noted)
    settings = {"batch_size": 50, "epochs": 3, "hidden_dim": 32}
    if real_data("mnist"):
        settings = {"batch_size": 100, "epochs": 2, "hidden_dim": 100}
        split_test_set(real_data("mnist"), tmp_path)
    else:
        write_mnist(tmp_path, "train", 1000)
        write_mnist(tmp_path, "t10k", 200, seed=1)
    np.random.seed(11)
    train_error, train_loss, test_error, test_loss = mlp_resnet.train_mnist(
        optimizer=Noted, lr=0.005, weight_decay=0.0015, data_dir=str(tmp_path), **settings
    )
    assert [(opt.lr, opt.weight_decay) for opt in optimizers] == [(0.005, 0.0015)]
    assert 0 < train_error < 0.35, "the first number is the error rate of the last epoch, not an accuracy"
    assert 0 <= test_error < 0.15
    assert 0 < train_loss < 1.2 and 0 < test_loss < 0.5
    if epochs:  # not where somebody wrote the loops again
        assert (train_error, train_loss) == epochs[-2], "the last epoch of training comes first"
        assert (test_error, test_loss) == epochs[-1]
        assert [loader.shuffle for loader in loaders] == [True] * settings["epochs"] + [False]


def split_test_set(mnist, folder):
    """6,000 of MNIST's 10,000 test images as a training set and the rest as a test set: seconds instead of a minute."""
    X, y = ndl.data.parse_mnist(mnist / "t10k-images-idx3-ubyte.gz", mnist / "t10k-labels-idx1-ubyte.gz")
    pixels = np.rint(X * 255).astype(np.uint8).reshape(-1, 28, 28)
    write_mnist_files(folder, "train", pixels[:6000], y[:6000])
    write_mnist_files(folder, "t10k", pixels[6000:], y[6000:])
