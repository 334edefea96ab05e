"""Whatever Python passes to a public native function: an exception or an answer, never a crash or a write elsewhere.

Each module is fuzzed in a process of its own, so that a crash is a red test and not the end of the run. Handles that
wrap NumPy memory have margins on both sides, which must never change. Half of the calls are nearly right, so that
they get past the first check; the others are anything at all.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PYTHON = Path(__file__).parents[2] / "python"
CALLS = 100_000 if os.environ.get("NEEDLE_HYPOTHESIS") == "long" else 10_000
PRIVATE = {"_view", "_set_memory_source", "_accept_arrays"}  # those that trust an address
SETTERS = {"set_num_threads"}  # fuzzed, but with numbers that start no thousand threads
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")
MARGIN = 64
UNDER_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")
HUGE = (2**31 - 1, 2**45, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)

# ---- the parent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["ndarray_backend_cpu", "kernels_cpu"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_argument_crashes_a_native_function(module: str, seed: int) -> None:
    sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:allocator_may_return_null=1"  # as malloc does
    environment = {**os.environ, "PYTHONPATH": str(PYTHON), "ASAN_OPTIONS": sanitizer}
    command = [sys.executable, __file__, module, str(seed), str(CALLS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (
        f"status {done.returncode}; the last calls:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    )
    assert done.stdout.strip() == "never answered:", (
        done.stdout
    )  # so that every kernel was reached, not only its checks


# ---- the child -----------------------------------------------------------------------------------------------------


class Liar:
    """A number and a sequence that answers differently every time, or not at all."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def number(self) -> int:
        if self.rng.random() < 0.3:
            raise RuntimeError("no number today")
        return self.rng.choice([-1, 0, 3, 2**62])

    __index__ = __int__ = __len__ = number

    def __float__(self) -> float:
        return float(self.number())

    def __getitem__(self, index: Any) -> Any:
        return self.number() if self.rng.random() < 0.8 else None

    def __iter__(self) -> Any:
        return iter([self.number()] * 3)


