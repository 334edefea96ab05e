"""Losses beside the course's SoftmaxLoss.  Each returns the mean over all entries or rows, one number."""

from __future__ import annotations

from ..core import Tensor, init, ops
from ..errors import ArgumentError, ShapeError
from .module import Module


class MSELoss(Module):
    """The mean squared difference."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape → one number."""
        _check_one_shape("mse_loss", prediction, target)
        difference = prediction - target
        return ops.summation(difference * difference) / difference.size


class BCEWithLogitsLoss(Module):
    """The mean binary cross-entropy of σ(logits) and targets from 0 to 1, without overflow.

    -y log σ(z) - (1 - y) log σ(-z) = softplus(z) - y z.
    """

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape → one number."""
        _check_one_shape("bce_with_logits_loss", logits, target)
        return ops.summation(ops.softplus(logits) - logits * target) / logits.size


class CrossEntropyLoss(Module):
    """The mean cross-entropy of softmax(logits) and the right classes, which may be smoothed.

    With label smoothing ε a row's target is 1 - ε + ε/C for its class and ε/C for each of the C - 1 others.
    (Szegedy et al. 2016, section 7)
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        super().__init__()
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"cross_entropy_loss: label_smoothing = {label_smoothing}, wanted 0 to 1")
        self.label_smoothing = label_smoothing

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """(N, C) logits and (N,) labels, whole numbers of any dtype → one number.

        A class with logit -∞ is ruled out, and does no harm unless it is the right one.
        """
        if logits.ndim != 2 or y.shape != logits.shape[:1]:
            raise ShapeError(f"cross_entropy_loss: logits {logits.shape} and labels {y.shape}, wanted (N, C) and (N,)")
        n, classes = logits.shape
        hit = ops.greater(init.one_hot(classes, y, device=logits.device), 0.5)
        # a chosen sum, not a product with the one-hot rows: 0 · -∞ would be NaN
        right = ops.summation(ops.where(hit, logits, init.zeros_like(logits)))
        loss = ops.summation(ops.logsumexp(logits, axes=(1,))) - (1 - self.label_smoothing) * right
        if self.label_smoothing:
            loss = loss - self.label_smoothing / classes * ops.summation(logits)
        return loss / n


def _check_one_shape(name: str, prediction: Tensor, target: Tensor) -> None:
    # without this, (N, 1) and (N,) would be stretched to (N, N) and train something else in silence
    if prediction.shape != target.shape:
        raise ShapeError(f"{name}: prediction {prediction.shape} and target {target.shape}, wanted one shape")
