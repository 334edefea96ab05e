"""The layers of the course: linear, normalization, dropout, and how layers are put together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..core import Tensor, init, ops
from ..errors import ArgumentError, ArgumentTypeError, ShapeError, describe
from .module import Module, Parameter


class Identity(Module):
    """Returns its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """y = x W + b.  (…, in_features) → (…, out_features).

    weight has shape (in_features, out_features); bias has shape (1, out_features), or is None.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        ### BEGIN YOUR SOLUTION hw2/linear_init
        self.weight = Parameter(init.kaiming_uniform(in_features, out_features, device=device, dtype=dtype))
        self.bias = None
        if bias:
            column = init.kaiming_uniform(out_features, 1, device=device, dtype=dtype)
            self.bias = Parameter(ops.reshape(column, (1, out_features)))
        ### END YOUR SOLUTION hw2/linear_init

    def forward(self, x: Tensor) -> Tensor:
        check_features("linear", x, self.in_features)
        ### BEGIN YOUR SOLUTION hw2/linear_forward
        rows = x if x.ndim == 2 else ops.reshape(x, (-1, self.in_features))  # one matrix product for all leading axes
        y = ops.matmul(rows, self.weight)
        if self.bias is not None:
            y = y + as_row(self.bias, y.shape)
        return y if x.ndim == 2 else ops.reshape(y, (*x.shape[:-1], self.out_features))
        ### END YOUR SOLUTION hw2/linear_forward


class Flatten(Module):
    """(B, …) → (B, product of the rest)."""

    def forward(self, x: Tensor) -> Tensor:
        if not x.shape:
            raise ShapeError(f"flatten: got shape {x.shape}, wanted (B, …)")
        ### BEGIN YOUR SOLUTION hw2/flatten
        return ops.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
        ### END YOUR SOLUTION hw2/flatten


class ReLU(Module):
    """max(x, 0), entry by entry."""

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/relu
        return ops.relu(x)
        ### END YOUR SOLUTION hw2/relu


class Sequential(Module):
    """One module after the other; indexable, and as long as its modules are many."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        for module in modules:
            if not callable(module):
                raise ArgumentTypeError(f"sequential: got {describe(module)}, wanted modules: Sequential(*layers)")
        self.modules = modules

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/sequential
        for module in self.modules:
            x = module(x)
        return x
        ### END YOUR SOLUTION hw2/sequential

    def __len__(self) -> int:
        return len(self.modules)

    def __getitem__(self, index: int) -> Module:
        return self.modules[index]

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)


class SoftmaxLoss(Module):
    """The mean cross-entropy of softmax(logits) and the right classes."""

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """(N, C) logits and (N,) labels, whole numbers of any dtype → one number."""
        if logits.ndim != 2 or y.shape != logits.shape[:1]:
            raise ShapeError(f"softmax_loss: logits {logits.shape} and labels {y.shape}, wanted (N, C) and (N,)")
        ### BEGIN YOUR SOLUTION hw2/softmax_loss
        n, classes = logits.shape
        one_hot = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        return (ops.summation(ops.logsumexp(logits, axes=(1,))) - ops.summation(logits * one_hot)) / n
        ### END YOUR SOLUTION hw2/softmax_loss


