"""Pictures of a run: roofline, matrix products over sizes, scaling over threads, training steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .report import limits, median

COLOURS = {"needle": "#c1440e", "torch": "#5b7fa6", "numpy": "#8c8c8c", "torch:compile": "#a9c1dc"}
NAMES = {"torch": "PyTorch", "numpy": "NumPy (OpenBLAS)", "torch:compile": "torch.compile"}


def draw(document: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what the document has data for; nothing without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        matplotlib.rcParams.update(
            {"svg.fonttype": "none", "svg.hashsalt": "needle"}
        )  # small, and equal for equal data
        import matplotlib.pyplot as plt
    except ImportError:
        return []
    drawn = []
    for name, picture in PICTURES.items():
        figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        if picture(axes, document):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            drawn.append(folder / f"{name}.svg")
        plt.close(figure)
    return drawn


def records(document: dict[str, Any], suite: str) -> list[dict[str, Any]]:
    return [r for r in document["results"] if r["suite"] == suite and "needle" in r["measured"]]


def products(document: dict[str, Any]) -> list[dict[str, Any]]:
    return records(document, "gemm") + records(document, "sizes")


def gemm(axes: Any, document: dict[str, Any]) -> bool:
    """GFLOP/s of square products over their size."""
    square = [r for r in products(document) if r["task"].endswith("³")]
    square.sort(key=lambda r: r["flop"])
    if len(square) < 2:
        return False
    for peer in ("needle", "numpy", "torch"):
        points = [(round((r["flop"] / 2) ** (1 / 3)), r["flop"] / median(r, peer) / 1e9)
                  for r in square if peer in r["measured"]]  # fmt: skip
        if points:
            axes.plot(*zip(*points), "o-", markersize=3, color=COLOURS[peer], label=NAMES.get(peer, peer))
    if (ceiling := limits(document).get("fma")) is not None:
        axes.axhline(ceiling / 1e9, color="black", linewidth=0.8, linestyle=":", label="multiply-add probe")
    axes.set(
        xscale="log",
        xlabel="rows, columns and inner size",
        ylabel="GFLOP/s",
        title="float32 matrix products",
        ylim=(0, None),
    )
    axes.set_xscale("log", base=2)
    axes.legend(frameon=False)
    return True


def steps(axes: Any, document: dict[str, Any]) -> bool:
    """Times of training steps, PyTorch's taken as 1."""
    found = [r for r in records(document, "models") if "torch" in r["measured"]]
    if not found:
        return False
    peers = [p for p in ("needle", "torch", "torch:compile") if any(p in r["measured"] for r in found)]
    for number, peer in enumerate(peers):
        places = [i + 0.8 * number / len(peers) for i in range(len(found))]
        heights = [median(r, peer) / median(r, "torch") if peer in r["measured"] else 0 for r in found]
        axes.bar(places, heights, 0.8 / len(peers), color=COLOURS[peer], label=NAMES.get(peer, peer), align="edge")
    axes.set_xticks([i + 0.4 for i in range(len(found))], [r["task"].replace(", ", "\n") for r in found], fontsize=8)
    axes.set(ylabel="time / PyTorch eager", title="training steps: forward, backward, Adam")
    axes.legend(frameon=False)
    return True


def scaling(axes: Any, document: dict[str, Any]) -> bool:
    """How much faster than on one thread."""
    found: dict[str, dict[int, float]] = {}
    for r in records(document, "scaling"):
        found.setdefault(r["task"].rsplit(",", 1)[0], {})[r["threads"]] = median(r, "needle")
    found = {name: times for name, times in found.items() if 1 in times and len(times) > 1}
    for name, times in found.items():
        axes.plot(list(times), [times[1] / t for t in times.values()], "o-", markersize=3, label=name)
    if found:
        most = max(max(times) for times in found.values())
        axes.plot([1, most], [1, most], color="black", linewidth=0.8, linestyle=":", label="as many times as threads")
        axes.set(
            xlabel="threads", ylabel="times as fast as on one", title="needle over threads", xticks=range(1, most + 1)
        )
        axes.legend(frameon=False)
    return bool(found)


def roofline(axes: Any, document: dict[str, Any]) -> bool:
    """GFLOP/s over operations a byte, under what memory and arithmetic allow.  (Williams, Waterman, Patterson 2009)"""
    ceiling = limits(document)
    found = [r for r in products(document) if r["threads"] > 1]
    if not found or not {"fma", "add"} <= ceiling.keys():
        return False
    intensities = [2.0**i for i in range(-3, 11)]
    roof = [min(ceiling["fma"], ceiling["add"] * i) / 1e9 for i in intensities]
    axes.plot(intensities, roof, color="black", linewidth=0.8, label="this machine (probes)")
    for peer in ("torch", "numpy", "needle"):
        points = [(r["flop"] / r["bytes"], r["flop"] / median(r, peer) / 1e9) for r in found if peer in r["measured"]]
        if points:
            axes.plot(*zip(*points), "o", markersize=3.5, color=COLOURS[peer], label=NAMES.get(peer, peer))
    axes.set(
        xlabel="floating-point operations for each byte of memory",
        ylabel="GFLOP/s",
        title="matrix products under the roofline",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return True


PICTURES: dict[str, Callable[[Any, dict[str, Any]], bool]] = {
    "performance_roofline": roofline,
    "performance_gemm": gemm,
    "performance_scaling": scaling,
    "performance_steps": steps,
}
