"""The picture as SVG: a scene with the places that its layout gives it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from prefixguard.automata.picture.layout import LINE_HEIGHT, Layout, PlacedEdge, PlacedNode, Point, lay_out
from prefixguard.automata.picture.risk_levels import bounds_text
from prefixguard.automata.picture.scene import Scene, scene_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.wording import count_text, level_said, share_text
from prefixguard.results import ink_on

LINE = "#5c6673"
TEXT = "#1d2733"
PAPER = "#ffffff"
FONT = "Helvetica,Arial,sans-serif"

_MARGIN = 24.0
_HEAD = 66.0  # room for the headings of levels
_LEGEND_LINE = 16.0
_LEGEND_LETTER = 5.9
_ARROW = 7.0
_START = 30.0  # length of the arrow into the start
#: Transitions that the text beside a picture names.
_DESCRIBED = 20
#: Ground of the count of first alarms; white stands out from it, and it from every state.
_BADGE = "#1d2733"


def to_svg(summary: AutomatonSummary, *, collapsed: bool = False) -> bytes:
    """The automaton as an SVG document in UTF-8 that refers to nothing outside itself, one element a line.

    collapsed: levels of risk, not states. The same bytes for the same summary, everywhere.
    Groups have a class (node, edge, level, start, legend); a node's and an edge's id is its key in the scene.
    """
    scene = scene_of(summary, collapsed=collapsed)
    layout = lay_out(scene)
    width = max(layout.width, 420.0) + 2 * _MARGIN
    columns = int((width - 2 * _MARGIN) / _LEGEND_LETTER)
    legend = [(line, "bold") for said in scene.care for line in textwrap.wrap(f"Audit with care: {said}", columns)]
    legend += [(line, "") for said in scene.legend for line in textwrap.wrap(said, columns)]
    height = _HEAD + layout.height + 3 * _MARGIN + _LEGEND_LINE * len(legend)
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    name = quoteattr(f"Automaton {scene.name}: {count_text(len(scene.nodes), 'level' if scene.collapsed else 'state')}")
    about = "levels-text" if collapsed else "states-text"
    y = _HEAD + layout.height + 2 * _MARGIN + _LEGEND_LINE
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={name} aria-describedby="{about}"'
        f' font-family="{FONT}">',
        _tag("desc", _described(scene), id=about),
        _tag("rect", class_="paper", width=width, height=height, fill=PAPER),
        f'<g class="graph" transform="translate({_n(_MARGIN)} {_n(_MARGIN + _HEAD)})">',
        *_stripes(scene, layout),
        *(line for edge in reversed(layout.edges) for line in _edge_lines(edge, scene)),  # the busiest on top
        *(line for placed in layout.nodes for line in _node_lines(placed)),
        "</g>",
        '<g class="legend">',
        *(
            _tag("text", line, x=_MARGIN, y=y + at * _LEGEND_LINE, font_size=12, fill=TEXT, font_weight=weight)
            for at, (line, weight) in enumerate(legend)
        ),
        *("</g>", "</svg>", ""),
    ]
    return "\n".join(lines).encode()


def _described(scene: Scene) -> str:
    """What the picture shows, for those who cannot see it: nodes from the highest risk down, and the busiest ways."""
    nodes = sorted(scene.nodes, key=lambda node: (-node.risk, node.states))
    names = {node.key: node.spoken[0].lower() + node.spoken.split(",")[0][1:] for node in nodes}
    ways = [
        f"{names[edge.tail]} to {'itself' if edge.tail == edge.head else names[edge.head]} by {' '.join(edge.label)}, "
        f"{count_text(edge.count, 'time')}"
        for edge in scene.drawn[:_DESCRIBED]
    ]
    parts = ["From the highest risk down: " + "; ".join(node.spoken for node in nodes) + "."]
    if ways:
        parts.append(f"The {len(ways)} most frequent transitions: " + "; ".join(ways) + ".")
    return " ".join([*filter(None, [scene.verdict]), *parts, *scene.legend])


def _stripes(scene: Scene, layout: Layout) -> Iterator[str]:
    """A tinted ground for each level, with a heading in its colour."""
    for number, left, right in layout.stripes:
        level = scene.levels[number]
        x, width = left - 6, right - left + 12
        yield '<g class="level">'
        ground = {"height": layout.height + 16, "rx": 8, "fill": level.colour, "fill_opacity": "0.16"}
        yield _tag("rect", class_="ground", x=x, y=-8, width=width, **ground)
        heading = {"height": 50, "rx": 8, "fill": level.colour, "stroke": LINE, "stroke_width": 0.5}
        yield _tag("rect", x=x, y=-_HEAD, width=width, **heading)
        ink = {"font_weight": "bold", "fill": ink_on(level.colour)}
        part = f"said: {share_text(scene.said.get(number, 0.0))} of steps" if scene.said else ""
        lines = ((level_said(level.says), 12), (bounds_text(level, scene.risks).strip(), 11), (part, 10))
        for dy, (text, size) in zip((-51, -36, -22), lines, strict=True):
            yield _tag("text", text, x=(left + right) / 2, y=dy, text_anchor="middle", font_size=size, **ink)
        if number in scene.stateless_levels:
            for dy, text in enumerate(("no state", "has this as", "usual risk")):
                yield _tag(
                    "text", text, x=(left + right) / 2, y=14.0 + 12 * dy, text_anchor="middle", font_size=10, fill=TEXT
                )
        yield "</g>"


def _node_lines(placed: PlacedNode) -> Iterator[str]:
    node, x, y = placed.node, placed.x, placed.y
    yield f'<g class="node{" start" if node.start else ""}" id="{node.key}">'
    yield _tag("title", node.spoken)
    if node.start:
        yield from _start_arrow(placed)
        ring = {"cx": x, "cy": y, "rx": placed.rx + 4, "ry": placed.ry + 4, "fill": "none"}
        yield _tag("ellipse", class_="ring", **ring, stroke=TEXT, stroke_width=1)
    body = {"cx": x, "cy": y, "rx": placed.rx, "ry": placed.ry, "fill": node.colour, "stroke": TEXT}
    dashes = {"stroke_width": 1.8, "stroke_dasharray": "5 3"} if node.thin else {"stroke_width": 1}
    yield _tag("ellipse", class_="body", **body, **dashes)
    rows = [(node.title, 10.5, ""), (node.lines[0], 16.0, "bold"), *((line, 9.5, "") for line in node.lines[1:])]
    at = y - sum(size for _, size, _ in rows) * 1.08 / 2
    for text, size, weight in rows:
        at += size * 1.08
        look = {"text_anchor": "middle", "font_size": size, "font_weight": weight, "fill": node.ink}
        yield _tag("text", text, x=x, y=at - size * 0.2, **look)
    if sum(node.alarms):
        yield from _badge(placed)
    yield "</g>"


def _badge(placed: PlacedNode) -> Iterator[str]:
    """How many first alarms a node raised on test runs, at its upper right."""
    said = f"{sum(placed.node.alarms):,}"
    x, y, half = placed.x + 0.72 * placed.rx, placed.y - 0.72 * placed.ry, 4.0 + 3.4 * len(said)
    yield '<g class="badge">'
    yield _tag("rect", x=x - half, y=y - 8.0, width=2 * half, height=16, rx=8, fill=_BADGE, stroke=PAPER)
    look = {"text_anchor": "middle", "font_size": 11, "font_weight": "bold", "fill": PAPER}
    yield _tag("text", said, class_="count", x=x, y=y + 4.0, **look)
    yield "</g>"


def _start_arrow(placed: PlacedNode) -> Iterator[str]:
    """From the upper left into the start."""
    x, y = placed.x - 0.8 * (placed.rx + 4), placed.y - 0.6 * (placed.ry + 4)
    from_x, from_y = x - 0.8 * _START, y - 0.6 * _START
    yield _tag("path", d=f"M{_p(from_x, from_y)}L{_p(x, y)}", stroke=TEXT, stroke_width=2)
    yield _arrow_head((x, y), (0.8, 0.6), 2.0, TEXT)
    look = {"text_anchor": "middle", "font_size": 11, "font_weight": "bold", "fill": TEXT}
    yield _tag("text", "start", class_="word", x=from_x, y=from_y - 4, **look)


def _edge_lines(placed: PlacedEdge, scene: Scene) -> Iterator[str]:
    edge = placed.edge
    pen = 0.7 + (scene.widest_pen - 0.7) * edge.size
    path, heading = _loop(placed) if edge.tail == edge.head else _turn(placed) if placed.turns else _flow(placed)
    yield f'<g class="edge" id="{edge.key}">'
    yield _tag("path", d=path, fill="none", stroke=LINE, stroke_width=pen)
    yield _arrow_head(placed.points[-1], heading, pen, LINE)
    x, y = placed.label
    look = {"fill": TEXT, "stroke": PAPER, "stroke_width": 3, "paint_order": "stroke"}
    for number, line in enumerate(edge.label):
        at = y + (number - (len(edge.label) - 1) / 2) * LINE_HEIGHT + 3.2
        yield _tag("text", line, x=x, y=at, text_anchor="middle", font_size=10, **look)
    yield "</g>"


def _flow(placed: PlacedEdge) -> tuple[str, Point]:
    """A path that goes on from stop to stop; and where it points at its end."""
    (x, y), *between, (end_x, end_y) = placed.points
    parts = [f"M{_p(x, y)}"]
    forward = end_x > x
    for to_x, to_y in [*between, (end_x - (_ARROW if forward else -_ARROW), end_y)]:
        half = (to_x - x) / 2
        parts.append(f"L{_p(to_x, to_y)}" if y == to_y else f"C{_p(x + half, y, to_x - half, to_y, to_x, to_y)}")
        x, y = to_x, to_y
    return "".join(parts), (1.0 if forward else -1.0, 0.0)


def _turn(placed: PlacedEdge) -> tuple[str, Point]:
    """A path out to the right and back into the same column."""
    (x0, y0), (xm, ym), (x1, y1) = placed.points
    out, down, end = 0.7 * (xm - min(x0, x1)), (y1 - y0) / 4, x1 + _ARROW
    there = f"M{_p(x0, y0)}C{_p(x0 + out, y0, xm, ym - down, xm, ym)}"
    return f"{there}C{_p(xm, ym + down, end + out, y1, end, y1)}", (-1.0, 0.0)


def _loop(placed: PlacedEdge) -> tuple[str, Point]:
    """A path over the node and back into it."""
    (x0, y0), (_, top), (x1, y1) = placed.points
    control = top - (y0 - top) * 0.3
    return f"M{_p(x0, y0)}C{_p(x0, control, x1, control, x1, y1 - _ARROW)}", (0.0, 1.0)


def _arrow_head(tip: Point, heading: Point, pen: float, colour: str) -> str:
    """A filled triangle that ends at `tip`."""
    (x, y), (dx, dy) = tip, heading
    half = 2.6 + 0.7 * pen
    back_x, back_y = x - dx * (_ARROW + 1), y - dy * (_ARROW + 1)
    corners = [(x, y), (back_x - dy * half, back_y + dx * half), (back_x + dy * half, back_y - dx * half)]
    return _tag("polygon", points=" ".join(f"{_n(a)},{_n(b)}" for a, b in corners), fill=colour)


def _tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; floats with one decimal, and empty attributes left out. In names, _ stands for -."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value != ""}
    written = "".join(f' {key}="{_n(value) if isinstance(value, float) else value}"' for key, value in given.items())
    return f"<{name}{written}>{escape(content)}</{name}>" if content else f"<{name}{written}/>"


def _p(*values: float) -> str:
    return " ".join(map(_n, values))


def _n(value: float) -> str:
    """A coordinate with one decimal, without a zero after the point."""
    return f"{value:.1f}".removesuffix(".0")
