"""Rows of the first-alert table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.metrics import FirstAlerts, Prefixes, Resamples, first_alerts


@dataclass(frozen=True, slots=True)
class AlertRow:
    """First alerts of one score at one budget.

    budget: share of successful runs that may alarm; None for a rule that has no budget.
    thresholds: what the budget led to. alerts: what came of it; None where the budget was refused.
    """

    budget: float | None
    thresholds: Thresholds
    alerts: FirstAlerts | None

    @property
    def reason(self) -> str | None:
        """Why there is no alarm at this budget; None where there is."""
        return self.thresholds.reason


def alert_rows(
    scores: Sequence[npt.NDArray[np.float64]],
    prefixes: Prefixes,
    thresholds: Mapping[float | None, Thresholds],
    policy: AlarmPolicy,
    *,
    horizon: int,
    resamples: Resamples,
) -> tuple[AlertRow, ...]:
    """A row a budget, ascending, a rule without budget first. Scores: the outcome scores, one (T,) a run.

    A rule alarms the moment it fires: `policy` is for thresholds that were set under it.
    """
    failed = prefixes.failed.tolist()
    rows = []
    for budget in sorted(thresholds, key=lambda b: -1.0 if b is None else b):
        mark = thresholds[budget]
        found = None
        if mark.alarm is not None:
            found = first_alerts(
                scores,
                failed,
                prefixes.task,
                mark.alarm,
                AlarmPolicy() if budget is None else policy,
                horizon=horizon,
                resamples=resamples,
            )
        rows.append(AlertRow(budget, mark, found))
    return tuple(rows)
