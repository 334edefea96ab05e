"""What is handed in for homework 3: `python3 -m mugrade submit KEY hw3 -k cpu_ops`, and likewise for the others."""

from __future__ import annotations

import mugrade
import numpy as np
import pytest
from needle import backend_ndarray as nd
from stages import devices

CPU, CUDA = (parameter.values[0] for parameter in devices())
without_gpu = devices()[1].marks
on_cuda = pytest.mark.parametrize("device", [pytest.param(CUDA, id="cuda", marks=without_gpu)])


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(0.5, 2.5, shape).astype(np.float32)


def view_of(a):
    mugrade.submit((a.compact().numpy(), tuple(a.strides), tuple(a.shape)))


def submit_ndarray_python_ops():
    a = nd.array(numbers(4, 6, 2), device=CPU)
    view_of(a.reshape((2, 2, 12)))
    view_of(a.permute((2, 0, 1)))
    view_of(nd.array(numbers(4, 1, 2), device=CPU).broadcast_to((4, 5, 2)))
    view_of(a[1:3, ::2, 1])
    view_of(a.permute((1, 0, 2))[3:5, 1, :])


def compact_and_setitem(device):
    A = numbers(5, 6, 3)
    a = nd.array(A, device=device)
    mugrade.submit(a.permute((2, 1, 0)).compact().numpy())
    mugrade.submit(a[1:4, ::2, 1:].compact().numpy())
    a[::2, 1:3, 0] = nd.array(numbers(2, 3, 1, seed=1), device=device).permute((1, 0, 2))
    mugrade.submit(a.numpy())
    a.permute((1, 2, 0))[0:2, 1, ::3] = -7.5
    mugrade.submit(a.numpy())


def elementwise(device):
    a, b = (nd.array(numbers(7, 9, seed=seed), device=device) for seed in (0, 1))
    b[1:3, :] = a[1:3, :]  # some are equal
    one = float(numbers(7, 9)[2, 3])
    results = [a * b, a / b, a.maximum(b), a == b, a >= b, a * 1.7, a / 1.7, a**1.5, a.maximum(1.2), a == one]
    results += [a >= 1.3, a > 1.3, a.log(), a.exp(), a.tanh()]
    for result in results:
        mugrade.submit(result.numpy())


def reductions(device):
    a = nd.array(numbers(4, 5, 6) - 3, device=device)
    for axis in (None, 0, 1, 2):
        mugrade.submit((a.sum(axis=axis).numpy(), a.max(axis=axis).numpy()))


def products(device):
    for m, n, p in ((3, 4, 5), (16, 8, 24), (33, 17, 9), (64, 64, 64)):
        a, b = nd.array(numbers(m, n), device=device), nd.array(numbers(n, p, seed=1), device=device)
        mugrade.submit((a @ b).numpy())


def submit_ndarray_cpu_compact_setitem():
    compact_and_setitem(CPU)


def submit_ndarray_cpu_ops():
    elementwise(CPU)


def submit_ndarray_cpu_reductions():
    reductions(CPU)


def submit_ndarray_cpu_matmul():
    products(CPU)


@on_cuda
def submit_ndarray_cuda_compact_setitem(device):
    compact_and_setitem(device)


@on_cuda
def submit_ndarray_cuda_ops(device):
    elementwise(device)


@on_cuda
def submit_ndarray_cuda_reductions(device):
    reductions(device)


@on_cuda
def submit_ndarray_cuda_matmul(device):
    products(device)
