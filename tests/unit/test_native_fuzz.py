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
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PYTHON = Path(__file__).parents[2] / "python"
CALLS = 30_000
PRIVATE = {"_view"}  # the one function that trusts an address
SETTERS = {"set_num_threads"}  # fuzzed, but with numbers that start no thousand threads
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")
MARGIN = 64
HUGE = (2**31 - 1, 2**45, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)

# ---- the parent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["ndarray_backend_cpu", "kernels_cpu"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_argument_crashes_a_native_function(module: str, seed: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    command = [sys.executable, __file__, module, str(seed), str(CALLS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (
        f"status {done.returncode}; the last calls:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    )
    called, answered = (int(word) for word in done.stdout.split()[-2:])
    assert called == CALLS
    assert answered > CALLS // 50  # the nearly right calls do reach the kernels


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
        self.handle_type = module.Array if hasattr(module, "Array") else module.Buffer
        self.functions = {name: getattr(module, name) for name in dir(module) if self.is_public_function(name)}
        self.answered = 0

    def is_public_function(self, name: str) -> bool:
        return callable(getattr(self.module, name)) and not name.startswith("__") and name not in PRIVATE

    # -- handles

    def owned(self, size: int) -> Any:
        return self.module.Array(size) if hasattr(self.module, "Array") else self.module.Buffer(size, self.dtype())

    def wrapped(self, size: int) -> Any:
        """A handle on the middle of some memory; what is around it must stay 0xAB."""
        item = np.dtype("float32" if hasattr(self.module, "Array") else self.dtype())
        memory = np.full(2 * MARGIN + size * item.itemsize, 0xAB, "uint8")
        self.memories = [*self.memories[-20:], (memory, size * item.itemsize)]
        return self.module.wrap(memory[MARGIN : MARGIN + size * item.itemsize].view(item))

    def dtype(self) -> str:
        return self.rng.choice(DTYPES[:1] * 6 + DTYPES)  # mostly one, so that arguments often agree

    def handle(self) -> Any:
        size = self.rng.choice([0, 1, 2, 4, 6, 8, 8, 8, 64, 64, 64, 200])
        return self.owned(size) if self.rng.random() < 0.4 else self.wrapped(size)

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

    def fitting(self, parameter: str) -> Any:
        """An argument of the kind that a parameter of this name wants."""
        if parameter in ("shape", "strides"):
            return self.dims()
        if parameter == "np_array":
            return np.ones(self.rng.choice([0, 1, 8, 64]), self.dtype())
        if parameter == "dtype":
            return self.dtype()
        if parameter in ("val", "threads"):
            return self.rng.choice([0, 1, 2, 1.5, -1])
        if parameter in HANDLES:
            return self.handle()
        return self.size()

    def arguments(self, name: str) -> list[Any]:
        if self.rng.random() < 0.2:
            return [self.anything() for _ in range(self.rng.randrange(8))]
        arguments = [self.fitting(parameter) for parameter in parameters(getattr(self.module, name))]
        if name in VIEWED and self.rng.random() < 0.5:
            return self.viewing(name)
        if arguments and self.rng.random() < 0.3:
            arguments[self.rng.randrange(len(arguments))] = self.anything()
        return arguments

    def viewing(self, name: str) -> list[Any]:
        """Arguments that a view of the right size makes, whether or not it lies inside the storage."""
        shape = [self.rng.choice([1, 2, 4]) for _ in range(self.rng.randrange(4))]
        strides = [self.rng.choice([-4, -1, 0, 1, 2, 4, 2**61]) for _ in shape]
        view = [shape, strides, self.rng.choice([0, 1, 3, 7, -1, 2**62])]
        size, storage = int(np.prod(shape)), self.owned(8)
        return {
            "compact": lambda: [storage, self.wrapped(size), *view],
            "to_numpy": lambda: [storage, *view],
            "ewise_setitem": lambda: [self.owned(size), self.wrapped(8), *view],
            "scalar_setitem": lambda: [size, 1, self.wrapped(8), *view],
        }[name]()

    # -- calls

    def call(self) -> None:
        name = self.rng.choice(sorted(self.functions))
        arguments = self.arguments(name)
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
            lambda: np.asarray(handle).sum(),
            lambda: np.frombuffer(handle, "uint8"),
            lambda: memoryview(handle).tobytes(),
            lambda: handle.__init__(*self.arguments("wrap")),
            lambda: setattr(handle, "size", 10**9),
            lambda: __import__("pickle").dumps(handle),
            lambda: __import__("copy").deepcopy(handle),
            lambda: type("Child", (self.handle_type,), {})(4).size,
            lambda: type("Child", (self.handle_type,), {"__init__": lambda self: None})().size,
        ]
        self.attempt("a handle's use", self.rng.choice(uses), [])

    def attempt(self, name: str, call: Callable, arguments: list) -> None:
        if os.environ.get("NEEDLE_FUZZ_VERBOSE"):
            print(name, [type(a).__name__ for a in arguments], flush=True)
        try:
            call()
        except Exception:
            pass
        else:
            self.answered += 1
        self.assert_margins(name)


HANDLES = {"a", "b", "out", "cond", "indices", "lse", "out_grad", "y"}
VIEWED = {"compact", "to_numpy", "ewise_setitem", "scalar_setitem"}


def parameters(function: Callable) -> list[str]:
    """The names of a native function's parameters, from the first line of its docstring."""
    line = (function.__doc__ or "").splitlines()[0] if function.__doc__ else ""
    inside = line[line.find("(") + 1 : line.rfind(") ->")]
    return [part.split(":")[0].strip() for part in inside.split(", ") if ":" in part]


def limit_memory() -> None:
    """So that a size which the machine could just about hold is a MemoryError; the sanitizers need all addresses."""
    if "libasan" in os.environ.get("LD_PRELOAD", "") or sys.platform == "darwin":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def main(module: str, seed: str, calls: str) -> None:
    faulthandler.enable()
    limit_memory()
    fuzzer = Fuzzer(importlib.import_module(f"needle.backend_ndarray.{module}"), int(seed))
    for _ in range(int(calls)):
        fuzzer.call() if fuzzer.rng.random() < 0.9 else fuzzer.touch()
    print(calls, fuzzer.answered)


if __name__ == "__main__":
    main(*sys.argv[1:])
