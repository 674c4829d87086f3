"""The scene in the DOT language, a plain export for Graphviz and every other reader of it.

A picture of it is drawn where a person asks for one, with `dot -Tsvg automaton.dot`; the pictures that are written
beside it need no Graphviz.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from prefixguard.automata.picture.risk_levels import bounds_text
from prefixguard.automata.picture.scene import Scene, SceneNode, columns_of, scene_of
from prefixguard.automata.picture.svg import FONT, LINE, TEXT
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.wording import count_text, level_said
from prefixguard.results import ink_on

_WIDTH = 120  # columns that the legend is wrapped to


def to_dot(summary: AutomatonSummary) -> str:
    """The automaton as a DOT digraph; the same text for the same summary.

    One rank a column of the picture, lowest risk left, held by a chain of headings; transitions do not move ranks, so
    that a place from left to right always means a risk.
    """
    return "".join(("digraph automaton {\n", *(f"  {line};\n" for line in _lines(scene_of(summary))), "}\n"))


def _lines(scene: Scene) -> Iterator[str]:
    care = [f"Audit with care: {sentence}" for sentence in scene.care]
    legend = [line for text in (f"{scene.name}: states", *care, *scene.legend) for line in textwrap.wrap(text, _WIDTH)]
    look = {"fontname": FONT, "fontcolor": TEXT}
    yield "graph" + _attributes(label=_label(legend, "\\l"), labelloc="b", labeljust="l", fontsize=11, **look)
    yield "graph" + _attributes(rankdir="LR", bgcolor="white", nodesep=0.25, ranksep=1.1, pad=0.3)
    yield "node" + _attributes(fontsize=11, color=TEXT, **look)
    yield "edge" + _attributes(fontsize=9, color=LINE, arrowsize=0.7, **look)
    columns = columns_of(scene)
    for number, column in enumerate(columns):
        heading = {"label": "", "shape": "point", "style": "invis"}
        if number == 0 or columns[number - 1][0].level != column[0].level:  # a level begins here: it is named
            level = scene.levels[column[0].level]
            colours = {"fillcolor": level.colour, "fontcolor": ink_on(level.colour)}
            heading = {
                "label": _label([level_said(level.says), bounds_text(level, scene.risks).strip()]),
                "shape": "box",
                "style": "filled",
                **colours,
            }
        yield f"column{number}" + _attributes(**heading, **{"class": "level"})
        yield from (node.key + _node(node) for node in column)
        yield "{rank=same; " + "; ".join([f"column{number}", *(node.key for node in column)]) + "}"
        if number:
            yield f"column{number - 1} -> column{number}" + _attributes(style="invis", weight=100)
    column_of = {node.key: number for number, column in enumerate(columns) for node in column}
    for edge in scene.drawn:
        # `dot` gives no room to labels inside a rank: there they are set afterwards.
        turns = edge.tail != edge.head and column_of[edge.tail] == column_of[edge.head]
        label = {"xlabel" if turns else "label": _label(edge.label)}
        pen = f"{0.6 + (scene.widest_pen - 0.6) * edge.size:.2f}"
        said = _attributes(id=edge.key, penwidth=pen, constraint="false", **label, **{"class": "edge"})
        yield f"{edge.tail} -> {edge.head}{said}"


def _node(node: SceneNode) -> str:
    badge = (count_text(sum(node.alarms), "first alarm"),) if sum(node.alarms) else ()
    height = 0.72 + 0.16 * max(len(node.lines) + len(badge) - 2, 0) + 0.55 * node.size
    return _attributes(
        id=node.key,
        label=_label((node.title, *node.lines, *badge)),
        style="filled,dashed" if node.thin else "filled",
        fillcolor=node.colour,
        fontcolor=node.ink,
        width=f"{1.3 * height:.2f}",
        height=f"{height:.2f}",
        **({"peripheries": 2, "xlabel": "start"} if node.start else {}),
        **{"class": "start" if node.start else "node"},
    )


def _attributes(**values: object) -> str:
    """A list of attributes; every value is quoted, so that none is taken for markup."""
    return " [" + ", ".join(f'{name}="{value}"' for name, value in values.items()) + "]"


def _label(lines: Iterable[str], end: str = "\\n") -> str:
    r"""Plain text as the content of a quoted label. end: the escape after a line, \n to centre it, \l for the left."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines]
    return end.join(escaped) + (end if end == "\\l" else "")
