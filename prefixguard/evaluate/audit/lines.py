"""Rows of attribution, and of fault sets, from the lines of a finished audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from prefixguard.metrics import AuditedRun, FaultRow, FaultSets
from prefixguard.trace import Outcome


class FinishedAudit(Protocol):
    """What is read of one audited run: labels, verdict and calls as plain values (`AuditLine` of the auditing room)."""

    @property
    def run_id(self) -> str: ...
    @property
    def task_id(self) -> str | None: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def gold_step(self) -> int | None: ...
    @property
    def gold_agent(self) -> str | None: ...
    @property
    def verdict(self) -> Mapping[str, Any]: ...
    @property
    def alarm_step(self) -> int | None: ...
    @property
    def calls(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def faults(self) -> Sequence[tuple[str | None, str | None]]: ...
    @property
    def pairs(self) -> Sequence[tuple[str, str]] | None: ...
    @property
    def modes(self) -> Sequence[str] | None: ...


def audited_lines(lines: Sequence[FinishedAudit]) -> tuple[AuditedRun, ...]:
    """One row a line, steps numbered by record; lines of runs that nobody judged are left out.

    A line without calls cost nothing; one with a call of unknown cost has an unknown cost.
    """
    rows = []
    for line in lines:
        if line.outcome is Outcome.UNKNOWN or not line.n_steps:
            continue
        failed = line.outcome is Outcome.FAILURE
        said, calls = line.verdict, line.calls
        alarm = said["outcome"] == "alarm"
        costs = [call["cost"] for call in calls]
        rows.append(
            AuditedRun(
                run_id=line.run_id,
                task_id=line.task_id,
                n_steps=line.n_steps,
                failed=failed,
                gold_step=line.gold_step if failed else None,
                gold_agent=line.gold_agent if failed else None,
                outcome=said["outcome"],
                step=said["step"] if alarm else None,
                agent=said["agent"] if alarm else None,
                alarm_step=line.alarm_step if alarm else None,
                calls=len(calls),
                failed_calls=sum(call["outcome"] == "error" for call in calls),
                tokens_in=sum(call["tokens_in"] for call in calls),
                tokens_out=sum(call["tokens_out"] for call in calls),
                cost=None if None in costs else float(sum(costs)),
                seconds=float(sum(call["seconds"] for call in calls)),
            )
        )
    return tuple(rows)


def fault_lines(lines: Sequence[FinishedAudit]) -> tuple[FaultRow, ...]:
    """One row a line whose label names faults. An audit that ended in an error with nothing found, or that asked for
    no faults, has failed."""
    rows = []
    for line in lines:
        if not line.faults:
            continue
        gold = FaultSets.of(
            [(agent, mode) for agent, mode in line.faults if agent is not None and mode is not None],
            agents=[agent for agent, _ in line.faults if agent is not None],
            modes=[mode for _, mode in line.faults if mode is not None],
        )
        silent = line.modes is None or (line.verdict["outcome"] == "error" and not line.modes)
        said = None if silent else FaultSets.of(line.pairs or (), modes=line.modes or ())
        rows.append(FaultRow(line.run_id, gold, said, line.task_id))
    return tuple(rows)
