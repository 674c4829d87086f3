"""A layered layout of a scene: levels of risk as columns from left to right, connections routed between the states.

Layers alternate: a column of nodes, then a gap that holds the labels of connections. A connection has one *stop* in
every layer between its two ends, and each stop takes room of its own, so no line runs under a state and no two labels
cover each other. Order and height of all stops come from sweeps that pull each towards its neighbours (the barycentre
method of Sugiyama, Tagawa, Toda 1981), with isotonic regression to keep them apart. Units are CSS pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prefixguard.automata.picture.scene import Scene, SceneEdge, SceneNode, columns_of

#: Height of a line of small text, and the width of its average letter.
LINE_HEIGHT = 12.0
LETTER_WIDTH = 5.3
#: A self-loop's height above its node.
LOOP = 22.0

_SWEEPS = 30
_NODE_GAP = 16.0
_PASSING = 7.0  # height of a stop without label
_BEND = 22.0  # room for lines to bend, on each side of a gap's labels
_GRAVITY = 0.06  # how strongly everything is pulled to the middle, beside its neighbours


@dataclass(slots=True)
class Stop:
    """Something that takes room in a layer: a node, a label, or a line that passes.

    y: middle. above, below: room it takes upwards and downwards from there. beside: stops of neighbouring layers that
    it is connected with, with weights.
    """

    layer: int
    above: float
    below: float
    y: float = 0.0
    beside: list[tuple[Stop, float]] = field(default_factory=list)


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
    points: tuple[tuple[float, float], ...]
    turns: bool
    label: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stripe:
    """The columns of one level: its number, left and right end."""

    level: int
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands; (0, 0) is the upper left corner of the columns."""

    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    stripes: tuple[Stripe, ...]
    width: float
    height: float


def lay_out(scene: Scene) -> Layout:
    """Places all nodes and the drawn edges of a scene; the same places for the same scene."""
    columns = columns_of(scene)
    layers: list[list[Stop]] = [[] for _ in range(2 * len(columns))]  # even: nodes, odd: the gap after them
    stops: dict[str, Stop] = {}
    place: dict[str, int] = {}
    loops = {edge.tail: edge for edge in scene.drawn if edge.tail == edge.head}
    for number, column in enumerate(columns):
        for node in column:
            ry = _radii(node)[1]
            loop = LOOP + LINE_HEIGHT * len(loops[node.key].label) if node.key in loops else 0.0
            stops[node.key] = Stop(2 * number, ry + loop + _NODE_GAP / 2, ry + _NODE_GAP / 2)
            place[node.key] = number
            layers[2 * number].append(stops[node.key])
    routes = _routes(scene, place, stops, layers)
    _settle(layers)
    return _placed(scene, columns, layers, stops, routes)


def label_width(edge: SceneEdge) -> float:
    """Width of an edge's label, by the average letter."""
    return LETTER_WIDTH * max(len(line) for line in edge.label)


def _radii(node: SceneNode) -> tuple[float, float]:
    ry = 25.0 + 5.5 * max(len(node.lines) - 2, 0) + 17.0 * node.size
    widest = max(len(line) for line in (*node.lines[1:], node.title))
    return max(1.3 * ry, 3.1 * widest + 10.0), ry


@dataclass(frozen=True, slots=True)
class _Route:
    edge: SceneEdge
    stops: tuple[Stop, ...]  # between the ends
    labelled: int  # which of them holds the label


