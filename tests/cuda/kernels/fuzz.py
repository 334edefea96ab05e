"""Call the functions of a module of CUDA kernels with thousands of arguments, right and wrong; run by a test.

    python fuzz.py MODULE SEED CALLS

What the CPU's fuzzer does (tests/unit/test_native_fuzz.py), for memory that NumPy cannot see.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tests.unit.test_native_fuzz import DTYPES, Fuzzer, fuzz


class DeviceFuzzer(Fuzzer):
    def handle(self, size: int | None = None, dtype: str = "float32", fill: int = 1) -> Any:
        size = self.rng.choice([0, 1, 2, 8, 8, 64]) if size is None else size
        out = self.handle_type(size, dtype)
        self.module.fill(out, fill)
        return out

    def right(self, name: str) -> list[Any]:
        real, handle = self.rng.choice(DTYPES[:2]), self.handle
        how = (
            [1, 3, 4, 2],
            [2, 2, 2, 3],
            1,
            [0, 1],
        )  # 24 elements, and 24, and 30 of the result
        sizes = {
            "softmax": ([6, 6], [3]),
            "softmax_backward": ([6, 6, 6], [3]),
            "layer_norm": ([6, 3, 3, 6, 2, 2], [1e-5]),
            "layer_norm_backward": ([6, 3, 2, 2, 6, 6, 3, 3], []),
            "conv_forward": ([24, 24, 30], how),
            "conv_to_images": ([30, 24, 24], how),
            "conv_to_kernel": ([24, 30, 24], how),
            "sgd_step": ([8] * 5, [0.1, 0.9, 0.0, 1.0, True]),
            "adam_step": ([8] * 7, [0.1, 0.9, 0.99, 1e-8, 0.0, 0.0, 1.0, 1.0]),
        }
        if name in sizes:
            arrays, others = sizes[name]
            return [*(handle(size, real) for size in arrays), *others]
        labels = {
            "cross_entropy": lambda: [handle(6, real), handle(2, "int64"), handle(2, real), handle(2, real), 3],
            "cross_entropy_backward": lambda: [
                *(handle(6, real), handle(2, "int64"), handle(2, real), handle(2, real), handle(6, real), 3)
            ],
        }
        recipe: Callable | None = labels.get(name)
        return recipe() if recipe else super().right(name)

    def attempt(self, name: str, call: Callable, arguments: list) -> None:
        """An exception is an answer, but not one from within a kernel: its arguments should have been refused."""
        if name == "Buffer" and any(isinstance(a, int) and 2**20 < a < 2**40 for a in arguments):
            return  # the emulator would fill gigabytes

        def watched() -> Any:
            try:
                return call()
            except RuntimeError as error:
                if "in kernel" in str(error) or "CUDA" in str(error):
                    raise SystemExit(f"{name} let its kernel see {arguments}: {error}") from error
                raise

        super().attempt(name, watched, arguments)

    def uses_of_memory(self, handle: Any) -> list[Callable]:
        return [lambda: memoryview(handle)]


if __name__ == "__main__":
    fuzz(DeviceFuzzer, *sys.argv[1:])
