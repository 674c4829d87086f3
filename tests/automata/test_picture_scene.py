"""What is drawn: states or levels, joined connections, and which of them are left out."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from invented_summary import invented_summary

from prefixguard.automata.picture.edge_names import LINE_LETTERS, edge_names
from prefixguard.automata.picture.layout import LINE_HEIGHT, label_width, lay_out
from prefixguard.automata.picture.scene import Scene, columns_of, figures_of, level_of, scene_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.bundle import UNSEEN

SIZES = [(1, 3), (12, 12), (64, 16), (150, 32)]


@pytest.fixture(scope="module", params=SIZES, ids=[f"{n} states" for n, _ in SIZES])
def summary(request: pytest.FixtureRequest) -> AutomatonSummary:
    return invented_summary(*request.param)


@pytest.fixture(params=[False, True], ids=["states", "levels"])
def scene(request: pytest.FixtureRequest, summary: AutomatonSummary) -> Scene:
    return scene_of(summary, collapsed=request.param)


def test_every_state_is_in_one_node_and_every_transition_in_one_edge(summary: AutomatonSummary, scene: Scene) -> None:
    automaton = summary.automaton
    assert sorted(state for node in scene.nodes for state in node.states) == list(range(automaton.n_states))
    assert sum(node.visits for node in scene.nodes) == automaton.visits.sum()
    assert [node.start for node in scene.nodes if automaton.start in node.states] == [True]
    node_of = {state: node.key for node in scene.nodes for state in node.states}
    counts: dict[tuple[str, str, int], int] = {}
    for state, symbol in np.argwhere(automaton.transitions != UNSEEN).tolist():
        key = node_of[state], node_of[int(automaton.transitions[state, symbol])], symbol
        counts[key] = counts.get(key, 0) + int(automaton.edges[state, symbol])
    found = {(edge.tail, edge.head, symbol): count for edge in scene.edges for symbol, count in edge.symbols}
    assert found == counts
    assert len({edge.key for edge in scene.edges}) == len(scene.edges)


def test_busy_connections_are_drawn_and_no_state_hangs_in_the_air(scene: Scene) -> None:
    ways = [edge for edge in scene.edges if edge.tail != edge.head]
    drawn = {edge.key for edge in scene.drawn}
    for node in scene.nodes:
        for side in ("tail", "head"):
            there = [edge for edge in ways if getattr(edge, side) == node.key]
            if there:
                assert max(there, key=lambda edge: edge.count).count in {e.count for e in there if e.key in drawn}
    assert [edge.count for edge in scene.edges] == sorted((edge.count for edge in scene.edges), reverse=True)
    left_out = [edge for edge in scene.edges if not edge.drawn]
    total = sum(edge.count for edge in scene.edges)
    carried = 1 - sum(edge.count for edge in left_out) / total
    assert carried > 0.6
    said = [sentence for sentence in scene.legend if "are drawn" in sentence]
    if left_out:
        assert said and said[0].startswith(f"{len(drawn):,} of {len(scene.edges):,} connections are drawn")
        assert f"{100 * carried:.0f} %" in said[0]
    else:
        assert not said


def test_an_edge_names_its_busiest_symbols_and_how_many_more(summary: AutomatonSummary) -> None:
    names = edge_names([entry.gloss for entry in summary.entries])
    for edge in scene_of(summary).edges:
        first = names[edge.symbols[0][0]]
        assert edge.label[: len(first)] == first
        more = re.search(r"and (\d+) more$", edge.label[-1])
        named = 2 if summary.automaton.n_states <= 12 else 1
        assert int(more[1]) == len(edge.symbols) - named if more else len(edge.symbols) <= named
        assert max(map(len, edge.label)) <= LINE_LETTERS


def test_levels_part_the_states_by_risk(summary: AutomatonSummary) -> None:
    scene = scene_of(summary, collapsed=True)
    risks = {int(node.key[1:]): node.risk for node in scene_of(summary).nodes}
    for node in scene.nodes:
        level = scene.levels[node.level]
        assert all(level.low <= risks[state] <= level.high for state in node.states)
    flat = [node.risk for column in columns_of(scene_of(summary)) for node in column]
    assert flat == sorted(flat)


@pytest.mark.parametrize("clock", [(), (10, 20), (3, 4, 30)])
def test_no_step_reads_more_than_its_state_stands_for(clock: tuple[int, ...]) -> None:
    """What a run reads in a state lies between the lowest and the highest risk that the picture gives it."""
    summary = invented_summary(12, clock=clock)
    scene = scene_of(summary)
    figures = figures_of(summary)
    read: dict[int, set[float]] = {}
    for replay in summary.replays:
        for step in replay.steps:
            node = scene.nodes[step.state]
            assert figures[step.state].least <= step.outcome <= node.risk
            assert level_of(step.outcome, scene.levels) <= node.level
            read.setdefault(step.state, set()).add(step.outcome)
    assert (max(map(len, read.values())) > 1) == bool(clock)
    assert any("at some time in a run" in sentence for sentence in scene.legend) == bool(clock)
    for node in scene.nodes:
        assert node.level == level_of(
            max(np.array(figures[node.states[0]].by_clock)[list(figures[node.states[0]].met)]), scene.levels
        )
        assert (node.lines[-1].startswith("clock ")) == bool(clock)


def test_care_stands_in_the_scene() -> None:
    assert scene_of(invented_summary(3, care=("It ranks little better than chance.",))).care == (
        "It ranks little better than chance.",
    )


def test_edges_without_traffic_are_kept_but_not_drawn_for_their_traffic(summary: AutomatonSummary) -> None:
    still = replace(summary.automaton, edges=np.zeros_like(summary.automaton.edges))
    scene = scene_of(replace(summary, automaton=still))
    assert len(scene.edges) == len(scene_of(summary).edges)
    assert all(edge.count == 0 and np.isfinite(edge.size) for edge in scene.edges)


def test_nothing_covers_anything_in_the_layout_made_here(scene: Scene) -> None:
    """Neither states nor labels of connections overlap each other; the columns go from low to high risk."""
    layout = lay_out(scene)
    boxes = [(p.x - p.rx, p.y - p.ry, p.x + p.rx, p.y + p.ry) for p in layout.nodes]
    for placed in layout.edges:
        (x, y), half = placed.label, label_width(placed.edge) / 2
        tall = LINE_HEIGHT * len(placed.edge.label) / 2
        boxes.append((x - half, y - tall, x + half, y + tall))
    edges = np.array(boxes)
    left, top, right, bottom = (edges[:, at] for at in range(4))
    across = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    down = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top)
    covering = np.minimum(across, down)
    np.fill_diagonal(covering, -1)
    assert covering.max() < 0.5, np.argwhere(covering >= 0.5)
    assert left.min() >= -1 and top.min() >= -1
    assert right.max() <= layout.width + 1 and bottom.max() <= layout.height + 1
    by_x = sorted(layout.nodes, key=lambda placed: placed.x)
    assert [placed.node.level for placed in by_x] == sorted(placed.node.level for placed in by_x)


def test_paths_end_at_the_outlines_of_their_states(summary: AutomatonSummary) -> None:
    layout = lay_out(scene_of(summary))
    nodes = {placed.node.key: placed for placed in layout.nodes}
    assert len(layout.edges) == len(scene_of(summary).drawn)
    for placed in layout.edges:
        for key, (x, y) in ((placed.edge.tail, placed.points[0]), (placed.edge.head, placed.points[-1])):
            node = nodes[key]
            assert ((x - node.x) / node.rx) ** 2 + ((y - node.y) / node.ry) ** 2 == pytest.approx(1)
