"""What is measured: suites of tasks, as data.  How each peer does a task stands in peers/.

A task names its kind (the function of each peer that prepares it), the sizes that the kind takes, the peers that take
turns, and, where it is a row of what this project promises, the rule that the row has to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

THREADS = 2  # for every peer alike
EPSILON = 2.0**-23  # of float32


class Rule(NamedTuple):
    """What a row promises.  `measure` says what is compared with `limit`, and with `aim` where more is wanted.

    speed    the fastest other peer's time over needle's: at least
    time     needle's time over the fastest other peer's: at most
    share    needle's rate over the probe's, which does the same traffic: at least
    seconds  needle's time: at most
    """

    measure: str
    limit: float
    aim: float | None = None


class Task(NamedTuple):
    """The same work, done by each peer."""

    suite: str
    name: str
    kind: str
    sizes: dict[str, Any]
    peers: tuple[str, ...] = ("needle", "torch")  # library, or library:variant
    flop: float = 0.0  # floating-point operations of one call
    nbytes: float = 0.0  # read and written by one call, each array once
    rule: Rule | None = None
    rows: tuple[str, ...] = ()  # the rows of the list of faults seen elsewhere that this task keeps from happening
    threads: int = THREADS
    unit: str = "s"  # of what is measured: s, or B for a peak of memory
    tolerance: float = 1e-5  # between answers, relative to the largest number of one


Suite = Callable[[bool], Iterator[Task]]

# ---- matrix products ------------------------------------------------------------------------------------------------

PROMISED = ((256, 256, 256), (511, 511, 511), (512, 512, 512), (513, 513, 513), (1024, 1024, 1024),
            (2048, 2048, 2048), (4096, 4096, 4096), (100, 784, 100), (2560, 20, 128))  # fmt: skip
SWEEP = (8, 16, 31, 32, 48, 63, 64, 65, 100, 127, 128, 129, 200, 255, 257, 384, 768, 1000, 1023, 1025, 1536, 2047, 3000)


def gemm(quick: bool) -> Iterator[Task]:
    """Products of float32 matrices: those of the promise."""
    rule = Rule("speed", 0.95, 1.0)
    for m, k, n in ((12, 9, 17), (33, 20, 5)) if quick else PROMISED:
        yield product(m, k, n, rule)
    yield product(*[48 if quick else 1024] * 3, Rule("speed", 0.1))._replace(
        name="1024³, 1 thread", threads=1, peers=("needle", "numpy"), rows=("U100",)
    )


def sizes(quick: bool) -> Iterator[Task]:
    """Products of square matrices over many sizes, for a picture."""
    for n in (8, 13) if quick else SWEEP:
        yield product(n, n, n)._replace(suite="sizes")


def product(m: int, k: int, n: int, rule: Rule | None = None) -> Task:
    name = f"{m}³" if m == k == n else f"({m}×{k})·({k}×{n})"
    peers = ("needle", "numpy", "torch")
    flop, nbytes = 2.0 * m * k * n, 4.0 * (m * k + k * n + m * n)
    return Task("gemm", name, "product", {"m": m, "k": k, "n": n}, peers, flop, nbytes, rule, tolerance=2 * k * EPSILON)


def scaling(quick: bool) -> Iterator[Task]:
    """The same work on one thread and more."""
    for threads in range(1, THREADS + 1):
        for n in (24,) if quick else (256, 1024, 2048):
            task = product(n, n, n)
            yield task._replace(suite="scaling", name=f"{task.name}, {threads} threads", threads=threads)
        for name in ("exp", "softmax"):
            task = operation(name, 600 if quick else 10**7)
            yield task._replace(suite="scaling", name=f"{name}, {threads} threads", threads=threads, rule=None)


# ---- convolution ----------------------------------------------------------------------------------------------------

#         channels in, out, kernel, stride, side of the image, where in ResNet9
LAYERS = ((3, 16, 7, 4, 32, "1"), (16, 32, 3, 2, 8, "2"), (32, 32, 3, 1, 4, "3, 4"), (32, 64, 3, 2, 4, "5"),
          (64, 128, 3, 2, 2, "6"), (128, 128, 3, 1, 1, "7, 8"))  # fmt: skip


def conv(quick: bool) -> Iterator[Task]:
    """Convolution layers, forward and backward: those of ResNet9 at batch 128, and a large one."""
    for i, o, kernel, stride, side, layer in LAYERS[1:3] if quick else LAYERS:
        yield convolution(f"ResNet9 layer {layer}", 2 if quick else 128, i, o, kernel, stride, side)
    yield convolution("3×3×64→128 at 56²", *(1, 4, 8, 3, 1, 6) if quick else (16, 64, 128, 3, 1, 56))


def convolution(name: str, batch: int, i: int, o: int, kernel: int, stride: int, side: int) -> Task:
    """The first layer's images need no gradient, in training as here."""
    sizes = {"batch": batch, "i": i, "o": o, "kernel": kernel, "stride": stride, "side": side, "to_images": i > 3}
    across = (side + stride - 1) // stride
    inside = sum(0 <= x * stride + tap - kernel // 2 < side for x in range(across) for tap in range(kernel))
    flop = 2.0 * batch * i * o * inside**2 * (3 if i > 3 else 2)  # what padding multiplies by zero is no work
    terms = max(batch * across**2, i * kernel**2, o * kernel**2)
    return Task(
        "conv", name, "convolution", sizes, flop=flop, rule=Rule("time", 1.2, 1.0), tolerance=2 * terms * EPSILON
    )


# ---- operators that memory bounds -----------------------------------------------------------------------------------

#     reads and writes, in arrays of n floats; the probe that does the same traffic; the rule
SHARE, PEER = Rule("share", 0.9), Rule("time", 1.1)
OPERATIONS = {
    "add": (3, "add", SHARE),
    "multiply": (3, "add", SHARE),
    "scale": (2, "scale", SHARE),
    "relu": (2, "scale", SHARE),
    "sum": (1, "read", SHARE),
    "max": (1, "read", SHARE),
    "sum of rows": (1, "read", SHARE),
    "sum of columns": (1, "read", SHARE),
    "exp": (2, "scale", PEER),
    "tanh": (2, "scale", PEER),
    "log": (2, "scale", None),
    "softmax": (2, "scale", PEER),
    "layer norm": (2, "scale", PEER),
    "softmax, both ways": (5, "", None),
    "layer norm, both ways": (5, "", None),
    "cross-entropy, both ways": (3, "", None),
}


def ops(quick: bool) -> Iterator[Task]:
    """Element-wise operators, reductions, norms and an optimizer, on arrays that no cache holds."""
    for name in OPERATIONS:
        yield operation(name, 600 if quick else 10**7)
    for n, rule, rows in ((10**7, Rule("time", 1.0), ()), (10**6, Rule("seconds", 0.02), ("U100",))):
        name, sizes = f"Adam, {n:.0e} parameters".replace("e+0", "0^"), {"n": 100 if quick else n}
        peers = ("needle", "torch:fused", "torch:foreach")
        yield Task("ops", name, "adam", sizes, peers, nbytes=28.0 * sizes["n"], rule=rule, rows=rows)


def operation(name: str, n: int) -> Task:
    """Over n numbers; those of rows see 1000 (or 30) in each."""
    arrays, probe, rule = OPERATIONS[name]
    sizes = {"name": name, "n": n, "width": 1000 if n > 10**4 else 30}
    peers = ("needle", "torch") if "both" in name or name == "layer norm" else ("needle", "numpy", "torch")
    peers = (*peers, f"limit:{probe}") if probe else peers
    return Task("ops", name, "operation", sizes, peers, nbytes=4.0 * arrays * n, rule=rule, tolerance=2e-5)


# ---- training steps -------------------------------------------------------------------------------------------------

MODELS: dict[str, dict[str, Any]] = {
    "residual MLP": {"model": "mlp", "batch": 100, "dim": 784, "hidden": 100, "blocks": 3},
    "ResNet9": {"model": "resnet9", "batch": 128},
    "LSTM, hidden 32": {"model": "lstm", "words": 10000, "steps": 20, "batch": 64, "embedding": 20, "hidden": 32},
    "LSTM, hidden 256": {"model": "lstm", "words": 10000, "steps": 20, "batch": 64, "embedding": 256, "hidden": 256},
    "Transformer": {"model": "transformer", "words": 10000, "steps": 128, "batch": 8, "embedding": 256, "layers": 4},
}
SMALLER = {"batch": 4, "dim": 12, "hidden": 8, "words": 11, "steps": 3, "embedding": 6, "layers": 2}


def models(quick: bool) -> Iterator[Task]:
    """Eager training steps with Adam: forward, backward, update."""
    for name, sizes in MODELS.items():
        yield Task("models", name, "step", shrunk(sizes, quick), rule=Rule("time", 1.2, 1.0), tolerance=2e-3)


def memory(quick: bool) -> Iterator[Task]:
    """The most memory that training steps add to what was there before the first."""
    for name, sizes in MODELS.items():
        yield Task("memory", name, "step", shrunk(sizes, quick), rule=Rule("time", 1.0), unit="B", tolerance=2e-3)


def shrunk(sizes: dict[str, Any], quick: bool) -> dict[str, Any]:
    return {**sizes, **{name: SMALLER[name] for name in sizes if name in SMALLER}} if quick else sizes


# ---- overhead -------------------------------------------------------------------------------------------------------


def overhead(quick: bool) -> Iterator[Task]:
    """What an operator costs beside its arithmetic, and whether fast kernels pay off on small data."""
    yield Task("overhead", "add that records", "small", {"name": "add"}, rule=Rule("seconds", 4e-6, 2.5e-6))
    yield Task("overhead", "add and its gradient", "small", {"name": "add, both ways"})
    yield Task("overhead", "add that records nothing", "small", {"name": "add, detached"})
    yield Task("overhead", "matmul that records", "small", {"name": "matmul"})
    for name, kind, sizes in (
        ("add, fast and plain kernels", "small", {"name": "add"}),
        ("matmul, fast and plain kernels", "small", {"name": "matmul"}),
        ("MLP at batch 2, fast and plain kernels", "step", {**MODELS["residual MLP"], "batch": 2}),
    ):
        peers, rule = ("needle", "needle:plain"), Rule("time", 1.1, 1.0)
        yield Task("overhead", name, kind, shrunk(sizes, quick), peers, rule=rule, rows=("U101",), tolerance=2e-3)


SUITES: dict[str, Suite] = {
    "gemm": gemm,
    "sizes": sizes,
    "conv": conv,
    "ops": ops,
    "models": models,
    "overhead": overhead,
    "memory": memory,
    "scaling": scaling,
}


def probes(quick: bool) -> Iterator[Task]:
    """What this machine can do at most: multiply-adds in registers, and traffic between memory and the cores."""
    n = 1000 if quick else 10**7
    yield Task("probes", "fma", "probe_task", {"what": "fma", "n": n}, ("limit:fma",), flop=2.0 * 16 * 16 * n)
    for what, arrays in (("read", 1), ("scale", 2), ("add", 3), ("triad", 3)):
        yield Task("probes", what, "probe_task", {"what": what, "n": n}, (f"limit:{what}",), nbytes=4.0 * arrays * n)
