"""What is drawn of an automaton: states or levels of risk in colours that stay apart for every eye, figures of states,
joined connections with names of which the condition is whole, and places where nothing covers anything."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_summary import HOSTILE, KINDS, invented_summary, started_elsewhere

from prefixguard.alarm import Level
from prefixguard.automata.alphabets.tree_words import SplitTest as Asked
from prefixguard.automata.alphabets.tree_words import say
from prefixguard.automata.picture.edge_names import LINE_LETTERS, LINES, edge_names
from prefixguard.automata.picture.layout import LINE_HEIGHT, label_width, lay_out
from prefixguard.automata.picture.risk_levels import level_of, level_text, risk_levels
from prefixguard.automata.picture.scene import Scene, columns_of, figures_of, scene_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.state_figures import THIN_RUNS, state_figures
from prefixguard.automata.summary.wording import RiskWords, share_text
from prefixguard.bundle import UNSEEN
from prefixguard.context import N_FEATURES
from prefixguard.results import colour_of, ink_on, luminance

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
    """What a run reads in a state lies between the lowest and the highest risk that the picture gives it, in every span
    of the clock in which a held-out run was there; in no other span is a risk the state's."""
    summary = invented_summary(12, clock=clock)
    scene = scene_of(summary)
    figures = figures_of(summary)
    read: dict[int, set[float]] = {}
    for replay in summary.replays:
        for at, step in enumerate(replay.steps, 1):
            of = figures[step.state]
            if of.known[summary.automaton.column(at)]:
                assert of.least <= step.outcome <= of.peak
                read.setdefault(step.state, set()).add(step.outcome)
    assert (max(map(len, read.values())) > 1) == bool(clock)
    assert any("at some time in a run" in sentence for sentence in scene.legend) == bool(clock)
    for node in scene.nodes:
        of = figures[node.states[0]]
        assert node.risk == of.usual in np.array(of.by_clock)[list(of.known)]
        assert node.level == level_of(of.usual, scene.levels)
        assert (node.lines[-1].startswith("clock ")) == bool(clock)


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


# Levels, their colours, and figures of states


#: Linear RGB as seen without cones of one kind. Source: Machado, Oliveira, Fernandes 2009, severity 1.0.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    f = np.cbrt(np.clip(xyz, 0, None) / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_is_legible_on_every_risk() -> None:
    worst = min(contrast(colour_of(risk), ink_on(colour_of(risk))) for risk in np.linspace(0, 1, 501))
    assert worst >= 4.5


