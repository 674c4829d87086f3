"""What is drawn of an automaton, before anything has a place: nodes, edges, levels of risk and a legend.

SVG, DOT and the page draw the same scene. A node is a state, or in the collapsed scene a level of risk with all of its
states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from prefixguard.automata.picture.edge_names import edge_names
from prefixguard.automata.picture.risk_levels import (
    RiskLevel,
    level_of,
    level_text,
    range_said,
    risk_levels,
    risk_said,
    said_shares,
)
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.state_figures import THIN_RUNS, StateFigures, state_figures
from prefixguard.automata.summary.wording import RiskWords, count_text, level_said, one_line, share_text
from prefixguard.bundle import UNSEEN
from prefixguard.results import colour_of, ink_on

#: Automata of more states than this are shown collapsed first.
MANY_STATES = 60
#: Edges are drawn, busiest first, until they carry this share of all steps.
DRAWN_SHARE = 0.95
#: No more edges than these, and these a node; the busiest of each node into it and out of it are drawn in any case.
DRAWN_ANYWAY = 12
DRAWN_A_NODE = 3
#: Up to this many nodes there is room for thick lines and wide gaps.
FEW_NODES = 20
#: Up to this many nodes an edge names two glosses, else one.
ROOMY = 12


@dataclass(frozen=True, slots=True)
class SceneNode:
    """A state, or a level with its states.

    key: "s5" or "l3", also in SVG and page. states: what it stands for. title, lines: the label, title the name of it,
    the first line the risk. risk: of the outcome; with a clock the one that its steps usually read (`StateFigures`).
    level: of this risk, a number in the scene's levels; shade: where its colour stands on the scale, None of a start
    that no step ends in: it has no reading and no colour. size: 0 (no traffic) to 1 (the most of any node). alarms:
    first alarms that it raised on test runs, on failed and on successful ones.
    """

    key: str
    states: tuple[int, ...]
    title: str
    lines: tuple[str, ...]
    spoken: str
    level: int
    risk: float
    visits: int
    size: float
    thin: bool
    start: bool
    shade: float | None
    alarms: tuple[int, int]

    @property
    def colour(self) -> str:
        """Colour of its level, "#rrggbb"; white where it has none."""
        return "#ffffff" if self.shade is None else colour_of(self.shade)

    @property
    def ink(self) -> str:
        """Colour of text on it."""
        return ink_on(self.colour)


@dataclass(frozen=True, slots=True)
class SceneEdge:
    """All transitions between the same two nodes.

    tail, head: keys of nodes. symbols: each symbol with how often it was taken, busiest first. label: lines, top
    glosses and how many more. size: 0 to 1 as for nodes. drawn: whether the picture shows it; the page lists all.
    """

    key: str
    tail: str
    head: str
    count: int
    symbols: tuple[tuple[int, int], ...]
    label: tuple[str, ...]
    size: float
    drawn: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is drawn.

    said: of levels, the share of test steps, see `said_shares`; empty without test runs. legend: sentences; care: those
    that ask to audit with care. verdict: what the automaton is good for.
    """

    name: str
    nodes: tuple[SceneNode, ...]
    edges: tuple[SceneEdge, ...]
    levels: tuple[RiskLevel, ...]
    said: dict[int, float]
    legend: tuple[str, ...]
    care: tuple[str, ...]
    verdict: str
    collapsed: bool
    risks: RiskWords

    @property
    def widest_pen(self) -> float:
        """Width of the busiest edge's line, in pixels; thinner where many lines run."""
        return 5.0 if len(self.nodes) <= FEW_NODES else 3.0

    @property
    def drawn(self) -> tuple[SceneEdge, ...]:
        """The edges that the picture shows."""
        return tuple(edge for edge in self.edges if edge.drawn)

    @property
    def used_levels(self) -> tuple[int, ...]:
        """Numbers of the levels that hold a node, lowest first."""
        return tuple(sorted({node.level for node in self.nodes}))

    @property
    def stateless_levels(self) -> tuple[int, ...]:
        """Numbers of the levels above all of these that it says at some steps, lowest first."""
        return tuple(number for number in sorted(self.said) if number > self.used_levels[-1])


def scene_of(summary: AutomatonSummary, *, collapsed: bool = False) -> Scene:
    """The scene of all states, or with `collapsed` of the levels of risk."""
    figures = figures_of(summary)
    levels = risk_levels(summary.watch, summary.alarm)
    said = said_shares(summary.said, levels)
    nodes = _nodes(summary, figures, levels, said if collapsed else None)
    scene = Scene(
        name=one_line(summary.name, 80),
        nodes=nodes,
        edges=_edges(summary, nodes),
        levels=levels,
        said=said,
        legend=(),
        verdict=one_line(summary.verdict, 900),
        care=tuple(one_line(sentence, 400) for sentence in summary.fidelity.care),
        collapsed=collapsed,
        risks=summary.risks,
    )
    return replace(scene, legend=tuple(_legend(summary, scene)))


