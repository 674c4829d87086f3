"""An auditor's rows with their name, and how a row is made of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from prefixguard.auditor.audit_line import AuditLine
from prefixguard.errors import DataError
from prefixguard.escalate import RAW_CONFIDENCE
from prefixguard.metrics import AuditedRun, AuditOutcome
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

#: How steps are numbered. record: the index of the record, from 1. event: the place of the source entry that the record
#: came from, from 1 too, to compare with figures that count entries (published labels count these from 0).
StepIndex = Literal["record", "event"]


@dataclass(frozen=True, slots=True)
class AuditedSystem:
    """One auditor over a set of runs.

    rows: one a run, or its chances. note: what it does, a sentence. trivial: knows nothing that an auditor is for.
    hindsight: made from the labels of the very runs that it is measured on.
    """

    name: str
    rows: tuple[AuditedRun, ...]
    note: str = ""
    trivial: bool = False
    hindsight: bool = False


def step_number(run: Run[StepRecord], step: int, index: StepIndex) -> int:
    """The number of a record in one of the two ways. Raises DataError where the run has no such record or entry."""
    if not 1 <= step <= len(run.records):
        raise DataError(f'{run.source}: run "{run.run_id}" has no step {step}: it has {len(run.records)}, from 1.')
    if index == "record":
        return step
    event = run.records[step - 1].event
    if event < 0:
        raise DataError(
            f'{run.source}: run "{run.run_id}" step {step} does not say which source entry it came from. Count records '
            'instead: index="record".'
        )
    return event + 1


def audited(
    run: Run[StepRecord],
    outcome: AuditOutcome,
    *,
    step: int | None = None,
    agent: str | None = None,
    alarm_step: int | None = None,
    index: StepIndex = "record",
    share: float = 1.0,
    **taken: Any,
) -> AuditedRun:
    """The row of one run, with its labels.

    step, alarm_step: indices of records, whatever `index` is, which says how the row numbers them. taken: what it took
        (calls, failed_calls, tokens_in, tokens_out, cost, seconds); all else too as in `AuditedRun`.
    Raises DataError where nobody judged how the run ended: such a run is neither failed nor safe.
    """
    if run.outcome is Outcome.UNKNOWN:
        raise DataError(
            f'{run.source}: run "{run.run_id}" has no outcome, so a verdict on it is neither right nor wrong. Leave it '
            "out (see audit_runs)."
        )
    failed = run.outcome is Outcome.FAILURE
    mistake = run.mistake if failed else None

    def number(record: int | None) -> int | None:
        return None if record is None else step_number(run, record, index)

    return AuditedRun(
        run_id=run.run_id,
        task_id=run.task_id,
        n_steps=step_number(run, len(run.records), index),
        failed=failed,
        gold_step=number(None if mistake is None else mistake.step),
        gold_agent=None if mistake is None else mistake.agent,
        outcome=outcome,
        step=number(step),
        agent=agent,
        alarm_step=number(alarm_step),
        share=share,
        **taken,
    )


def audit_runs(runs: Sequence[Run[StepRecord]]) -> tuple[Run[StepRecord], ...]:
    """The runs that an audit can be measured on: judged, and not empty."""
    return tuple(run for run in runs if run.records and run.outcome is not Outcome.UNKNOWN)


def taken_by(calls: Sequence[Mapping[str, Any]], add: Callable[[Iterable[float]], float] = math.fsum) -> dict[str, Any]:
    """What questions took, as an `AuditedRun` has it; the cost is not known where that of one is not. add: adds up
    costs and seconds."""
    costs = [call["cost"] for call in calls]
    return {
        "calls": len(calls),
        "failed_calls": sum(call["outcome"] == "error" for call in calls),
        "tokens_in": sum(call["tokens_in"] for call in calls),
        "tokens_out": sum(call["tokens_out"] for call in calls),
        "cost": None if None in costs else add(costs),
        "seconds": add(call["seconds"] for call in calls),
    }


def audited_lines(
    name: str,
    runs: Sequence[Run[StepRecord]],
    lines: Sequence[AuditLine],
    *,
    index: StepIndex = "record",
    note: str = "",
) -> AuditedSystem:
    """An auditor's rows on the runs that were judged and have a line. index: see `audited`."""
    rows = []
    for run, line in with_lines(runs, lines):
        if run.outcome is not Outcome.UNKNOWN:
            said, outcome = line.verdict, cast(AuditOutcome, line.verdict["outcome"])
            where = {"step": said["step"], "agent": said["agent"], "alarm_step": line.alarm_step}
            rows.append(audited(run, outcome, **where, index=index, **taken_by(line.calls)))
    return AuditedSystem(name, tuple(rows), note)


def with_lines(
    runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]
) -> Iterator[tuple[Run[StepRecord], AuditLine]]:
    """The runs that have a line, with it."""
    by_id = {line.run_id: line for line in lines}
    return ((run, by_id[run.run_id]) for run in runs if run.run_id in by_id)


def confidence_pairs(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]) -> list[tuple[float, bool]]:
    """Raw confidence of verdicts and whether they were right, to fit a `ConfidenceMap` on.

    Right: an alarm that blames the decisive step of a failed run, a "safe" of a successful one. Left out: verdicts
    without a confidence or with a calibrated one, runs nobody judged, alarms on failed runs without a decisive step.
    """
    pairs = []
    for run, line in with_lines(runs, lines):
        verdict, failed = line.verdict, run.outcome is Outcome.FAILURE
        is_raw = RAW_CONFIDENCE in verdict["notes"] and verdict["confidence"] is not None
        if run.outcome is Outcome.UNKNOWN or not is_raw or verdict["outcome"] not in ("alarm", "safe"):
            continue
        alarmed = verdict["outcome"] == "alarm"
        gold = None if run.mistake is None else run.mistake.step
        if not (alarmed and failed and gold is None):
            right = (failed and verdict["step"] == gold) if alarmed else not failed
            pairs.append((float(verdict["confidence"]), right))
    return pairs
