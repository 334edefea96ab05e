"""What all optimizers share, and the optimizers beside the course's two; `needle.optim` hands all of them on."""

from .optimizer import Optimizer, has_fast_twin
