"""Whole operations of the registry give what the plain path gives."""

from __future__ import annotations

import numpy as np
import pytest
from needle import Op, Tensor, grad, kernels, nn, ops

from tests.op_cases import WHOLE, OpCase, check_whole_operation

ENTRIES = {key: entry for key, entry in kernels.operations().items() if issubclass(key[0], Op) and key[1] == "cpu"}
ROWS = [(case, device, dtype) for cls, device, dtype in ENTRIES for case in WHOLE.get(cls, [])]


@pytest.mark.parametrize(("case", "device", "dtype"), ROWS, ids=[f"{row[0].name}-{row[1]}-{row[2]}" for row in ROWS])
def test_whole_operation_agrees_with_the_plain_path(case: OpCase, device: str, dtype: str) -> None:
    check_whole_operation(case, device, dtype)


def test_every_whole_operation_of_an_operator_has_rows() -> None:
    assert {cls for cls, _, _ in ENTRIES} <= set(WHOLE)
    assert ENTRIES


@pytest.mark.parametrize(
    ("shape", "axes"), [((4, 3), 0), ((2, 3, 4), (0, 2)), ((0, 3), 1), ((2, 3, 4), (1, 2)), ((5,), None), ((2, 1), -1)]
)
def test_logsumexp_where_the_rows_kernel_fits_and_where_it_declines(shape: tuple[int, ...], axes: object) -> None:
    a = np.random.RandomState(0).randn(*shape)
    expected = np.log(np.exp(a).sum(axis=axes))
    got = ops.logsumexp(Tensor(a), axes).numpy()
    np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=1e-6)


def test_logsumexp_of_rows_with_infinities_U070() -> None:
    inf = np.inf
    x = Tensor(np.array([[0, -inf], [-inf, -inf], [1e8, 0], [-1e8, 0]]))
    out = ops.logsumexp(x, 1)
    np.testing.assert_array_equal(out.numpy(), [0, -inf, 1e8, 0])
    out.backward()
    np.testing.assert_array_equal(x.grad.numpy()[[0, 2, 3]], [[1, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize("mode", ["course", "fast"])
def test_mode_chooses_the_path(mode: str) -> None:
    with kernels.use(mode):
        array = Tensor(np.zeros((2, 2)), device="cpu").cached_data
        passes = [kernels.whole_pass(which, ops.LogSumExp, array) for which in ("forward", "backward")]
    assert all((found is None) == (mode == "course") for found in passes)


def test_inputs_of_conv_that_require_no_gradient_get_none() -> None:
    images, kernel = Tensor(np.ones((1, 3, 3, 1)), requires_grad=False), Tensor(np.ones((2, 2, 1, 1)))
    ops.conv(images, kernel, padding=0).sum().backward()
    assert images.grad is None
    np.testing.assert_array_equal(kernel.grad.numpy().ravel(), [4, 4, 4, 4])


@pytest.mark.parametrize("asks", [(True, False), (False, True)])
def test_inputs_of_matmul_that_require_no_gradient_get_none(asks: tuple[bool, bool]) -> None:
    a, b = (Tensor(np.ones((2, 2)), requires_grad=grad) for grad in asks)
    (a @ b).sum().backward()
    assert [x.grad is not None for x in (a, b)] == list(asks)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 5), (1, 5), (0, 5), (5,)])
def test_linear_agrees_with_the_plain_path_and_has_second_derivatives(shape: tuple[int, ...], dtype: str) -> None:
    random = np.random.RandomState(0)
    layer = nn.Linear(5, 4, dtype=dtype)
    x = Tensor(random.randn(*shape), dtype=dtype)
    first = grad(lambda x: (layer(x) ** 3).sum())
    second = grad(lambda x: (first(x) ** 2).sum())
    results = []
    for mode in ("course", "fast"):
        with kernels.use(mode):
            results.append([f(x).numpy() for f in (layer, first, second)])
    for plain, fast in zip(*results):
        assert fast.shape == plain.shape
        tolerance = 1e-5 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(fast, plain, rtol=tolerance, atol=tolerance * np.abs(plain).max(initial=1))
