"""What a check of runs says, as figures and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from prefixguard.evaluation.data_check.budgets import BudgetCheck, SideCount
from prefixguard.evaluation.data_check.curve import LearningCurve
from prefixguard.evaluation.data_check.traits import DataFinding, GroupCheck, LengthCheck, RepeatCheck
from prefixguard.evaluation.leaks import LeakFinding
from prefixguard.results import Block, Bullets, Result, TableBlock, Text, fields_of, number, percent, spread
from prefixguard.runtime import plain

#: A finding of the check, or of the leak audit that it carries along.
SaidFinding: TypeAlias = DataFinding | LeakFinding
#: Severities as they are shown, worst first.
SEVERITIES = {"error": "ERROR", "warning": "warning", "note": "note"}


@dataclass(frozen=True, slots=True)
class DataCheck(Result):
    """Whether runs are fit to train on.

    runs : number of runs with an outcome and at least one step; failed, tasks, steps : counted among them.
    without_task : number of these runs that name no task.
    without_outcome, empty : number of runs that are left out because they have no outcome, or no step.
    sides : the split that a training would make. budgets : the budget that was asked for comes first.
    groups : by name. curve : None where it was not asked for, or could not be drawn. findings : worst first.
    leaks : the findings of a leak audit. audited : whether there was one.
    """

    runs: int
    failed: int
    tasks: int
    steps: int
    without_task: int
    without_outcome: int
    empty: int
    sides: tuple[SideCount, ...]
    budgets: tuple[BudgetCheck, ...]
    repeats: RepeatCheck
    lengths: LengthCheck
    groups: tuple[GroupCheck, ...]
    curve: LearningCurve | None
    findings: tuple[DataFinding, ...]
    leaks: tuple[SaidFinding, ...] = ()
    audited: bool = False

    @property
    def ok(self) -> bool:
        """False where something makes training pointless or the alarm's budget impossible."""
        return not any(one.severity == "error" for one in (*self.findings, *self.leaks))

    def with_leaks(self, leaks: Sequence[SaidFinding]) -> DataCheck:
        """The same with the findings of a leak audit; an error among them makes `ok` false.

        What the audit says too, such as a step cap, is said once, in its words: they come with a test.
        """
        said = {_subject(one) for one in leaks} - {""}
        own = tuple(one for one in self.findings if one.about not in said)
        return replace(self, findings=own, leaks=tuple(leaks), audited=True)

    def as_json(self) -> dict[str, Any]:
        """Plain values; a figure that does not exist is None."""
        return {
            "ok": self.ok,
            **fields_of(self),
            "budgets": [{**fields_of(one), "supported": one.supported} for one in self.budgets],
            "leaks": [
                {"severity": one.severity, "text": one.text, "waived": getattr(one, "waived", "") or None}
                for one in self.leaks
            ],
        }

    def blocks(self) -> tuple[Block, ...]:
        """The check for people: counts, tables, then what was found, worst first."""
        left = [f"{n:,} {what}" for n, what in ((self.without_outcome, "without outcome"), (self.empty, "empty")) if n]
        head = (
            f"{self.runs:,} runs of {self.tasks:,} tasks ({self.failed:,} failed, {self.runs - self.failed:,} "
            f"succeeded), {self.steps:,} steps (median {self.lengths.median}, at most {self.lengths.longest} a run)."
            + (f" Left out: {', '.join(left)}." if left else "")
        )
        sides = [[one.side, f"{one.tasks:,}", f"{one.runs:,}", f"{one.failed:,}"] for one in self.sides]
        return (
            Text(head),
            TableBlock.of("The split of a training", ["", "tasks", "runs", "failed"], sides),
            self._budgets(),
            *([_groups(self.groups)] if self.groups else []),
            *([] if self.curve is None or not self.curve.points else _curve(self.curve)),
            self._found(),
        )

    def _budgets(self) -> TableBlock:
        head = ["", "confidence", "successful tasks needed", "by split", "with moves", "more tasks"]
        rows = []
        for one in sorted(self.budgets, key=lambda check: check.budget):
            more = "enough" if one.supported else "?" if one.more_tasks is None else f"~{one.more_tasks:,}"
            name = f"{100 * one.budget:g} %" + (" (asked for)" if one is self.budgets[0] else "")
            counts = (f"{n:,}" for n in (one.needed, one.by_split, one.available))
            rows.append([name, f"{100 * one.confidence:g} %", *counts, more])
        return TableBlock.of("Alarm budgets", head, rows)

    def _found(self) -> Block:
        found: list[tuple[str, str]] = [(one.severity, one.text) for one in (*self.leaks, *self.findings)]
        known = list(SEVERITIES)
        found.sort(key=lambda one: known.index(one[0]) if one[0] in known else len(known))
        verdict = "Fit to train on." if self.ok else "Not fit to train on as they are."
        if self.audited and all(one.severity == "note" for one in self.leaks):
            found.append(("note", "The leak audit found no leak."))
        if not found:
            return Text(f"{verdict} Nothing stood out.")
        return Bullets(tuple(f"{SEVERITIES.get(level, level)}: {text}" for level, text in found), verdict)


def _subject(finding: SaidFinding) -> str:
    """What a finding of the leak audit is about, as `DataFinding.about` says it; "" where it is of no such kind."""
    if not isinstance(finding, LeakFinding) or finding.kind != "shortcut":
        return ""
    if finding.field != "length":
        return finding.field
    return "length" if finding.token == "number of steps" else "step cap"


def _groups(checks: Sequence[GroupCheck]) -> TableBlock:
    rows = []
    for check in checks:
        rows.append([f"{check.name} ({check.n_values} values)", "", "", number(check.auroc)])
        rows += [
            [f"  {plain(one.value, 60) or '(none)'}", f"{one.runs:,}", percent(one.failed / one.runs)]
            for one in check.values
        ]
        if check.n_values > len(check.values):
            rows.append([f"  ... {check.n_values - len(check.values)} more"])
    return TableBlock.of("Groups", ["", "runs", "failed", "AUROC of the group alone"], rows)


def _curve(curve: LearningCurve) -> tuple[TableBlock, Text]:
    rows: list[list[str | tuple[str, str]]] = [
        [
            f"{point.share:.0%} of the training tasks",
            f"{point.tasks:,}",
            f"{point.runs:,}",
            (number(point.imminent_auprc), spread(point.imminent_interval)),
            (number(point.outcome_auroc), spread(point.outcome_interval)),
        ]
        for point in curve.points
    ]
    rows += [["step index", "", "", number(curve.clock_auprc)]]
    rows += [["prevalence, chance", "", "", number(curve.prevalence), ".500"]]
    head = ["", "tasks", "runs", "imminent AUPRC", "rem"]
    held = f"On {curve.test_runs:,} held-out runs of {curve.test_tasks:,} tasks."
    return (
        TableBlock.of("Learning curve (boosted trees)", head, rows),
        Text(f"{held} rem: outcome AUROC at matched remaining steps."),
    )
