"""What a report is made from: the table, the scores behind it, example runs, and what is known of the monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.errors import DataError
from prefixguard.evaluation.alerts import AlarmGroups
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.table import EvaluationTable, Said
from prefixguard.runtime import Reading, plain
from prefixguard.stepview import StepRecord

#: Code points kept of a name (run, task, tool, row) and of a sentence or a step's text.
NAME_LETTERS = 80
TEXT_LETTERS = 240
#: Of a finding's text, or a glossary's.
LONGEST = 60_000


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
class MonitorFacts:
    """What a report says of the monitor. Whatever is empty or None is not said.

    id: of its bundle. sides: runs by use, as it was trained. data: counts of the runs it was made from.
    """

    name: str
    id: str = ""
    kind: str = ""
    backend: str = ""
    adapter: str = ""
    seed: int | None = None
    horizon: int | None = None
    schema: str = ""
    split: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[str, int] = field(default_factory=dict)
    data: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_manifest(cls, name: str, manifest: Mapping[str, Any]) -> MonitorFacts:
        """From a bundle's manifest; what an older or foreign manifest does not hold is left out."""
        adapter = manifest.get("adapter") or {}
        data = manifest.get("data") or {}
        words = [str(adapter.get("name", "")), str(adapter.get("version", ""))]
        if adapter.get("sha256"):
            words.append(f"(sha256 {str(adapter['sha256'])[:12]})")
        return cls(
            name=name,
            id=str(manifest.get("id", "")),
            kind=str(manifest.get("kind", "")),
            backend=str(manifest.get("backend", "")),
            adapter=" ".join(word for word in words if word),
            seed=manifest.get("seed"),
            horizon=manifest.get("horizon"),
            schema=str(manifest.get("schema", "")),
            split=str((manifest.get("split") or {}).get("rule", "")),
            libraries={str(key): str(value) for key, value in (manifest.get("libraries") or {}).items()},
            sides={str(key): int(value) for key, value in (data.get("by_side") or {}).items()},
            data={str(key): value for key, value in data.items() if isinstance(value, int)},
        )


@dataclass(frozen=True, slots=True)
class SymbolLine:
    """A symbol of an automaton in words. share: of training steps; risk_change: mean change of the outcome risk."""

    symbol: int
    meaning: str
    condition: str = ""
    share: float = float("nan")
    risk_change: float = float("nan")
    example: str = ""


@dataclass(frozen=True, slots=True)
class AutomatonView:
    """The automaton as a report shows it.

    svg: its picture. glossary: its symbols; or, where only the file is at hand, its text in `glossary_text`.
    fidelity: name, value and meaning of each figure of its agreement with its teacher. care: why to audit with care.
    """

    name: str
    states: int
    symbols: int
    svg: bytes = b""
    glossary: Sequence[SymbolLine] = ()
    glossary_text: str = ""
    fidelity: Sequence[tuple[str, str, str]] = ()
    care: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Everything a report can show; only the table, the scores and the runs must be there.

    table: of `evaluate_scores`. rows: the scores behind it, the monitor first; a row that is missing has no curve.
    lengths, failed, tasks, run_ids: one a run. groups: agent, file or the like of each run, as `table.grouped_by`.
    policy, thresholds: the monitor's alarm, by budget. alarm_groups: its thresholds by group, and these runs' values.
    examples: see `choose_examples`.
    title: name of what was evaluated. command: the line that makes this report again. facts: what else that takes
        (versions, hashes of files, seeds). notes: remarks besides the table's.
    The others are results of further looks, None where they were not taken; one that the table carries among its
    sections need not be given again. others: any more of them, by title.
    Raises DataError where counts differ, or the first row is an oracle.
    """

    table: EvaluationTable
    rows: Sequence[ScoreRow]
    lengths: Sequence[int]
    failed: Sequence[bool]
    tasks: Sequence[str]
    run_ids: Sequence[str]
    groups: Sequence[str] | None = None
    policy: AlarmPolicy = field(default_factory=AlarmPolicy)
    thresholds: Mapping[float, Thresholds] = field(default_factory=dict)
    alarm_groups: AlarmGroups | None = None
    examples: Sequence[ExampleRun] = ()
    monitor: MonitorFacts | None = None
    title: str = "Evaluation"
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    observability: Said | None = None
    prevalence: Said | None = None
    shortcuts: Said | None = None
    leaks: Said | None = None
    ablation: Said | None = None
    controls: Said | None = None
    automaton: AutomatonView | None = None
    others: Mapping[str, Said] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = {len(self.lengths), len(self.failed), len(self.tasks), len(self.run_ids), self.table.runs}
        if self.groups is not None:
            counts.add(len(self.groups))
        if self.alarm_groups is not None:
            counts.add(len(self.alarm_groups.values))
        if len(counts) != 1:
            raise DataError(
                f"a report over {self.table.runs} runs got {len(self.lengths)} lengths, {len(self.failed)} outcomes, "
                f"{len(self.tasks)} tasks and {len(self.run_ids)} names: give one each, of the runs of the table."
            )
        if not self.rows or self.rows[0].oracle:
            raise DataError("a report needs the scores behind its table: give them as rows, the monitor first.")
        for example in self.examples:
            if not 0 <= example.run < self.table.runs:
                raise DataError(f"example run {example.run} is none of {self.table.runs} runs: give its position.")
            n = self.lengths[example.run]
            if not len(example.steps) == len(example.readings) == n:
                raise DataError(
                    f"example run {self.run_ids[example.run]!r} has {n} steps, {len(example.steps)} texts and "
                    f"{len(example.readings)} readings: give one of each a step."
                )

    def judged(self) -> npt.NDArray[np.bool_]:
        """Prefixes that the monitor judged, bool (N,): all figures are about these."""
        kept = np.ones(sum(self.lengths), dtype=np.bool_)
        for scores in self.rows[0].flat(self.lengths):
            kept &= ~np.isnan(scores)
        return kept

    def working(self) -> tuple[float, float | None] | None:
        """Budget and common threshold of the alarm that examples are shown with; None where every budget was refused.

        The policy's own budget, or else the largest that was granted. The threshold is None where only groups have one.
        """
        granted = {budget: mark.alarm for budget, mark in self.thresholds.items() if mark.alarm is not None}
        if self.policy.budget in granted or (self.alarm_groups is not None and self.policy.budget in self.thresholds):
            return self.policy.budget, granted.get(self.policy.budget)
        return (max(granted), granted[max(granted)]) if granted else None

    def alarm_of(self, run: int) -> float | None:
        """The threshold, at the working budget, of the run at this position: its group's where that has its own."""
        working = self.working()
        if working is None:
            return None
        budget, common = working
        if self.alarm_groups is None or budget != self.policy.budget:
            return common
        return self.alarm_groups.thresholds.pick(self.alarm_groups.values[run], self.thresholds[budget]).alarm


def name(text: str) -> str:
    """A name from outside on one line, nothing invisible in it."""
    return plain(text, NAME_LETTERS)


def _short(record: StepRecord) -> ExampleStep:
    """What the agent did, else what it said, else what it saw."""
    call = f"{record.tool} {record.arguments}".strip() if record.tool not in ("", "respond") else ""
    parts = [part for part in (call, record.action or record.observation, record.result) if part]
    said = " → ".join(" ".join(part[:TEXT_LETTERS].split()) for part in parts[:3])
    return ExampleStep(name(record.tool), record.status, plain(said, TEXT_LETTERS))
