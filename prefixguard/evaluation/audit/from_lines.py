"""Lines of an audit as rows to measure: verdicts, costs, and sets of faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from prefixguard.escalate import RAW_CONFIDENCE, AuditLine
from prefixguard.evaluation.audit.audited_system import AuditedSystem, StepIndex, audited
from prefixguard.evaluation.audit.fault_table import fault_row
from prefixguard.metrics import AuditOutcome, FaultRow, FaultSets
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
