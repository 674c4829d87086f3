"""What an alarm would have done: which runs are alerted, how early, and what that costs.

Source: PrefixGuard RQ4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert
from prefixguard.errors import DataError
from prefixguard.metrics.resampling import Resamples, exact_interval, ratio

Float = npt.NDArray[np.float64]
#: Shares of runs. Where runs of fewer tasks than this alarm, or of all but so few, resamples hardly differ, and the
#: bootstrap would claim too much: the interval is then the exact one of so many tasks, whose runs may alarm together.
_COUNTED = ("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early")
_FEW_TASKS = 5


@dataclass(frozen=True, slots=True)
class Saving:
    """What comes after the first alerts of failed runs, of the seconds, tokens or dollars that they took.

    share: of all that these runs took; NaN where none says it. interval: over tasks; None where it was not drawn.
    each: mean of a failed run that says it. lost: mean of a successful run, after a false alarm. known: failed runs
    that say it. runs: all failed runs.
    """

    share: float
    interval: tuple[float, float] | None
    each: float
    lost: float
    known: int
    runs: int


@dataclass(frozen=True, slots=True)
class FirstAlerts:
    """First alerts over a set of runs. Shares are in [0, 1]; NaN where no run could count.

    threshold: the risk that must be exceeded; NaN where runs have thresholds of their own.
    false_alarm_rate: share of successful runs that alarm.
    false_alarm_rate_by_task: the same with tasks weighted alike, which is what the alarm bound speaks of.
    alerted: share of failed runs that alarm.
    early: share of failed runs that alarm with more than `horizon` steps left.
    lead_median, lead_low, lead_high: steps left at the first alert of alerted failed runs; median and quartiles.
    leads: all those leads, ascending.
    steps_saved: share of the steps of failed runs that come after their first alert.
    steps_lost: share of the steps of successful runs that come after a false alarm.
    intervals: by name of a share, over tasks; empty where no resamples were given.
    text_saved, text_lost: as steps_saved and steps_lost, in bytes of what the records hold (a stand-in for tokens,
        which records do not count); None where the sizes of steps were not given.
    saved: by name of what steps took (seconds, tokens, dollars), where any run says it.
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
    text_saved: float | None = None
    text_lost: float | None = None
    saved: Mapping[str, Saving] = field(default_factory=dict)


