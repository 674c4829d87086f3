"""What the alarm would have done at each budget: who is alerted, how early, and what that costs.

A column is added in `_COLUMNS`; the terminal, the report and Markdown show it. JSON has the names in `_IN_JSON`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, GroupThresholds, Thresholds
from prefixguard.bundle import Bundle
from prefixguard.metrics import FirstAlerts, Prefixes, Resamples, first_alerts
from prefixguard.results import Block, Cell, Column, TableBlock, Text, number, percent, percents, plain_value
from prefixguard.runtime import plain

Float = npt.NDArray[np.float64]
#: Values of a group that a table lists; JSON has all.
SHOWN = 20
_NAME_LETTERS = 80
#: Figures of first alerts in JSON.
_IN_JSON = (
    *("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early"),
    *("lead_median", "lead_low", "lead_high", "steps_saved", "steps_lost", "intervals"),
)


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

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        has = self.thresholds
        found = {"value": self.value, "runs": self.runs, "threshold": has.alarm, "calibration_runs": has.n_runs}
        return {**found, **_figures(self.alerts)}


@dataclass(frozen=True, slots=True)
class AlertRow:
    """First alerts of one score at one budget.

    budget: share of successful runs that may alarm; None for a rule that has no budget.
    thresholds: what the budget led to for all runs. alerts: what came of it; None where the budget was refused.
    grouped_by, groups: where runs are judged by thresholds of their group, its name, and each part of the runs alone;
        `alerts` is then over all runs, each by its own threshold, and there even where the common one was refused.
    """

    budget: float | None
    thresholds: Thresholds
    alerts: FirstAlerts | None
    grouped_by: str | None = None
    groups: tuple[GroupAlerts, ...] = ()

    @property
    def reason(self) -> str | None:
        """Why there is no (common) alarm at this budget; None where there is."""
        return self.thresholds.reason

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        has, found = self.thresholds, self.alerts
        return {
            "budget": self.budget,
            "risk": "outcome",
            "threshold": has.alarm,
            **_figures(found),
            "text_saved": plain_value(found and found.text_saved),
            "text_lost": plain_value(found and found.text_lost),
            "saved": {} if found is None else plain_value(found.saved),
            "leads": [] if found is None else list(found.leads),
            "calibration_runs": has.n_runs,
            "calibration_runs_needed": has.needed,
            "reason": has.reason,
            "grouped_by": self.grouped_by,
            "groups": plain_value(self.groups),
        }


def _figures(found: FirstAlerts | None) -> dict[str, Any]:
    if found is None:
        return {**dict.fromkeys(_IN_JSON), "intervals": {}}
    return {name: plain_value(getattr(found, name)) for name in _IN_JSON}


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

    def in_force(self, common: Thresholds) -> list[float | None]:
        """The alarm threshold of each run, as a live run of its value gets it; None where it has none."""
        return [self.thresholds.pick(value, common).alarm for value in self.values]

    def parts(self) -> list[tuple[str | None, list[int]]]:
        """Values with a threshold of their own and the positions of their runs, in the order of values; at the end
        None and the runs that go by the common threshold. What no run has is left out."""
        own = {value for value, one in self.thresholds.of.items() if one.alarm is not None}
        places: dict[str | None, list[int]] = {}
        for place, value in enumerate(self.values):
            places.setdefault(value if value in own else None, []).append(place)
        return sorted(places.items(), key=lambda part: (part[0] is None, part[0] or ""))

    def as_json(self) -> dict[str, Any]:
        """The thresholds as plain values; alarm None where the common one holds, `reason` says why."""
        return {
            "by": self.thresholds.by,
            "of": {
                value: {
                    "alarm": one.alarm,
                    "watch": one.watch,
                    "runs": one.n_runs,
                    "needed": one.needed,
                    "reason": one.reason,
                }
                for value, one in self.thresholds.of.items()
            },
        }


def alert_rows(
    scores: Sequence[Float],
    prefixes: Prefixes,
    thresholds: Mapping[Any, Thresholds],
    policy: AlarmPolicy,
    *,
    horizon: int,
    resamples: Resamples,
    groups: AlarmGroups | None = None,
    sizes: Sequence[Float] | None = None,
    took: Mapping[str, Sequence[npt.ArrayLike]] = MappingProxyType({}),
) -> tuple[AlertRow, ...]:
    """A row a budget, ascending, a rule without budget first. Scores: the outcome scores, one (T,) a run.

    A rule alarms the moment it fires: `policy` is for thresholds that were set under it.
    thresholds: by budget; the key None is a rule that needs no calibration.
    groups: thresholds by group, which hold at the policy's own budget. sizes: bytes of text of each step, (T,) a run.
    """
    rows = []
    for budget in sorted(thresholds, key=lambda b: -1.0 if b is None else b):
        common = thresholds[budget]
        alerts_at = partial(
            first_alerts, policy=AlarmPolicy() if budget is None else policy, horizon=horizon, resamples=resamples
        )
        of_all = partial(alerts_at, sizes=sizes, took=took)
        by_group = groups if budget == policy.budget else None
        if by_group is None:
            at = common.alarm
            found = None if at is None else of_all(scores, prefixes.failed.tolist(), prefixes.task, at)
            rows.append(AlertRow(budget, common, found))
            continue
        parts = []
        for value, runs in by_group.parts():
            own = by_group.thresholds.pick(value, common)
            among = [scores[run] for run in runs], prefixes.failed[runs].tolist(), prefixes.task[runs]
            parts.append(
                GroupAlerts(value, own, len(runs), None if own.alarm is None else alerts_at(*among, own.alarm))
            )
        whole = of_all(scores, prefixes.failed.tolist(), prefixes.task, by_group.in_force(common))
        rows.append(AlertRow(budget, common, whole, by_group.thresholds.by, tuple(parts)))
    return tuple(rows)


def budget_of(alert: AlertRow) -> str:
    """A budget in words; a rule has none."""
    return "rule" if alert.budget is None else f"{100 * alert.budget:g} %"


def share_cell(found: FirstAlerts, which: str) -> Cell:
    """A share of first alerts, with its interval; an empty cell where it was not measured."""
    value = getattr(found, which)
    return Cell() if value is None else Cell(percent(value), percents(found.intervals.get(which)))


def lead_steps(found: FirstAlerts) -> Cell:
    """Steps left at the first alert: median, and quartiles."""
    return Cell(f"{found.lead_median:g}", f"[{found.lead_low:g}, {found.lead_high:g}]") if found.leads else Cell("–")


#: Columns after name, budget and threshold, and what fills them: a share of first alerts, or a function of them.
_COLUMNS: tuple[tuple[Column, str | Callable[[FirstAlerts], Cell]], ...] = (
    (Column("false alarms", "number"), "false_alarm_rate"),
    (Column("failed runs alerted", "number", "alerted", brief=True), "alerted"),
    (Column("alerted early", "number", "early"), "early"),
    (Column("lead, steps", "number", "lead"), lead_steps),
    (Column("steps saved", "number", "steps", brief=True), "steps_saved"),
    (Column("steps lost", "number", hidden=True), "steps_lost"),
    (Column("text saved", "number", "text", brief=True), "text_saved"),
)


def alert_blocks(rows: Mapping[str, Sequence[AlertRow]], horizon: int) -> tuple[Block, ...]:
    """The table by budget, why budgets were refused, and whose threshold runs are judged by; () where nothing alarms.

    rows: by name, the monitor's first; of others only what alarmed.
    """
    (first, own), *others = rows.items()
    shown = [(first, alert) for alert in own]
    shown += [(name, alert) for name, alerts in others for alert in alerts if alert.alerts]
    if not shown:
        return ()
    sized = any(alert.alerts is not None and alert.alerts.text_saved is not None for _, alert in shown)
    cells = [line for title, alert in shown for line in _lines(plain(title, _NAME_LETTERS), alert)]
    refused = [
        f"Refused at {budget_of(alert)}{' for all runs' if alert.groups else ''}: {alert.reason}"
        for _, alert in shown
        if alert.reason and (alert.alerts is None or alert.groups)
    ]
    head: list[str | Column] = ["Alarm by", "budget", "threshold", *(column for column, _ in _COLUMNS)]
    marked = {i for i, row in enumerate(cells) if row[0].text == first}
    blocks: list[Block] = [
        TableBlock.of("First alerts by budget, on the risk of failing at all", head, cells, marked=marked),
        Text(
            f"Budget: the share of successful runs that may ever alarm. Early: more than {horizon} steps were left. "
            "Lead: steps left at the first alert, median and quartiles. Steps saved: the share of the steps of "
            "failed runs that come after the alert. Steps lost, in the report: of successful runs, after a false alarm."
            + " Text saved: the same as steps saved, in bytes of the records, which do not count tokens."
            * sized
        ),
        *_savings(own),
        *(Text(reason, "faint") for reason in dict.fromkeys(refused)),
    ]
    for grouped in [alert for alert in own if alert.groups][:1]:
        by = plain(grouped.grouped_by or "", _NAME_LETTERS)
        blocks.append(
            Text(
                f"At {budget_of(grouped)} each run is judged by the threshold of its {by}, where that has one of its "
                "own, as it would be while it runs; at other budgets there is one for all. The rows below it are runs "
                "of each value alone."
            )
        )
    return tuple(blocks)


def _savings(own: Sequence[AlertRow]) -> Iterator[Block]:
    """What the monitor's own alerts save of seconds, tokens and dollars; nothing where no run says what it took."""
    rows, short = [], set[str]()
    for alert in own:
        for name, one in () if alert.alerts is None else alert.alerts.saved.items():
            share = Cell(percent(one.share), percents(one.interval))
            each, lost = (Cell(f"{value:,.4g}") for value in (one.each, one.lost))
            rows.append([Cell(budget_of(alert)), Cell(name), share, each, lost, Cell(f"{one.known:,} of {one.runs:,}")])
            short |= {name} if one.known < one.runs else set()
    if not rows:
        return
    numbers = [Column(name, "number") for name in ("saved", "a failed run", "lost")]
    yield TableBlock.of("What first alerts save of failed runs", ["budget", "of", *numbers, "known"], rows)
    unknown = (
        f" Runs that do not say it are unknown and count in no share: {', '.join(sorted(short))}." if short else ""
    )
    yield Text(
        "Saved: the share that comes after the alert, and the mean of a failed run. Lost: the mean of a successful "
        f"run, after a false alarm. Known: failed runs that say what their steps took.{unknown}"
    )


def _lines(title: str, alert: AlertRow) -> Iterator[list[Cell]]:
    """The line of an alert, and one for each group."""
    yield _line(title, alert, alert.thresholds, alert.alerts, "refused")
    for part in alert.groups[:SHOWN]:
        value = "others" if part.value is None else plain(part.value, _NAME_LETTERS)
        yield _line(f"· {value} ({part.runs:,} runs)", alert, part.thresholds, part.alerts, "none")
    if len(alert.groups) > SHOWN:
        yield [Cell(f"· and {len(alert.groups) - SHOWN} more")]


def _line(title: str, alert: AlertRow, has: Thresholds, found: FirstAlerts | None, without: str) -> list[Cell]:
    start = [Cell(title), Cell(budget_of(alert))]
    if found is None:
        return [*start, Cell(without)]
    at = math.nan if has.alarm is None else has.alarm  # a risk, or a number of steps; NaN: there is none for all runs
    threshold = "none" if math.isnan(at) else number(at) if at <= 1 else f"{at:g}"
    figures = (share_cell(found, what) if isinstance(what, str) else what(found) for _, what in _COLUMNS)
    return [*start, Cell("" if alert.budget is None else threshold), *figures]
