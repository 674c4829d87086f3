"""The picture as SVG: a scene with the places that its layout gives it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from prefixguard.automata.picture.layout import LINE_HEIGHT, Layout, PlacedEdge, PlacedNode, lay_out
from prefixguard.automata.picture.scene import Scene, level_text, scene_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.wording import count_text
from prefixguard.results import ink_on

LINE = "#5c6673"
TEXT = "#1d2733"
PAPER = "#ffffff"
FONT = "Helvetica,Arial,sans-serif"

_MARGIN = 24.0
_HEAD = 52.0  # room for the headings of levels
_LEGEND_LINE = 16.0
_LEGEND_LETTER = 5.9
_ARROW = 7.0
_START = 30.0  # length of the arrow into the start


def to_svg(summary: AutomatonSummary, *, collapsed: bool = False) -> bytes:
    """The automaton as an SVG document in UTF-8 that refers to nothing outside itself, one element a line.

    collapsed: levels of risk, not states. The same bytes for the same summary, everywhere.
    Groups have a class (node, edge, level, start, legend); a node's and an edge's id is its key in the scene.
    """
    scene = scene_of(summary, collapsed=collapsed)
    layout = lay_out(scene)
    width = max(layout.width, 420.0) + 2 * _MARGIN
    legend = list(_legend_lines(scene, columns=int((width - 2 * _MARGIN) / _LEGEND_LETTER)))
    height = _HEAD + layout.height + 3 * _MARGIN + _LEGEND_LINE * len(legend)
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    name = quoteattr(f"Automaton {scene.name}: {count_text(len(scene.nodes), 'level' if scene.collapsed else 'state')}")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={name} font-family="{FONT}">',
        f'<rect class="paper" width="{_n(width)}" height="{_n(height)}" fill="{PAPER}"/>',
        f'<g class="graph" transform="translate({_n(_MARGIN)} {_n(_MARGIN + _HEAD)})">',
        *_stripes(scene, layout),
        *(line for edge in reversed(layout.edges) for line in _edge_lines(edge, scene)),  # the busiest on top
        *(line for placed in layout.nodes for line in _node_lines(placed)),
        "</g>",
        '<g class="legend">',
    ]
    y = _HEAD + layout.height + 2 * _MARGIN + _LEGEND_LINE
    for number, (line, strong) in enumerate(legend):
        weight = ' font-weight="bold"' if strong else ""
        at = y + number * _LEGEND_LINE
        lines.append(f'<text x="{_n(_MARGIN)}" y="{_n(at)}" font-size="12" fill="{TEXT}"{weight}>{escape(line)}</text>')
    lines += ["</g>", "</svg>", ""]
    return "\n".join(lines).encode()


def _legend_lines(scene: Scene, *, columns: int) -> Iterator[tuple[str, bool]]:
    """Lines of the legend and whether they are bold."""
    for sentence in scene.care:
        yield from ((line, True) for line in textwrap.wrap(f"Audit with care: {sentence}", columns))
    for sentence in scene.legend:
        yield from ((line, False) for line in textwrap.wrap(sentence, columns))


def _stripes(scene: Scene, layout: Layout) -> Iterator[str]:
    """A tinted ground for each level, with a heading in its colour."""
    for stripe in layout.stripes:
        level = scene.levels[stripe.level]
        left, width = _n(stripe.left - 6), _n(stripe.right - stripe.left + 12)
        middle = _n((stripe.left + stripe.right) / 2)
        yield '<g class="level">'
        yield (
            f'<rect class="ground" x="{left}" y="-8" width="{width}" height="{_n(layout.height + 16)}" rx="8"'
            f' fill="{level.colour}" fill-opacity="0.16"/>'
        )
        yield (
            f'<rect x="{left}" y="{_n(-_HEAD)}" width="{width}" height="36" rx="8" fill="{level.colour}"'
            f' stroke="{LINE}" stroke-width="0.5"/>'
        )
        for dy, text, size in ((-37, level.says, 12), (-22, level_text(level).split(" ", 1)[1], 11)):
            yield (
                f'<text x="{middle}" y="{dy}" text-anchor="middle" font-size="{size}" font-weight="bold"'
                f' fill="{ink_on(level.colour)}">{text}</text>'
            )
        yield "</g>"


def _node_lines(placed: PlacedNode) -> Iterator[str]:
    node = placed.node
    x, y = _n(placed.x), placed.y
    dashes = ' stroke-width="1.8" stroke-dasharray="5 3"' if node.thin else ' stroke-width="1"'
    yield f'<g class="node{" start" if node.start else ""}" id="{node.key}">'
    yield f"<title>{escape(node.spoken)}</title>"
    if node.start:
        yield from _start_arrow(placed)
        yield (
            f'<ellipse class="ring" cx="{x}" cy="{_n(y)}" rx="{_n(placed.rx + 4)}" ry="{_n(placed.ry + 4)}" fill="none"'
            f' stroke="{TEXT}" stroke-width="1"/>'
        )
    yield (
        f'<ellipse class="body" cx="{x}" cy="{_n(y)}" rx="{_n(placed.rx)}" ry="{_n(placed.ry)}" fill="{node.colour}"'
        f' stroke="{TEXT}"{dashes}/>'
    )
    rows = [(node.title, 10.5, ""), (node.lines[0], 16.0, ' font-weight="bold"')]
    rows += [(line, 9.5, "") for line in node.lines[1:]]
    at = y - sum(size for _, size, _ in rows) * 1.08 / 2
    for text, size, weight in rows:
        at += size * 1.08
        yield (
            f'<text x="{x}" y="{_n(at - size * 0.2)}" text-anchor="middle" font-size="{size:g}"{weight}'
            f' fill="{node.ink}">{escape(text)}</text>'
        )
    yield "</g>"


def _start_arrow(placed: PlacedNode) -> Iterator[str]:
    """From the upper left into the start."""
    dx, dy = 0.8 * (placed.rx + 4), 0.6 * (placed.ry + 4)
    x, y = placed.x - dx, placed.y - dy
    yield f'<path d="M{_n(x - 0.8 * _START)} {_n(y - 0.6 * _START)}L{_n(x)} {_n(y)}" stroke="{TEXT}" stroke-width="2"/>'
    yield _arrow_head((x, y), (0.8, 0.6), 2.0, TEXT)
    at = f'x="{_n(x - 0.8 * _START)}" y="{_n(y - 0.6 * _START - 4)}"'
    yield (f'<text class="word" {at} text-anchor="middle" font-size="11" font-weight="bold" fill="{TEXT}">start</text>')


def _edge_lines(placed: PlacedEdge, scene: Scene) -> Iterator[str]:
    edge = placed.edge
    pen = 0.7 + (scene.widest_pen - 0.7) * edge.size
    path, heading = _loop(placed) if edge.tail == edge.head else _turn(placed) if placed.turns else _flow(placed)
    yield f'<g class="edge" id="{edge.key}">'
    yield f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="{_n(pen)}"/>'
    yield _arrow_head(placed.points[-1], heading, pen, LINE)
    x, y = placed.label
    for number, line in enumerate(edge.label):
        at = y + (number - (len(edge.label) - 1) / 2) * LINE_HEIGHT + 3.2
        yield (
            f'<text x="{_n(x)}" y="{_n(at)}" text-anchor="middle" font-size="10" fill="{TEXT}" stroke="{PAPER}"'
            f' stroke-width="3" paint-order="stroke">{escape(line)}</text>'
        )
    yield "</g>"


def _flow(placed: PlacedEdge) -> tuple[str, tuple[float, float]]:
    """A path that goes on from stop to stop; and where it points at its end."""
    (x, y), *rest = placed.points
    parts = [f"M{_n(x)} {_n(y)}"]
    forward = placed.points[-1][0] > placed.points[0][0]
    *between, (end_x, end_y) = rest
    back = _ARROW if forward else -_ARROW
    for to_x, to_y in [*between, (end_x - back, end_y)]:
        if y == to_y:
            parts.append(f"L{_n(to_x)} {_n(to_y)}")
        else:
            half = (to_x - x) / 2
            parts.append(f"C{_n(x + half)} {_n(y)} {_n(to_x - half)} {_n(to_y)} {_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
    return "".join(parts), (1.0 if forward else -1.0, 0.0)


def _turn(placed: PlacedEdge) -> tuple[str, tuple[float, float]]:
    """A path out to the right and back into the same column."""
    (x0, y0), (xm, ym), (x1, y1) = placed.points
    out = 0.7 * (xm - min(x0, x1))
    down = (y1 - y0) / 4
    x1 += _ARROW
    path = (
        f"M{_n(x0)} {_n(y0)}C{_n(x0 + out)} {_n(y0)} {_n(xm)} {_n(ym - down)} {_n(xm)} {_n(ym)}"
        f"C{_n(xm)} {_n(ym + down)} {_n(x1 + out)} {_n(y1)} {_n(x1)} {_n(y1)}"
    )
    return path, (-1.0, 0.0)


def _loop(placed: PlacedEdge) -> tuple[str, tuple[float, float]]:
    """A path over the node and back into it."""
    (x0, y0), (_, top), (x1, y1) = placed.points
    control = top - (y0 - top) * 0.3
    return f"M{_n(x0)} {_n(y0)}C{_n(x0)} {_n(control)} {_n(x1)} {_n(control)} {_n(x1)} {_n(y1 - _ARROW)}", (0.0, 1.0)


def _arrow_head(tip: tuple[float, float], heading: tuple[float, float], pen: float, colour: str) -> str:
    """A filled triangle that ends at `tip`."""
    (x, y), (dx, dy) = tip, heading
    half = 2.6 + 0.7 * pen
    back_x, back_y = x - dx * (_ARROW + 1), y - dy * (_ARROW + 1)
    corners = [(x, y), (back_x - dy * half, back_y + dx * half), (back_x + dy * half, back_y - dx * half)]
    return f'<polygon points="{" ".join(f"{_n(a)},{_n(b)}" for a, b in corners)}" fill="{colour}"/>'


def _n(value: float) -> str:
    """A coordinate with one decimal, without a zero after the point."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
