"""A monitor before an auditor: what is saved by asking at escalated prefixes only, and what is lost by it.

Both walks are replayed from the same verdicts, one for every prefix, so nothing but the gate differs. A walk asks in
order, and stops at the first alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from prefixguard.auditor.audit_table import figure_cell
from prefixguard.auditor.audited_system import AuditedSystem, StepIndex, audit_runs, audited, taken_by
from prefixguard.errors import DataError
from prefixguard.evaluation import Difference
from prefixguard.metrics import (
    Attribution,
    AuditedRun,
    AuditOutcome,
    attribution_differences,
    measure_attribution,
    ratio,
)
from prefixguard.results import Block, Result, TableBlock, Text, finite, percent, plain_value
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class CascadeCurve(Result):
    """points: (mark, cascade), marks ascending: fewer and fewer steps are escalated."""

    points: tuple[tuple[float, Cascade], ...]

    def as_json(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Plain values, NaN as None; one a mark."""
        return [{"mark": finite(mark), **found.as_json()} for mark, found in self.points]

    def blocks(self) -> tuple[Block, ...]:
        """A row a threshold, below the walk that asks at every step."""
        rows = [_cells("none", self.points[0][1].always_figures, percent(1.0), percent(0.0))] if self.points else []
        for mark, one in self.points:
            shares = percent(one.escalated_share), percent(one.calls_saved)
            rows.append(_cells(f"{mark:.4g}", one.gated_figures, *shares))
        below = "A step is escalated where its risk passes the mark; none: every step is asked. saved: calls."
        return (TableBlock.of("Cascade by mark", ("mark", "escalated", "saved", *_COLUMNS), rows), Text(below))


def cascade_curve(
    runs: Sequence[Run[StepRecord]],
    verdicts: Mapping[str, Mapping[int, PrefixVerdict]],
    risks: Mapping[str, Sequence[float]],
    marks: Sequence[float],
    *,
    index: StepIndex = "record",
    n_resamples: int = 1000,
    seed: int = 13,
) -> CascadeCurve:
    """`cascade` at each mark. verdicts: as there. risks: by run id, one a step; NaN where it was not judged."""
    points = []
    for mark in sorted(set(marks)):
        passed = escalated_above(risks, mark)
        points.append((mark, cascade(runs, verdicts, passed, index=index, n_resamples=n_resamples, seed=seed)))
    return CascadeCurve(tuple(points))


#: Columns of the tables, and their figures.
_COLUMNS = {
    "Exact-F1": "exact_f1",
    "Step-Acc": "step_accuracy",
    "FAR": "false_alarm_rate",
    "early": "before_end",
    "calls": "calls_per_run",
    "1,000 runs": "cost_per_1000_runs",
}
_SHOWN = ("exact_f1", "step_accuracy", "agent_accuracy", *list(_COLUMNS.values())[2:])


@dataclass(frozen=True, slots=True)
class PrefixVerdict:
    """What the auditor says of one prefix. step: index of a record. cost: None where unknown."""

    outcome: AuditOutcome
    step: int | None = None
    agent: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Cascade(Result):
    """The walk behind a gate beside the walk that asks at every step.

    prefixes: of all runs. escalated: of them, passed by the gate. unasked: runs of which no prefix passed.
    calls_always, calls_gated: questions until the first alarm.
    hits_lost, hits_gained: failed runs whose decisive step only the full, only the gated walk blames.
    alarms_lost: failed runs that only the full walk alarms. false_alarms_avoided, false_alarms_added: safe runs.
    differences: gated minus always, by figure, paired by task.
    """

    always: AuditedSystem
    gated: AuditedSystem
    always_figures: Attribution
    gated_figures: Attribution
    prefixes: int
    escalated: int
    unasked: int
    calls_always: int
    calls_gated: int
    hits_lost: int
    hits_gained: int
    alarms_lost: int
    false_alarms_avoided: int
    false_alarms_added: int
    differences: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def escalated_share(self) -> float:
        """Escalated prefixes / all prefixes; NaN where there are none."""
        return float(ratio(self.escalated, self.prefixes))

    @property
    def calls_saved(self) -> float:
        """Share of the full walk's calls that the gate saves; negative where it costs some."""
        return 1.0 - float(ratio(self.calls_gated, self.calls_always))

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        counts = {one.name: getattr(self, one.name) for one in fields(self) if one.type == "int"}
        shares = {"escalated_share": self.escalated_share, "calls_saved": self.calls_saved}
        walks = {"always": self.always_figures, "gated": self.gated_figures}
        figures = {name: {one: getattr(found, one) for one in _SHOWN} for name, found in walks.items()}
        ahead = {name: one for name, one in self.differences.items() if name in _SHOWN}
        found: dict[str, Any] = plain_value({**counts, **shares, **figures, "gated_minus_always": ahead})
        return found

    def blocks(self) -> tuple[Block, ...]:
        """The two walks, a row each, and what differs in words."""
        walks = [_cells(self.always.name, self.always_figures), _cells(self.gated.name, self.gated_figures)]
        return (
            TableBlock.of("Asking at every step, and where the monitor escalates", ("", *_COLUMNS), walks),
            Text(
                f"{percent(self.escalated_share)} of {self.prefixes:,} steps escalated; {self.calls_gated:,} calls "
                f"instead of {self.calls_always:,}: {percent(self.calls_saved)} saved. {self.unasked:,} runs were "
                "never asked about."
            ),
            Text(
                f"Lost: {self.hits_lost:,} runs whose decisive step the full walk blames, {self.alarms_lost:,} failed "
                f"runs that it alarms. Won: {self.hits_gained:,} decisive steps, {self.false_alarms_avoided:,} false "
                f"alarms avoided ({self.false_alarms_added:,} new)."
            ),
        )


