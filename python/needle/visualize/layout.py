"""A small layered layout: where the boxes of a directed acyclic graph stand and how its edges run.

Four steps, after Sugiyama, Tagawa and Toda (1981): give every node a layer; break edges that cross several layers into
short ones with bends; order each layer so that few edges cross; move the nodes along their layer until edges run
straight.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Node = Hashable
Edge = tuple[Node, Node]
Point = tuple[float, float]

GAP_ALONG = 18.0  # between neighbours of one layer
GAP_ACROSS = 36.0  # between layers
BEND_WEIGHT = 4.0  # how much more a bend resists leaving its straight line than a box does
SWEEPS = 8


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, and for each edge the points it runs through, from its source to its target."""

    centres: dict[Node, Point]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass(frozen=True)
class Bend:
    """Where an edge passes through a layer."""

    edge: int
    layer: int


@dataclass
class Layers:
    """The nodes and bends of each layer from left to right, and who lies above and below whom."""

    rows: list[list[Node]]
    above: dict[Node, list[Node]] = field(default_factory=dict)
    below: dict[Node, list[Node]] = field(default_factory=dict)


def layered(sizes: Mapping[Node, tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Lay out a graph that flows downward.

    sizes: {node: (width, height)} in topological order, every node after those it depends on; edges: (source, target)
    pairs, several between the same two allowed, in the order in which they arrive at the target.
    """
    layers, chains = _break_edges(_layer_of(sizes, edges), edges)
    _order(layers)
    x = _straighten(layers, {node: size[0] for node, size in sizes.items()})
    tops, heights = _heights(layers, sizes)
    centres = {
        node: (x[node], tops[row] + heights[row] / 2)
        for row, nodes in enumerate(layers.rows)
        for node in nodes
        if not isinstance(node, Bend)
    }
    routes = _routes(chains, edges, sizes, centres, x, tops, heights)
    width = max((x[node] + sizes[node][0] / 2 for node in centres), default=0.0)
    width = max([width, *(px for route in routes for px, _ in route)])
    return Layout(centres, routes, width, tops[-1] + heights[-1] if tops else 0.0)


# ---- layers ----------------------------------------------------------------------------------------------------------


def _layer_of(sizes: Mapping[Node, object], edges: Sequence[Edge]) -> dict[Node, int]:
    """The layer of each node, 0 on top: as far down as its users allow, so that a weight stands beside its operator."""
    users: dict[Node, list[Node]] = {}
    for source, target in edges:
        users.setdefault(source, []).append(target)
    height: dict[Node, int] = {}
    for node in reversed(list(sizes)):
        height[node] = max((height[user] + 1 for user in users.get(node, ())), default=0)
    top = max(height.values(), default=0)
    return {node: top - height[node] for node in sizes}


def _break_edges(layer_of: Mapping[Node, int], edges: Sequence[Edge]) -> tuple[Layers, list[list[Node]]]:
    """The layers with bends filled in, and for every edge the chain source, bends …, target."""
    layers = Layers([[] for _ in range(max(layer_of.values(), default=-1) + 1)])
    for node, row in layer_of.items():
        layers.rows[row].append(node)
    chains: list[list[Node]] = []
    for number, (source, target) in enumerate(edges):
        bends: list[Node] = [Bend(number, row) for row in range(layer_of[source] + 1, layer_of[target])]
        for bend in bends:
            layers.rows[bend.layer].append(bend)  # type: ignore[attr-defined]
        chains.append([source, *bends, target])
        for upper, lower in pairwise(chains[-1]):
            layers.above.setdefault(lower, []).append(upper)
            layers.below.setdefault(upper, []).append(lower)
    return layers, chains


# ---- order within a layer --------------------------------------------------------------------------------------------


def _order(layers: Layers) -> None:
    """Sort each layer by where its neighbours stand, down and up in turn; keep the order with the fewest crossings."""
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        _sort_by_neighbours(layers, downward=sweep % 2 == 0)
        if (crossings := _crossings(layers)) < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows = best


def _sort_by_neighbours(layers: Layers, downward: bool) -> None:
    neighbours = layers.above if downward else layers.below
    rows = layers.rows if downward else layers.rows[::-1]
    for fixed, row in pairwise(rows):
        place = {node: float(i) for i, node in enumerate(fixed)}
        own = {node: float(i) for i, node in enumerate(row)}
        row.sort(key=lambda node: _mean([place[n] for n in neighbours.get(node, ())], own[node]))


def _crossings(layers: Layers) -> int:
    """How many pairs of edges cross."""
    return sum(_crossings_between(layers, upper, lower) for upper, lower in pairwise(layers.rows))


def _crossings_between(layers: Layers, upper: Sequence[Node], lower: Sequence[Node]) -> int:
    place = {node: i for i, node in enumerate(lower)}
    ends: list[int] = []
    count = 0
    for node in upper:  # edges from left to right; each crosses those before it that end further right
        arrivals = sorted(place[n] for n in layers.below.get(node, ()))
        count += sum(len(ends) - bisect_right(ends, end) for end in arrivals)
        for end in arrivals:
            insort(ends, end)
    return count


# ---- coordinates -----------------------------------------------------------------------------------------------------


def _straighten(layers: Layers, widths: Mapping[Node, float]) -> dict[Node, float]:
    """The x of every node and bend: near the mean of its neighbours', in order, with gaps kept."""
    x: dict[Node, float] = {}
    for row in layers.rows:
        x.update(zip(row, _settle(row, [0.0] * len(row), widths)))
    for sweep in range(SWEEPS):
        neighbours = layers.above if sweep % 2 == 0 else layers.below
        for row in layers.rows if sweep % 2 == 0 else reversed(layers.rows):
            wanted = [_mean([x[n] for n in neighbours.get(node, ())], x[node]) for node in row]
            x.update(zip(row, _settle(row, wanted, widths)))
    left = min((x[node] - widths.get(node, 0) / 2 for node in x), default=0.0)
    return {node: value - left for node, value in x.items()}


def _settle(row: Sequence[Node], wanted: Sequence[float], widths: Mapping[Node, float]) -> list[float]:
    """The positions nearest to the wanted ones (weighted least squares) that keep the order and the gaps.

    With the gaps subtracted this is a regression by a rising function, which pooling adjacent violators solves.
    (Barlow et al. 1972)
    """
    offsets, pools = [0.0], []
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths.get(left, 0) + widths.get(right, 0)) / 2 + GAP_ALONG)
    for node, want, offset in zip(row, wanted, offsets):
        weight = BEND_WEIGHT if isinstance(node, Bend) else 1.0
        pools.append([weight * (want - offset), weight, 1])  # [weighted sum, weight, nodes]
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last)]
    level = [total / weight for total, weight, count in pools for _ in range(int(count))]
    return [value + offset for value, offset in zip(level, offsets)]