def first_alerts(
    scores: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    tasks: npt.NDArray[np.int64],
    threshold: float | Sequence[float | None],
    policy: AlarmPolicy,
    *,
    horizon: int,
    resamples: Resamples | None = None,
    sizes: Sequence[npt.ArrayLike] | None = None,
    took: Mapping[str, Sequence[npt.ArrayLike]] = MappingProxyType({}),
) -> FirstAlerts:
    """The first alerts of a threshold.

    scores: one float (T,) a run, NaN where a step was not judged. failed: the outcomes. tasks: int64 (R,), task codes.
    threshold: one for all runs, or one for each; None for a run that has none and never alarms.
    horizon: H; an alert is early when more than H steps remain after it.
    took: by name, what each step took, (T,) a run, NaN where it is not known; a run is unknown if no step says it.
    sizes: bytes of text of each step, (T,) a run. Raises DataError where counts differ.
    """
    if not len(scores) == len(failed) == len(tasks):
        raise DataError(f"{len(scores)} runs with {len(failed)} outcomes and {len(tasks)} tasks: give one each.")
    own = threshold if isinstance(threshold, Sequence) else [threshold] * len(scores)
    steps = [first_alert(score, at, policy) for score, at in zip(scores, own, strict=True)]
    lengths = np.array([len(np.asarray(score)) for score in scores], dtype=np.float64)
    lead = lengths - np.array([np.nan if step is None else step for step in steps], dtype=np.float64)  # NaN: no alert
    fail = np.asarray(failed, dtype=np.float64)
    good = 1.0 - fail
    alert = (~np.isnan(lead)).astype(np.float64)
    is_early = (np.nan_to_num(lead, nan=-1.0) > horizon).astype(np.float64)
    left = np.nan_to_num(lead, nan=0.0)
    drawn = Resamples.draw(int(tasks.max(initial=-1)) + 1, n=0) if resamples is None else resamples

    def by_task(values: Float) -> Float:
        return np.bincount(tasks, weights=values, minlength=drawn.weights.shape[1]).astype(np.float64)

    per_task = ratio(by_task(alert * good), by_task(good))  # NaN: the task has no successful run
    sums = {  # above and below the line, by task, (U,) each
        "false_alarm_rate": (by_task(alert * good), by_task(good)),
        "false_alarm_rate_by_task": (np.nan_to_num(per_task), (~np.isnan(per_task)).astype(np.float64)),
        "alerted": (by_task(alert * fail), by_task(fail)),
        "early": (by_task(is_early * fail), by_task(fail)),
        "steps_saved": (by_task(left * fail), by_task(lengths * fail)),
        "steps_lost": (by_task(left * good), by_task(lengths * good)),
    }
    if sizes is not None:
        text = [np.asarray(size, dtype=np.float64) for size in sizes]
        whole = np.array([size.sum() for size in text])
        after = np.array([0.0 if k is None else size[k:].sum() for size, k in zip(text, steps, strict=True)])
        sums["text_saved"] = (by_task(after * fail), by_task(whole * fail))
        sums["text_lost"] = (by_task(after * good), by_task(whole * good))
    saved = {name: (_after(values, steps), _known(values)) for name, values in took.items()}
    for name, ((after, whole), known) in saved.items():
        sums[name] = (by_task(after * fail * known), by_task(whole * fail * known))
    found = drawn.estimate({name: (partial(_share, *parts), len(parts[0])) for name, parts in sums.items()})
    intervals = found.intervals
    for name in _COUNTED:
        above, below = sums[name]
        n, some, less = (int(np.count_nonzero(of)) for of in (below, above, below - above))
        if name in intervals and min(some, less) < _FEW_TASKS:
            intervals[name] = exact_interval(found.values[name], n)
    values, savings = dict(found.values), {}
    for name, ((after, _), known) in saved.items():
        share, interval = values.pop(name), intervals.pop(name, None)
        each, lost = (float(ratio(after @ (one * known), one @ known)) for one in (fail, good))
        if (known * fail).any():
            savings[name] = Saving(share, interval, each, lost, int(known @ fail), int(fail.sum()))
    leads = np.sort(lead[(fail > 0) & (alert > 0)])
    low, median, high = np.quantile(leads, [0.25, 0.5, 0.75]) if len(leads) else (np.nan, np.nan, np.nan)
    return FirstAlerts(
        threshold=np.nan if isinstance(threshold, Sequence) else float(threshold),
        lead_median=float(median),
        lead_low=float(low),
        lead_high=float(high),
        leads=tuple(int(steps) for steps in leads),
        intervals=intervals,
        saved=savings,
        **values,
    )


def _after(values: Sequence[npt.ArrayLike], steps: Sequence[int | None]) -> tuple[Float, Float]:
    """Of each run what comes after its first alert, and all; what is not known counts as nothing."""
    each = [np.nan_to_num(np.asarray(one, dtype=np.float64)) for one in values]
    after = [0.0 if k is None else one[k:].sum() for one, k in zip(each, steps, strict=True)]
    return np.array(after, dtype=np.float64), np.array([one.sum() for one in each], dtype=np.float64)


def _known(values: Sequence[npt.ArrayLike]) -> Float:
    """1 for each run of which any step is known, else 0."""
    return np.array([not np.isnan(np.asarray(one, dtype=np.float64)).all() for one in values], dtype=np.float64)


def _share(above: Float, below: Float, weights: Float) -> Float:
    """above / below by task, (U,) each, weighed by (U,) or (R, U)."""
    return ratio(weights @ above, weights @ below)
