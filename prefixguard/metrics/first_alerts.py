"""What an alarm would have done: who is alerted, how early, at what price.

Source: PrefixGuard RQ4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert
from prefixguard.errors import DataError
from prefixguard.metrics.resampling import Resamples, exact_interval, interval, ratio

Float = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstAlerts:
    """First alerts of one threshold over a set of runs. Shares are in [0, 1]; NaN where no run could count.

    threshold: the risk that must be exceeded.
    false_alarm_rate: share of successful runs that alarm.
    false_alarm_rate_by_task: the same with tasks weighted alike, which is what the alarm bound speaks of.
    alerted: share of failed runs that alarm.
    early: share of failed runs that alarm with more than `horizon` steps left.
    lead_median, lead_low, lead_high: steps left at the first alert of alerted failed runs; median and quartiles.
    leads: all those leads, ascending.
    steps_saved: share of the steps of failed runs that come after their first alert.
    steps_lost: share of the steps of successful runs that come after a false alarm.
    intervals: by name of a share above, over tasks; empty where no resamples were given.
    """

    threshold: float
    false_alarm_rate: float
    false_alarm_rate_by_task: float
    alerted: float
    early: float
    lead_median: float
    lead_low: float
    lead_high: float
    leads: tuple[int, ...]
    steps_saved: float
    steps_lost: float
    intervals: dict[str, tuple[float, float]]


def first_alerts(
    scores: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    tasks: npt.NDArray[np.int64],
    threshold: float,
    policy: AlarmPolicy,
    *,
    horizon: int,
    resamples: Resamples | None = None,
) -> FirstAlerts:
    """The first alerts of a threshold.

    scores: one float (T,) a run, NaN where a step was not judged. failed: the outcomes. tasks: int64 (R,), task codes.
    horizon: H; an alert is early when more than H steps remain after it.
    """
    if not len(scores) == len(failed) == len(tasks):
        raise DataError(f"{len(scores)} runs with {len(failed)} outcomes and {len(tasks)} tasks: give one each.")
    lengths = np.array([len(np.asarray(score)) for score in scores], dtype=np.float64)
    lead = np.full(len(scores), np.nan)  # steps left at the first alert; NaN: none
    for i, score in enumerate(scores):
        step = first_alert(score, threshold, policy)
        if step is not None:
            lead[i] = lengths[i] - step
    fail = np.asarray(failed, dtype=np.float64)
    good = 1.0 - fail
    alert = (~np.isnan(lead)).astype(np.float64)
    is_early = (np.nan_to_num(lead, nan=-1.0) > horizon).astype(np.float64)
    left = np.nan_to_num(lead, nan=0.0)
    n_units = int(tasks.max(initial=-1)) + 1 if resamples is None else resamples.weights.shape[1]

    def by_task(values: Float) -> Float:
        return np.bincount(tasks, weights=values, minlength=n_units).astype(np.float64)

    def share(values: Float, among: Float) -> Callable[[Float], Float]:
        above, below = by_task(values * among), by_task(among)
        return lambda w: ratio(w @ above, w @ below)

    per_task = ratio(by_task(alert * good), by_task(good))  # NaN: the task has no successful run
    has_success = ~np.isnan(per_task)
    shares = {
        "false_alarm_rate": share(alert, good),
        "false_alarm_rate_by_task": lambda w: ratio(w @ np.nan_to_num(per_task), w @ has_success.astype(np.float64)),
        "alerted": share(alert, fail),
        "early": share(is_early, fail),
        "steps_saved": _step_share(by_task, left * fail, lengths * fail),
        "steps_lost": _step_share(by_task, left * good, lengths * good),
    }
    value = {name: float(figure(np.ones(n_units))) for name, figure in shares.items()}
    intervals: dict[str, tuple[float, float]] = {}
    if resamples is not None:
        for name, figure in shares.items():
            found = interval(resamples.figures(figure, n_units))
            if found is not None and found[0] == found[1] and name in _COUNTED:
                among = good if name.startswith("false") else fail
                found = exact_interval(value[name], int(np.count_nonzero(by_task(among))))
            if found is not None:
                intervals[name] = found
    leads = np.sort(lead[(fail > 0) & (alert > 0)])
    low, median, high = np.quantile(leads, [0.25, 0.5, 0.75]) if len(leads) else (np.nan, np.nan, np.nan)
    return FirstAlerts(
        threshold=float(threshold),
        lead_median=float(median),
        lead_low=float(low),
        lead_high=float(high),
        leads=tuple(int(steps) for steps in leads),
        intervals=intervals,
        **value,
    )


#: Shares of runs: where all or none alarm, no resample differs, and the bootstrap would claim to know.
_COUNTED = ("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early")


def _step_share(by_task: Callable[[Float], Float], left: Float, steps: Float) -> Callable[[Float], Float]:
    above, below = by_task(left), by_task(steps)
    return lambda w: ratio(w @ above, w @ below)
