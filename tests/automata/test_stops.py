"""Runs that end once they succeed: their length tells the outcome, and it is said where the data show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lab_automaton import lay_out, run_of

from prefixguard.automata.material import Material
from prefixguard.automata.summary.stops import stops_when_solved
from prefixguard.learn import featurise
from prefixguard.trace import Side


def material_of(*, others: int = 0, short: int = 0) -> Material:
    """100 runs of two agents with a cap each that end once they succeed; others: runs of a third that stop anywhere;
    short: failures of the first that are broken off."""
    runs = []
    for n in range(100 + others):
        failed = n % 2 == 0
        agent = "third" if n >= 100 else f"agent {n % 4 // 2}"
        cap = 8 if agent == "agent 1" else 6
        length = cap if failed and n >= 4 * short and n < 100 else 2 + n % 3
        run = run_of(f"r{n}", [{"tool": "find"}] * length, failed=failed, task=f"t{n}")
        runs.append(replace(run, groups={"agent": agent}))
    nobody = np.arange(0)
    sides = {Side.TRAIN: np.arange(len(runs)), Side.CALIBRATION: nobody, Side.TEST: nobody}
    return lay_out(featurise(runs), sides, teach=False)


@pytest.mark.parametrize(("others", "short", "told"), [(0, 0, True), (40, 0, True), (140, 0, False), (0, 8, False)])
def test_runs_that_end_once_they_succeed_are_told_of(others: int, short: int, told: bool) -> None:
    said = stops_when_solved(material_of(others=others, short=short))
    start = f"In 100 of {100 + others} training runs, those of some values of agent, 50 of 50 failures have exactly the"
    assert said.startswith(start) if told else said == ""
    assert not told or "and 50 of 50 successes fewer: runs end once they succeed" in said
