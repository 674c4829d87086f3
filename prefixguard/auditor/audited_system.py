"""An auditor's rows with their name, and how a row is made of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from prefixguard.auditor.audit_line import AuditLine
from prefixguard.auditor.fault_table import fault_row
from prefixguard.errors import DataError
from prefixguard.escalate import RAW_CONFIDENCE
from prefixguard.metrics import AuditedRun, AuditOutcome, FaultRow, FaultSets
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run


def audited_lines(
    name: str,
    runs: Sequence[Run[StepRecord]],
    lines: Sequence[AuditLine],
    *,
    index: StepIndex = "record",
    note: str = "",
) -> AuditedSystem:
    """An auditor's rows on the runs that were judged and have a line. index: see `audited`."""
    by_id = {line.run_id: line for line in lines}
    rows = []
    for run in runs:
        line = by_id.get(run.run_id)
        if line is None or run.outcome is Outcome.UNKNOWN:
            continue
        costs = [call["cost"] for call in line.calls]
        rows.append(
            audited(
                run,
                cast(AuditOutcome, line.verdict["outcome"]),
                step=line.verdict["step"],
                agent=line.verdict["agent"],
                alarm_step=line.alarm_step,
                index=index,
                calls=len(line.calls),
                failed_calls=sum(call["outcome"] == "error" for call in line.calls),
                tokens_in=sum(call["tokens_in"] for call in line.calls),
                tokens_out=sum(call["tokens_out"] for call in line.calls),
                cost=None if None in costs else math.fsum(costs),
                seconds=math.fsum(call["seconds"] for call in line.calls),
            )
        )
    return AuditedSystem(name, tuple(rows), note)


def fault_lines(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]) -> list[FaultRow]:
    """Rows of fault sets of the runs whose label names faults; an audit in which nothing was answered has failed."""
    by_id = {line.run_id: line for line in lines}
    rows = []
    for run in runs:
        line = by_id.get(run.run_id)
        if line is None or not run.faults:
            continue
        silent = line.modes is None or (line.verdict["outcome"] == "error" and not line.modes)
        found = None if silent else FaultSets.of(line.pairs or (), modes=line.modes or ())
        rows.append(fault_row(run, found))
    return rows


def confidence_pairs(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]) -> list[tuple[float, bool]]:
    """Raw confidence of verdicts and whether they were right, to fit a `ConfidenceMap` on.

    Right: an alarm that blames the decisive step of a failed run, a "safe" of a successful one. Left out: verdicts
    without a confidence or with a calibrated one, runs nobody judged, alarms on failed runs without a decisive step.
    """
    by_id = {line.run_id: line for line in lines}
    pairs = []
    for run in runs:
        line = by_id.get(run.run_id)
        if line is None or run.outcome is Outcome.UNKNOWN or RAW_CONFIDENCE not in line.verdict["notes"]:
            continue
        verdict, failed = line.verdict, run.outcome is Outcome.FAILURE
        alarmed = verdict["outcome"] == "alarm"
        if verdict["confidence"] is None or verdict["outcome"] not in ("alarm", "safe"):
            continue
        gold = None if run.mistake is None else run.mistake.step
        if alarmed and failed and gold is None:
            continue
        pairs.append((float(verdict["confidence"]), (failed and verdict["step"] == gold) if alarmed else not failed))
    return pairs


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
    calls: int = 0,
    failed_calls: int = 0,
    tokens_in: int = 0,
    tokens_out: int = 0,
    cost: float | None = None,
    seconds: float = 0.0,
    share: float = 1.0,
) -> AuditedRun:
    """The row of one run, with its labels.

    step, alarm_step: indices of records, whatever `index` is, which says how the row numbers them. All else as in
        `AuditedRun`.
    Raises DataError where nobody judged how the run ended: such a run is neither failed nor safe.
    """
    if run.outcome is Outcome.UNKNOWN:
        raise DataError(
            f'{run.source}: run "{run.run_id}" has no outcome, so a verdict on it is neither right nor wrong. Leave it '
            "out (see audit_runs)."
        )
    failed = run.outcome is Outcome.FAILURE
    mistake = run.mistake if failed else None
    gold = None if mistake is None else mistake.step
    return AuditedRun(
        run_id=run.run_id,
        task_id=run.task_id,
        n_steps=step_number(run, len(run.records), index),
        failed=failed,
        gold_step=None if gold is None else step_number(run, gold, index),
        gold_agent=None if mistake is None else mistake.agent,
        outcome=outcome,
        step=None if step is None else step_number(run, step, index),
        agent=agent,
        alarm_step=None if alarm_step is None else step_number(run, alarm_step, index),
        calls=calls,
        failed_calls=failed_calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
        seconds=seconds,
        share=share,
    )


def audit_runs(runs: Sequence[Run[StepRecord]]) -> tuple[Run[StepRecord], ...]:
    """The runs that an audit can be measured on: judged, and not empty."""
    return tuple(run for run in runs if run.records and run.outcome is not Outcome.UNKNOWN)
