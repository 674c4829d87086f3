"""The result of an evaluation: figures of a monitor and of all that it has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.evaluation.alert_table import alert_blocks
from prefixguard.evaluation.alerts import AlarmGroups, AlertRow
from prefixguard.evaluation.figures import RiskFigures
from prefixguard.evaluation.risk_table import lead_cell, reading_help, risk_cells, risk_columns, whisker
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.verdict import Verdict
from prefixguard.results import Block, Cell, Column, Heading, Result, Table, Text, fields_of, number
from prefixguard.runtime import plain


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
class EvaluationTable(Result):
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
    sections: Mapping[str, Result] = field(default_factory=dict)
    behind: Behind | None = field(default=None, repr=False, compare=False)

    def with_sections(self, more: Mapping[str, Result]) -> EvaluationTable:
        """The same with further sections after those that are there."""
        return replace(self, sections={**self.sections, **more})

    def as_json(self) -> dict[str, Any]:
        """The stable structure that `evaluate --json` writes; plain values, no NaN."""
        found = fields_of(self)
        sections = found.pop("sections")
        out = self.left_out
        counts = {
            "left_out": out.runs,
            "left_out_by": {**out.by_use, "without_outcome": out.without_outcome, "empty": out.empty},
            "in_sample": out.in_sample > 0,
            "in_sample_runs": out.in_sample,
        }
        return {**found, **counts, **sections}

    def blocks(self) -> tuple[Block, ...]:
        """Counts, figures of both risks, first alerts, the sections, and the verdict in words."""
        return (
            *map(Text, self._head()),
            *self.score_blocks(),
            *self.alert_blocks(),
            *(block for section in self.sections.values() for block in section.blocks()),
            Heading("Verdict"),
            Text(self.verdict.text),
            *map(Text, self.notes),
        )

    def score_blocks(self) -> tuple[Block, ...]:
        """The monitor beside everything it has to beat, for both risks, and how to read that."""
        return (
            self._risk("imminent", f"Failing soon (imminent risk): fails, and ends within {self.horizon} more steps"),
            self._risk("outcome", "Failing at all (outcome risk): fails"),
            *reading_help(
                self.grouped_by,
                oracles=any(row.oracle for row in self.baselines.values()),
                more=["Ahead: the monitor's lead in AUPRC over that row, on the same resamples."],
            ),
        )

    def alert_blocks(self) -> tuple[Block, ...]:
        """What the alarm would have done, at each budget."""
        rows = {"monitor": self.first_alert, **{name: row.first_alert for name, row in self.baselines.items()}}
        return alert_blocks(rows, self.horizon)

    def _head(self) -> list[str]:
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
        parts += [f"{out.without_outcome:,} without outcome"] * bool(out.without_outcome)
        parts += [f"{out.empty:,} without steps"] * bool(out.empty)
        return [*lines, f"left out: {out.runs:,} runs ({', '.join(parts)})"] if parts else lines

    def _risk(self, which: str, meaning: str) -> Table:
        mine: RiskFigures = getattr(self, which)
        rows = [("monitor", mine, False)]
        rows += [(plain(name, 80), getattr(row, which), row.oracle) for name, row in self.baselines.items()]
        first, *others = risk_columns(self.grouped_by)
        ahead = Column("monitor ahead by", "number", "ahead")
        cells: list[list[str | Cell]] = []
        for name, figures, oracle in rows:
            auprc, *rest = risk_cells(figures)
            lead = lead_cell(figures.differences.get("auprc"))
            drawn = whisker(figures, mine.prevalence, oracle)
            cells.append([f"{name} *" if oracle else name, auprc, drawn, lead, *rest])
        caption = f"{meaning} (prevalence {number(mine.prevalence)})"
        return Table.of(caption, ["Scores by", first, Column("drawn, 0 to 1"), ahead, *others], cells, marked={0})
