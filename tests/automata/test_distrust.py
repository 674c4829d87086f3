"""Risks that did badly on test runs are not to be trusted, and it is said first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_summary import PERFORMANCE

from prefixguard.automata.summary import Fidelity
from prefixguard.automata.summary.alarms import RULE_NOTES
from prefixguard.automata.summary.distrust import distrust

WELL = replace(PERFORMANCE, kappa=0.5, coverage=0.8, coverage_expected=0.84)
FIDELITY = Fidelity(0.87, 0.52, 0.60, 0.66, 0.70, 0.012, 240, 3720, (), (0.58, 0.72))


def test_nothing_is_said_of_an_automaton_that_did_well_or_was_not_measured() -> None:
    assert list(distrust(FIDELITY, WELL)) == []
    unknown = replace(WELL, kappa=None, coverage=None, coverage_expected=None)
    assert list(distrust(replace(FIDELITY, rem=None, rem_interval=None), unknown)) == []


@pytest.mark.parametrize(
    ("fidelity", "performance", "said"),
    [
        (
            FIDELITY,
            replace(WELL, coverage=0.43, coverage_expected=0.93),
            "Do not trust the risks: on test runs 22 of 52 of the 90 % intervals held the share of runs that failed; "
            "if they are right, 48.4 would. A risk shown here can be far from what happens.",
        ),
        (
            FIDELITY,
            replace(WELL, coverage=5 / 7, coverage_expected=0.94, cells=7),
            "Take care with the risks: on test runs 5 of 7 of the 90 % intervals held the share of runs that failed; "
            "if they are right, 6.6 would. So few intervals may miss by chance.",
        ),
        (
            replace(FIDELITY, rem=0.53, rem_interval=(0.41, 0.66)),
            WELL,
            "Do not trust the risks: they are not shown to tell runs that fail from runs that succeed. Outcome AUROC "
            "at matched remaining steps is .53, 95 % interval .41–.66, and a coin has .50. That 42 of 52 intervals "
            "held says that risks are right on average, not of one run.",
        ),
        (
            FIDELITY,
            replace(WELL, kappa=-0.01),
            "Its alarms are not those of its teacher: step by step they agree little beyond chance (Cohen's kappa "
            "−.01, below .20). What is known of the teacher's alarms does not hold for these.",
        ),
    ],
)
def test_what_did_badly_is_said_in_a_sentence(fidelity: Fidelity, performance: object, said: str) -> None:
    assert list(distrust(fidelity, performance)) == [said]  # type: ignore[arg-type]


def test_that_a_rule_of_one_line_does_as_well_stands_first() -> None:
    note = f"{RULE_NOTES[0]} 9 failures, 3 with more than 3 steps left, at 0 false alarms; the automaton 8."
    found = list(distrust(FIDELITY, replace(WELL, kappa=-0.01, notes=("Something else.", note))))
    assert found[0] == note and len(found) == 2


@pytest.mark.parametrize("low", [0.2, 0.5, 0.51])
def test_an_interval_that_holds_a_coin_or_lies_below_it_is_no_evidence(low: float) -> None:
    found = list(distrust(replace(FIDELITY, rem_interval=(low, max(low, 0.49))), WELL))
    assert bool(found) == (low <= 0.5)
