"""Colours that stay apart for every eye, and levels that the marks of the alarm end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from automaton_atlas import invented_atlas

from prefixguard.alarm import Level
from prefixguard.automata.picture.figures import THIN_RUNS, state_figures
from prefixguard.automata.picture.levels import colour_of, ink_on, level_of, luminance, risk_levels

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


def test_a_risk_over_the_clock_is_weighted_by_evidence() -> None:
    automaton = invented_atlas(8, clock=(5, 12)).automaton
    for state, figures in enumerate(state_figures(automaton)):
        weights = automaton.evidence[state] if automaton.evidence[state].sum() else np.ones(3)
        assert figures.outcome == pytest.approx(np.average(automaton.risk[state, :, 1], weights=weights))
        assert figures.low <= figures.outcome <= figures.high
        assert figures.by_clock == tuple(automaton.risk[state, :, 1])


def test_evidence_is_thin_where_it_is_borrowed_or_of_few_runs() -> None:
    automaton = invented_atlas(64, 16).automaton
    figures = state_figures(automaton)
    borrowed = automaton.stand_in != np.arange(64)
    few = automaton.evidence_runs.sum(axis=1) < THIN_RUNS
    assert borrowed.any() and (few & ~borrowed).any() and (~few).any()
    assert [state.thin for state in figures] == (borrowed | few).tolist()
    assert [state.stand_in is not None for state in figures] == borrowed.tolist()