def test_the_scale_gets_darker_all_the_way() -> None:
    seen = [luminance(colour_of(risk)) for risk in np.linspace(0, 0.9, 46)]
    assert all(a > b for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("blindness", [None, *BLINDNESS])
@pytest.mark.parametrize("ends", [(0.31, 0.62), (0.2, None), (0.1, 0.4)])
def test_neighbouring_levels_stay_apart_for_every_eye(blindness: str | None, ends: tuple[float, float | None]) -> None:
    """A difference of 2.3 is just noticeable between two patches side by side; states stand apart, so ask for more."""
    sight = np.eye(3) if blindness is None else np.array(BLINDNESS[blindness])
    colours = [lab(sight @ linear(level.colour)) for level in risk_levels(*ends)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(colours)) > 7


@pytest.mark.parametrize("ends", [(0.31, 0.62), (0.96, 0.96), (0.05, 0.06), (0.5, None), (0.9, 0.95)])
def test_what_is_said_has_a_colour_of_its_own(ends: tuple[float, float | None]) -> None:
    """The darkest OK is lighter than any WATCH, and that than any ALARM, and both by far from an OK."""
    seen = {says: [luminance(one.colour) for one in risk_levels(*ends) if one.says is says] for says in Level}
    order = [seen[says] for says in (Level.OK, Level.WATCH, Level.ALARM) if seen[says]]
    assert all(min(a) > max(b) for a, b in itertools.pairwise(order))
    assert not seen[Level.ALARM] or min(seen[Level.OK]) > 3 * max(seen[Level.ALARM])


@pytest.mark.parametrize(("watch", "alarm"), [(0.31, 0.62), (0.05, 0.06), (0.5, None), (0.7, 0.4), (0.01, 0.995)])
def test_levels_cover_all_risks_and_end_at_the_thresholds(watch: float, alarm: float | None) -> None:
    levels = risk_levels(watch, alarm)
    ends = [level.low for level in levels] + [levels[-1].high]
    assert ends == sorted(set(ends)) and (ends[0], ends[-1]) == (0.0, 1.0)
    assert all(a.high == b.low for a, b in itertools.pairwise(levels))
    for risk in np.linspace(0, 1, 101).tolist():
        says = Level.WATCH if risk > watch else Level.OK
        says = Level.ALARM if alarm is not None and risk > alarm else says  # strictly above, as the alarm itself
        assert levels[level_of(risk, levels)].says is says, risk


def test_all_risks_of_a_state_are_of_the_same_spans_and_steps() -> None:
    """Of the steps that ended in a state where held-out runs were too; the usual risk is their median, and no mean is
    above a highest, whatever is known of it."""
    automaton = invented_summary(24, clock=(5, 12, 40)).automaton
    rng = np.random.default_rng(1)
    for cells in (None, rng.integers(0, 3, automaton.evidence.shape), rng.integers(0, 2, automaton.evidence.shape)):
        read = automaton.evidence if cells is None else cells
        for state, figures in enumerate(state_figures(automaton, cells)):
            steps = read[state] if read[state].any() else np.ones(4)
            calibrated = automaton.evidence[automaton.stand_in[state]] > 0
            assert len(set(figures.pools)) == 4  # all risks differ
            here = np.where(calibrated, steps, 0) if (steps * calibrated).any() else steps
            weights = here if 2 * here.sum() >= steps.sum() else steps
            known, risk = weights > 0, automaton.risk[state, :, 1]
            assert figures.met == tuple((steps > 0).tolist()) and figures.by_clock == tuple(risk)
            assert figures.known == tuple((here > 0).tolist())
            assert figures.outcome == pytest.approx(np.average(risk, weights=weights))
            assert (figures.least, figures.peak) == (risk[known].min(), risk[known].max())
            assert figures.least <= figures.outcome <= figures.peak
            assert weights[risk < figures.usual].sum() <= weights.sum() / 2 >= weights[risk > figures.usual].sum()
            assert [figures.low, figures.high] == automaton.interval[state, risk == figures.usual, 1][0].tolist()


def test_a_span_that_no_held_out_run_reached_moves_no_state() -> None:
    """Whatever its risk: neither risk, nor level, nor colour, nor place, nor the range."""
    summary = invented_summary(12, clock=(10, 20))
    bare = np.zeros_like(summary.automaton.evidence, dtype=bool)
    bare[:, 2] = True
    cells = np.where(bare, 1, summary.cells + 1)
    seen = replace(
        summary.automaton,
        stand_in=np.arange(12, dtype=np.int32),
        evidence=np.where(bare, 0, summary.automaton.evidence + 1),
        evidence_runs=np.where(bare, 0, summary.automaton.evidence_runs + 1),
    )
    risk = seen.risk.copy()
    risk[:, 2] = 0.999
    for mine in (np.where(bare, 0, cells), cells):  # nobody was there; training runs alone were
        scenes = [
            scene_of(replace(summary, cells=mine, automaton=one)).nodes for one in (seen, replace(seen, risk=risk))
        ]
        assert scenes[0] == scenes[1]


def test_a_state_stands_where_most_of_its_steps_do_whatever_runs_were_held_out() -> None:
    """One held-out run late in the run, and most steps of other runs early: what is read at those is its usual risk."""
    automaton = invented_summary(12, clock=(10, 20)).automaton
    evidence = np.tile([0, 0, 1], (12, 1))
    late = replace(automaton, evidence=evidence, evidence_runs=evidence, stand_in=np.arange(12, dtype=np.int32))
    for figures in state_figures(late, np.tile([20, 6, 12], (12, 1))):
        assert figures.known == (False, False, True)
        assert figures.usual == figures.by_clock[0] and figures.peak == max(figures.by_clock)


def test_a_span_that_shares_its_risk_with_a_neighbour_is_known_by_the_runs_of_both() -> None:
    automaton = invented_summary(12, clock=(10, 20, 30)).automaton
    risk, interval = automaton.risk.copy(), automaton.interval.copy()
    risk[:, 2], interval[:, 2] = risk[:, 1], interval[:, 1]
    evidence = np.where(np.isin(np.arange(4), [0, 1]), automaton.evidence + 1, 0)
    shared = replace(automaton, risk=risk, interval=interval, evidence=evidence, stand_in=np.arange(12, dtype=np.int32))
    for figures in state_figures(shared, evidence + 1):
        assert figures.pools == (0, 1, 1, 3) and figures.known == (True, True, True, False)
    apart = replace(shared, interval=automaton.interval)
    assert all(figures.known == (True, True, False, False) for figures in state_figures(apart, evidence + 1))


@pytest.mark.parametrize("collapsed", [False, True])
def test_a_start_without_readings_stands_where_the_failure_rate_puts_it_and_has_no_risk(collapsed: bool) -> None:
    summary = started_elsewhere(invented_summary(24, clock=(5, 12)))
    for base in (0.01, 0.34, 0.99):
        scene = scene_of(replace(summary, base=base), collapsed=collapsed)
        (start,) = [node for node in scene.nodes if node.start]
        assert start.level == level_of(base, scene.levels)
        assert collapsed or (start.risk, start.lines, start.colour) == (base, ("start",), "#ffffff")
        others = [node for node in scene.nodes if not node.start]
        assert all(node.colour == scene.levels[node.level].colour for node in others)
        shares = {line for node in scene.nodes if len(node.states) > 1 for line in node.lines[:2]}
        assert not any(f"{base:.2f}".removeprefix("0") in line for line in shares)


@pytest.mark.parametrize("clock", [(), (10, 20)])
def test_shares_under_alarm_are_what_the_monitor_says(clock: tuple[int, ...]) -> None:
    """Latched alarms with a low risk and all: the levels of ALARM hold exactly the steps on which it says so."""
    summary = invented_summary(24, clock=clock)
    summary = replace(summary, said=(*summary.said, (Level.ALARM, 0.02), (Level.WATCH, 0.7), (Level.ALARM, 0.99)))
    said = [level for level, _ in summary.said]
    for collapsed in (False, True):
        scene = scene_of(summary, collapsed=collapsed)
        for level in (Level.OK, Level.WATCH, Level.ALARM):
            parts = [share for number, share in scene.said.items() if scene.levels[number].says is level]
            assert sum(parts) == pytest.approx(said.count(level) / len(said))
        assert sum(scene.said.values()) == pytest.approx(1)
        elsewhere = " ".join(sentence for sentence in scene.legend if "though no state stands there" in sentence)
        for number, part in scene.said.items():
            text = f"{level_text(scene.levels[number], scene.risks)} at {share_text(part)}"
            assert (number in scene.used_levels) != (text in elsewhere), text
    visits = summary.automaton.visits
    for node in scene.nodes:
        ended = share_text(int(visits[list(node.states)].sum()) / int(visits.sum()))
        assert node.lines[-1] == f"{ended} of training steps", "its states', whatever is said elsewhere"
        said = f"said on {share_text(scene.said.get(node.level, 0.0))} of test steps"
        assert f"in which {ended} of training steps end" in node.spoken and said in node.spoken


def test_a_start_that_no_step_ends_in_has_no_evidence_that_could_be_thin() -> None:
    left = started_elsewhere(invented_summary(24, clock=(5, 12))).automaton
    start = left.start
    figures = state_figures(left)[start]
    assert (figures.entered, figures.thin) == (False, False)
    assert state_figures(left, base=0.2)[start].usual == 0.2
    back = replace(left, fallback=np.where(np.arange(12) == 0, np.int32(start), left.fallback))
    figures = state_figures(back)[start]
    assert (figures.entered, figures.thin) == (True, True)


@pytest.mark.parametrize("clock", [(), (5, 12)])
def test_evidence_is_thin_where_it_is_borrowed_or_of_few_runs(clock: tuple[int, ...]) -> None:
    """A run that was there in several spans of the clock is one run: what is shown and what is judged are the same."""
    automaton = invented_summary(64, 16, clock=clock).automaton
    figures = state_figures(automaton)
    borrowed = automaton.stand_in != np.arange(64)
    few = automaton.evidence_runs.max(axis=1) < THIN_RUNS
    assert [state.runs < THIN_RUNS for state in figures] == few.tolist()
    assert borrowed.any() and (few & ~borrowed).any() and (~few).any()
    assert [state.thin for state in figures] == (borrowed | few).tolist()
    assert [state.stand_in is not None for state in figures] == borrowed.tolist()


# Words of risks


PROBABILITIES = st.one_of(st.floats(0, 1), st.sampled_from([0.62, 0.6200004, 0.62002, 0.6184, 0.615, 0.995, 0.9996, 1]))


@given(st.lists(PROBABILITIES, min_size=1), st.lists(PROBABILITIES, max_size=2))
def test_what_is_said_of_risks_and_thresholds_has_their_order(risks: list[float], thresholds: list[float]) -> None:
    words = RiskWords.of(thresholds, risks)
    for risk, threshold in itertools.product(risks, thresholds):
        one, other = float(words.risk(risk)), float(words.risk(threshold))
        if abs(risk - threshold) > 1e-6:
            assert one != other and (one < other) == (risk < threshold)
        else:
            assert abs(one - other) <= 1e-6


# Names of connections


BOUNDS = [
    (-math.inf, 3.5),
    (4.5, math.inf),
    (0.0123, 2.5),
    (-math.inf, 0.61803),
    (0.000753, math.inf),
    (-math.inf, 0.004),
]


@pytest.mark.parametrize("feature", range(N_FEATURES))
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_the_condition_on_every_feature_survives(feature: int, low: float, high: float) -> None:
    gloss = say(Asked(feature, low, high), (), short=True)
    (name,) = edge_names([gloss])
    assert len(name) <= LINES and max(map(len, name)) <= LINE_LETTERS
    shown = " ".join(name)
    assert re.findall(r"\d[\d.e+-]*", shown) == re.findall(r"\d[\d.e+-]*", gloss)


def test_two_sides_of_a_test_stay_apart() -> None:
    asked = [Asked(f, *ends) for f in range(N_FEATURES) for ends in ((-math.inf, 0.5), (0.5, math.inf))]
    glosses = [say(test, (), short=True) for test in asked]
    names = edge_names(glosses)
    assert len(set(names)) == len(asked)
    without = [name for name in names if re.match(r"\d+: ", name[0])]
    assert len(without) < len(names) / 3  # most need no number


def test_symbols_of_one_name_have_their_numbers_in_front() -> None:
    names = edge_names([kind[0] for kind in KINDS] + ["books"])
    assert names[5] == ("5: books",) and names[16] == ("16: books",) and names[8] == ("apologises",)


@pytest.mark.parametrize(
    ("gloss", "name"),
    [
        ("books", ("books",)),
        ("", ("symbol 0",)),
        ("7: tool calls so far >= 11", ("7: tool calls so far", "\u2265 11")),
        (
            "a long name of something that a person counted <= 2",
            ("\u2026of something that a", "person counted \u2264 2"),
        ),
        ("quite a long name of something without a number", ("quite a long name of", "something without a\u2026")),
        ("finds the web page of the company", ("finds the web page", "of the company")),
        ("asks for the opening hours of the whole company", ("asks for the opening", "hours of the whole\u2026")),
        ("step number >= 16, this step failed", ("step number \u2265 16,", "this step failed")),
        ("step number >= 16, failed steps so far = 0", ("step number \u2265 16",)),
        ("tool calls so far >= 16 (12)", ("tool calls so far", "\u2265 16 (12)")),
    ],
)
def test_names(gloss: str, name: tuple[str, ...]) -> None:
    assert edge_names([gloss]) == (name,)


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=80)), max_size=6))
def test_any_text_takes_two_lines(glosses: list[str]) -> None:
    for name in edge_names(glosses):
        assert 1 <= len(name) <= LINES and max(map(len, name)) <= LINE_LETTERS and "".join(name).isprintable()
