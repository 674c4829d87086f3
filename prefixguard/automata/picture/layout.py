"""A layered layout of a scene: levels of risk as columns from left to right, connections routed between the states.

Layers alternate: a column of nodes, then a gap that holds the labels of connections. A connection has one *stop* in
every layer between its two ends, and each stop takes room of its own, so no line runs under a state and no two labels
cover each other. Order and height of all stops come from sweeps that pull each towards its neighbours (the barycentre
method of Sugiyama, Tagawa, Toda 1981), with isotonic regression to keep them apart. Units are CSS pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from prefixguard.automata.picture.scene import Scene, SceneEdge, SceneNode, columns_of

#: Height of a line of small text, and the width of its average letter.
LINE_HEIGHT = 12.0
LETTER_WIDTH = 5.3
#: A self-loop's height above its node.
LOOP = 22.0

_SWEEPS = 30
_NODE_GAP = 16.0
_STRIPE, _STRIPE_GAP = 74.0, 24.0  # of a level without a state
_PASSING = 7.0  # height of a stop without label
_BEND = 22.0  # room for lines to bend, on each side of a gap's labels
_GRAVITY = 0.06  # how strongly everything is pulled to the middle, compared with its neighbours

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node's middle and radii."""

    node: SceneNode
    x: float
    y: float
    rx: float
    ry: float


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """A connection's path: it leaves the tail at points[0], enters the head at points[-1].

    points: ends at the nodes' outlines, and between them a point for each side of every stop. turns: whether it comes
    back to the column that it left. label: middle of the label.
    """

    edge: SceneEdge
    points: tuple[Point, ...]
    turns: bool
    label: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of all nodes and drawn edges; (0, 0) is the upper left corner. stripes: level, left and right end."""

    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    stripes: tuple[tuple[int, float, float], ...]
    width: float
    height: float


@dataclass(slots=True, eq=False)
class _Stop:
    """Something that takes room in a layer: a node, a label, or a line that passes.

    y: middle. above, below: room it takes upwards and downwards from there. linked: stops of neighbouring layers that
    it is connected with, and weights.
    """

    layer: int
    above: float
    below: float
    y: float = 0.0
    linked: list[tuple[_Stop, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Route:
    """An edge with its stops between the ends, and which of them holds the label."""

    edge: SceneEdge
    stops: tuple[_Stop, ...]
    labelled: int


def lay_out(scene: Scene) -> Layout:
    """Places all nodes and the drawn edges of a scene; the same places for the same scene."""
    columns = columns_of(scene)
    layers: list[list[_Stop]] = [[] for _ in range(2 * len(columns))]  # even: nodes, odd: the gap after them
    loops = {edge.tail: edge for edge in scene.drawn if edge.tail == edge.head}
    stops: dict[str, _Stop] = {}
    for number, column in enumerate(columns):
        for node in column:
            ry = _radii(node)[1]
            loop = LOOP + LINE_HEIGHT * len(loops[node.key].label) if node.key in loops else 0.0
            stops[node.key] = _Stop(2 * number, ry + loop + _NODE_GAP / 2, ry + _NODE_GAP / 2)
            layers[2 * number].append(stops[node.key])
    routes = _routes([edge for edge in scene.drawn if edge.tail != edge.head], stops, layers)
    _settle(layers)
    spans = _spans(columns, routes, loops)
    nodes, stripes = {}, dict[int, Point]()
    for column, (left, right) in zip(columns, spans[::2], strict=True):
        for node in column:
            nodes[node.key] = PlacedNode(node, (left + right) / 2, stops[node.key].y, *_radii(node))
        level = column[0].level
        stripes[level] = (stripes.get(level, (left, right))[0], right)
    ports = _ports(routes, nodes, spans)
    edges = [_placed_edge(route, ports, nodes, spans) for route in routes]
    edges += [_placed_loop(edge, nodes[edge.tail]) for edge in loops.values()]
    right = spans[-1][1]
    for level in scene.stateless_levels:
        stripes[level] = (right + _STRIPE_GAP, right + _STRIPE_GAP + _STRIPE)
        right = stripes[level][1]
    height = max(stop.y + stop.below for layer in layers for stop in layer)
    ends = tuple((level, *span) for level, span in stripes.items())
    return Layout(tuple(nodes.values()), tuple(edges), ends, right, height)


def label_width(edge: SceneEdge) -> float:
    """Width of an edge's label, by the average letter."""
    return LETTER_WIDTH * max(len(line) for line in edge.label)


def _radii(node: SceneNode) -> Point:
    ry = 25.0 + 5.5 * max(len(node.lines) - 2, 0) + 17.0 * node.size
    widest = max(len(line) for line in (*node.lines[1:], node.title))
    return max(1.3 * ry, 3.1 * widest + 10.0), ry


def _routes(edges: Sequence[SceneEdge], stops: dict[str, _Stop], layers: list[list[_Stop]]) -> list[_Route]:
    """Gives every edge its stops, busiest first; each label goes to the emptiest gap on its way."""
    load = [0.0] * len(layers)
    routes = []
    for edge in edges:
        a, b = stops[edge.tail].layer, stops[edge.head].layer
        way = [a + 1] if a == b else list(range(a + 1, b) if a < b else range(a - 1, b, -1))
        tall = LINE_HEIGHT * len(edge.label) + 6.0
        labelled = min((at for at, layer in enumerate(way) if layer % 2 == 1), key=lambda at: (load[way[at]], at))
        load[way[labelled]] += tall
        halves = [tall / 2 if at == labelled else _PASSING / 2 for at in range(len(way))]
        chain = [_Stop(layer, half, half) for layer, half in zip(way, halves, strict=True)]
        for stop in chain:
            layers[stop.layer].append(stop)
        weight = 0.5 + edge.size
        whole = [stops[edge.tail], *chain, stops[edge.head]]
        for at, (left, right) in enumerate(pairwise(whole)):
            bend = 1.0 if at in (0, len(whole) - 2) else 3.0  # long lines are kept straight between their ends
            left.linked.append((right, bend * weight))
            right.linked.append((left, bend * weight))
        routes.append(_Route(edge, tuple(chain), labelled))
    return routes