def _routes(scene: Scene, place: dict[str, int], stops: dict[str, Stop], layers: list[list[Stop]]) -> list[_Route]:
    """Gives every drawn edge its stops, busiest first; each label goes to the emptiest gap on its way."""
    load = [0.0] * len(layers)
    routes = []
    for edge in scene.drawn:
        if edge.tail == edge.head:
            continue
        a, b = place[edge.tail], place[edge.head]
        if a == b:
            on_the_way = [2 * a + 1]
        elif a < b:
            on_the_way = list(range(2 * a + 1, 2 * b))
        else:
            on_the_way = list(range(2 * a - 1, 2 * b, -1))
        tall = LINE_HEIGHT * len(edge.label) + 6.0
        gaps = [at for at, layer in enumerate(on_the_way) if layer % 2 == 1]
        labelled = min(gaps, key=lambda at: (load[on_the_way[at]], at))
        load[on_the_way[labelled]] += tall
        chain = []
        for at, layer in enumerate(on_the_way):
            half = tall / 2 if at == labelled else _PASSING / 2
            chain.append(Stop(layer, half, half))
            layers[layer].append(chain[-1])
        weight = 0.5 + edge.size
        whole = [stops[edge.tail], *chain, stops[edge.head]]
        for at, (left, right) in enumerate(pairwise(whole)):
            bend = 1.0 if at in (0, len(whole) - 2) else 3.0  # long lines are kept straight between their ends
            left.beside.append((right, bend * weight))
            right.beside.append((left, bend * weight))
        routes.append(_Route(edge, tuple(chain), labelled))
    return routes


