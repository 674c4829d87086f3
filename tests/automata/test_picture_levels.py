"""Colours that stay apart for every eye, and levels that the marks of the alarm end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from invented_summary import invented_summary

from prefixguard.alarm import Level
from prefixguard.automata.picture.scene import level_of, risk_levels
from prefixguard.automata.summary.state_figures import THIN_RUNS, state_figures
from prefixguard.results import colour_of, ink_on, luminance

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
@pytest.mark.parametrize("marks", [(0.31, 0.62), (0.2, None), (0.1, 0.4)])
def test_neighbouring_levels_stay_apart_for_every_eye(blindness: str | None, marks: tuple[float, float | None]) -> None:
    """A difference of 2.3 is just noticeable between two patches side by side; states stand apart, so ask for more."""
    sight = np.eye(3) if blindness is None else np.array(BLINDNESS[blindness])
    colours = [lab(sight @ linear(level.colour)) for level in risk_levels(*marks)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(colours)) > 7


@pytest.mark.parametrize(("watch", "alarm"), [(0.31, 0.62), (0.05, 0.06), (0.5, None), (0.7, 0.4), (0.01, 0.995)])
def test_levels_cover_all_risks_and_end_at_the_marks(watch: float, alarm: float | None) -> None:
    levels = risk_levels(watch, alarm)
    ends = [level.low for level in levels] + [levels[-1].high]
    assert ends == sorted(set(ends)) and (ends[0], ends[-1]) == (0.0, 1.0)
    assert all(a.high == b.low for a, b in itertools.pairwise(levels))
    for risk in np.linspace(0, 1, 101).tolist():
        says = Level.WATCH if risk > watch else Level.OK
        says = Level.ALARM if alarm is not None and risk > alarm else says  # strictly above, as the alarm itself
        assert levels[level_of(risk, levels)].says is says, risk


def test_a_risk_over_the_clock_is_weighted_by_evidence_and_its_highest_is_of_where_runs_were() -> None:
    automaton = invented_summary(24, clock=(5, 12, 40)).automaton  # no run has 40 steps
    assert not automaton.evidence[:, 3].any()
    for state, figures in enumerate(state_figures(automaton)):
        own, risk = automaton.evidence[state], automaton.risk[state, :, 1]
        weights = own if own.sum() else np.ones(4)
        assert figures.outcome == pytest.approx(np.average(risk, weights=weights))
        assert figures.by_clock == tuple(risk)
        met = own > 0 if own.any() else np.ones(4, dtype=bool)
        assert figures.met == tuple(met.tolist())
        assert (figures.least, figures.peak) == (risk[met].min(), risk[met].max())
        assert [figures.low, figures.high] == automaton.interval[state, risk == figures.peak, 1][0].tolist()


def test_a_time_at_which_a_run_was_seen_counts_without_evidence() -> None:
    automaton = invented_summary(24, clock=(5, 12, 40)).automaton
    plain = state_figures(automaton)
    state = next(figures.state for figures in plain if figures.met == (True, True, True, False))
    told = state_figures(automaton, [(state, 3)])
    assert told[state].met == (True,) * 4 and told[state].peak == automaton.risk[state, 3, 1] > plain[state].peak
    assert [a == b for a, b in zip(plain, told, strict=True)].count(False) == 1


def test_a_start_that_no_step_ends_in_has_no_evidence_that_could_be_thin() -> None:
    automaton = invented_summary(24, clock=(5, 12)).automaton
    start = automaton.start
    none = np.zeros_like(automaton.evidence)
    none[np.arange(24) != start] = automaton.evidence[np.arange(24) != start]
    stand_in = automaton.stand_in.copy()
    stand_in[start] = (start + 1) % 24
    visits = automaton.visits.copy()
    visits[start] = 0
    other = np.int32((start + 1) % 24)
    left = replace(
        automaton,
        transitions=np.where(automaton.transitions == start, other, automaton.transitions),
        fallback=np.where(automaton.fallback == start, other, automaton.fallback),
        evidence=none,
        evidence_runs=np.where(none > 0, automaton.evidence_runs, 0),
        stand_in=stand_in,
        visits=visits,
    )
    figures = state_figures(left)[start]
    assert (figures.entered, figures.thin) == (False, False)
    assert figures.peak == figures.by_clock[0]  # before the first step the clock has not gone on
    back = replace(left, fallback=np.where(np.arange(12) == 0, np.int32(start), left.fallback))
    figures = state_figures(back)[start]
    assert (figures.entered, figures.thin) == (True, True)


def test_evidence_is_thin_where_it_is_borrowed_or_of_few_runs() -> None:
    automaton = invented_summary(64, 16).automaton
    figures = state_figures(automaton)
    borrowed = automaton.stand_in != np.arange(64)
    few = automaton.evidence_runs.sum(axis=1) < THIN_RUNS
    assert borrowed.any() and (few & ~borrowed).any() and (~few).any()
    assert [state.thin for state in figures] == (borrowed | few).tolist()
    assert [state.stand_in is not None for state in figures] == borrowed.tolist()
