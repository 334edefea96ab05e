"""What all optimizers share, and the optimizers beside the course's two; `needle.optim` hands all of them on."""

from .clipping import clip_grad_norm_, clip_grad_value_
from .newton import Newton
from .optimizer import Optimizer
from .schedulers import CosineAnnealingLR, LinearWarmup, LRScheduler, StepLR, WarmupCosine

# >>> hw3
# isort: split
from .rmsprop import RMSProp

# <<< hw3
# >>> never
# isort: split
from .adamw import AdamW

# <<< never

__all__ = [
    "CosineAnnealingLR",
    "LRScheduler",
    "LinearWarmup",
    "Newton",
    "Optimizer",
    "StepLR",
    "WarmupCosine",
    "clip_grad_norm_",
    "clip_grad_value_",
]

# >>> hw3
__all__ += ["RMSProp"]
# <<< hw3
# >>> never
__all__ += ["AdamW"]
# <<< never