def figures_of(summary: AutomatonSummary) -> tuple[StateFigures, ...]:
    """Figures of each state, over all runs that were read."""
    return state_figures(summary.automaton, summary.cells, summary.base)


def columns_of(scene: Scene) -> list[list[SceneNode]]:
    """Nodes by level and, where a level has many, by risk within it; lowest risk first."""
    most = max(3, min(9, round((1.6 * len(scene.nodes)) ** 0.5)))
    columns = []
    for level in scene.used_levels:
        nodes = sorted((node for node in scene.nodes if node.level == level), key=lambda node: node.risk)
        parts = -(-len(nodes) // most)
        size = -(-len(nodes) // parts)
        columns += [nodes[at : at + size] for at in range(0, len(nodes), size)]
    return columns


def _nodes(
    summary: AutomatonSummary,
    figures: tuple[StateFigures, ...],
    levels: tuple[RiskLevel, ...],
    said: dict[int, float] | None,
) -> tuple[SceneNode, ...]:
    """One node for each state; with shares of test steps by level, one for each level that holds states, at the mean of
    their risks."""
    words, members = summary.risks, dict[int, list[StateFigures]]()
    for state in figures:
        members.setdefault(state.state if said is None else level_of(state.usual, levels), []).append(state)
    raised = {one.state: (one.failed, one.successful) for one in summary.ranked}
    traffic = {number: sum(state.visits for state in group) for number, group in members.items()}
    most, total = max(*traffic.values(), 1), max(sum(traffic.values()), 1)
    nodes = []
    for number, group in sorted(members.items()):
        read = [state for state in group if state.entered] or group
        risks, visits = [state.usual for state in read], [state.visits for state in read]
        risk = float(np.average(risks, weights=visits if any(visits) else None)) if len(read) > 1 else risks[0]
        start = any(state.state == summary.automaton.start for state in group)
        if said is not None:
            lines = [risk_said(risk, words), range_said(min(risks), max(risks), words)]
            lines.append(f"{share_text(sum(visits) / total)} of training steps")
            title = count_text(len(group), "state")
            name = f"Level {level_text(levels[number], words)}"
            also = [f"said on {share_text(said.get(number, 0.0))} of test steps"] if said else []
            ended = f"in which {lines[2]} end"
            spoken = ", ".join([name, f"{title} {ended}", f"mean outcome risk {lines[0]}", *also])
        else:
            title, (lines, spoken) = str(number), _state_label(group[0], start, words)
        failed, successful = (sum(raised.get(state.state, (0, 0))[at] for state in group) for at in (0, 1))
        if failed or successful:
            spoken += f", {count_text(failed + successful, 'first alarm')} on test runs, {failed:,} of them failed"
        nodes.append(
            SceneNode(
                key=f"{'s' if said is None else 'l'}{number}",
                states=tuple(state.state for state in group),
                title=title,
                lines=tuple(lines),
                spoken=spoken,
                level=level_of(risks[0], levels),
                risk=risk,
                visits=sum(visits),
                size=math.sqrt(sum(visits) / most),
                thin=all(state.thin for state in group),
                start=start,
                shade=levels[level_of(risks[0], levels)].shade if read[0].entered else None,
                alarms=(failed, successful),
            )
        )
    return tuple(nodes)


def _state_label(state: StateFigures, start: bool, words: RiskWords) -> tuple[list[str], str]:
    """The lines of a state's label, and the state in a sentence."""
    if not state.entered:
        return ["start"], f"State {state.state}, start, before the first step and so without a risk"
    lines = [risk_said(state.usual, words), RiskWords().range(state.low, state.high)]
    risk = f"outcome risk {lines[0]}, interval {lines[1]}"
    if len(state.by_clock) > 1:
        said = range_said(state.least, state.peak, words)
        lines.append(f"clock {state.usually}{said}")
        by_clock = f"from {said.replace('–', ' to ')}" if "–" in said else said
        risk = f"usual {risk}, by the clock {state.usually}{by_clock}"
    parts = [f"State {state.state}", "start" if start else "", risk, f"{share_text(state.share)} of steps"]
    return lines, ", ".join(filter(None, [*parts, "thin evidence" if state.thin else ""]))


def _edges(summary: AutomatonSummary, nodes: tuple[SceneNode, ...]) -> tuple[SceneEdge, ...]:
    """Transitions joined by their two nodes, busiest first."""
    node_of = {state: node.key for node in nodes for state in node.states}
    names = edge_names([entry.gloss for entry in summary.entries])
    joined: dict[tuple[str, str], dict[int, int]] = {}
    automaton = summary.automaton
    for state, symbol in np.argwhere(automaton.transitions != UNSEEN).tolist():
        ends = node_of[state], node_of[int(automaton.transitions[state, symbol])]
        counts = joined.setdefault(ends, {})
        counts[symbol] = counts.get(symbol, 0) + int(automaton.edges[state, symbol])
    place = {node.key: at for at, node in enumerate(nodes)}
    order = sorted(joined, key=lambda ends: (-sum(joined[ends].values()), place[ends[0]], place[ends[1]]))
    most = max((sum(counts.values()) for counts in joined.values()), default=0) or 1
    drawn = _drawn([(tail, head, sum(joined[tail, head].values())) for tail, head in order], len(nodes))
    edges = []
    for ends in order:
        symbols = sorted(joined[ends].items(), key=lambda pair: (-pair[1], pair[0]))
        count = sum(number for _, number in symbols)
        edges.append(
            SceneEdge(
                key=f"{ends[0]}-{ends[1]}",
                tail=ends[0],
                head=ends[1],
                count=count,
                symbols=tuple(symbols),
                label=_label(names, [symbol for symbol, _ in symbols], roomy=len(nodes) <= ROOMY),
                size=math.sqrt(count / most),
                drawn=ends in drawn,
            )
        )
    return tuple(edges)


def _drawn(edges: list[tuple[str, str, int]], n_nodes: int) -> set[tuple[str, str]]:
    """Which edges the picture shows; `edges` are tail, head and count, busiest first."""
    total = sum(count for *_, count in edges)
    shown: set[tuple[str, str]] = set()
    carried = 0
    left, entered = set(), set()
    for tail, head, count in edges:
        wanted = count > 0 and carried < DRAWN_SHARE * total and len(shown) < DRAWN_ANYWAY + DRAWN_A_NODE * n_nodes
        if tail != head:  # no state may hang in the air: the busiest way in and out is always there
            wanted = wanted or tail not in left or head not in entered
        if wanted:
            shown.add((tail, head))
            carried += count
            if tail != head:
                left.add(tail)
                entered.add(head)
    return shown


def _label(names: tuple[tuple[str, ...], ...], symbols: list[int], *, roomy: bool) -> tuple[str, ...]:
    top = 2 if roomy else 1
    lines = [line for symbol in symbols[:top] for line in names[symbol]]
    if len(symbols) > top:
        lines.append(f"and {len(symbols) - top:,} more")
    return tuple(lines)


def _legend(summary: AutomatonSummary, scene: Scene) -> Iterator[str]:
    collapsed, risks, drawn = scene.collapsed, scene.risks, scene.drawn
    clock = len(summary.automaton.clock) + 1 if summary.automaton.clock else 0
    usual = "usual outcome risk" if clock else "outcome risk"
    inside = f"the mean {usual} of its states, and from the lowest to the highest of them"
    inside += ", and the share of training steps that end in them"
    if not collapsed:
        inside = f"its number, its {usual} and the 90 % interval"
        inside += ", and from its lowest to its highest risk over the clock" if clock else ""
    watch, alarm = summary.watch, summary.alarm
    thresholds = f"WATCH above {risks.risk(watch)}, " if alarm is None or watch < alarm else ""
    thresholds += f"ALARM above {risks.risk(alarm)}" if alarm is not None else "no alarm threshold"
    yield f"Colour and column: {usual} (probability that the run fails); {thresholds}."
    yield f"In a {'level' if collapsed else 'state'}: {inside}. Size and line width: how many training steps."
    if any(sum(node.alarms) for node in scene.nodes):
        by_clock = ", and by the clock one under no alarm may raise many" * (clock > 0)
        said = "Dark badge: how many test runs had their first alarm there. A state without one raised none"
        yield f"{said}, whatever its colour{by_clock}."
    if summary.said:
        shares = ", ".join(
            f"{level_said(level)} on {share_text(part)}" for level, part in summary.performance.said.items()
        )
        yield (
            f"On test runs it says {shares} of steps. The share over a column is that of the test steps at"
            " which it says this level, in whatever state: an alarm that stays on counts under ALARM, whatever the risk"
            " is by then."
        )
    if clock:
        yield (
            f"A clock runs beside the automaton: the same state means another risk in each of {clock} ranges of steps."
            " A state stands at its usual risk: the median over the steps that runs made there; it may say more at some"
            " time in a run, and less at another. Ranges of steps in which no held-out run was there do not count;"
            " where they say another risk than the rest, the rest is what it says usually."
            " Neighbouring ranges that runs do not tell apart have one risk, from the held-out runs of all of them."
        )
    if not collapsed:
        yield (
            "A risk at the end of its interval: the few held-out runs there did otherwise than training runs, to whose"
            " risk it leans."
        )
        yield (
            f"Dashed outline: evidence of fewer than {THIN_RUNS} runs{' in every range of steps' if clock else ''}, or"
            " borrowed from the nearest state."
        )
    if len(drawn) < len(scene.edges):
        shown, total = (sum(edge.count for edge in edges) for edges in (drawn, scene.edges))
        yield (
            f"{len(drawn):,} of {len(scene.edges):,} connections are drawn; they carry"
            f" {share_text(shown / max(total, 1))} of all steps. The rarer ones are left out of the drawing, not of the"
            " automaton."
        )
    rest = [number for number in scene.said if number not in scene.used_levels]
    if rest:  # with them all shares of steps add up
        parts = (f"{level_text(scene.levels[number], risks)} at {share_text(scene.said[number])}" for number in rest)
        yield f"Levels that it says though no state stands there: {', '.join(parts)} of test steps."
