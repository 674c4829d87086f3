"""The result of a comparison: figures of several monitors on the same runs, as JSON and as plain text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.alerts import AlertRow
from prefixguard.evaluation.figures import Difference, RiskFigures, differences_json
from prefixguard.evaluation.risk_cells import ahead_by, risk_cells, risk_head
from prefixguard.results import aligned, percent, percents, wrapped
from prefixguard.runtime import plain

#: The figure whose difference stands in the text, of either risk.
_SHOWN = {"imminent": ("AUPRC", "auprc"), "outcome": ("rem", "outcome_auroc_at_remaining")}
#: Figures that the text leaves out.
_NOT_SHOWN = ("auroc",)


@dataclass(frozen=True, slots=True)
class MonitorAlerts:
    """First alerts of one monitor at a budget that all monitors have.

    row: what came of it. ahead: this monitor minus the first, by share (false_alarm_rate, alerted, early); empty where
        either was refused, and for the first itself.
    both, only_this, only_first: failed runs that both alert, that only this one alerts, that only the first alerts;
        None as above.
    """

    row: AlertRow
    ahead: Mapping[str, Difference]
    both: int | None
    only_this: int | None
    only_first: int | None


@dataclass(frozen=True, slots=True)
class MonitorColumn:
    """One monitor.

    name: of its folder. id, adapter, backend: of its bundle. horizon: H of its imminent risk.
    used: runs that are of its own making; left out, or, where that was asked for, counted.
    prefixes, unknown_prefixes: what it read, and what of it it did not judge.
    ahead: risk -> figure -> this monitor minus the first; empty where their prefixes cannot be paired.
    """

    name: str
    id: str
    adapter: str
    backend: str
    horizon: int
    used: int
    prefixes: int
    unknown_prefixes: int
    imminent: RiskFigures
    outcome: RiskFigures
    ahead: Mapping[str, Mapping[str, Difference]]
    alerts: tuple[MonitorAlerts, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several monitors on the runs that all of them read and none was made from.

    paired: every run has as many steps for every monitor, so that prefixes can be compared one by one.
    left_out: runs that are not counted, by reason. in_sample: runs counted although some monitor was made from them.
    clocks: figures of the step index and of the end oracle on the same prefixes, by risk; empty where not paired.
    monitors: the first is what the others are compared with.
    """

    runs: int
    failed_runs: int
    tasks: int
    paired: bool
    grouped_by: str | None
    left_out: Mapping[str, int]
    in_sample: int
    horizon: int
    monitors: tuple[MonitorColumn, ...]
    clocks: Mapping[str, Mapping[str, RiskFigures]]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        return {
            "runs": self.runs,
            "failed_runs": self.failed_runs,
            "tasks": self.tasks,
            "paired": self.paired,
            "grouped_by": self.grouped_by,
            "left_out": sum(self.left_out.values()),
            "left_out_by": dict(self.left_out),
            "in_sample": self.in_sample > 0,
            "in_sample_runs": self.in_sample,
            "horizon": self.horizon,
            "monitors": [_column_json(column) for column in self.monitors],
            "clocks": {
                name: {risk: figures.as_json() for risk, figures in risks.items()}
                for name, risks in self.clocks.items()
            },
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """`as_json` as one line of text."""
        return json.dumps(self.as_json(), allow_nan=False, ensure_ascii=False)

    def to_text(self) -> str:
        """Plain aligned text of at most 118 columns, ending without a newline."""
        share = 100 * self.failed_runs / self.runs
        head = [
            f"{len(self.monitors)} monitors on {self.runs:,} runs of {self.tasks:,} tasks, {self.failed_runs:,} failed "
            f"({share:.1f} %)"
        ]
        if self.in_sample:
            head.append(
                f"IN SAMPLE: {self.in_sample:,} runs are of tasks that a monitor was made from; the figures flatter it"
            )
        parts = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in self.left_out.items() if count]
        if parts:
            head.append(f"left out: {sum(self.left_out.values()):,} runs ({', '.join(parts)})")
        blocks = ["\n".join(wrapped(line) for line in head)]
        blocks += [self._risk("Imminent risk", "imminent"), self._risk("Outcome risk", "outcome"), self._alerts()]
        blocks.append("\n".join(wrapped(line) for line in self._legend()))
        return "\n\n".join(block for block in blocks if block)

    def _risk(self, title: str, which: str) -> str:
        short, shown = _SHOWN[which]
        horizon_head = "H" if which == "imminent" else ""
        cells = [["", horizon_head, *risk_head(_NOT_SHOWN), f"{short}: minus the first"]]
        rows: list[tuple[str, str, RiskFigures, Difference | None]] = []
        for column in self.monitors:
            horizon = str(column.horizon) if which == "imminent" else ""
            ahead = column.ahead.get(which, {}).get(shown)
            rows.append((plain(column.name, 18), horizon, getattr(column, which), ahead))
        rows += [(name, "", risks[which], None) for name, risks in self.clocks.items()]
        for name, horizon, figures, ahead in rows:
            cells.append([name, horizon, *risk_cells(figures, _NOT_SHOWN), ahead_by(ahead)])
        return f"{title}\n{aligned(cells)}"

    def _alerts(self) -> str:
        """A block a budget, monitors below each other; a budget that all refuse is only named."""
        cells = [["", "budget", "false alarms", "", "alerted", "", "early", "", "lead", "it/first/both"]]
        refused = []
        for beside in zip(*(column.alerts for column in self.monitors), strict=True):
            budget = f"{100 * (beside[0].row.budget or 0):g} %"
            for column, alerts in zip(self.monitors, beside, strict=True):
                found = alerts.row.alerts
                if found is None:
                    marks = alerts.row.thresholds
                    refused.append(f"{column.name} at {budget} (has {marks.n_runs:,}, needs {marks.needed:,})")
                    if any(other.row.alerts is not None for other in beside):
                        cells.append([plain(column.name, 18), budget, "refused"])
                    continue
                lead = f"{found.lead_median:g} [{found.lead_low:.0f}, {found.lead_high:.0f}]" if found.leads else ""
                counts = (alerts.only_this, alerts.only_first, alerts.both)
                cells.append(
                    [
                        plain(column.name, 18),
                        budget,
                        percent(found.false_alarm_rate),
                        percents(found.intervals.get("false_alarm_rate")),
                        percent(found.alerted),
                        _points(alerts.ahead.get("alerted")),
                        percent(found.early),
                        _points(alerts.ahead.get("early")),
                        lead,
                        "" if None in counts else "/".join(f"{count:,}" for count in counts),
                    ]
                )
        lines = []
        if len(cells) > 1:
            lines += [
                wrapped(
                    f"First alerts, on the outcome risk. early: more than {self.horizon} steps left. After alerted and "
                    "early: per cent points ahead of the first. lead: steps left, median and quartiles. it/first/"
                    "both: failed runs that only it alerts, only the first, both."
                ),
                aligned(cells),
            ]
        if refused:
            why = "for too few successful calibration runs, one a task"
            lines.append(wrapped(f"Alarms refused {why}: {'; '.join(refused)}."))
        return "\n".join(lines)

    def _legend(self) -> list[str]:
        lines = [
            "rem, idx: AUROC of failed against successful runs at equally many remaining steps (0-10) or passed steps "
            "(1-30). within: rem among runs of the same "
            + (self.grouped_by or "agent; these runs name none, or only one")
            + ". Brackets: 95 %, bootstrap over tasks, the same resamples for all."
        ]
        if self.clocks:
            lines.append("The end oracle knows what no monitor can know.")
        return [*lines, *self.notes]


def _points(difference: Difference | None) -> str:
    if difference is None:
        return ""
    ends = "" if difference.interval is None else " [{:+.0f}, {:+.0f}]".format(*(100 * v for v in difference.interval))
    return f"{100 * difference.value:+.0f}{ends}" if math.isfinite(difference.value) else "–"


def _column_json(column: MonitorColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "id": column.id,
        "adapter": column.adapter,
        "backend": column.backend,
        "horizon": column.horizon,
        "used": column.used,
        "prefixes": column.prefixes,
        "unknown_prefixes": column.unknown_prefixes,
        "imminent": column.imminent.as_json(),
        "outcome": column.outcome.as_json(),
        "ahead": {risk: differences_json(found) for risk, found in column.ahead.items()},
        "first_alert": [_alerts_json(alerts) for alerts in column.alerts],
    }


def _alerts_json(alerts: MonitorAlerts) -> dict[str, Any]:
    return {
        **alerts.row.as_json(),
        "ahead": differences_json(alerts.ahead),
        "both": alerts.both,
        "only_this": alerts.only_this,
        "only_first": alerts.only_first,
    }
