"""Measure needle on a GPU, beside PyTorch if it is installed with CUDA.

    python -m benchmarks.gpu [--device cuda] [--small] [--out results.json]

Each answer is compared with NumPy before it is timed. `--device cuda_emu --small` tries the program itself, without a
GPU; its times say nothing about one. A time is that of ten launches and of reading one number, which waits for them.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "apps"), str(ROOT)]  # this tree's needle, whatever else is installed

import needle as ndl
from needle import backend_ndarray as nd

from benchmarks import machine, report
from benchmarks.harness import Effort, Result, take_turns
from benchmarks.suites import Task

CALLS = 10  # launches between two reads: a read waits for the GPU


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, or cuda_emu to try the program")
    parser.add_argument("--small", action="store_true", help="sizes that the emulator can do")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "gpu.json", help="where the numbers go")
    options = parser.parse_args()
    device = nd.as_device(options.device)
    if not device.enabled():
        print(f"benchmarks.gpu: {device}: {device.absence}", file=sys.stderr)
        return 1
    with nd.device(device):
        results = [measure(launch) for launch in launches(16 if options.small else 1)]
    found = report.document({"device": repr(device), **facts_of(device), **machine.facts()}, {}, results)
    print(", ".join(f"{key} {value}" for key, value in found["machine"].items()))
    report.print_table(found)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"all times: {options.out}")
    return 0


def facts_of(device: nd.BackendDevice) -> dict[str, str]:
    """The card's name, memory and capability, without which no number means anything."""
    return {name: str(value) for name, value in device.device_facts().items()}


class Launch(NamedTuple):
    """CALLS launches of the same work, once by a call of each peer's function."""

    name: str
    peers: dict[str, Callable[[], object]]
    flop: float = 0.0  # of such a call


def measure(launch: Launch) -> Result:
    """Peers here share a process: the GPU works, and their threads only wait for it."""
    print(f"gpu: {launch.name}", file=sys.stderr, flush=True)
    turns = {peer: functools.partial(seconds_of, function) for peer, function in launch.peers.items()}
    task = Task("gpu", launch.name, "launch", {}, tuple(launch.peers), flop=launch.flop)
    return Result(task, take_turns(turns, Effort().turns))


def seconds_of(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def launches(divide: int) -> Iterator[Launch]:
    """The work to measure, each length divided by a number."""
    for n in (1024, 4096):
        yield product(n // divide, "fast")
    yield product(1024 // divide, "course")
    side = 4096 // divide
    yield from (
        elementwise(side),
        transposed(side),
        rows_summed(side),
        softmax(side),
        convolution(max(2, 64 // divide)),
    )


# ---- work ------------------------------------------------------------------------------------------------------------


def product(n: int, mode: str) -> Launch:
    a, b = numbers(n, n), numbers(n, n)
    left, right = nd.array(a), nd.array(b)

    def run() -> nd.NDArray:
        with ndl.kernels.use(mode):
            return left @ right

    check(run(), a.astype(np.float64) @ b, terms=n)
    work = 2.0 * n**3 * CALLS
    return Launch(f"{n} x {n} product, {mode}", peers(run, lambda torch: torch.matmul, a, b), work)


def elementwise(side: int) -> Launch:
    a, b = numbers(side, side), numbers(side, side)
    left, right = nd.array(a), nd.array(b)
    check(left + right, a + b)
    return Launch(f"{side} x {side} sum of two", peers(lambda: left + right, lambda torch: torch.add, a, b))


def transposed(side: int) -> Launch:
    a = numbers(side, side)
    view = nd.array(a).permute((1, 0))
    check(view.compact(), a.T)
    return Launch(f"{side} x {side} compact of a transpose", peers(view.compact, lambda torch: compact_transpose, a))


def compact_transpose(a: object) -> object:
    return a.T.contiguous()  # type: ignore[attr-defined]


def rows_summed(side: int) -> Launch:
    a = numbers(side, side)
    array = nd.array(a)
    check(array.sum(axis=1), a.astype(np.float64).sum(1), terms=side)
    return Launch(
        f"{side} x {side} sums of rows", peers(lambda: array.sum(axis=1), lambda torch: lambda x: x.sum(1), a)
    )


def softmax(side: int) -> Launch:
    a = numbers(side, side)
    tensor = ndl.Tensor(a, requires_grad=False)
    exp = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    check(ndl.ops.softmax(tensor).cached_data, exp / exp.sum(1, keepdims=True), terms=side)
    ours = lambda: ndl.ops.softmax(tensor).cached_data
    return Launch(f"{side} x {side} softmax of rows", peers(ours, lambda torch: lambda x: torch.softmax(x, 1), a))


def convolution(batch: int) -> Launch:
    a, k = numbers(batch, 32, 32, 16), numbers(3, 3, 16, 32)
    images, kernel = ndl.Tensor(a, requires_grad=False), ndl.Tensor(k, requires_grad=False)
    ours = lambda: ndl.ops.conv(images, kernel, padding=1).cached_data
    with ndl.kernels.use("course"):
        wanted = ours().numpy()
    check(ours(), wanted, terms=3 * 3 * 16)
    peer = lambda torch: lambda x, w: torch.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
    return Launch(
        f"convolution of {batch} x 32 x 32 x 16", peers(ours, peer, a, k), 2.0 * CALLS * 9 * 16 * 32 * 1024 * batch
    )


# ---- what they share ------------------------------------------------------------------------------------------------


def numbers(*shape: int) -> np.ndarray:
    return np.random.RandomState(len(shape)).uniform(-1, 1, shape).astype(np.float32)


def check(got: nd.NDArray, want: np.ndarray, terms: int = 1) -> None:
    """A fast wrong answer is not worth timing."""
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=8 * terms**0.5 * np.finfo(np.float32).eps * terms**0.5)


def peers(ours: Callable[[], nd.NDArray], theirs: Callable, *arrays: np.ndarray) -> dict[str, Callable[[], object]]:
    """needle and, if it has a GPU here, PyTorch: CALLS launches, then one read that waits for them."""

    def needle() -> object:
        for _ in range(CALLS):
            out = ours()
        return out.reshape((out.size,))[:1].numpy()  # waits

    functions: dict[str, Callable[[], object]] = {"needle": needle}
    try:
        import torch
    except ImportError:
        return functions
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # as exact as we are
        function, tensors = theirs(torch), [torch.from_numpy(a).cuda() for a in arrays]

        def pytorch() -> None:
            for _ in range(CALLS):
                function(*tensors)
            torch.cuda.synchronize()

        functions["torch"] = pytorch
    return functions


if __name__ == "__main__":
    sys.exit(main())
