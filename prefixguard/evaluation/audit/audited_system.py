"""An auditor's rows with their name, and how a row is made of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prefixguard.errors import DataError
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
