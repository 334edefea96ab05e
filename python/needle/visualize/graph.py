"""The graph behind a tensor, as DOT text or as an SVG picture."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..autograd import Gradient, Value
from ..errors import ArgumentError, ArgumentTypeError, describe, named
from .layout import Node, layered

MAX_TEXT = 28  # letters on a line of a box
CHARACTER, LINE, MARGIN = 7.3, 16.0, 9.0  # in pixels, for the monospaced font below
FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12"'


@dataclass(frozen=True)
class Look:
    """How one kind of node is drawn; colours that stay apart for every kind of colour vision (Okabe and Ito 2008)."""

    meaning: str
    fill: str
    stroke: str
    rounding: int
    dash: str = ""


LOOKS = {
    "variable": Look("requires a gradient", "#fbe3b5", "#b37400", 0),
    "constant": Look("constant", "#eeeeee", "#777777", 0, "5 3"),
    "operator": Look("operator", "#d3e9f8", "#0072b2", 9),
    "more": Look("left out", "#ffffff", "#777777", 9, "2 3"),
}


@dataclass
class Box:
    """A node of the picture: what kind it is, and its lines of text."""

    kind: str
    lines: list[str]
    output: bool = False


@dataclass
class GraphPicture:
    """A drawn graph: shows itself in a notebook; `dot()` and `svg()` give its text, `save(path)` writes either."""

    boxes: dict[int, Box] = field(default_factory=dict)
    edges: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0  # nodes in the graph
    shown: int = 0  # nodes in the picture

    @property
    def caption(self) -> str:
        """What was left out; empty if nothing was."""
        if self.shown == self.total:
            return ""
        return f"the {self.shown:,} of {self.total:,} nodes nearest to the output; max_nodes=… shows more"

    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        lines = ["digraph needle {", '  node [shape=box, fontname="monospace", fontsize=11];']
        if self.caption:
            lines.append(f"  label={_quoted(self.caption)};")
        lines += [f"  n{key} [label={_quoted(*box.lines)}, {_dot_style(box)}];" for key, box in self.boxes.items()]
        lines += [f"  n{source} -> n{target};" for source, target in self.edges]
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """The graph as a picture in SVG, drawn without any other program."""
        sizes: dict[Node, tuple[float, float]] = {key: _size(box) for key, box in self.boxes.items()}
        plan = layered(sizes, self.edges)
        legend, legend_width = _legend({box.kind for box in self.boxes.values()}, plan.height + 26)
        width = max(plan.width, legend_width, len(self.caption) * CHARACTER) + 24
        shift = (width - 24 - plan.width) / 2
        body = [_edge(route) for route in plan.routes]
        body += [_box(box, plan.centres[key], sizes[key]) for key, box in self.boxes.items()]
        height = plan.height + 58
        if self.caption:
            legend.append(_text(self.caption, 0, height - 10, "start"))
            height += 18
        summary = f"graph of {self.total} nodes"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="-12 -12 {width:.0f} {height:.0f}" role="img" aria-label="{summary}" {FONT}>\n'
            f"<title>{summary}</title>\n"
            f'<rect x="-12" y="-12" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>\n'
            f'<g transform="translate({shift:.1f} 0)">\n' + "\n".join([*body, "</g>", *legend, "</svg>\n"])
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> Path:
        """Write the picture; the ending of path, .svg or .dot, says as what."""
        path = Path(path)
        writers = {".svg": self.svg, ".dot": self.dot, ".gv": self.dot}
        if path.suffix not in writers:
            raise ArgumentError(f"visualize.graph: cannot write {path.name!r}; the name must end in .svg or .dot")
        path.write_text(writers[path.suffix](), encoding="utf-8")
        return path


@named
def graph(
    outputs: Value | Sequence[Value], *, names: Mapping[str, Value] | None = None, max_nodes: int = 150
) -> GraphPicture:
    """The graph that computed a tensor, from leaves (top) to the tensor (bottom).

    outputs: a Tensor, or several.  names: {name: tensor} puts names on nodes, for instance
    `dict(model.named_parameters())`.  Of a graph with more than max_nodes nodes those nearest to the outputs are drawn.
    Raises ArgumentTypeError for what is no tensor, ArgumentError if max_nodes < 1.
    """
    roots = [outputs] if isinstance(outputs, Value) else list(_sequence(outputs))
    for root in roots:
        if not isinstance(root, Value):
            raise ArgumentTypeError(f"visualize.graph: got {describe(root)}, wanted a Tensor")
    if max_nodes < 1:
        raise ArgumentError(f"visualize.graph: max_nodes={max_nodes}, wanted at least 1")
    kept, total = _nearest(roots, max_nodes)
    labels = {id(value): name for name, value in (names or {}).items()}
    return _picture(_topological(roots, kept), {id(root) for root in roots}, labels, total)


def _sequence(outputs: Any) -> Sequence[Any]:
    if not isinstance(outputs, (list, tuple)):
        raise ArgumentTypeError(f"visualize.graph: got {describe(outputs)}, wanted a Tensor")
    return outputs


# ---- from values to boxes --------------------------------------------------------------------------------------------


def _inputs(node: Value) -> Sequence[Value]:
    """The inputs as they stand; those of a gradient that `backward` left would have to be computed first."""
    return () if isinstance(node, Gradient) else node.inputs


def _nearest(roots: Sequence[Value], max_nodes: int) -> tuple[set[Value], int]:
    """The max_nodes nodes with the fewest steps to a root, and how many nodes there are in all."""
    seen = dict.fromkeys(roots)
    queue = list(seen)
    for node in queue:  # grows while we walk: breadth first
        for child in _inputs(node):
            if child not in seen:
                seen[child] = None
                queue.append(child)
    return set(queue[: max(max_nodes, len(roots))]), len(queue)


def _topological(roots: Sequence[Value], kept: set[Value]) -> list[Value]:
    """The kept nodes, each after its inputs: depth first, inputs from left to right."""
    order: list[Value] = []
    visited: set[Value] = set()
    for root in roots:
        stack = [] if root in visited else [(root, iter(_inputs(root)))]
        visited.add(root)
        while stack:
            node, inputs = stack[-1]
            child = next((c for c in inputs if c in kept and c not in visited), None)
            if child is None:
                order.append(node)
                stack.pop()
            else:
                visited.add(child)
                stack.append((child, iter(_inputs(child))))
    return order


def _picture(nodes: Sequence[Value], roots: set[int], labels: Mapping[int, str], total: int) -> GraphPicture:
    picture = GraphPicture(total=total, shown=len(nodes))
    number = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        left_out = [child for child in _inputs(node) if child not in number]
        if left_out:
            stub = len(nodes) + number[node]
            picture.boxes[stub] = Box("more", ["…"])
            picture.edges.append((stub, number[node]))
        picture.boxes[number[node]] = _describe(node, id(node) in roots, labels.get(id(node)))
        picture.edges += [(number[child], number[node]) for child in _inputs(node) if child in number]
    return picture


def _describe(node: Value, output: bool, label: str | None) -> Box:
    lines = [_end_of(label)] if label else []
    if isinstance(node, Gradient):
        return Box("constant", [*lines, "gradient", _shape_of(node)], output)
    if node.op is not None:
        settings = ", ".join(f"{key}={' '.join(repr(value).split())}" for key, value in vars(node.op).items())
        return Box("operator", [*lines, node.op.name, *([settings] if settings else []), _shape_of(node)], output)
    kind = "variable" if node.requires_grad else "constant"
    return Box(kind, [*(lines or [type(node).__name__.lower()]), _shape_of(node)], output)


def _shape_of(node: Value) -> str:
    data = node.cached_data
    if data is None:
        return "not computed yet"
    if isinstance(data, tuple):
        return f"{len(data)} tensors"
    return f"{tuple(data.shape)} {data.dtype}"


# ---- from boxes to text ----------------------------------------------------------------------------------------------


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _end_of(name: str) -> str:
    """A dotted name cut in front, since its end tells most."""
    return name if len(name) <= MAX_TEXT else "…" + name[1 - MAX_TEXT :]


def _quoted(*lines: str) -> str:
    escaped = [_short(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _dot_style(box: Box) -> str:
    look = LOOKS[box.kind]
    styles = ["filled", *(["rounded"] if look.rounding else []), *(["dashed"] if look.dash else [])]
    width = 2.5 if box.output else 1
    return f'style="{",".join(styles)}", fillcolor="{look.fill}", color="{look.stroke}", penwidth={width}'


def _size(box: Box) -> tuple[float, float]:
    longest = max(len(_short(line)) for line in box.lines)
    return longest * CHARACTER + 2 * MARGIN, len(box.lines) * LINE + MARGIN


def _text(text: str, x: float, y: float, anchor: str = "middle", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#1a1a1a"{weight}>{html.escape(text)}</text>'


def _rectangle(look: Look, x: float, y: float, width: float, height: float, stroke_width: float = 1.2) -> str:
    dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{look.rounding}" '
        f'fill="{look.fill}" stroke="{look.stroke}" stroke-width="{stroke_width}"{dash}/>'
    )


def _box(box: Box, centre: tuple[float, float], size: tuple[float, float]) -> str:
    (x, y), (width, height) = centre, size
    first = y - (len(box.lines) - 1) * LINE / 2 + 4
    parts = [_rectangle(LOOKS[box.kind], x - width / 2, y - height / 2, width, height, 3 if box.output else 1.2)]
    parts += [_text(_short(line), x, first + i * LINE, bold=i == 0) for i, line in enumerate(box.lines)]
    return f"<g><title>{html.escape(chr(10).join(box.lines))}</title>{''.join(parts)}</g>"


def _edge(route: Sequence[tuple[float, float]]) -> str:
    """A smooth line through the points, which leaves and arrives vertically, and an arrow head at its end."""
    (x, y), (end, bottom) = route[0], route[-1]
    path = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in [*route[1:-1], (end, bottom - 6)]:
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    head = f"M{end - 3.5:.1f} {bottom - 7:.1f}L{end:.1f} {bottom:.1f}L{end + 3.5:.1f} {bottom - 7:.1f}Z"
    return f'<path d="{"".join(path)}" fill="none" stroke="#666666"/><path d="{head}" fill="#666666"/>'


def _legend(kinds: set[str], y: float) -> tuple[list[str], float]:
    """One sample and its meaning for each kind in the picture, and how wide they are together."""
    parts, x = [], 0.0
    for kind, look in LOOKS.items():
        if kind in kinds:
            parts += [_rectangle(look, x, y - 10, 20, 13), _text(look.meaning, x + 27, y + 1, "start")]
            x += 27 + len(look.meaning) * CHARACTER + 22
    return parts, x - 22