def _heights(layers: Layers, sizes: Mapping[Node, tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The top and the height of each layer."""
    heights = [max((sizes[n][1] for n in row if n in sizes), default=0.0) for row in layers.rows]
    tops = [0.0]
    for height in heights[:-1]:
        tops.append(tops[-1] + height + GAP_ACROSS)
    return tops[: len(heights)], heights


def _routes(
    chains: Sequence[Sequence[Node]],
    edges: Sequence[Edge],
    sizes: Mapping[Node, tuple[float, float]],
    centres: Mapping[Node, Point],
    x: Mapping[Node, float],
    tops: Sequence[float],
    heights: Sequence[float],
) -> list[list[Point]]:
    """From the lower side of the source, straight down through each layer between, to the upper side of the target."""
    arriving: dict[Node, int] = {}
    for _, target in edges:
        arriving[target] = arriving.get(target, 0) + 1
    seen: dict[Node, int] = {}
    routes = []
    for chain, (source, target) in zip(chains, edges):
        number = seen[target] = seen.get(target, -1) + 1
        share = (number + 1) / (arriving[target] + 1) - 0.5  # inputs arrive side by side, in their order
        (sx, sy), (tx, ty) = centres[source], centres[target]
        route = [(sx, sy + sizes[source][1] / 2)]
        for bend in chain[1:-1]:
            row = bend.layer  # type: ignore[attr-defined]
            route += [(x[bend], tops[row]), (x[bend], tops[row] + heights[row])]
        route.append((tx + share * sizes[target][0] * 0.8, ty - sizes[target][1] / 2))
        routes.append(route)
    return routes


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
