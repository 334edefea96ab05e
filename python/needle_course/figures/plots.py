"""Pictures drawn by matplotlib, with alternative text and colours that every kind of colour vision tells apart."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .colours import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

# of lines, for which yellow is too faint; dashes and marks say the same once more, for print
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "D", "v", "P", "X")


class Plot:
    """A figure of matplotlib's with alternative text; shows itself in a notebook."""

    def __init__(self, figure: Any, alt: str) -> None:
        self.figure, self.alt = figure, alt

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=90)
        data = base64.b64encode(buffer.getvalue()).decode()
        return f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{data}">'

    def __repr__(self) -> str:
        return self.alt

    def save(self, path: str | Path, dpi: int = 120) -> Path:
        """Write the picture; the ending of path (.png, .svg, .pdf) says as what."""
        self.figure.savefig(path, dpi=dpi)
        return Path(path)


def panels(count: int = 1, width: float = 5.0, height: float = 3.4) -> tuple[Any, Sequence[Any]]:
    """A figure with `count` panels side by side, and its axes: draw on them, then make a Plot(figure, alt)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib; run: pip install matplotlib") from error
    figure = Figure(figsize=(width * count, height), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def curves(
    lines: Mapping[str, Sequence[float]],
    *,
    x: Sequence[float] | None = None,
    xlabel: str = "step",
    ylabel: str = "loss",
    title: str = "",
    log: bool = False,
    logx: bool = False,
) -> Plot:
    """Draw {name: numbers} as lines over x (1, 2, … if left out); log and logx choose logarithmic scales."""
    figure, [axes] = panels()
    for i, (name, values) in enumerate(lines.items()):
        places = x if x is not None else range(1, len(values) + 1)
        marker = MARKS[i % len(MARKS)] if len(values) <= 30 else ""
        style = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)], "marker": marker}
        axes.plot(places, values, label=name, markersize=4, **style)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    if log:
        axes.set_yscale("log")
    if logx:
        axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.legend()
    return Plot(figure, _in_words(lines, ylabel, xlabel))


def _in_words(lines: Mapping[str, Sequence[float]], ylabel: str, xlabel: str) -> str:
    ends = (f"{name} goes from {float(v[0]):.3g} to {float(v[-1]):.3g}" for name, v in lines.items() if len(v))
    return f"{ylabel} over {xlabel}: " + "; ".join(ends)


def paths_on(
    f: Callable[[Any, Any], Any], paths: Mapping[str, Any], *, span: tuple[float, float, float, float], title: str = ""
) -> Plot:
    """Paths {name: array (steps, 2)} over the contours of f(x, y), on span = (left, right, bottom, top)."""
    left, right, bottom, top = span
    figure, [axes] = panels(width=6.4, height=3.8)
    xs, ys = np.meshgrid(np.linspace(left, right, 160), np.linspace(bottom, top, 160))
    heights = f(xs, ys)
    axes.contour(xs, ys, heights, levels=np.geomspace(max(heights.min(), heights.max() / 1e4), heights.max(), 14),
                 colors=GREY, linewidths=0.6)  # fmt: skip
    for i, (name, path) in enumerate(paths.items()):
        style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        path = np.asarray(path)
        axes.plot(path[:, 0], path[:, 1], label=f"{name} ({len(path) - 1} steps)", markersize=3, linewidth=1, **style)
    axes.set(xlim=(left, right), ylim=(bottom, top), title=title)
    axes.legend(fontsize=8)
    ends = "; ".join(f"{name} ends at ({p[-1][0]:.2g}, {p[-1][1]:.2g})" for name, p in paths.items())
    return Plot(figure, f"paths over a contour map: {ends}")


def images(
    tiles: Any, titles: Sequence[str] = (), *, columns: int = 10, alt: str = "", symmetric: bool = False
) -> Plot:
    """Draw arrays (n, H, W) side by side in grey; symmetric: orange for negative, purple for positive, white for 0."""
    tiles = np.asarray(tiles, dtype="float64")
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    figure, _ = panels(width=1.0 * columns, height=(1.0 + 0.25 * bool(titles)) * rows)
    figure.clear()
    bound = float(np.abs(tiles).max()) or 1.0
    look: dict[str, Any] = {"cmap": "PuOr", "vmin": -bound, "vmax": bound} if symmetric else {"cmap": "gray"}
    for number, axes in enumerate(figure.subplots(rows, columns, squeeze=False).ravel()):
        axes.axis("off")
        if number < len(tiles):
            axes.imshow(tiles[number], interpolation="nearest", **look)
        if number < len(titles):
            axes.set_title(titles[number], fontsize=8)
    return Plot(figure, alt or f"{len(tiles)} images side by side" + ": " * bool(titles) + ", ".join(titles))
