"""From a fitted control to its row in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_table, run_maximum
from prefixguard.evaluation.controls.material import Scorer
from prefixguard.evaluation.controls.sides import ControlSides
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.learn import Corpus, draw_alarm_runs


def scored_row(
    name: str,
    note: str,
    scorer: Scorer,
    corpus: Corpus,
    sides: ControlSides,
    *,
    seed: int,
    policy: AlarmPolicy,
    budgets: Sequence[float],
) -> ScoreRow:
    """Scores of the test runs, in their order, and thresholds by budget from one successful alarm run a task.

    Of the test runs' outcomes nothing is read. A budget that the alarm runs cannot support gets a threshold of None,
    with the reason, as a monitor's does.
    """
    risks = scorer(sides.test)
    drawn = draw_alarm_runs(corpus, seed, sides.alarm)
    maxima = [run_maximum(risk[:, 1], policy) for risk in (scorer(drawn) if len(drawn) else [])]
    thresholds: dict[float | None, Thresholds] = {
        float(budget): mark for budget, mark in alarm_table(maxima, policy, budgets=budgets).items()
    }
    return ScoreRow(
        name,
        imminent=[np.ascontiguousarray(risk[:, 0]) for risk in risks],
        outcome=[np.ascontiguousarray(risk[:, 1]) for risk in risks],
        probability=True,
        thresholds=thresholds,
        note=note,
    )
