"""What is handed in for homework 1: `python3 -m mugrade submit KEY hw1 -k forward`, and likewise for the others."""

from __future__ import annotations

import mugrade
import needle as ndl
import numpy as np
import simple_ml
from stages import write_mnist


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(0.5, 2.5, shape)


OPERATORS = [  # function, and the arrays that it is given
    (lambda a: ndl.power_scalar(a, 3), [numbers(2, 3)]),
    (ndl.power, [numbers(2, 3), numbers(2, 3, seed=1)]),
    (ndl.divide, [numbers(2, 3), numbers(2, 3, seed=1)]),
    (lambda a: ndl.divide_scalar(a, -4), [numbers(2, 3)]),
    (lambda a: ndl.transpose(a, axes=(0, 2)), [numbers(2, 3, 4)]),
    (ndl.transpose, [numbers(2, 3, 4)]),
    (lambda a: ndl.reshape(a, (4, 6)), [numbers(2, 3, 4)]),
    (lambda a: ndl.broadcast_to(a, (5, 3, 4)), [numbers(3, 1)]),
    (lambda a: ndl.summation(a, axes=(0, 2)), [numbers(2, 3, 4)]),
    (ndl.summation, [numbers(2, 3, 4)]),
    (ndl.matmul, [numbers(2, 3, 4), numbers(4, 5, seed=1)]),
    (ndl.negate, [numbers(2, 3)]),
    (ndl.log, [numbers(2, 3)]),
    (ndl.exp, [numbers(2, 3)]),
]


def submit_forward():
    for f, arrays in OPERATORS:
        mugrade.submit(f(*map(ndl.Tensor, arrays)).numpy())


def submit_backward():
    for f, arrays in OPERATORS:
        out = f(*map(ndl.Tensor, arrays))
        gradients = out.op.gradient_as_tuple(ndl.Tensor(numbers(*out.shape, seed=7)), out)
        mugrade.submit([gradient.numpy() for gradient in gradients])


def submit_topo_sort():
    a, b = ndl.Tensor([[2.0]]), ndl.Tensor([[3.0]])
    c = a * b + a
    for roots in ([a * b], [c * (c + b)], [ndl.log(c), b - a]):
        mugrade.submit([node.numpy() for node in ndl.autograd.find_topo_sort(roots)])


def submit_compute_gradient():
    a, b = ndl.Tensor(numbers(3, 4)), ndl.Tensor(numbers(4, 2, seed=1))
    y = ndl.log(a @ b) * (a @ b) + (a * a).sum(axes=(1,)).reshape((3, 1)).broadcast_to((3, 2))
    y.backward(ndl.Tensor(numbers(3, 2, seed=2)))
    mugrade.submit((a.grad.numpy(), b.grad.numpy()))
    x = ndl.Tensor(numbers(2, 2))
    cube = x * x * x  # kept: the gradient of the gradient goes back through it
    cube.backward()
    first = x.grad
    first.backward()
    mugrade.submit((first.numpy(), x.grad.numpy()))


def submit_softmax_loss_ndl(tmp_path):
    write_mnist(tmp_path, "train", 12, seed=2, side=5)
    X, y = simple_ml.parse_mnist(
        str(tmp_path / "train-images-idx3-ubyte.gz"), str(tmp_path / "train-labels-idx1-ubyte.gz")
    )
    mugrade.submit((X, y))
    Z = ndl.Tensor(3 * numbers(12, 10, seed=3))
    loss = simple_ml.softmax_loss(Z, ndl.Tensor(np.eye(10)[y]))
    loss.backward()
    mugrade.submit((loss.numpy(), Z.grad.numpy()))


def submit_nn_epoch_ndl():
    x = ndl.Tensor(numbers(3, 4) - 1.5)
    out = ndl.relu(x)
    mugrade.submit((out.numpy(), out.op.gradient_as_tuple(ndl.Tensor(numbers(3, 4, seed=1)), out)[0].numpy()))
    random = np.random.RandomState(4)
    X, y = random.randn(21, 6).astype(np.float32), random.randint(4, size=21).astype(np.uint8)
    weights = [ndl.Tensor(random.randn(6, 5)), ndl.Tensor(random.randn(5, 4))]
    for batch in (21, 8):
        weights = simple_ml.nn_epoch(X, y, *weights, lr=0.3, batch=batch)
        mugrade.submit([w.numpy() for w in weights])
