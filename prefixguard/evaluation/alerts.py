"""First alerts of a score at each budget, and the alarm threshold of each run where groups have their own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, GroupThresholds, Thresholds, first_alert
from prefixguard.bundle import Bundle
from prefixguard.metrics import FirstAlerts, Prefixes, Resamples, first_alerts, interval, ratio
from prefixguard.results import finite

Float = npt.NDArray[np.float64]
_SHARES = ("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early")
_LEADS = ("lead_median", "lead_low", "lead_high", "steps_saved", "steps_lost")


@dataclass(frozen=True, slots=True)
class TextSaved:
    """Text after first alerts, in bytes of what the records hold: a stand-in for tokens, which records do not count.

    saved: share of the text of failed runs that comes after their first alert. lost: the same of successful runs.
    Both in [0, 1], NaN where no run could count. intervals: 95 % over tasks, by name.
    """

    saved: float
    lost: float
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class GroupAlerts:
    """First alerts among the runs of one value of a group, by its own threshold.

    value: None for the runs that go by the common threshold. runs: of this value among those evaluated.
    alerts: None where these runs have no threshold at all.
    """

    value: str | None
    thresholds: Thresholds
    runs: int
    alerts: FirstAlerts | None


@dataclass(frozen=True, slots=True)
class AlertRow:
    """First alerts of one score at one budget.

    budget: share of successful runs that may alarm; None for a rule that has no budget.
    thresholds: what the budget led to for all runs. alerts: what came of it; None where the budget was refused.
    grouped_by, groups: where runs are judged by thresholds of their group, its name, and each part of the runs alone;
        `alerts` is then over all runs, each by its own threshold, and there even where the common one was refused.
    text: None where the sizes of steps are not known.
    """

    budget: float | None
    thresholds: Thresholds
    alerts: FirstAlerts | None
    grouped_by: str | None = None
    groups: tuple[GroupAlerts, ...] = ()
    text: TextSaved | None = None

    @property
    def reason(self) -> str | None:
        """Why there is no (common) alarm at this budget; None where there is."""
        return self.thresholds.reason

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        text = self.text
        spreads = {} if text is None else {f"text_{name}": list(ends) for name, ends in text.intervals.items()}
        shares = _shares_json(self.alerts)
        return {
            "budget": self.budget,
            "risk": "outcome",
            "threshold": self.thresholds.alarm,
            **shares,
            "text_saved": None if text is None else finite(text.saved),
            "text_lost": None if text is None else finite(text.lost),
            "leads": [] if self.alerts is None else list(self.alerts.leads),
            "intervals": {**shares["intervals"], **spreads},
            "calibration_runs": self.thresholds.n_runs,
            "calibration_runs_needed": self.thresholds.needed,
            "reason": self.reason,
            "grouped_by": self.grouped_by,
            "groups": [
                {
                    "value": part.value,
                    "runs": part.runs,
                    "threshold": part.thresholds.alarm,
                    "calibration_runs": part.thresholds.n_runs,
                    **_shares_json(part.alerts),
                }
                for part in self.groups
            ],
        }


def _shares_json(found: FirstAlerts | None) -> dict[str, Any]:
    return {
        **{name: None if found is None else finite(getattr(found, name)) for name in (*_SHARES, *_LEADS)},
        "intervals": {} if found is None else {name: list(ends) for name, ends in found.intervals.items()},
    }


@dataclass(frozen=True, slots=True)
class AlarmGroups:
    """Thresholds by group, and which value of that group each run has.

    They hold at the budget of the monitor's own policy; at all other budgets there is the common threshold alone.
    values: one a run, None where the run has no such group.
    """

    thresholds: GroupThresholds
    values: tuple[str | None, ...]

    @classmethod
    def of(cls, bundle: Bundle, groups: Sequence[Mapping[str, str]]) -> AlarmGroups | None:
        """Of these runs, `groups` being those of each; None where the monitor has no thresholds by group."""
        found = bundle.calibration.groups
        return None if found is None else cls(found, tuple(group.get(found.by) for group in groups))

    def has_own(self, value: str | None) -> bool:
        """Whether runs of this value have a threshold of their own."""
        own = None if value is None else self.thresholds.of.get(value)
        return own is not None and own.alarm is not None

    def marks(self, common: Thresholds) -> list[float | None]:
        """The alarm threshold in force for each run, as a live run of its value gets it; None where it has none."""
        return [self.thresholds.pick(value, common).alarm for value in self.values]

    def parts(self) -> list[tuple[str | None, npt.NDArray[np.int64]]]:
        """Values with a threshold of their own and the positions of their runs, in the order of values; at the end
        None and the runs that go by the common threshold. What no run has is left out."""
        kept = [value if self.has_own(value) else None for value in self.values]
        order = [*sorted(value for value in set(kept) if value is not None), None]
        counts = Counter(kept)
        return [
            (value, np.array([i for i, one in enumerate(kept) if one == value], dtype=np.int64))
            for value in order
            if counts[value]
        ]

    def as_json(self) -> dict[str, Any]:
        """The thresholds as plain values."""
        return thresholds_json(self.thresholds)


def thresholds_json(groups: GroupThresholds) -> dict[str, Any]:
    """Thresholds by group as plain values; alarm None where the common one holds, `reason` says why.

    >>> found = GroupThresholds("tier", {"gold": Thresholds(0.8, 0.3, 30, 0, 22, None)})
    >>> thresholds_json(found)["of"]["gold"]
    {'alarm': 0.8, 'watch': 0.3, 'runs': 30, 'needed': 22, 'reason': None}
    """
    return {
        "by": groups.by,
        "of": {
            value: {
                "alarm": one.alarm,
                "watch": one.watch,
                "runs": one.n_runs,
                "needed": one.needed,
                "reason": one.reason,
            }
            for value, one in groups.of.items()
        },
    }


def crossings(scores: Sequence[Float], marks: Sequence[float | None]) -> list[Float]:
    """1 where a score lies above its own run's mark, else 0; NaN where it was not judged; (T,) a run.

    Above a mark of 0.5 these alarm exactly where the scores alarm above their own marks.
    """
    return [
        np.where(np.isnan(score), np.nan, np.zeros(len(score)) if mark is None else (score > mark).astype(np.float64))
        for score, mark in zip(scores, marks, strict=True)
    ]


def alert_rows(
    scores: Sequence[Float],
    prefixes: Prefixes,
    thresholds: Mapping[float | None, Thresholds],
    policy: AlarmPolicy,
    *,
    horizon: int,
    resamples: Resamples,
    groups: AlarmGroups | None = None,
    sizes: Sequence[Float] | None = None,
) -> tuple[AlertRow, ...]:
    """A row a budget, ascending, a rule without budget first. Scores: the outcome scores, one (T,) a run.

    A rule alarms the moment it fires: `policy` is for thresholds that were set under it.
    groups: thresholds by group, which hold at the policy's own budget. sizes: bytes of text of each step, (T,) a run.
    """
    rows = []
    for budget in sorted(thresholds, key=lambda b: -1.0 if b is None else b):
        mark = thresholds[budget]
        under = AlarmPolicy() if budget is None else policy
        by_group = groups if budget == policy.budget else None
        if mark.alarm is None and by_group is None:
            rows.append(AlertRow(budget, mark, None))
            continue
        marks = [mark.alarm] * len(scores) if by_group is None else by_group.marks(mark)
        over = crossings(scores, marks)
        alerts_of = partial(_alerts, over, prefixes, under, horizon, resamples)
        parts: list[GroupAlerts] = []
        for value, runs in () if by_group is None else by_group.parts():
            own = mark if by_group is None else by_group.thresholds.pick(value, mark)
            there = None if own.alarm is None else alerts_of(runs, own.alarm)
            parts.append(GroupAlerts(value, own, len(runs), there))
        rows.append(
            AlertRow(
                budget,
                mark,
                alerts_of(np.arange(len(scores)), mark.alarm),
                None if by_group is None else by_group.thresholds.by,
                tuple(parts),
                None if sizes is None else _text_saved(over, sizes, prefixes, under, resamples),
            )
        )
    return tuple(rows)


def _alerts(
    over: Sequence[Float],
    prefixes: Prefixes,
    policy: AlarmPolicy,
    horizon: int,
    resamples: Resamples,
    runs: npt.NDArray[np.int64],
    threshold: float | None,
) -> FirstAlerts:
    """Of these runs, by their crossings. threshold: the one to name; None: there is none for all."""
    found = first_alerts(
        [over[i] for i in runs.tolist()],
        prefixes.failed[runs].tolist(),
        prefixes.task[runs],
        0.5,
        policy,
        horizon=horizon,
        resamples=resamples,
    )
    return replace(found, threshold=math.nan if threshold is None else float(threshold))


def _text_saved(
    over: Sequence[Float], sizes: Sequence[Float], prefixes: Prefixes, policy: AlarmPolicy, resamples: Resamples
) -> TextSaved:
    n_units = resamples.weights.shape[1]
    steps = [first_alert(one, 0.5, policy) for one in over]
    after = np.array([0.0 if k is None else size[k:].sum() for size, k in zip(sizes, steps, strict=True)])
    whole = np.array([size.sum() for size in sizes])
    value: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name, among in (("saved", prefixes.failed), ("lost", ~prefixes.failed)):
        # By task, (U, 2): bytes after the alert, and all bytes.
        sums = np.stack(
            [np.bincount(prefixes.task, weights=part * among, minlength=n_units) for part in (after, whole)], axis=1
        ).astype(np.float64)
        share = partial(_share, sums)
        value[name] = float(share(np.ones(n_units)))
        found = interval(resamples.figures(share, 2 * n_units))
        if found is not None and not math.isnan(value[name]):
            intervals[name] = found
    return TextSaved(value["saved"], value["lost"], intervals)


def _share(sums: Float, weights: Float) -> Float:
    """First column over second, of rows drawn by weights, (U,) or (R, U)."""
    return ratio(weights @ sums[:, 0], weights @ sums[:, 1])
