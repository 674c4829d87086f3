"""Lines of an audit as rows to measure: verdicts, costs, and sets of faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from prefixguard.escalate import AuditLine
from prefixguard.evaluate.audit.audited_system import AuditedSystem, StepIndex, audited
from prefixguard.evaluate.audit.fault_table import fault_row
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
