"""What a report is made from: the table, the scores behind it, example runs, and what is known of the monitor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.errors import DataError
from prefixguard.evaluation.tables.alerts import AlarmGroups
from prefixguard.evaluation.tables.evaluation_table import Behind, EvaluationTable
from prefixguard.runtime import Reading, plain
from prefixguard.stepview import StepRecord

#: Code points kept of a name (run, task, tool, row) and of a sentence or a step's text.
NAME_LETTERS = 80
TEXT_LETTERS = 240
#: Both risks, as titles.
RISK_TITLES = {"imminent": "Failing soon", "outcome": "Failing at all"}


@dataclass(frozen=True, slots=True)
class ExampleStep:
    """One step of an example in a few words, all of them from the run. tool: empty where the step used none."""

    tool: str
    status: str
    text: str


@dataclass(frozen=True, slots=True)
class ExampleRun:
    """A run to look at. run: its position among the runs evaluated. steps, readings: one each a step."""

    run: int
    steps: Sequence[ExampleStep]
    readings: Sequence[Reading]

    @classmethod
    def of(cls, run: int, records: Sequence[StepRecord], readings: Sequence[Reading]) -> ExampleRun:
        """From its records, and what the monitor read from them."""
        return cls(run, tuple(_short(record) for record in records), tuple(readings))


@dataclass(frozen=True, slots=True)
class SymbolLine:
    """A symbol of an automaton in words. share: of training steps; risk_change: mean change of the outcome risk."""

    symbol: int
    meaning: str
    condition: str = ""
    share: float = math.nan
    risk_change: float = math.nan
    example: str = ""

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> tuple[SymbolLine, ...]:
        """The symbols that `export` named in a bundle's manifest; none where they are not there, or are no list."""
        said = (manifest.get("automaton") or {}).get("glossary")
        lines = [line for line in said if isinstance(line, dict)] if isinstance(said, list) else []
        return tuple(
            cls(
                place,
                str(line.get("meaning", "")),
                str(line.get("condition", "")),
                _number(line.get("share")),
                _number(line.get("risk_change")),
                str(line.get("example", "")),
            )
            for place, line in enumerate(lines)
        )


@dataclass(frozen=True, slots=True)
class AutomatonView:
    """The automaton as a report shows it: its picture and its symbols.

    symbols that are not known one by one, as in exports of releases before 0.4, are shown as the text of their file.
    """

    name: str
    states: int
    symbols: int
    svg: bytes = b""
    glossary: Sequence[SymbolLine] = ()
    glossary_text: str = ""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Everything a report can show; only the table, with the scores and runs behind it, must be there.

    monitor, manifest: its name, and its bundle's manifest; what is not there is not said.
    policy, thresholds: the monitor's alarm, by budget. examples: see `choose_examples`.
    title: name of what was evaluated. command: the line that makes this report again. facts: what else that takes
        (versions, hashes of files, seeds). notes: remarks besides the table's.
    Raises DataError where the table has no runs behind it, or an example is not one of them.
    """

    table: EvaluationTable
    policy: AlarmPolicy = field(default_factory=AlarmPolicy)
    thresholds: Mapping[float, Thresholds] = field(default_factory=dict)
    examples: Sequence[ExampleRun] = ()
    monitor: str = ""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    title: str = "Evaluation"
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    automaton: AutomatonView | None = None

    def __post_init__(self) -> None:
        runs = self.behind
        for example in self.examples:
            if not 0 <= example.run < self.table.runs:
                raise DataError(f"example run {example.run} is none of {self.table.runs} runs: give its position.")
            n = runs.lengths[example.run]
            if not len(example.steps) == len(example.readings) == n:
                raise DataError(
                    f"example run {runs.keys[example.run][0]!r} has {n} steps, {len(example.steps)} texts and "
                    f"{len(example.readings)} readings: give one of each a step."
                )

    @property
    def behind(self) -> Behind:
        """Scores and runs behind the table. Raises DataError where they are not there, one a run."""
        found = self.table.behind
        if found is None or len(found.keys) != self.table.runs:
            raise DataError("a report needs the runs behind its table: take the one that `evaluate` gives.")
        return found

    @property
    def alarm_groups(self) -> AlarmGroups | None:
        """Thresholds by group, and the value of each run; None where there are none."""
        return self.behind.alarm_groups

    def run_id(self, run: int) -> str:
        """What the run at this position is called."""
        return self.behind.keys[run][0]

    def judged(self) -> npt.NDArray[np.bool_]:
        """Prefixes that the monitor judged, bool (N,): all figures are about these."""
        imminent, outcome = self.behind.rows[0].flat(self.behind.lengths)
        return ~(np.isnan(imminent) | np.isnan(outcome))

    def labels(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Labels of all prefixes, (N,) each, by risk."""
        prefixes = self.behind.prefixes
        return {"imminent": prefixes.imminent_labels(self.table.horizon), "outcome": prefixes.outcome_labels}

    def working(self) -> tuple[float, float | None] | None:
        """Budget and common threshold of the alarm that examples are shown with; None where every budget was refused.

        The policy's own budget, or else the largest that was granted. The threshold is None where only groups have one.
        """
        granted = {budget: found.alarm for budget, found in self.thresholds.items() if found.alarm is not None}
        if self.policy.budget in granted or (self.alarm_groups is not None and self.policy.budget in self.thresholds):
            return self.policy.budget, granted.get(self.policy.budget)
        return (max(granted), granted[max(granted)]) if granted else None

    def alarm_of(self, run: int) -> float | None:
        """The threshold, at the working budget, of the run at this position: its group's where that has its own."""
        working, groups = self.working(), self.alarm_groups
        if working is None or groups is None or working[0] != self.policy.budget:
            return None if working is None else working[1]
        return groups.thresholds.pick(groups.values[run], self.thresholds[working[0]]).alarm


def name(text: str) -> str:
    """A name from outside on one line, nothing invisible in it."""
    return plain(text, NAME_LETTERS)


def _short(record: StepRecord) -> ExampleStep:
    """What the agent did, else what it said, else what it saw."""
    call = f"{record.tool} {record.arguments}".strip() if record.tool not in ("", "respond") else ""
    parts = [part for part in (call, record.action or record.observation, record.result) if part]
    said = " → ".join(" ".join(part[:TEXT_LETTERS].split()) for part in parts[:3])
    return ExampleStep(name(record.tool), record.status, plain(said, TEXT_LETTERS))


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
