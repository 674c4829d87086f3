"""The result of an evaluation: figures, as JSON and as plain text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from prefixguard.evaluation.alarm_groups import AlarmGroups
from prefixguard.evaluation.alerts import AlertRow, GroupAlerts
from prefixguard.evaluation.figures import RiskFigures
from prefixguard.evaluation.risk_cells import ahead_by, risk_cells, risk_head
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.verdict import Verdict
from prefixguard.metrics import FirstAlerts
from prefixguard.results import aligned, number, percent, percents, wrapped
from prefixguard.runtime import plain

#: Values of a group that the text lists; JSON has all.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that were not evaluated, and why.

    by_use: runs whose task (or whose word-for-word repeat) the monitor was trained, validated or calibrated on, by use.
    without_outcome: runs whose end nobody judged. empty: runs without a step.
    in_sample: such runs that were counted nevertheless, because that was asked for: the figures flatter the monitor.
    """

    by_use: Mapping[str, int] = field(default_factory=dict)
    without_outcome: int = 0
    empty: int = 0
    in_sample: int = 0

    @property
    def runs(self) -> int:
        """All runs left out."""
        return sum(self.by_use.values()) + self.without_outcome + self.empty


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """Figures of what the monitor has to beat. oracle: it knows what no monitor can know."""

    imminent: RiskFigures
    outcome: RiskFigures
    first_alert: tuple[AlertRow, ...]
    oracle: bool
    note: str


class Section(Protocol):
    """What stands beside the table: a scale, an audit, facts about the monitor."""

    def as_json(self) -> Mapping[str, Any]:
        """Plain values, no NaN."""
        ...

    def to_text(self) -> str:
        """Plain text, at most 118 columns wide."""
        ...