def _settle(layers: list[list[Stop]]) -> None:
    """Orders each layer and gives it heights."""
    for layer in layers:
        _place(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        there = layers if sweep % 2 == 0 else layers[::-1]
        for layer in there:
            wanted = [_pull(stop) for stop in layer]
            # The last sweeps only move; the first also reorder.
            if sweep < _SWEEPS - 4:
                order = sorted(range(len(layer)), key=lambda at: wanted[at])
                layer[:] = [layer[at] for at in order]
                wanted = [wanted[at] for at in order]
            _place(layer, wanted)


def _pull(stop: Stop) -> float:
    total = sum(weight for _, weight in stop.beside)
    return sum(other.y * weight for other, weight in stop.beside) / (total * (1 + _GRAVITY)) if total else stop.y


def _place(layer: list[Stop], wanted: Sequence[float]) -> None:
    """Puts the stops, in their order, as near as can be to where they want to be without touching each other.

    Least squares under "each after the one before": with the room between subtracted this is isotonic regression,
    solved by pooling adjacent violators.
    """
    offsets, at = [], 0.0
    for number, stop in enumerate(layer):
        at += stop.above + (layer[number - 1].below if number else 0.0)
        offsets.append(at)
    pools: list[tuple[float, int]] = []  # mean of the wanted places less their offsets, how many
    for want, offset in zip(wanted, offsets, strict=True):
        mean, size = want - offset, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean, size = (mean * size + before * n) / (size + n), size + n
        pools.append((mean, size))
    means = [mean for mean, size in pools for _ in range(size)]
    for stop, mean, offset in zip(layer, means, offsets, strict=True):
        stop.y = mean + offset


def _placed(
    scene: Scene, columns: list[list[SceneNode]], layers: list[list[Stop]], stops: dict[str, Stop], routes: list[_Route]
) -> Layout:
    loops = [edge for edge in scene.drawn if edge.tail == edge.head]
    top = min(stop.y - stop.above for layer in layers for stop in layer)
    for layer in layers:
        for stop in layer:
            stop.y -= top
    height = max(stop.y + stop.below for layer in layers for stop in layer)
    spans = _spans(columns, routes, loops)
    nodes, stripes = [], list[Stripe]()
    for number, column in enumerate(columns):
        left, right = spans[2 * number]
        for node in column:
            rx, ry = _radii(node)
            nodes.append(PlacedNode(node, (left + right) / 2, stops[node.key].y, rx, ry))
        level = column[0].level
        if stripes and stripes[-1].level == level:
            stripes[-1] = Stripe(level, stripes[-1].left, right)
        else:
            stripes.append(Stripe(level, left, right))
    by_key = {placed.node.key: placed for placed in nodes}
    ports = _ports(routes, by_key, spans)
    edges = [_placed_edge(route, ports, by_key, spans) for route in routes]
    edges += [_placed_loop(edge, by_key[edge.tail]) for edge in loops]
    return Layout(tuple(nodes), tuple(edges), tuple(stripes), spans[-1][1], height)


def _spans(columns: list[list[SceneNode]], routes: list[_Route], loops: list[SceneEdge]) -> list[tuple[float, float]]:
    """Left and right end of each layer; a gap is as wide as its widest label, a column as its widest node or loop."""
    looped = {edge.tail: label_width(edge) for edge in loops}
    widest = [0.0] * (2 * len(columns))
    for number, column in enumerate(columns):
        widest[2 * number] = max(max(2 * _radii(node)[0], looped.get(node.key, 0.0)) for node in column)
    for route in routes:
        layer = route.stops[route.labelled].layer
        widest[layer] = max(widest[layer], label_width(route.edge) + 2 * _BEND)
    for layer in range(1, len(widest) - 1, 2):
        widest[layer] = max(widest[layer], 2 * _BEND)
    spans, at = [], 0.0
    for width in widest:
        spans.append((at, at + width))
        at += width
    return spans


_Port = tuple[str, int]  # key of the edge; 0 where it leaves its tail, 1 where it enters its head


def _ports(
    routes: list[_Route], nodes: dict[str, PlacedNode], spans: list[tuple[float, float]]
) -> dict[_Port, tuple[float, float]]:
    """Where each edge touches its nodes: spread along the sides, in the order of where the edges go."""
    sides: dict[tuple[str, bool], list[tuple[float, int, _Port]]] = {}
    for number, route in enumerate(routes):
        for end, key, stop in ((0, route.edge.tail, route.stops[0]), (1, route.edge.head, route.stops[-1])):
            right = spans[stop.layer][0] > nodes[key].x
            sides.setdefault((key, right), []).append((stop.y, number, (route.edge.key, end)))
    ports = {}
    for (key, right), touching in sorted(sides.items()):
        placed = nodes[key]
        for at, (_, _, port) in enumerate(sorted(touching)):
            part = (at + 1) / (len(touching) + 1) * 2 - 1  # -1 to 1, top to bottom
            dy = 0.75 * part * placed.ry
            dx = placed.rx * (1 - (dy / placed.ry) ** 2) ** 0.5
            ports[port] = (placed.x + (dx if right else -dx), placed.y + dy)
    return ports


def _placed_edge(
    route: _Route,
    ports: dict[_Port, tuple[float, float]],
    nodes: dict[str, PlacedNode],
    spans: list[tuple[float, float]],
) -> PlacedEdge:
    edge = route.edge
    turns = len(route.stops) == 1 and nodes[edge.tail].x == nodes[edge.head].x
    forward = nodes[edge.tail].x < nodes[edge.head].x
    points = [ports[edge.key, 0]]
    label = (0.0, 0.0)
    for at, stop in enumerate(route.stops):
        left, right = spans[stop.layer]
        middle = (left + right) / 2
        if turns:  # the label stands to the right of the bend
            points.append((left + _BEND, stop.y))
            label = (left + _BEND + 5.0 + label_width(edge) / 2, stop.y)
        elif stop.layer % 2 == 0:
            points += [(left, stop.y), (right, stop.y)] if forward else [(right, stop.y), (left, stop.y)]
        elif at == route.labelled:  # the line runs under its label
            label = (middle, stop.y - 2.0)
            under, half = stop.y + stop.below - 3.0, label_width(edge) / 2
            points += [(middle - half, under), (middle + half, under)][:: 1 if forward else -1]
        else:
            points.append((middle, stop.y))
    points.append(ports[edge.key, 1])
    return PlacedEdge(edge, tuple(points), turns, label)


def _placed_loop(edge: SceneEdge, placed: PlacedNode) -> PlacedEdge:
    dx = 0.36 * placed.rx
    dy = placed.ry * (1 - (dx / placed.rx) ** 2) ** 0.5
    y = placed.y - dy
    top = placed.y - placed.ry - LOOP
    label = (placed.x, top - LINE_HEIGHT * len(edge.label) / 2 + 1.0)
    return PlacedEdge(edge, ((placed.x - dx, y), (placed.x, top), (placed.x + dx, y)), True, label)
