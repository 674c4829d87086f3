"""The line that an induction ends with: what is read, in words, and what stands in the way of training."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from prefixguard.induce import CheckReport, can_train, outcome_remedy, verdict


def report(**figures: float) -> CheckReport:
    usual: dict[str, float] = {
        "runs": 10,
        "runs_looked_at": 10,
        "records": 148,
        "calls": 74,
        "calls_joined": 1.0,
        "calls_open_at_end": 2,
        "coverage": 0.8,
        "outcomes_known": 1.0,
        "runs_succeeded": 4,
        "runs_failed": 6,
    }
    return CheckReport("x", "", (), MappingProxyType({**usual, **figures}), MappingProxyType({}))


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({}, "Reads 10 runs, 74 calls, all with results; outcomes all known."),
        ({"outcomes_known": 0.6}, "Reads 10 runs, 74 calls, all with results; outcome of 4 of 10 runs unknown."),
        ({"outcomes_known": 0}, "Reads 10 runs, 74 calls, all with results; no outcome known."),
        ({"calls_joined": 0.5}, "Reads 10 runs, 74 calls, 36 with results; outcomes all known."),
        ({"calls_joined": 0}, "Reads 10 runs, 74 calls, none with a result; outcomes all known."),
        ({"calls": 0}, "Reads 10 runs, 148 steps, no call of a tool; outcomes all known."),
        ({"coverage": 0.31}, "Reads 10 runs, 74 calls, all with results, 31% of the text; outcomes all known."),
        (
            {"runs": 1000, "runs_looked_at": 400},
            "Reads 1,000 runs, 74 calls in the 400 looked at, all with results; outcomes all known.",
        ),
        ({"runs": 0}, "Reads no run."),
    ],
)
def test_one_plain_line(figures: dict[str, float], said: str) -> None:
    assert verdict(report(**figures)) == said


def test_what_to_do_about_outcomes() -> None:
    assert can_train(report()) and outcome_remedy(report()) == ""
    none = report(outcomes_known=0, runs_succeeded=0, runs_failed=0)
    assert not can_train(none) and "--labels FILE" in outcome_remedy(none)
    alike = report(runs_failed=0)
    assert not can_train(alike) and "All runs with an outcome succeeded" in outcome_remedy(alike)
    some = report(outcomes_known=0.6)
    assert can_train(some) and "not trained on" in outcome_remedy(some)
