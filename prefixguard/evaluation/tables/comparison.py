"""Monitors on the same runs, that none of them was made from: what a comparison finds, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.tables.alerts import AlertRow, budget_of, lead_steps, share_cell
from prefixguard.evaluation.tables.evaluation_table import counts_of_runs
from prefixguard.evaluation.tables.figures import (
    Difference,
    RiskFigures,
    lead_cell,
    reading_help,
    risk_cells,
    risk_columns,
)
from prefixguard.results import Block, Cell, Column, Result, TableBlock, Text, fields_of, percent, plain_value
from prefixguard.runtime import plain

#: The figure whose difference is shown, of either risk: its name in the head, and in JSON.
_SHOWN = {"imminent": ("AUPRC", "auprc"), "outcome": ("idx", "outcome_auroc_at_index")}
#: Figures that are not shown.
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

    def as_json(self) -> dict[str, Any]:
        """The row, and how it differs from the first."""
        found = fields_of(self)
        return {**found.pop("row"), **found}


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

    def as_json(self) -> dict[str, Any]:
        """Its fields; first alerts under the name they have in an evaluation."""
        found = fields_of(self)
        alerts = found.pop("alerts")
        return {**found, "first_alert": alerts}


@dataclass(frozen=True, slots=True)
class Comparison(Result):
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
            **fields_of(self),
            "left_out": sum(self.left_out.values()),
            "left_out_by": plain_value(self.left_out),
            "in_sample": self.in_sample > 0,
            "in_sample_runs": self.in_sample,
        }

    def blocks(self) -> tuple[Block, ...]:
        """Counts, figures of both risks and first alerts of every monitor, and notes."""
        head = counts_of_runs(
            f"{len(self.monitors)} monitors on {self.runs:,} runs of {self.tasks:,} tasks, {self.failed_runs:,} failed "
            f"({100 * self.failed_runs / self.runs:.1f} %)",
            self.in_sample,
            "a monitor",
            {reason.replace("empty", "without steps").replace("_", " "): n for reason, n in self.left_out.items()},
        )
        return (
            *map(Text, head),
            self._risk("Imminent risk", "imminent"),
            self._risk("Outcome risk", "outcome"),
            reading_help(self.grouped_by, oracles=False, more="The same resamples for all, and one clock."),
            *self._alerts(),
            *([Text("The end oracle knows what no monitor can know.")] if self.clocks else []),
            *map(Text, self.notes),
        )

    def _risk(self, title: str, which: str) -> TableBlock:
        short, shown = _SHOWN[which]
        rows = [(column.name, f"{column.horizon}", getattr(column, which), column.ahead) for column in self.monitors]
        rows += [(name, "", risks[which], {}) for name, risks in self.clocks.items()]
        cells: list[list[str | Cell]] = [
            [
                plain(name, 40),
                horizon if which == "imminent" else "",
                *risk_cells(figures, _NOT_SHOWN),
                lead_cell(ahead.get(which, {}).get(shown)),
            ]
            for name, horizon, figures, ahead in rows
        ]
        last = Column(f"{short}: minus the first", "number")
        return TableBlock.of(title, ["", "H", *risk_columns(self.grouped_by, _NOT_SHOWN), last], cells)

    def _alerts(self) -> Iterator[Block]:
        """The monitors below each other, budget by budget; a budget that all refuse is only named."""
        cells: list[list[str | Cell]] = []
        refused = []
        for at_budget in zip(*(column.alerts for column in self.monitors), strict=True):
            granted = any(alerts.row.alerts is not None for alerts in at_budget)
            for column, alerts in zip(self.monitors, at_budget, strict=True):
                budget, found = budget_of(alerts.row), alerts.row.alerts
                if found is not None:
                    counts = (alerts.only_this, alerts.only_first, alerts.both)
                    figures = [
                        share_cell(found, "false_alarm_rate"),
                        Cell(percent(found.alerted), _points(alerts.ahead.get("alerted"))),
                        Cell(percent(found.early), _points(alerts.ahead.get("early"))),
                        lead_steps(found),
                        Cell("" if None in counts else "/".join(f"{count:,}" for count in counts)),
                    ]
                    cells.append([plain(column.name, 40), budget, *figures])
                    continue
                has = alerts.row.thresholds
                refused.append(f"{column.name} at {budget} (has {has.n_runs:,}, needs {has.needed:,})")
                if granted:
                    cells.append([plain(column.name, 40), budget, "refused"])
        if cells:
            head = ["", "budget", "false alarms", "alerted", "early", "lead", "it/first/both"]
            yield TableBlock.of("First alerts, on the outcome risk", head, cells)
            yield Text(
                f"Early: more than {self.horizon} steps left. After alerted and early: per cent points ahead of the "
                "first. Lead: steps left, median and quartiles. It/first/both: failed runs that only it alerts, only "
                "the first, both."
            )
        if refused:
            why = "for too few successful calibration runs, one a task"
            yield Text(f"Alarms refused {why}: {'; '.join(refused)}.")


def _points(difference: Difference | None) -> str:
    if difference is None:
        return ""
    ends = "" if difference.interval is None else " [{:+.0f}, {:+.0f}]".format(*(100 * v for v in difference.interval))
    return f"{100 * difference.value:+.0f}{ends}" if math.isfinite(difference.value) else "–"