#: A run as it is found again in another reading of the same source: run id, and digest of its records.
RunKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Behind:
    """Scores and runs behind a table, from which a report draws; no part of JSON.

    rows: the monitor first, then every row in the table's order. tasks, failed, lengths, keys: one a run; no keys where
    only scores were given. groups: as `grouped_by`, or None. alarm_groups: thresholds by group, where there are such.
    """

    rows: tuple[ScoreRow, ...]
    tasks: tuple[str, ...]
    failed: tuple[bool, ...]
    lengths: tuple[int, ...]
    groups: tuple[str, ...] | None = None
    alarm_groups: AlarmGroups | None = None
    keys: tuple[RunKey, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationTable:
    """Everything one evaluation found. Figures that do not exist are NaN here, null in JSON and – in text.

    sections: by the name under which they stand in JSON, in the order in which they are shown.
    """

    runs: int
    failed_runs: int
    tasks: int
    prefixes: int
    unknown_prefixes: int
    horizon: int
    grouped_by: str | None
    left_out: LeftOut
    imminent: RiskFigures
    outcome: RiskFigures
    first_alert: tuple[AlertRow, ...]
    baselines: Mapping[str, BaselineRow]
    verdict: Verdict
    notes: tuple[str, ...] = ()
    sections: Mapping[str, Section] = field(default_factory=dict)
    behind: Behind | None = field(default=None, repr=False, compare=False)

    def with_sections(self, more: Mapping[str, Section]) -> EvaluationTable:
        """The same with further sections after those that are there."""
        return replace(self, sections={**self.sections, **more})

    def as_json(self) -> dict[str, Any]:
        """The stable structure that `evaluate --json` writes; plain values, no NaN."""
        return {
            "runs": self.runs,
            "failed_runs": self.failed_runs,
            "tasks": self.tasks,
            "prefixes": self.prefixes,
            "unknown_prefixes": self.unknown_prefixes,
            "left_out": self.left_out.runs,
            "left_out_by": {
                **self.left_out.by_use,
                "without_outcome": self.left_out.without_outcome,
                "empty": self.left_out.empty,
            },
            "in_sample": self.left_out.in_sample > 0,
            "in_sample_runs": self.left_out.in_sample,
            "horizon": self.horizon,
            "grouped_by": self.grouped_by,
            "imminent": self.imminent.as_json(),
            "outcome": self.outcome.as_json(),
            "first_alert": [row.as_json() for row in self.first_alert],
            "baselines": {
                name: {
                    "imminent": row.imminent.as_json(),
                    "outcome": row.outcome.as_json(),
                    "first_alert": [alert.as_json() for alert in row.first_alert],
                    "oracle": row.oracle,
                    "note": row.note,
                }
                for name, row in self.baselines.items()
            },
            "verdict": {
                "rankable": self.verdict.rankable,
                "alarm_separable": self.verdict.alarm_separable,
                "text": self.verdict.text,
            },
            "notes": list(self.notes),
            **{name: section.as_json() for name, section in self.sections.items()},
        }

    def to_json(self) -> str:
        """`as_json` as one line of text."""
        return json.dumps(self.as_json(), allow_nan=False, ensure_ascii=False)

    def to_text(self) -> str:
        """Plain aligned text, no colours, at most 120 columns wide, ending without a newline."""
        blocks = [
            self._head(),
            self._risk("Imminent risk", f"fails, and ends within {self.horizon} more steps", "imminent"),
            self._risk("Outcome risk", "fails", "outcome"),
            self._alerts(),
            self._legend(),
            *(section.to_text() for section in self.sections.values()),
        ]
        blocks.append("\n".join(wrapped(line) for line in (self.verdict.text, *self.notes)))
        return "\n\n".join(block for block in blocks if block)

    def _head(self) -> str:
        share = 100 * self.failed_runs / self.runs
        lines = [
            f"{self.runs:,} runs of {self.tasks:,} tasks, {self.failed_runs:,} failed ({share:.1f} %), "
            f"{self.prefixes:,} prefixes"
        ]
        out = self.left_out
        if out.in_sample:
            lines.append(
                f"IN SAMPLE: {out.in_sample:,} runs are of tasks the monitor was made from; the figures flatter it"
            )
        parts = [f"{count:,} {use}" for use, count in out.by_use.items() if count]
        if out.without_outcome:
            parts.append(f"{out.without_outcome:,} without outcome")
        if out.empty:
            parts.append(f"{out.empty:,} without steps")
        if parts:
            lines.append(f"left out: {out.runs:,} runs ({', '.join(parts)})")
        return "\n".join(lines)

    def _risk(self, title: str, meaning: str, which: str) -> str:
        figures: RiskFigures = getattr(self, which)
        rows = [("monitor", figures)]
        for name, baseline in self.baselines.items():
            rows.append((f"{name} *" if baseline.oracle else name, getattr(baseline, which)))
        cells = [["", *risk_head(), "AUPRC: ahead by"]]
        cells += [[name, *risk_cells(row), ahead_by(row.differences.get("auprc"))] for name, row in rows]
        return f"{title}: {meaning} (prevalence {number(figures.prevalence)})\n" + aligned(cells)

    def _alerts(self) -> str:
        rows = [("monitor", alert) for alert in self.first_alert]
        for name, row in self.baselines.items():
            rows.extend((name, alert) for alert in row.first_alert)
        if not rows:
            return ""
        head = ["", "budget", "threshold", "false alarms", "", "alerted", "early", "", "lead", "steps", "text"]
        cells, refused = [head], []
        for name, alert in rows:
            budget = "rule" if alert.budget is None else f"{100 * alert.budget:g} %"
            if name == "monitor" and alert.reason is not None:
                refused.append(f"Refused at {budget}{' for all runs' if alert.groups else ''}: {alert.reason}")
            if alert.alerts is not None:
                text = "" if alert.text is None else percent(alert.text.saved)
                cells.append([name, budget, *_alert_cells(alert.alerts, rule=alert.budget is None), text])
            elif name == "monitor":  # a baseline without an alarm is not worth a line
                cells.append([name, budget, "refused"])
            cells += [[_part_name(part), budget, *_part_cells(part)] for part in alert.groups[:SHOWN]]
            if len(alert.groups) > SHOWN:
                cells.append([f"  and {len(alert.groups) - SHOWN} more"])
        title = (
            "First alerts, on the outcome risk (early: more than "
            f"{self.horizon} steps left; lead: steps left, median and quartiles; steps: share of the "
            "steps of failed runs that is saved, being after the alert"
        )
        if any(alert.text is not None for _, alert in rows):
            title += "; text: the same of the bytes of their records"
        lines = [wrapped(f"{title})"), aligned(cells), *(wrapped(reason) for reason in dict.fromkeys(refused))]
        own = next((alert for alert in self.first_alert if alert.groups), None)
        if own is not None and own.budget is not None:
            lines.append(
                wrapped(
                    f"At {100 * own.budget:g} % each run is judged by the threshold of its "
                    f"{plain(own.grouped_by or '', 40)}, where that has one of its own, as it would be while it runs; "
                    "at other budgets there is one threshold for all. The rows below it are runs of each value "
                    "alone, counted in brackets."
                )
            )
        return "\n".join(lines)

    def _legend(self) -> str:
        lines = [
            "rem, idx: AUROC of failed against successful runs at equally many remaining steps (0-10) or passed steps "
            "(1-30).",
            "within: rem among runs of the same "
            + (self.grouped_by or "agent; these runs name none, or only one")
            + ". Brackets: 95 %, bootstrap over tasks.",
        ]
        if any(row.oracle for row in self.baselines.values()):
            lines.append("*: knows what no monitor can know.")
        return "\n".join(lines)


def _alert_cells(found: FirstAlerts, *, rule: bool = False) -> list[str]:
    lead = f"{found.lead_median:g} [{found.lead_low:.0f}, {found.lead_high:.0f}]" if found.leads else ""
    mark = "" if rule else "none" if math.isnan(found.threshold) else f"{found.threshold:.4g}"
    return [
        mark,
        percent(found.false_alarm_rate),
        percents(found.intervals.get("false_alarm_rate")),
        percent(found.alerted),
        percent(found.early),
        percents(found.intervals.get("early")),
        lead,
        percent(found.steps_saved),
    ]


def _part_name(part: GroupAlerts) -> str:
    value = "others" if part.value is None else plain(part.value, 12)
    return f"  {value} ({part.runs:,})"


def _part_cells(part: GroupAlerts) -> list[str]:
    return ["none"] if part.alerts is None else _alert_cells(part.alerts)
