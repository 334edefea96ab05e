"""What all optimizers share, and the optimizers beside the course's two; `needle.optim` hands all of them on."""

from .adamw import AdamW
from .clipping import clip_grad_norm_, clip_grad_value_
from .newton import Newton
from .optimizer import Optimizer
from .rmsprop import RMSProp
from .schedulers import CosineAnnealingLR, LinearWarmup, LRScheduler, StepLR, WarmupCosine

__all__ = [
    "AdamW",
    "CosineAnnealingLR",
    "LRScheduler",
    "LinearWarmup",
    "Newton",
    "Optimizer",
    "RMSProp",
    "StepLR",
    "WarmupCosine",
    "clip_grad_norm_",
    "clip_grad_value_",
]
