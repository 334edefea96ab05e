"""Which arrays Tensors are made of: NumPy's ("np") or our own NDArray ("nd"), by the variable NEEDLE_BACKEND."""

from __future__ import annotations

import os

DEFAULT_BACKEND = "nd"

BACKEND = os.environ.get("NEEDLE_BACKEND") or DEFAULT_BACKEND

if BACKEND == "nd" or BACKEND == "np":
    pass
else:
    raise RuntimeError(f"NEEDLE_BACKEND is {BACKEND!r}; wanted 'np' (NumPy arrays) or 'nd' (needle's own NDArray)")
