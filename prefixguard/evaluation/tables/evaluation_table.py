"""The result of an evaluation: figures of a monitor and of all that it has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.evaluation.tables.alerts import AlarmGroups, AlertRow, alert_blocks
from prefixguard.evaluation.tables.figures import RiskFigures, reading_help, risk_table
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.evaluation.tables.verdict import EvaluationVerdict
from prefixguard.metrics import Prefixes
from prefixguard.results import Block, Heading, Result, Text, fields_of, number
from prefixguard.runtime import plain


@dataclass(frozen=True, slots=True)
class RunsLeftOut:
    """Runs that were not evaluated, and why.

    by_use: runs whose task (or whose word-for-word repeat) the monitor was trained, validated or calibrated on, by use.
    without_outcome: runs whose outcome is not known. empty: runs without a step.
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

    @property
    def prefixes(self) -> Prefixes:
        """All prefixes of the runs."""
        return Prefixes.of(self.lengths, self.failed, self.tasks)


@dataclass(frozen=True, slots=True)
class EvaluationTable(Result):
    """Everything one evaluation found. Figures that do not exist are NaN here, null in JSON and – in text.

    sections: by the name that they have in JSON, in the order in which they are shown.
    """

    runs: int
    failed_runs: int
    tasks: int
    prefixes: int
    unknown_prefixes: int
    horizon: int
    grouped_by: str | None
    left_out: RunsLeftOut
    imminent: RiskFigures
    outcome: RiskFigures
    first_alert: tuple[AlertRow, ...]
    baselines: Mapping[str, BaselineRow]
    verdict: EvaluationVerdict
    notes: tuple[str, ...] = ()
    sections: Mapping[str, Result] = field(default_factory=dict)
    behind: Behind | None = field(default=None, repr=False, compare=False)

    def with_sections(self, more: Mapping[str, Result]) -> EvaluationTable:
        """The same with further sections after those that are there."""
        return replace(self, sections={**self.sections, **more})

    def as_json(self) -> dict[str, Any]:
        """The stable structure that `evaluate --json` writes; plain values, no NaN."""
        found, out = fields_of(self), self.left_out
        sections = found.pop("sections")
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
        """The monitor with everything it has to beat, for both risks, and how to read that."""
        meanings = {
            "imminent": f"Failing soon (imminent risk): fails, and ends within {self.horizon} more steps",
            "outcome": "Failing at all (outcome risk): fails",
        }
        tables = []
        for which, meaning in meanings.items():
            mine: RiskFigures = getattr(self, which)
            rows = [(plain(name, 80), getattr(row, which), row.oracle) for name, row in self.baselines.items()]
            tables.append(
                risk_table(
                    f"{meaning} (prevalence {number(mine.prevalence)})",
                    [("monitor", mine, False), *rows],
                    ahead="monitor ahead by",
                    grouped_by=self.grouped_by,
                    drawn="drawn, 0 to 1",
                )
            )
        oracles = any(row.oracle for row in self.baselines.values())
        more = "Ahead: the monitor's lead in AUPRC over that row, on the same resamples."
        return (*tables, reading_help(self.grouped_by, oracles=oracles, more=more))

    def alert_blocks(self) -> tuple[Block, ...]:
        """What the alarm would have done, at each budget."""
        rows = {"monitor": self.first_alert, **{name: row.first_alert for name, row in self.baselines.items()}}
        return alert_blocks(rows, self.horizon)

    def _head(self) -> list[str]:
        out = self.left_out
        named = {**out.by_use, "without outcome": out.without_outcome, "without steps": out.empty}
        return counts_of_runs(
            f"{self.runs:,} runs of {self.tasks:,} tasks, {self.failed_runs:,} failed "
            f"({100 * self.failed_runs / self.runs:.1f} %), {self.prefixes:,} prefixes",
            out.in_sample,
            "the monitor",
            named,
        )


def counts_of_runs(counted: str, in_sample: int, maker: str, left_out: Mapping[str, int]) -> list[str]:
    """The first lines of a result: the runs that count, those that flatter it, and those left out, by reason."""
    parts = [f"{count:,} {reason}" for reason, count in left_out.items() if count]
    return [
        counted,
        *[f"IN SAMPLE: {in_sample:,} runs are of tasks {maker} was made from; the figures flatter it"]
        * bool(in_sample),
        *[f"left out: {sum(left_out.values()):,} runs ({', '.join(parts)})"] * bool(parts),
    ]