class Fuzzer:
    def __init__(self, module: Any, seed: int) -> None:
        self.module = module
        self.rng = random.Random(seed)
        self.memories: list[tuple[np.ndarray, int]] = []  # (memory with margins, item size)
        self.typed = hasattr(module, "Buffer")  # six dtypes, or the course's float32
        self.handle_type = module.Buffer if self.typed else module.Array
        self.functions = {name: getattr(module, name) for name in dir(module) if self.is_public_function(name)}
        self.answered: set[str] = set()

    def is_public_function(self, name: str) -> bool:
        return callable(getattr(self.module, name)) and not name.startswith("__") and name not in PRIVATE

    # -- handles

    def handle(self, size: int | None = None, dtype: str = "float32", fill: int = 1) -> Any:
        """A handle of so many elements, or of any number; some own their memory, some wrap NumPy's."""
        size = self.rng.choice([0, 1, 2, 8, 8, 64]) if size is None else size
        if self.rng.random() < 0.3:
            out = self.handle_type(size, *([dtype] if self.typed else []))
        else:
            out = self.module.wrap(self.memory(size, np.dtype(dtype if self.typed else "float32")))
        self.module.fill(out, fill)
        return out

    def memory(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Elements in the middle of some memory; what is around them must stay 0xAB."""
        size *= dtype.itemsize
        memory = np.full(2 * MARGIN + size, 0xAB, "uint8")
        self.memories = [*self.memories[-20:], (memory, size)]
        return memory[MARGIN : MARGIN + size].view(dtype)

    def assert_margins(self, call: str) -> None:
        for memory, size in self.memories:
            margins = np.concatenate([memory[:MARGIN], memory[MARGIN + size :]])
            if not np.all(margins == 0xAB):
                raise SystemExit(f"{call} wrote outside its storage")

    # -- arguments

    def size(self) -> int:
        small = [0, 1, 1, 2, 2, 3, 4, 8, 8, 8, 16, 64]
        return self.rng.choice(small if self.rng.random() < 0.9 else [*HUGE, *(-huge for huge in HUGE), -1, -8])

    def dims(self) -> Any:
        length = self.rng.choice([0, 1, 1, 1, 2, 2, 3, 3, 65])
        return self.rng.choice([tuple, list])([1 if length > 3 else self.size() for _ in range(length)])

    def anything(self) -> Any:
        rng = self.rng
        return rng.choice(
            [
                lambda: None,
                lambda: rng.choice([True, 0, -1, 7, 0.5, -0.0, float("nan"), float("inf"), 1e300, 1j]),
                lambda: rng.choice(HUGE) * rng.choice([1, -1]),
                lambda: rng.choice(["", "float32", "x" * 1000, "\ud800", b"float32", bytearray(8)]),
                lambda: rng.choice([(), [], {}, set(), {1: 2}, (None,), [1.5], ["a"], [[1], [2]], range(3), object()]),
                lambda: [self.size() for _ in range(rng.choice([1, 2, 3, 70]))],
                lambda: np.zeros(
                    rng.choice([0, 1, 3, (2, 3), (0, 4)]), rng.choice(["f4", "f8", ">f4", "i8", "?", "O", "U3"])
                ),
                lambda: np.arange(12, dtype="float32")[:: rng.choice([-1, 2])],
                lambda: rng.choice([np.float32(2), np.int64(-3), np.bool_(True), np.datetime64("2020"), np.array(5)]),
                lambda: self.handle_type.__new__(self.handle_type),  # its __init__ never ran
                lambda: self.handle_type,
                lambda: Liar(rng),
                lambda: (self.size() for _ in range(3)),
                self.handle,
                self.dims,
            ]
        )()

    def right(self, name: str) -> list[Any]:
        """Arguments that the function takes."""
        rng, handle, dtype = self.rng, self.handle, self.rng.choice(DTYPES if self.typed else DTYPES[:1])
        size, m, n, p = (rng.choice([1, 2, 8, 16]) for _ in range(4))
        shape = [rng.choice([1, 2, 4]) for _ in range(rng.randrange(4))]
        count, view = int(np.prod(shape)), (shape, [rng.choice([0, 1, 4]) for _ in shape], rng.choice([0, 1, 3]))
        result = {"argmax": "int64", "argmin": "int64"} | dict.fromkeys(("eq", "ne", "ge", "gt", "le", "lt"), "float32")
        real = rng.choice(DTYPES[:2])
        if name.split("_")[-1] in ("log", "exp", "tanh", "sqrt", "sin", "cos", "div", "abs", "sign"):
            dtype = real if self.typed else dtype
        out_dtype = result.get(name.split("_")[-1], dtype)
        recipes: dict[str, Callable] = {
            "compact": lambda: [handle(20, dtype), handle(count, dtype), *view],
            "to_numpy": lambda: [handle(20, dtype), *view],
            "ewise_setitem": lambda: [handle(count, dtype), handle(20, dtype), *view],
            "scalar_setitem": lambda: [count, 1, handle(20, dtype), *view],
            "from_numpy": lambda: [np.ones(size, dtype), handle(size, dtype)],
            "wrap": lambda: [np.ones(size, dtype)],
            "Array": lambda: [size],
            "Buffer": lambda: [size, dtype],
            "set_isa": lambda: [rng.choice(self.module.available_isas())],
            "fill": lambda: [handle(size, dtype), 1],
            "sum_of_squares": lambda: [[handle(size, real) for _ in range(3)]],
            "cast": lambda: [handle(size, dtype), handle(size, real)],
            "where": lambda: [handle(size, "bool"), *(handle(size, dtype) for _ in range(3))],
            "matmul": lambda: [handle(m * n, dtype), handle(n * p, dtype), handle(m * p, dtype), m, n, p],
            "matmul_tiled": lambda: [*(handle(64) for _ in range(3)), 8, 8, 8],
            "matmul_batched": lambda: [handle(32, dtype), handle(8, dtype), handle(16, dtype), 2, 4, 4, 2, 16, 0],
            "matmul_strided": lambda: [
                *(handle(size, dtype) for size in (16, 16, 16)),
                *((2, 4, 2, 2), (8, -1, 4), 3, (0, 2, 1), 4),
            ],
            "linear": lambda: [
                *(handle(size, real) for size in (m * n, n * p, p, m * p)),
                *((m, n, p), (1, m), 0, (p, 1), 0),
            ],
            "take": lambda: [handle(12, dtype), handle(size, "int64"), handle(size * 6, dtype), 3, 2, 2],
            "scatter_add": lambda: [handle(size * 6, dtype), handle(size, "int64"), handle(12, dtype), 3, 2, 2],
            "scatter_sum": lambda: [handle(size * 6, dtype), handle(size, "int64"), handle(12, dtype), 3, 2, 2],
            "attention_forward": lambda: [*(handle(k, real) for k in (24, 36, 36, 24, 8)), 2, 2, 2, 3, 3, True],
            "attention_backward": lambda: [
                *(handle(k, real) for k in (24, 36, 36, 24, 8, 24, 24, 36, 36)),
                *(2, 2, 2, 3, 3, False),
            ],
            "logsumexp": lambda: [handle(m * n, real), handle(m, real), n],
            "logsumexp_backward": lambda: [*(handle(k, real) for k in (m * n, m, m, m * n)), n],
            "logsoftmax": lambda: [handle(m * n, real), handle(m * n, real), n],
            "logsoftmax_backward": lambda: [*(handle(m * n, real) for _ in range(3)), n],
            "softmax": lambda: [handle(m * n, real), handle(m * n, real), n],
            "softmax_backward": lambda: [*(handle(m * n, real) for _ in range(3)), n],
            "cross_entropy": lambda: [handle(m * n, real), labels(), handle(m, real), handle(m, real), n],
            "cross_entropy_backward": lambda: [
                *(handle(m * n, real), labels(), handle(m, real), handle(m, real)),
                *(handle(m * n, real), n),
            ],
            "layer_norm": lambda: [*(handle(k, real) for k in (m * n, n, n, m * n, m, m)), 1e-5],
            "layer_norm_backward": lambda: [handle(k, real) for k in (m * n, n, m, m, m * n, m * n, n, n)],
            "dropout": lambda: [handle(size, real), handle(size, real), 0.5, handle(size, real)],
        }

        def labels() -> Any:
            return handle(m, "int64", fill=0)

        # images (1, 4, 4, 2) by a kernel (3, 3, 2, 2) without padding or with
        margin = rng.choice([0, 1])
        window, images = [[3, 3, 2, 2], [1, 1], [margin, margin], [1, 1], 1], [[1, 4, 4, 2], [32, 8, 2, 1]]
        pixels, grads = (2 + 2 * margin) ** 2 * 2, [[0, 4 + 4 * margin, 2, 1], 0]
        recipes |= {
            "convolution": lambda: [
                *(handle(32, real), handle(36, real), rng.choice([None, handle(2, real)]), handle(pixels, real)),
                *(*images, 0, *window, rng.choice([True, False])),
            ],
            "convolution_to_images": lambda: [
                *(handle(pixels, real), handle(36, real), handle(32, real), *grads, images[0], *window)
            ],
            "convolution_to_kernel": lambda: [
                *(handle(32, real), handle(pixels, real), handle(36, real), rng.choice([None, handle(2, real)])),
                *(*images, 0, *grads, *window),
            ],
            "batch_norm": lambda: [
                *(handle(k, real) for k in (m * n * p, n, n, n, n, m * n * p, n, n, n, n)),
                *(m, p, 1e-5, 0.1),
            ],
            "batch_norm_backward": lambda: [
                *(handle(k, real) for k in (m * n * p, n, n, n, m * n * p, m * n * p, n, n)),
                *(m, p),
            ],
        }
        states = {"sgd_steps": 1, "adam_steps": 2, "rmsprop_steps": 2}.get(name, 0)
        if states:  # params and grads, what is remembered, what is new, and numbers
            sizes = [rng.choice([0, 1, 7, 40]) for _ in range(rng.randrange(4))]
            rows = [[handle(size, real) for size in sizes] for _ in range(3 + 2 * states)]
            return [
                *rows,
                *([0.5] * {"sgd_steps": 4, "adam_steps": 8, "rmsprop_steps": 5}[name]),
                *[True] * (states == 1),
            ]
        if name in recipes:
            return recipes[name]()
        if name.startswith(("rnn", "lstm", "gru")):
            return self.recurrent(name, real)
        if name.startswith("view_reduce"):
            kept = rng.randrange(len(shape) + 1)
            return [handle(20, real), handle(int(np.prod(shape[:kept])), real), *view, kept]
        if name.startswith("view"):
            out = handle(count, result.get(name.split("_")[-1], real))
            return [handle(20, real), handle(20, real), out, *view, *view[1:]]
        if name.endswith("_backward") or name in ("sigmoid", "silu", "gelu"):
            return [handle(size, real) for _ in range(3 if name.endswith("_backward") else 2)]
        if name.startswith("reduce"):
            return [handle(m * n, dtype), handle(m, out_dtype), n]
        if name.startswith("scalar"):
            return [handle(size, dtype), 1, handle(size, out_dtype)]
        if name.startswith("ewise"):
            operands = 2 if "b:" in (self.functions[name].__doc__ or "") else 1
            return [*(handle(size, dtype) for _ in range(operands)), handle(size, out_dtype)]
        return []

    def recurrent(self, name: str, dtype: str) -> list[Any]:
        """Arguments for 2 steps of a batch of 3, with states of 4."""
        gates = {"rnn": 1, "lstm": 4, "gru": 3}[name.split("_")[0]]
        sizes = {"weight": 16 * gates, "bias_ih": 4 * gates, "bias_hh": 4 * gates, "h0": 12, "c0": 12, "h0_grad": 12}
        sizes |= {"c_grad": 12, "hidden": 24, "memory": 24, "hidden_grad": 24}
        numbers = {"steps": 2, "batch": 3, "width": 4, "relu": self.rng.random() < 0.5}
        names = re.findall(r"(\w+):", (self.functions[name].__doc__ or "").split(" -> ")[0])
        return [numbers[n] if n in numbers else self.handle(sizes.get(n, 24 * gates), dtype) for n in names]

    def arguments(self, name: str) -> list[Any]:
        """The right ones; one or two of them wrong; or nothing but wrong ones."""
        if self.rng.random() < 0.2:
            return [self.anything() for _ in range(self.rng.randrange(8))]
        arguments = self.right(name)
        for _ in range(self.rng.choice([0, 1, 1, 2]) if arguments else 0):
            place = self.rng.randrange(len(arguments))
            arguments[place] = self.wrong(arguments[place])
        return arguments

    def wrong(self, right: Any) -> Any:
        """Another argument of the same kind, or anything."""
        if self.rng.random() < 0.3:
            return self.anything()
        if isinstance(right, int):
            return self.size()
        if isinstance(right, list) and any(isinstance(entry, self.handle_type) for entry in right):
            return [self.rng.choice([entry, entry, self.handle(), self.anything()]) for entry in right]
        if isinstance(right, list) and all(isinstance(number, int) for number in right):
            return [self.rng.choice([number, number, self.size(), -number, 2**61]) for number in right]
        return self.handle(dtype=self.rng.choice(DTYPES), fill=self.rng.choice([0, 1, 1]))

    # -- calls

    def call(self) -> None:
        name = self.rng.choice(sorted(self.functions))
        arguments = self.arguments(name)
        if UNDER_ASAN and name in ("Array", "Buffer"):
            arguments = self.right(name)  # the sanitizer's allocator aborts where the real one throws
        if name in SETTERS:
            arguments = [self.rng.choice([0, -1, 1, 2, None, "2", 2**62])]
        self.attempt(name, lambda: self.functions[name](*arguments), arguments)

    def touch(self) -> None:
        """Use a handle, or what only looks like one, in the ways that Python itself knows."""
        handle = self.rng.choice([self.handle, lambda: self.handle_type.__new__(self.handle_type)])()
        uses: list[Callable] = [
            lambda: handle.size,
            lambda: handle.ptr(),
            lambda: repr(handle),
            lambda: setattr(handle, "size", 10**9),
            lambda: __import__("pickle").dumps(handle),
            lambda: __import__("copy").deepcopy(handle),
            lambda: type("Child", (self.handle_type,), {"__init__": lambda self: None})().size,
            *self.uses_of_memory(handle),
        ]
        self.attempt("a handle's use", self.rng.choice(uses), [])

    def uses_of_memory(self, handle: Any) -> list[Callable]:
        """Uses of a handle whose memory Python can see, and may fill with others."""
        return [
            lambda: np.asarray(handle).sum(),
            lambda: np.frombuffer(handle, "uint8"),
            lambda: memoryview(handle).tobytes(),
            lambda: handle.__init__(*self.arguments("wrap")),
            lambda: type("Child", (self.handle_type,), {})(4).size,
        ]

    def attempt(self, name: str, call: Callable, arguments: list) -> None:
        if os.environ.get("NEEDLE_FUZZ_VERBOSE"):
            print(name, [type(a).__name__ for a in arguments], flush=True)
        try:
            call()
        except Exception:
            pass
        else:
            self.answered.add(name)
        self.assert_margins(name)


def limit_memory() -> None:
    """So that a size which the machine could just about hold is a MemoryError; the sanitizers need all addresses."""
    if UNDER_ASAN or sys.platform == "darwin":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def fuzz(kind: type[Fuzzer], module: str, seed: str, calls: str) -> None:
    """Call the functions of a module, and print those that never gave an answer."""
    faulthandler.enable()
    fuzzer = kind(importlib.import_module(f"needle.backend_ndarray.{module}"), int(seed))
    for _ in range(int(calls)):
        fuzzer.call() if fuzzer.rng.random() < 0.9 else fuzzer.touch()
    print("never answered:", *sorted(fuzzer.functions.keys() - fuzzer.answered))


if __name__ == "__main__":
    limit_memory()
    fuzz(Fuzzer, *sys.argv[1:])
