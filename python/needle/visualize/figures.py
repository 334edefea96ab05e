"""Learning curves and grids of images, weights and feature maps, drawn by matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError, describe, named

# Okabe and Ito (2008): eight colours that stay apart for every kind of colour vision; the dashes help on paper
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", "--", "-.", ":")
MAX_TILES = 256  # of a grid; a wide convolution has a million kernels


class Picture:
    """A drawn figure: shows itself in a notebook; `save(path)` writes a file, `figure` is matplotlib's."""

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()

    def save(self, path: str | Path, dpi: int = 120) -> Path:
        """Write the picture; the ending of path (.png, .svg, .pdf) says as what."""
        self.figure.savefig(path, dpi=dpi)
        return Path(path)


def _figure(width: float, height: float) -> Any:
    """A figure of width × height inches that belongs to no window and no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("visualize: curves and grids need matplotlib; pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


# ---- curves ----------------------------------------------------------------------------------------------------------


@named
def learning_curves(
    history: Mapping[str, Sequence[float]] | Sequence[Mapping[str, Any]],
    *,
    x: str | None = None,
    title: str = "",
    log: bool = False,
) -> Picture:
    """Draw how numbers moved in training.

    history: {name: numbers}, or a row per step, {name: number}.  x names the numbers along the axis; left out, these
    are 1, 2, ….  Names that end alike (train_loss, test_loss) share a panel.  log=True draws on a logarithmic scale.
    Raises ArgumentError if there is nothing to draw.
    """
    columns = _columns(history)
    steps = columns.pop(x, None) if x is not None else None
    if not columns or (x is not None and steps is None):
        wanted = "numbers" if x is None else f"numbers and {x!r}"
        raise ArgumentError(f"learning_curves: history holds {sorted(columns)}, wanted {wanted}")
    panels: dict[str, list[str]] = {}
    for name in columns:
        panels.setdefault(name.replace("-", "_").replace(" ", "_").rsplit("_", 1)[-1], []).append(name)
    figure = _figure(5.2 * len(panels), 3.6)
    for axes, (panel, names) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items()):
        _panel(axes, panel, {name: columns[name] for name in names}, steps, x or "epoch", log)
    if title:
        figure.suptitle(title)
    return Picture(figure)


def _panel(
    axes: Any, name: str, curves: Mapping[str, Sequence[float]], steps: Sequence[float] | None, x: str, log: bool
) -> None:
    for i, (label, values) in enumerate(curves.items()):
        places = steps if steps is not None else range(1, len(values) + 1)
        marker = "o" if len(values) <= 30 else ""
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        axes.plot(places, values, dash, color=colour, marker=marker, markersize=4, label=label)
    axes.set(xlabel=x, ylabel=name)
    if log:
        axes.set_yscale("log")
    if all(float(step).is_integer() for step in steps or ()):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    if len(curves) > 1 or label != name:
        axes.legend()


def _columns(history: Any) -> dict[str, list[float]]:
    """{name: numbers} from either form; a row that lacks a number, or holds text, gives NaN, which leaves a gap."""
    if isinstance(history, Mapping):
        return {name: [float(v) for v in values] for name, values in history.items() if len(values)}
    names = dict.fromkeys(name for row in history for name in row)
    columns = {name: [_number(row.get(name)) for row in history] for name in names}
    return {name: values for name, values in columns.items() if not all(map(math.isnan, values))}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


# ---- grids -----------------------------------------------------------------------------------------------------------


@named
def image_grid(
    images: Any, *, columns: int | None = None, titles: Sequence[str] | None = None, title: str = ""
) -> Picture:
    """Draw images side by side.

    images: a Tensor or array (N, H, W), or (N, C, H, W) or (N, H, W, C) with C = 1 or 3; each is stretched from its
    darkest to its brightest value.  titles: a line above each.
    """
    array = _numbers(images)
    if array.ndim == 4 and array.shape[1] in (1, 3) and array.shape[3] not in (1, 3):
        array = array.transpose(0, 2, 3, 1)
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)) or not array.size:
        raise ShapeError(
            f"image_grid: got {describe(images)}, wanted (N, H, W), (N, C, H, W) or (N, H, W, C), C 1 or 3"
        )
    tiles = [_stretched(tile[..., 0] if tile.ndim == 3 and tile.shape[2] == 1 else tile) for tile in array]
    return _grid(tiles, columns, titles, title, {"cmap": "gray"})


@named
def weight_grid(
    weight: Any, *, image_shape: tuple[int, ...] | None = None, columns: int | None = None, title: str = ""
) -> Picture:
    """Draw what each unit of a layer looks for: orange for negative, purple for positive weights, white for none.

    weight: of nn.Conv (K, K, C_in, C_out), a tile per pair of channels, a row per output; or of nn.Linear (in, out), a
    tile per output, with image_shape=(H, W), whose product is `in`.
    """
    array = _numbers(weight)
    if array.ndim == 4:
        tiles, columns = list(array.transpose(3, 2, 0, 1).reshape(-1, *array.shape[:2])), columns or array.shape[2]
    elif array.ndim == 2 and image_shape is not None and math.prod(image_shape) == array.shape[0]:
        tiles = list(array.T.reshape(-1, *image_shape))
    else:
        raise ShapeError(
            f"weight_grid: got {describe(weight)} and image_shape={image_shape}, wanted (K, K, C_in, C_out), or "
            "(in, out) with image_shape=(H, W)"
        )
    bound = float(np.abs(array).max(initial=0.0)) or 1.0
    return _grid(tiles, columns, None, title, {"cmap": "PuOr", "vmin": -bound, "vmax": bound}, bar=True)


@named
def feature_map_grid(maps: Any, *, sample: int = 0, columns: int | None = None, title: str = "") -> Picture:
    """Draw the channels of one sample of an activation (N, C, H, W) side by side, on one scale."""
    array = _numbers(maps)
    if array.ndim != 4 or not -array.shape[0] <= sample < array.shape[0]:
        raise ShapeError(f"feature_map_grid: got {describe(maps)}, sample {sample}, wanted (N, C, H, W) and sample < N")
    tiles = list(array[sample])
    scale = {"cmap": "viridis", "vmin": float(array[sample].min()), "vmax": float(array[sample].max())}
    return _grid(tiles, columns, [str(i) for i in range(len(tiles))], title, scale, bar=True)


def _numbers(x: Any) -> np.ndarray:
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x, dtype="float64")


def _stretched(tile: np.ndarray) -> np.ndarray:
    low, high = tile.min(), tile.max()
    return (tile - low) / (high - low) if high > low else np.zeros_like(tile)


def _grid(
    tiles: Sequence[np.ndarray],
    columns: int | None,
    titles: Sequence[str] | None,
    title: str,
    settings: Mapping[str, Any],
    bar: bool = False,
) -> Picture:
    if len(tiles) > MAX_TILES:
        title = f"{title} (the first {MAX_TILES} of {len(tiles)})".lstrip()
        tiles = tiles[:MAX_TILES]
    columns = min(columns or math.ceil(math.sqrt(len(tiles))), len(tiles))
    rows = math.ceil(len(tiles) / columns)
    side = max(0.45, min(1.2, 9 / columns))  # inches; a picture stays about as wide as a page
    figure = _figure(side * columns + 0.4 + bar, (side + 0.25 * bool(titles)) * rows + 0.4)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for place in places:
        place.axis("off")
    for place, tile in zip(places, tiles):
        image = place.imshow(tile, interpolation="nearest", **settings)
    for place, text in zip(places, titles or ()):
        place.set_title(text, fontsize=8)
    if bar:
        figure.colorbar(image, ax=list(places), shrink=0.8)
    if title:
        figure.suptitle(title)
    return Picture(figure)