class BatchNorm1d(Module):
    """Every feature brought to mean 0 and variance 1 over the batch, then scaled and shifted.  (N, C) → (N, C).

    In training the batch's own mean and (biased) variance are used, and remembered in running_mean and running_var:
    running = (1 - momentum) running + momentum observed.  running_var, too, takes the biased variance (divided by N),
    unlike some libraries.  In evaluation the running values are used.  (Ioffe and Szegedy 2015, algorithm 1)
    """

    def __init__(
        self, dim: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps
        self.momentum = momentum
        ### BEGIN YOUR SOLUTION hw2/batchnorm_init
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        self.running_mean = init.zeros(dim, device=device, dtype=dtype)
        self.running_var = init.ones(dim, device=device, dtype=dtype)
        ### END YOUR SOLUTION hw2/batchnorm_init

    def forward(self, x: Tensor) -> Tensor:
        check_features("batch_norm", x, self.dim, ndim=2)
        ### BEGIN YOUR SOLUTION hw2/batchnorm_forward
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean = ops.summation(x, 0) / x.shape[0]
        centred = x - as_row(mean, x.shape)
        if self.training:
            var = ops.summation(centred * centred, 0) / x.shape[0]
            self._remember(self.running_mean, mean)
            self._remember(self.running_var, var)
        scale = self.weight / (var + self.eps) ** 0.5
        return as_row(scale, x.shape) * centred + as_row(self.bias, x.shape)

    def _remember(self, running: Tensor, observed: Tensor) -> None:
        mixed = (1 - self.momentum) * running.data + self.momentum * observed.data
        running.data = Tensor(mixed, dtype=running.dtype)
        ### END YOUR SOLUTION hw2/batchnorm_forward


# >>> hw4
class BatchNorm2d(BatchNorm1d):
    """Batch norm of images: every channel over batch, rows and columns.  (N, C, H, W) → (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.dim:
            raise ShapeError(f"batch_norm_2d: got shape {x.shape}, wanted (N, {self.dim}, H, W)")
        n, c, h, w = x.shape
        pixels = ops.reshape(x.transpose((1, 2)).transpose((2, 3)), (n * h * w, c))
        y = ops.reshape(super().forward(pixels), (n, h, w, c))
        return y.transpose((2, 3)).transpose((1, 2))


# <<< hw4
class LayerNorm1d(Module):
    """Every row brought to mean 0 and variance 1, then scaled and shifted.  (N, C) → (N, C).

    (Ba, Kiros and Hinton 2016, eq. 4)
    """

    def __init__(self, dim: int, eps: float = 1e-5, device: Any = None, dtype: str = "float32") -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps
        ### BEGIN YOUR SOLUTION hw2/layernorm_init
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        ### END YOUR SOLUTION hw2/layernorm_init

    def forward(self, x: Tensor) -> Tensor:
        check_features("layer_norm_1d", x, self.dim, ndim=2)
        ### BEGIN YOUR SOLUTION hw2/layernorm_forward
        column = (x.shape[0], 1)
        mean = ops.reshape(ops.summation(x, 1) / self.dim, column)
        centred = x - ops.broadcast_to(mean, x.shape)
        var = ops.reshape(ops.summation(centred * centred, 1) / self.dim, column)
        normal = centred * ops.broadcast_to((var + self.eps) ** -0.5, x.shape)
        return as_row(self.weight, x.shape) * normal + as_row(self.bias, x.shape)
        ### END YOUR SOLUTION hw2/layernorm_forward


class Dropout(Module):
    """In training, each entry is set to 0 with probability p and the others are divided by 1 - p.

    In evaluation nothing happens.  (Srivastava et al. 2014)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"dropout: p = {p}, wanted a probability from 0 to 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/dropout
        if not self.training:
            return x
        keep = 1 - self.p
        mask = init.randb(*x.shape, p=keep, device=x.device, dtype=x.dtype)
        return x * mask / (keep or math.inf)  # keep = 0: nothing is left, and 0 / inf = 0
        ### END YOUR SOLUTION hw2/dropout


class Residual(Module):
    """fn(x) + x.  (He et al. 2016)"""

    def __init__(self, fn: Module) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN YOUR SOLUTION hw2/residual
        return self.fn(x) + x
        ### END YOUR SOLUTION hw2/residual


def check_features(name: str, x: Tensor, features: int, ndim: int | None = None) -> None:
    """Raise ShapeError unless x has `features` columns, and `ndim` axes if given."""
    if not x.shape or x.shape[-1] != features or (ndim is not None and x.ndim != ndim):
        wanted = f"(N, {features})" if ndim == 2 else f"(…, {features})"
        raise ShapeError(f"{name}: got shape {x.shape}, wanted {wanted}")


def as_row(vector: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A vector of C numbers as the same row everywhere in shape (…, C)."""
    return ops.broadcast_to(ops.reshape(vector, (1,) * (len(shape) - 1) + (shape[-1],)), shape)
