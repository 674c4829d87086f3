"""The scene in the DOT language, for `dot` and every other reader of it."""

from __future__ import annotations

import textwrap

import graphviz

from prefixguard.automata.atlas import Atlas
from prefixguard.automata.picture.levels import ink_on
from prefixguard.automata.picture.scene import FEW_NODES, Edge, Node, Scene, columns_of, level_text, scene_of

_FONT = "Helvetica,Arial,sans-serif"
_LINE = "#5c6673"
_TEXT = "#1d2733"
#: Columns that the legend is wrapped to.
_WIDTH = 120


def to_dot(atlas: Atlas, *, collapsed: bool = False) -> str:
    """The automaton as a DOT digraph, or with `collapsed` its levels of risk; the same text for the same atlas."""
    return dot_of(scene_of(atlas, collapsed=collapsed))


def dot_of(scene: Scene) -> str:
    """The scene as a DOT digraph.

    One rank a level of risk, lowest left, held by a chain of headings; transitions do not move ranks, so that a place
    from left to right always means a risk.
    """
    graph = graphviz.Digraph("automaton")
    graph.attr(
        "graph",
        rankdir="LR",
        label=_escaped("\n".join(_legend(scene)), align="l"),
        labelloc="b",
        labeljust="l",
        fontname=_FONT,
        fontsize="11",
        fontcolor=_TEXT,
        bgcolor="#ffffff",
        # Room is given to passing lines too: with many of them the drawing would get too tall.
        nodesep="0.35" if len(scene.nodes) <= FEW_NODES else "0.12",
        ranksep="1.1",
        pad="0.3",
    )
    graph.attr("node", fontname=_FONT, fontsize="11", color=_LINE, fontcolor=_TEXT)
    graph.attr("edge", fontname=_FONT, fontsize="9", color=_LINE, fontcolor=_TEXT, arrowsize="0.7")
    columns = columns_of(scene)
    rank_of = {node.key: number for number, column in enumerate(columns) for node in column}
    for number, column in enumerate(columns):
        with graph.subgraph() as rank:
            rank.attr(rank="same")
            _heading(rank, number, columns, scene)
            for node in column:
                _node(rank, node)
    for number in range(1, len(columns)):
        graph.edge(f"column{number - 1}", f"column{number}", style="invis", weight="100")
    for edge in scene.drawn:
        turns = edge.tail != edge.head and rank_of[edge.tail] == rank_of[edge.head]
        _edge(graph, edge, 0.6 + (scene.widest_pen - 0.6) * edge.size, turns=turns)
    text: str = graph.source
    return text


def _heading(rank: graphviz.Digraph, number: int, columns: list[list[Node]], scene: Scene) -> None:
    """The node that holds a column's rank: it names the level where a level begins, and is not seen elsewhere."""
    level = columns[number][0].level
    if number and columns[number - 1][0].level == level:
        rank.node(f"column{number}", label="", shape="point", style="invis")
        return
    band = scene.levels[level]
    look = {
        "shape": "box",
        "style": "filled",
        "fillcolor": band.colour,
        "fontcolor": ink_on(band.colour),
        "class": "level",
    }
    label = _escaped(level_text(band).replace(" ", "\n"))
    rank.node(f"column{number}", label=label, fontsize="12", width="1.1", **look)


def _node(graph: graphviz.Digraph, node: Node) -> None:
    # Labels of states hold numbers alone: nothing in them needs escaping for the markup of DOT.
    small = "".join(f'<BR/><FONT POINT-SIZE="9">{line}</FONT>' for line in node.lines[1:])
    label = (
        f'<<FONT POINT-SIZE="10">{node.title}</FONT><BR/><B><FONT POINT-SIZE="15">{node.lines[0]}</FONT></B>{small}>'
    )
    # A node of its own for the word, with an arrow, would end up anywhere in the column before: `dot` has no way to say
    # that two nodes belong side by side. An outer label always stands at its node.
    start = {"xlabel": f'<<FONT COLOR="{_TEXT}"><B>start</B></FONT>>'} if node.start else {}
    height = 0.72 + 0.16 * max(len(node.lines) - 2, 0) + 0.55 * node.size
    graph.node(
        node.key,
        label=label,
        id=node.key,
        shape="ellipse",
        style="filled,dashed" if node.thin else "filled",
        fillcolor=node.colour,
        fontcolor=node.ink,
        color=_TEXT,
        penwidth="1.6" if node.thin else "1",
        width=f"{1.3 * height:.2f}",
        height=f"{height:.2f}",
        peripheries="2" if node.start else "1",
        **start,
        **{"class": "start" if node.start else "node"},
    )


def _edge(graph: graphviz.Digraph, edge: Edge, pen: float, *, turns: bool) -> None:
    """One connection. turns: whether it stays in its column; then its label is set afterwards, for `dot` gives no room
    to labels inside a rank. (Ports would bend such connections out of the way, but with ports the same text comes back
    with another picture from time to time.)"""
    graph.edge(
        edge.tail,
        edge.head,
        id=edge.key,
        penwidth=f"{pen:.2f}",
        constraint="false",
        **{"xlabel" if turns else "label": _escaped("\n".join(edge.label)), "class": "edge"},
    )


def _legend(scene: Scene) -> list[str]:
    care = [f"Audit with care: {sentence}" for sentence in scene.care]
    title = f"{scene.name}: {'levels of risk' if scene.collapsed else 'states'}"
    return [line for text in (title, *care, *scene.legend) for line in textwrap.wrap(text, _WIDTH)]


def _escaped(text: str, align: str = "n") -> str:
    """Plain text as a DOT label; align: "n" lines centred, "l" to the left."""
    lines = str(graphviz.escape(text)).split("\n")
    joined = f"\\{align}".join(lines) + (f"\\{align}" if align == "l" else "")
    # Without the mark, text that stands in angle brackets would be taken for markup of DOT.
    label: str = graphviz.nohtml(joined)
    return label
