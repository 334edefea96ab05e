"""The graph behind a tensor, small and in layers: what was given on top, what was computed from it below.

For the graphs of a notebook, a few dozen nodes.  A node stands a layer below the lowest of its inputs; where it stands
in its layer follows from where its inputs stand.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .colours import BLUE
from .svg import Svg

MAX_NODES = 120
LETTER, LINE, PAD, GAP, DROP, MARGIN = 7.2, 15, 8, 18, 34, 14  # pixels
LOOKS = {  # fill, edge, roundness of the corners, dashes; the shape says the same as the colour
    "operator": ("#d3e9f8", BLUE, 9, ""),
    "variable": ("#fbe3b5", "#b37400", 0, ""),
    "constant": ("#eeeeee", "#777777", 0, "5 3"),
}
WORDS = {"operator": "operator", "variable": "given, requires a gradient", "constant": "constant"}


def draw(
    outputs: Sequence[Any], names: Mapping[str, Any] | None = None, notes: Mapping[Any, object] | None = None
) -> Svg:
    """Draw what computed the outputs.  names: {name: tensor}; notes: {tensor: a line to write on its box}."""
    nodes = _below(outputs)
    labels = {id(tensor): name for name, tensor in (names or {}).items()}
    texts = {id(node): str(note) for node, note in (notes or {}).items()}
    lines = {id(node): _lines(node, labels.get(id(node)), texts.get(id(node))) for node in nodes}
    places, size = _places(_layers(nodes), lines)
    edges = [_edge(places[id(child)], places[id(node)]) for node in nodes for child in _inputs(node)]
    boxes = [_box(_kind(node), lines[id(node)], places[id(node)]) for node in nodes]
    kinds = sorted({_kind(node) for node in nodes}, key=list(LOOKS).index)
    legend, width = _legend(kinds, size[1])
    count = sum(_kind(node) == "operator" for node in nodes)
    alt = f"graph of {count} operators and {len(nodes) - count} given tensors"
    shift = max(0.0, (width - size[0]) / 2)  # a narrow graph stands in the middle above its legend
    drawing = f'<g transform="translate({shift:.1f} 0)">' + "".join([*edges, *boxes]) + "</g>"
    return Svg(drawing + "".join(legend), (max(size[0], width), size[1] + 28), alt)


def _inputs(node: Any) -> Sequence[Any]:
    return getattr(node, "inputs", ()) or ()


def _below(outputs: Sequence[Any]) -> list[Any]:
    """All nodes that lead to the outputs, each once, in the order in which they are met."""
    met = {id(node): node for node in outputs}
    waiting = list(outputs)
    while waiting and len(met) < MAX_NODES:
        for child in _inputs(waiting.pop(0)):
            if id(child) not in met:
                met[id(child)] = child
                waiting.append(child)
    return list(met.values())


def _layers(nodes: Sequence[Any]) -> list[list[Any]]:
    """The nodes in layers: pushed down, again and again, until each lies below all of its inputs."""
    depth = dict.fromkeys(map(id, nodes), 0)
    moved = True
    while moved:
        moved = False
        for node in nodes:
            wanted = max((depth[id(child)] + 1 for child in _inputs(node) if id(child) in depth), default=0)
            if wanted > depth[id(node)]:
                depth[id(node)], moved = wanted, True
    for node in nodes:  # what was given moves down to where it is used first
        users = [depth[id(user)] for user in nodes if any(child is node for child in _inputs(user))]
        if not _inputs(node) and users:
            depth[id(node)] = min(users) - 1
    return [[node for node in nodes if depth[id(node)] == layer] for layer in range(max(depth.values()) + 1)]


def _lines(node: Any, name: str | None, note: str | None) -> list[str]:
    """What stands in a box: name or operator, shape or value, and a note."""
    op = getattr(node, "op", None)
    head = name or (type(op).__name__ if op is not None else _kind(node))
    if name and op is not None:
        head = f"{name} = {type(op).__name__}"
    if not hasattr(node, "shape"):  # a tuple of tensors
        return [head, f"{len(node)} tensors", *([note] if note is not None else [])]
    shape = tuple(node.shape)
    value = f"{float(node.numpy().reshape(-1)[0]):.4g}" if math.prod(shape) == 1 else f"{shape}"
    return [head, value, *([note] if note is not None else [])]


def _kind(node: Any) -> str:
    if getattr(node, "op", None) is not None:
        return "operator"
    return "variable" if node.requires_grad else "constant"


Place = tuple[float, float, float, float]  # x and y of the centre, width, height


def _places(
    layers: Sequence[Sequence[Any]], lines: Mapping[int, list[str]]
) -> tuple[dict[int, Place], tuple[float, float]]:
    """Where each box stands, and the size of the whole."""
    places: dict[int, Place] = {}
    widths = [sum(_width(lines[id(n)]) for n in layer) + GAP * (len(layer) - 1) for layer in layers]
    whole, y = max(widths), float(MARGIN)
    for layer, width in zip(layers, widths):
        height = max(len(lines[id(node)]) for node in layer) * LINE + PAD
        x = MARGIN + (whole - width) / 2
        for node in sorted(layer, key=lambda node: _wish(node, places)):
            own = _width(lines[id(node)])
            places[id(node)] = (x + own / 2, y + height / 2, own, height)
            x += own + GAP
        y += height + DROP
    return places, (whole + 2 * MARGIN, y - DROP + MARGIN)


def _wish(node: Any, places: Mapping[int, Place]) -> float:
    above = [places[id(child)][0] for child in _inputs(node) if id(child) in places]
    return sum(above) / len(above) if above else 0.0


def _width(lines: Sequence[str]) -> float:
    return max(map(len, lines)) * LETTER + 2 * PAD


def _edge(above: Place, below: Place) -> str:
    (x1, y1, _, h1), (x2, y2, _, h2) = above, below
    start, end = y1 + h1 / 2, y2 - h2 / 2
    middle = (start + end) / 2
    return (
        f'<path d="M{x1:.1f} {start:.1f} C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {end - 5:.1f}" '
        f'fill="none" stroke="#444444"/><path d="M{x2 - 4:.1f} {end - 7:.1f} L{x2:.1f} {end:.1f} '
        f'L{x2 + 4:.1f} {end - 7:.1f} Z" fill="#444444"/>'
    )


def _box(kind: str, lines: Sequence[str], place: Place) -> str:
    x, y, width, height = place
    fill, edge, rounding, dash = LOOKS[kind]
    top = y - height / 2 + PAD / 2 + LINE - 4
    texts = (
        f'<text x="{x:.1f}" y="{top + LINE * i:.1f}" text-anchor="middle">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height}" rx="{rounding}" '
        f'fill="{fill}" stroke="{edge}" stroke-dasharray="{dash}"/>' + "".join(texts)
    )


def _legend(kinds: Sequence[str], y: float) -> tuple[list[str], float]:
    parts, x = [], float(MARGIN)
    for kind in kinds:
        fill, edge, rounding, dash = LOOKS[kind]
        parts.append(
            f'<rect x="{x}" y="{y}" width="16" height="12" rx="{rounding / 2}" fill="{fill}" stroke="{edge}" '
            f'stroke-dasharray="{dash}"/><text x="{x + 22}" y="{y + 10}">{WORDS[kind]}</text>'
        )
        x += 22 + len(WORDS[kind]) * LETTER + GAP
    return parts, x + MARGIN