def replayed(
    run: Run[StepRecord],
    verdicts: Mapping[int, PrefixVerdict],
    prefixes: Collection[int] | None = None,
    *,
    index: StepIndex = "record",
) -> AuditedRun:
    """The row of a walk over some prefixes (None: all), replayed from verdicts.

    verdicts: by the last record of the prefix. A walk without an alarm ends as its last question did: that one saw the
    most. A walk that never asked ends safe: the gate saw nothing.
    Raises DataError where a prefix is asked that was not judged, or that the run does not have.
    """
    asked = sorted(set(prefixes)) if prefixes is not None else list(range(1, len(run.records) + 1))
    outcome: AuditOutcome = "safe"
    step = agent = alarm_step = None
    spent: list[PrefixVerdict] = []
    for prefix in asked:
        verdict = verdicts.get(prefix)
        if verdict is None or not 1 <= prefix <= len(run.records):
            raise DataError(
                f'{run.source}: run "{run.run_id}" has no verdict of its first {prefix} steps. A cascade needs one of '
                "every prefix that is asked, also of those after an alarm."
            )
        spent.append(verdict)
        outcome = verdict.outcome
        if outcome == "alarm":
            step, agent, alarm_step = verdict.step, verdict.agent, prefix
            break
    taken = taken_by([{name: getattr(one, name) for name in PrefixVerdict.__slots__} for one in spent], add=sum)
    return audited(run, outcome, step=step, agent=agent, alarm_step=alarm_step, index=index, **taken)


def cascade(
    runs: Sequence[Run[StepRecord]],
    verdicts: Mapping[str, Mapping[int, PrefixVerdict]],
    escalated: Mapping[str, Collection[int]],
    *,
    index: StepIndex = "record",
    n_resamples: int = 1000,
    seed: int = 13,
) -> Cascade:
    """What a gate saves and loses.

    verdicts: by run id and last record of the prefix. escalated: by run id the prefixes that pass the gate, which never
    knows how a run ended; a run that is not named is never asked about. Runs that nobody judged are left out.
    """
    kept = audit_runs(runs)
    always = [replayed(run, verdicts.get(run.run_id, {}), index=index) for run in kept]
    passed = [frozenset(escalated.get(run.run_id, ())) for run in kept]
    gated = [
        replayed(run, verdicts.get(run.run_id, {}), own, index=index) for run, own in zip(kept, passed, strict=True)
    ]
    full = measure_attribution(always, n_resamples=n_resamples, seed=seed)
    some = measure_attribution(gated, n_resamples=n_resamples, seed=seed)
    pairs, back = list(zip(always, gated, strict=True)), list(zip(gated, always, strict=True))
    return Cascade(
        always=AuditedSystem("every step", tuple(always), "asks at every step until it alarms"),
        gated=AuditedSystem("escalated only", tuple(gated), "asks where the monitor escalates, until it alarms"),
        always_figures=full.figures,
        gated_figures=some.figures,
        prefixes=sum(len(run.records) for run in kept),
        escalated=sum(map(len, passed)),
        unasked=sum(not own for own in passed),
        calls_always=sum(row.calls for row in always),
        calls_gated=sum(row.calls for row in gated),
        hits_lost=_only_first(pairs, _hit),
        hits_gained=_only_first(back, _hit),
        alarms_lost=_only_first(pairs, lambda row: row.failed and row.outcome == "alarm"),
        false_alarms_avoided=_only_first(pairs, _false_alarm),
        false_alarms_added=_only_first(back, _false_alarm),
        differences={name: Difference(*one) for name, one in attribution_differences(some, full).items()},
    )


def escalated_above(risks: Mapping[str, Sequence[float]], mark: float) -> dict[str, list[int]]:
    """By run id the prefixes whose risk passes a mark. risks: one a step, from the first; NaN: not judged, not passed.

    >>> escalated_above({"a": [0.2, 0.7, float("nan"), 0.9]}, 0.5)
    {'a': [2, 4]}
    """
    return {run_id: [step for step, risk in enumerate(own, 1) if risk > mark] for run_id, own in risks.items()}


def _cells(name: str, figures: Attribution, *more: str) -> list[str | tuple[str, str]]:
    return [name, *more, *(figure_cell(figures, figure) for figure in _COLUMNS.values())]


def _only_first(pairs: Sequence[tuple[AuditedRun, AuditedRun]], holds: Callable[[AuditedRun], bool]) -> int:
    """Pairs of which it holds for the first row and not for the second."""
    return sum(holds(one) and not holds(other) for one, other in pairs)


def _false_alarm(row: AuditedRun) -> bool:
    return not row.failed and row.outcome == "alarm"


def _hit(row: AuditedRun) -> bool:
    return row.failed and row.step is not None and row.step == row.gold_step
