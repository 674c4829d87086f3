"""What a check of runs says, as figures and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from prefixguard.evaluation.data_check.budgets import BudgetCheck, SideCount
from prefixguard.evaluation.data_check.curve import LearningCurve
from prefixguard.evaluation.data_check.finding import SEVERITIES, DataFinding, SaidFinding, subject
from prefixguard.evaluation.data_check.groups import GroupCheck
from prefixguard.evaluation.data_check.lengths import LengthCheck
from prefixguard.evaluation.data_check.repeats import RepeatCheck
from prefixguard.results import aligned, number, percent, spread, wrapped
from prefixguard.runtime import plain

_MARKS = {"error": "ERROR", "warning": "warning", "note": "note"}


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Whether runs are fit to train on.

    runs: those with an outcome and a step; failed, tasks, steps: of them. without_task: of them, those that name none.
    without_outcome, empty: left out. sides: the split that training would make. budgets: the one asked for first.
    groups: by name. curve: None where it was not asked for, or could not be drawn. findings: worst first.
    leaks: what another instrument found, carried along. audited: whether it looked at all.
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
        said = {subject(one) for one in leaks} - {""}
        own = tuple(one for one in self.findings if one.about not in said)
        return replace(self, findings=own, leaks=tuple(leaks), audited=True)

    def as_json(self) -> dict[str, Any]:
        """Plain values; a figure that does not exist is None."""
        curve = self.curve
        return {
            "ok": self.ok,
            "runs": self.runs,
            "failed": self.failed,
            "tasks": self.tasks,
            "steps": self.steps,
            "without_task": self.without_task,
            "without_outcome": self.without_outcome,
            "empty": self.empty,
            "sides": [asdict(one) for one in self.sides],
            "budgets": [{**asdict(one), "supported": one.supported} for one in self.budgets],
            "repeats": asdict(self.repeats),
            "lengths": _plain(asdict(self.lengths)),
            "groups": [_plain(asdict(one)) for one in self.groups],
            "curve": None
            if curve is None
            else _plain({**asdict(replace(curve, left_out={})), "left_out": _left_out(curve)}),
            "findings": [asdict(one) for one in self.findings],
            "audited": self.audited,
            "leaks": [
                {"severity": one.severity, "text": one.text, "waived": getattr(one, "waived", "") or None}
                for one in self.leaks
            ],
        }

    def to_text(self) -> str:
        """The check for people: counts, tables, then what was found, worst first."""
        blocks = [self._head(), self._split(), self._budgets()]
        if self.groups:
            blocks.append(_groups(self.groups))
        if self.curve is not None and self.curve.points:
            blocks.append(_curve(self.curve))
        blocks.append(self._found())
        return "\n\n".join(blocks)

    def _head(self) -> str:
        left = [f"{n:,} {what}" for n, what in ((self.without_outcome, "without outcome"), (self.empty, "empty")) if n]
        out = f" Left out: {', '.join(left)}." if left else ""
        failed = f"{self.failed:,} failed, {self.runs - self.failed:,} succeeded"
        lengths = f"median {self.lengths.median}, at most {self.lengths.longest} a run"
        return wrapped(f"{self.runs:,} runs of {self.tasks:,} tasks ({failed}), {self.steps:,} steps ({lengths}).{out}")

    def _split(self) -> str:
        rows: list[Sequence[str]] = [["The split of a training", "tasks", "runs", "failed"]]
        rows += [[one.side, f"{one.tasks:,}", f"{one.runs:,}", f"{one.failed:,}"] for one in self.sides]
        return aligned(rows)

    def _budgets(self) -> str:
        rows: list[Sequence[str]] = [
            ["Alarm budget", "confidence", "successful tasks needed", "by split", "with moves", "more tasks"]
        ]
        for one in sorted(self.budgets, key=lambda check: check.budget):
            more = "?" if one.more_tasks is None else f"~{one.more_tasks:,}"
            name = f"{100 * one.budget:g} %" + (" (asked for)" if one is self.budgets[0] else "")
            rows.append(
                [
                    name,
                    f"{100 * one.confidence:g} %",
                    f"{one.needed:,}",
                    f"{one.by_split:,}",
                    f"{one.available:,}",
                    "enough" if one.supported else more,
                ]
            )
        return aligned(rows)

    def _found(self) -> str:
        said = list(self._sentences())
        verdict = "Fit to train on." if self.ok else "Not fit to train on as they are."
        if self.audited and all(one.severity == "note" for one in self.leaks):
            said.append(("note", "The leak audit found no leak."))
        if not said:
            return f"{verdict} Nothing stood out."
        return "\n".join([verdict, *(wrapped(f"- {_MARKS.get(level, level)}: {text}") for level, text in said)])

    def _sentences(self) -> Iterator[tuple[str, str]]:
        found = [(one.severity, one.text) for one in (*self.leaks, *self.findings)]
        known: tuple[str, ...] = SEVERITIES
        yield from sorted(found, key=lambda one: known.index(one[0]) if one[0] in known else len(known))


def _groups(checks: tuple[GroupCheck, ...]) -> str:
    rows: list[Sequence[str]] = [["Group", "runs", "failed", "AUROC of the group alone"]]
    for check in checks:
        rows.append([f"{check.name} ({check.n_values} values)", "", "", number(check.auroc)])
        rows += [
            [f"  {plain(one.value, 60) or '(none)'}", f"{one.runs:,}", percent(one.failed / one.runs)]
            for one in check.values
        ]
        if check.n_values > len(check.values):
            rows.append([f"  ... {check.n_values - len(check.values)} more"])
    return aligned(rows)


def _curve(curve: LearningCurve) -> str:
    rows: list[Sequence[str]] = [["Learning curve (boosted trees)", "tasks", "runs", "imminent AUPRC", "", "rem", ""]]
    for point in curve.points:
        rows.append(
            [
                f"{point.share:.0%} of the training tasks",
                f"{point.tasks:,}",
                f"{point.runs:,}",
                number(point.imminent_auprc),
                spread(point.imminent_interval),
                number(point.outcome_auroc),
                spread(point.outcome_interval),
            ]
        )
    rows.append(["step index", "", "", number(curve.clock_auprc)])
    rows.append(["prevalence, chance", "", "", number(curve.prevalence), "", ".500"])
    under = (
        f"On {curve.test_runs:,} held-out runs of {curve.test_tasks:,} tasks. rem: outcome AUROC at matched remaining "
        "steps."
    )
    return f"{aligned(rows)}\n{wrapped(under)}"


def _left_out(curve: LearningCurve) -> dict[str, str]:
    return {f"{share:g}": why for share, why in curve.left_out.items()}


def _plain(value: Any) -> Any:
    """NaN as None, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
