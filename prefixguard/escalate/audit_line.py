"""One audited run as a line of JSON: what was said, what it cost, and, apart from it, what the run's label says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.escalate.inspectors import Inspected
from prefixguard.stepview import StepRecord
from prefixguard.trace import Fault, Outcome, Run


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An audited run.

    run_id, task_id, groups, outcome, n_steps: of the run. gold_step, gold_agent: what a set says of its decisive
    mistake, None where it says nothing; faults: who failed and how, as (agent, mode), where it says that.
    protocol: how the run was gone through. verdict: as `Verdict.as_json` has it.
    alarm_step, calls, possible_calls, pairs, modes: see `Inspected`.
    """

    run_id: str
    task_id: str | None
    outcome: Outcome
    n_steps: int
    gold_step: int | None
    gold_agent: str | None
    protocol: str
    verdict: Mapping[str, Any]
    alarm_step: int | None
    calls: tuple[Mapping[str, Any], ...]
    possible_calls: int
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    faults: tuple[tuple[str | None, str | None], ...] = ()
    pairs: tuple[tuple[str, str], ...] | None = None
    modes: tuple[str, ...] | None = None

    @property
    def has_errors(self) -> bool:
        """Whether a question, or the whole audit, gave no verdict."""
        return self.verdict["outcome"] == "error" or any(call["outcome"] == "error" for call in self.calls)

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "run_id": self.run_id,
            "task_id": self.task_id,
            "groups": dict(self.groups),
            "steps": self.n_steps,
            "protocol": self.protocol,
            "verdict": dict(self.verdict),
            "alarm_step": self.alarm_step,
            "pairs": None if self.pairs is None else [list(pair) for pair in self.pairs],
            "modes": None if self.modes is None else list(self.modes),
            "possible_calls": self.possible_calls,
            "calls": [dict(call) for call in self.calls],
            "label": {
                "outcome": self.outcome.value,
                "step": self.gold_step,
                "agent": self.gold_agent,
                "faults": [list(pair) for pair in self.faults],
            },
        }

    @classmethod
    def from_json(cls, value: Any, where: str) -> AuditLine:
        """A line that `as_json` made. TraceError where it is none; where: for the message."""
        try:
            label = value["label"]
            pairs, modes = value["pairs"], value["modes"]
            line = cls(
                run_id=value["run_id"],
                task_id=value["task_id"],
                outcome=Outcome(label["outcome"]),
                n_steps=int(value["steps"]),
                gold_step=label["step"],
                gold_agent=label["agent"],
                protocol=value["protocol"],
                verdict={**value["verdict"], "outcome": str(value["verdict"]["outcome"])},
                alarm_step=value["alarm_step"],
                calls=tuple({**call, "outcome": str(call["outcome"])} for call in value["calls"]),
                possible_calls=int(value["possible_calls"]),
                groups=dict(value["groups"]),
                faults=tuple((agent, mode) for agent, mode in label["faults"]),
                pairs=None if pairs is None else tuple((agent, mode) for agent, mode in pairs),
                modes=None if modes is None else tuple(modes),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise TraceError(
                f"{where}: no line of an audit ({type(exc).__name__}: {str(exc)[:100]}). Move the file away, or name "
                "another folder with --out."
            ) from exc
        return line


def audit_line(run: Run[StepRecord], protocol: str, found: Inspected) -> AuditLine:
    """The line of a run that was inspected."""
    mistake = run.mistake
    return AuditLine(
        run_id=run.run_id,
        task_id=run.task_id,
        outcome=run.outcome,
        n_steps=len(run.records),
        gold_step=None if mistake is None else mistake.step,
        gold_agent=None if mistake is None else mistake.agent,
        protocol=protocol,
        verdict=found.verdict.as_json(),
        alarm_step=found.alarm_step,
        calls=found.calls,
        possible_calls=found.possible_calls,
        groups=dict(run.groups),
        faults=tuple(_pair(fault) for fault in run.faults),
        pairs=found.pairs,
        modes=found.modes,
    )


def _pair(fault: Fault) -> tuple[str | None, str | None]:
    return fault.agent, fault.mode