def _settle(layers: list[list[_Stop]]) -> None:
    """Orders each layer and gives it heights, from 0 down."""
    for layer in layers:
        _place(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [_pull(stop) for stop in layer]
            if sweep < _SWEEPS - 4:  # the last sweeps only move; the first also reorder
                order = sorted(range(len(layer)), key=wanted.__getitem__)
                layer[:], wanted = [layer[at] for at in order], [wanted[at] for at in order]
            _place(layer, wanted)
    top = min(stop.y - stop.above for layer in layers for stop in layer)
    for layer in layers:
        for stop in layer:
            stop.y -= top


def _pull(stop: _Stop) -> float:
    total = sum(weight for _, weight in stop.linked)
    return sum(other.y * weight for other, weight in stop.linked) / (total * (1 + _GRAVITY)) if total else stop.y


def _place(layer: list[_Stop], wanted: Sequence[float]) -> None:
    """Puts the stops, in their order, as near as can be to where they want to be without touching each other.

    Least squares under "each after the one before": with the room between subtracted this is isotonic regression,
    solved by pooling adjacent violators.
    """
    above = [0.0, *(stop.below for stop in layer[:-1])]
    offsets = list(accumulate(stop.above + below for stop, below in zip(layer, above, strict=False)))
    pools: list[tuple[float, int]] = []  # mean of the wanted places less their offsets, how many
    for want, offset in zip(wanted, offsets, strict=True):
        mean, size = want - offset, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean, size = (mean * size + before * n) / (size + n), size + n
        pools.append((mean, size))
    means = (mean for mean, size in pools for _ in range(size))
    for stop, mean, offset in zip(layer, means, offsets, strict=True):
        stop.y = mean + offset


def _spans(columns: list[list[SceneNode]], routes: list[_Route], loops: dict[str, SceneEdge]) -> list[Point]:
    """Left and right end of each layer; a gap is as wide as its widest label, a column as its widest node or loop."""
    looped = {key: label_width(edge) for key, edge in loops.items()}
    widest = [2 * _BEND] * (2 * len(columns) - 1) + [0.0]
    for number, column in enumerate(columns):
        widest[2 * number] = max(max(2 * _radii(node)[0], looped.get(node.key, 0.0)) for node in column)
    for route in routes:
        layer = route.stops[route.labelled].layer
        widest[layer] = max(widest[layer], label_width(route.edge) + 2 * _BEND)
    return list(pairwise(accumulate(widest, initial=0.0)))


def _ports(routes: list[_Route], nodes: dict[str, PlacedNode], spans: list[Point]) -> dict[tuple[str, int], Point]:
    """Where each edge touches its nodes, by its key and 0 for its tail or 1 for its head: spread along the sides, in
    the order of where the edges go."""
    sides: dict[tuple[str, bool], list[tuple[float, int, tuple[str, int]]]] = {}
    for number, route in enumerate(routes):
        for end, key, stop in ((0, route.edge.tail, route.stops[0]), (1, route.edge.head, route.stops[-1])):
            right = spans[stop.layer][0] > nodes[key].x
            sides.setdefault((key, right), []).append((stop.y, number, (route.edge.key, end)))
    ports = {}
    for (key, right), touching in sides.items():
        placed = nodes[key]
        for at, (_, _, port) in enumerate(sorted(touching)):
            part = (at + 1) / (len(touching) + 1) * 2 - 1  # -1 to 1, top to bottom
            dy = 0.75 * part * placed.ry
            dx = placed.rx * (1 - (dy / placed.ry) ** 2) ** 0.5
            ports[port] = (placed.x + (dx if right else -dx), placed.y + dy)
    return ports


def _placed_edge(
    route: _Route, ports: dict[tuple[str, int], Point], nodes: dict[str, PlacedNode], spans: list[Point]
) -> PlacedEdge:
    edge, tail, head = route.edge, nodes[route.edge.tail], nodes[route.edge.head]
    turns = len(route.stops) == 1 and tail.x == head.x
    points, label = [ports[edge.key, 0]], (0.0, 0.0)
    for at, stop in enumerate(route.stops):
        left, right = spans[stop.layer]
        middle, half = (left + right) / 2, label_width(edge) / 2
        if turns:  # the label stands to the right of the bend
            points.append((left + _BEND, stop.y))
            label = (left + _BEND + 5.0 + half, stop.y)
            continue
        ends = [(middle, stop.y)]
        if stop.layer % 2 == 0:
            ends = [(left, stop.y), (right, stop.y)]
        elif at == route.labelled:  # the line runs under its label
            label, under = (middle, stop.y - 2.0), stop.y + stop.below - 3.0
            ends = [(middle - half, under), (middle + half, under)]
        points += ends[:: 1 if tail.x < head.x else -1]
    return PlacedEdge(edge, (*points, ports[edge.key, 1]), turns, label)


def _placed_loop(edge: SceneEdge, placed: PlacedNode) -> PlacedEdge:
    dx = 0.36 * placed.rx
    y = placed.y - placed.ry * (1 - (dx / placed.rx) ** 2) ** 0.5
    top = placed.y - placed.ry - LOOP
    label = (placed.x, top - LINE_HEIGHT * len(edge.label) / 2 + 1.0)
    return PlacedEdge(edge, ((placed.x - dx, y), (placed.x, top), (placed.x + dx, y)), True, label)
