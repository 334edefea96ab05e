"""Fused kernels equal their formulas in float64: rows, cross-entropy, layer norm, convolution, optimizer steps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.kernels.handles import Kernels, some
from tests.kernel_reference import FLOATS

params = pytest.mark.parametrize
ROWS = [(1, 1), (9, 10), (70, 33), (3, 1024), (2, 1500)]  # for a warp each, and for a block each
rows_cases = params("shape", ROWS)
floats = params("dtype", FLOATS)


def assert_near(got: np.ndarray, wanted: np.ndarray, terms: int = 1) -> None:
    """Equal but for the rounding of a sum of `terms` terms, relative to the largest entry."""
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    atol = (terms + 16) * np.finfo(got.dtype).eps * max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


def logsumexp(a: np.ndarray) -> np.ndarray:
    largest = a.max(axis=1, keepdims=True)
    return (np.log(np.exp(a - largest).sum(axis=1, keepdims=True)) + largest)[:, 0]


def softmax(a: np.ndarray) -> np.ndarray:
    return np.exp(a - logsumexp(a)[:, None])


# ---- rows -----------------------------------------------------------------------------------------------------------


@floats
@rows_cases
def test_rows_of_exponentials(kernels: Kernels, shape: tuple[int, int], dtype: str) -> None:
    a, grad = 4 * some(shape, dtype), some(shape, dtype, seed=1)
    exact, g, cols = a.astype("float64"), grad.astype("float64"), shape[1]
    lse, y, p = logsumexp(exact), exact - logsumexp(exact)[:, None], softmax(exact)
    one_each, rows = (shape[:1], dtype), (shape, dtype)

    assert_near(kernels.run("logsumexp", a, cols, out=one_each), lse)
    assert_near(kernels.run("logsoftmax", a, cols, out=rows), y)
    assert_near(kernels.run("softmax", a, cols, out=rows), p)

    got = kernels.run("logsumexp_backward", a, lse.astype(dtype), grad[:, 0].copy(), cols, out=rows)
    assert_near(got, g[:, :1] * p)
    got = kernels.run("logsoftmax_backward", y.astype(dtype), grad, cols, out=rows)
    assert_near(got, g - p * g.sum(axis=1, keepdims=True), terms=80)
    got = kernels.run("softmax_backward", p.astype(dtype), grad, cols, out=rows)
    assert_near(got, p * (g - (g * p).sum(axis=1, keepdims=True)), terms=80)


@floats
@params("cols", [4, 2000])
def test_rows_with_infinities_and_nan_U070(kernels: Kernels, cols: int, dtype: str) -> None:
    a = np.full((5, cols), -np.inf, dtype)
    a[0, :2], a[1, -1], a[3, 1], a[4, 2] = (1e30, 0), 1e4, np.inf, np.nan
    got = kernels.run("logsumexp", a, cols, out=((5,), dtype))
    np.testing.assert_array_equal(got, np.array([1e30, 1e4, -np.inf, np.inf, np.nan], dtype))
    paid = kernels.run("logsumexp_backward", a, got, np.ones(5, dtype), cols, out=(a.shape, dtype))
    np.testing.assert_array_equal(paid[:3].sum(axis=1), [1, 1, 0])
    difference = kernels.run("logsoftmax", np.array([[1e6, 1e6 - 1]], dtype), 2, out=((1, 2), dtype))
    assert_near(difference, np.array([[-0.31326169, -1.31326169]]), terms=0 if dtype == "float32" else 2**28)


@params("name", ["logsumexp", "logsoftmax", "softmax"])
def test_what_is_no_rows_is_refused(kernels: Kernels, name: str) -> None:
    a, out = kernels.Buffer(6, "float32"), kernels.Buffer(6, "float32")
    for cols, complaint in [(0, "rows of 0 columns"), (4, "6 elements are no rows of 4")]:
        with pytest.raises(ValueError, match=f"{name}: {complaint}"):
            getattr(kernels, name)(a, out, cols)
    with pytest.raises(TypeError, match=f"{name}: dtype int32, wanted float32 or float64"):
        getattr(kernels, name)(kernels.Buffer(6, "int32"), kernels.Buffer(6, "int32"), 1)


# ---- cross-entropy --------------------------------------------------------------------------------------------------


@floats
@rows_cases
def test_cross_entropy(kernels: Kernels, shape: tuple[int, int], dtype: str) -> None:
    (rows, cols), logits, grad = shape, 3 * some(shape, dtype), some(shape[0], dtype, seed=1)
    labels, exact = np.random.default_rng(2).integers(0, cols, rows), logits.astype("float64")
    loss, lse = kernels.run("cross_entropy", logits, labels, cols, out=[((rows,), dtype), ((rows,), dtype)])
    assert_near(lse, logsumexp(exact))
    assert_near(loss, logsumexp(exact) - exact[np.arange(rows), labels])
    got = kernels.run("cross_entropy_backward", logits, labels, lse, grad, cols, out=(shape, dtype))
    assert_near(got, grad[:, None] * (softmax(exact) - np.eye(cols)[labels]))


def test_a_label_that_is_no_class_is_named(kernels: Kernels) -> None:
    for label in (-1, 10):
        labels = np.array([0, 9, label, 77])
        outs = [((4,), "float32"), ((4,), "float32")]
        with pytest.raises(IndexError, match=f"cross_entropy: label {label} of row 2 is out of bounds for 10 classes"):
            kernels.run("cross_entropy", some((4, 10), "float32"), labels, 10, out=outs)


# ---- layer norm -----------------------------------------------------------------------------------------------------


@floats
@rows_cases
def test_layer_norm(kernels: Kernels, shape: tuple[int, int], dtype: str) -> None:
    (rows, cols), eps, a = shape, 1e-5, some(shape, dtype)
    a[:, 1:] += 100  # a mean that is large beside the spread
    weight, bias, grad = some(cols, dtype, 1), some(cols, dtype, 2), some(shape, dtype, 3)
    exact, g = a.astype("float64"), grad.astype("float64")
    mean = exact.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(exact.var(axis=1, keepdims=True) + eps)
    normal = (exact - mean) * scale
    spread = 100 * float(scale.max())  # how much the rounding of `a - mean` is magnified

    outs = [(shape, dtype), ((rows,), dtype), ((rows,), dtype)]
    out, got_mean, got_scale = kernels.run("layer_norm", a, weight, bias, eps, out=outs)
    assert_near(out, normal * weight + bias, terms=int(4 * spread))
    assert_near(got_mean, mean[:, 0])
    assert_near(got_scale, scale[:, 0], terms=int(4 * spread))

    outs = [(shape, dtype), ((cols,), dtype), ((cols,), dtype)]
    rounded = (x[:, 0].astype(dtype) for x in (mean, scale))
    to_a, to_weight, to_bias = kernels.run("layer_norm_backward", a, weight, *rounded, grad, out=outs)
    paid = g * weight
    wanted = scale * (paid - paid.mean(axis=1, keepdims=True) - normal * (paid * normal).mean(axis=1, keepdims=True))
    assert_near(to_a, wanted, terms=int(16 * spread))
    assert_near(to_weight, (g * normal).sum(axis=0), terms=int(rows * (1 + 2 * spread)))
    assert_near(to_bias, g.sum(axis=0), terms=rows)


# ---- convolution ----------------------------------------------------------------------------------------------------

#         images        kernel        stride padding
CONVS = [
    ((2, 5, 6, 3), (3, 3, 3, 4), 1, (1, 1)),
    ((1, 7, 8, 2), (2, 3, 2, 70), 2, (0, 1)),
    ((3, 9, 9, 17), (3, 3, 17, 5), 3, (2, 0)),
    ((2, 4, 4, 5), (1, 1, 5, 3), 2, (0, 0)),
    ((1, 3, 3, 1), (5, 5, 1, 2), 1, (1, 1)),
    ((2, 40, 30, 2), (3, 3, 2, 3), 1, (1, 1)),  # pixels enough for the kernel's gradient to be made in pieces
    ((0, 5, 5, 3), (3, 3, 3, 2), 1, (1, 1)),
    ((2, 4, 4, 0), (3, 3, 0, 2), 1, (1, 1)),
]


def windows(images: np.ndarray, kernel_shape: tuple, stride: int, padding: tuple[int, int]) -> np.ndarray:
    """(N, H', W', KH, KW, C): a view of the padded images, so that sums over it have an obvious adjoint."""
    (ph, pw), (kh, kw) = padding, kernel_shape[:2]
    padded = np.pad(images, ((0, 0), (ph, ph), (pw, pw), (0, 0)))
    every = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(1, 2))
    return np.moveaxis(every[:, ::stride, ::stride], 3, 5)


@floats
@params(("images_shape", "kernel_shape", "stride", "padding"), CONVS)
def test_convolution(
    kernels: Kernels, images_shape: tuple, kernel_shape: tuple, stride: int, padding: tuple[int, int], dtype: str
) -> None:
    images, kernel = some(images_shape, dtype), some(kernel_shape, dtype, seed=1)
    seen = windows(images.astype("float64"), kernel_shape, stride, padding)
    out = np.einsum("nyxijc,ijcf->nyxf", seen, kernel.astype("float64"))
    grad = some(out.shape, dtype, seed=2)
    how = (images_shape, kernel_shape, stride, padding)

    got = kernels.run("conv_forward", images, kernel, *how, out=(out.shape, dtype))
    assert_near(got, out, terms=kernel[..., 0].size)

    wanted = np.einsum("nyxijc,nyxf->ijcf", seen, grad.astype("float64"))
    got = kernels.run("conv_to_kernel", images, grad, *how, out=(kernel_shape, dtype))
    assert_near(got, wanted, terms=grad[..., 0].size)

    paid = np.einsum("ijcf,nyxf->nyxijc", kernel.astype("float64"), grad.astype("float64"))
    (ph, pw), (height, width) = padding, images_shape[1:3]
    padded = np.zeros((images_shape[0], height + 2 * ph, width + 2 * pw, images_shape[3]))
    for i, j in np.ndindex(kernel_shape[:2]):
        rows, columns = out.shape[1:3]
        padded[:, i : i + stride * rows : stride, j : j + stride * columns : stride] += paid[:, :, :, i, j]
    got = kernels.run("conv_to_images", grad, kernel, *how, out=(images_shape, dtype))
    assert_near(
        got, padded[:, ph : ph + height, pw : pw + width], terms=kernel_shape[0] * kernel_shape[1] * kernel_shape[3]
    )


@params(
    ("how", "complaint"),
    [
        (((1, 4, 4, 2), (3, 3, 3, 2), 1, (0, 0)), "padded images of"),
        (((1, 2, 4, 2), (3, 3, 2, 2), 1, (0, 0)), "padded images of"),
        (((1, 4, 4, 2), (3, 3, 2, 2), 0, (0, 0)), "an extent of 0, wanted one from 1"),
        (((1, 4, 4, 2), (3, 3, 2, 2), 1, (-1, 0)), "an extent of -1, wanted one from 0"),
        (((1, 4, 4), (3, 3, 2, 2), 1, (0, 0)), "wanted .N, H, W, C."),
        (((2**20, 2**20, 4, 2), (3, 3, 2, 2), 1, (0, 0)), "more than 2147483647 elements"),
        (((1, 4, 4, 2), (3, 3, 2, 2), 1, (0, 0)), "images has 5 elements, wanted 32"),
    ],
)
def test_what_is_no_convolution_is_refused(kernels: Kernels, how: tuple, complaint: str) -> None:
    a, b, out = (kernels.Buffer(5, "float32") for _ in range(3))
    with pytest.raises(ValueError, match=f"conv_forward: .*{complaint}"):
        kernels.conv_forward(a, b, out, *how)


# ---- optimizers -----------------------------------------------------------------------------------------------------


@floats
@params("nesterov", [False, True])
def test_sgd_step(kernels: Kernels, nesterov: bool, dtype: str) -> None:
    p, g, u = (some(1000, dtype, seed) for seed in range(3))
    new_p, new_u = kernels.run(
        "sgd_step", p, g, u, 0.1, 0.9, 0.01, 0.75, nesterov, out=[((1000,), dtype), ((1000,), dtype)]
    )
    decayed = g.astype("float64") + 0.01 * p
    velocity = 0.9 * u + 0.1 * decayed
    direction = 0.9 * velocity + 0.1 * decayed if nesterov else velocity
    assert_near(new_u, velocity)
    assert_near(new_p, p - 0.1 * direction / 0.75)


@floats
def test_adam_step(kernels: Kernels, dtype: str) -> None:
    p, g, m, v = (some(1000, dtype, seed) for seed in range(4))
    settings = (0.1, 0.9, 0.99, 1e-8, 0.01, 0.002, 0.5, 0.25)
    outs = [((1000,), dtype)] * 3
    new_p, new_m, new_v = kernels.run("adam_step", p, g, m, v * v, *settings, out=outs)
    decayed = g.astype("float64") + 0.01 * p
    mean, square = 0.9 * m + 0.1 * decayed, 0.99 * v.astype("float64") ** 2 + 0.01 * decayed**2
    assert_near(new_m, mean)
    assert_near(new_v, square)
    assert_near(new_p, (1 - 0.002) * p - 0.1 * (mean / 0.5) / (np.sqrt(square / 0.25) + 1e-8))


def test_a_step_may_be_taken_in_place(kernels: Kernels) -> None:
    p, g, u = (some(500, "float32", seed) for seed in range(3))
    outs = [((500,), "float32")] * 2
    wanted = kernels.run("sgd_step", p, g, u, 0.1, 0.9, 0.0, 1.0, False, out=outs)
    param, velocity = kernels.up(p), kernels.up(u)
    kernels.sgd_step(param, kernels.up(g), velocity, param, velocity, 0.1, 0.9, 0.0, 1.0, False)
    np.testing.assert_array_equal([kernels.down(param), kernels.down(velocity)], wanted)
