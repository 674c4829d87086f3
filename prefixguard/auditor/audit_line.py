"""One audited run as a line of JSON: what was said, what it cost, and, apart from it, what the run's label says."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prefixguard.auditor.protocols import Inspection
from prefixguard.errors import TraceError
from prefixguard.escalate import NoReplyFault
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run, run_digest

_REMEDY = "Move the file away, or name another folder with --out."
#: Faults of questions that were sent and got no reply: what they cost nobody knows.
_NO_REPLY = frozenset(NoReplyFault) - {NoReplyFault.CIRCUIT_OPEN}
_COUNTS = ("tries", "questions", "tokens_in", "tokens_out", "cost_unknown")


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An audited run.

    run_id, task_id, groups, n_steps, outcome: of the run. gold_step, gold_agent: what a set says of its decisive
    mistake, None where it says nothing; faults: who failed and how, as (agent, mode), where it says that.
    protocol: how the run was gone through. verdict: as `Verdict.as_json` has it.
    alarm_step, pairs, modes, possible_calls, calls: see `Inspection`.
    digest: of the records that were shown, see `records_digest`; "" where it is not known.
    spent: what earlier tries of this run took, see `spent_on`; empty where there were none.
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
    digest: str = ""
    spent: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_errors(self) -> bool:
        """Whether a question, or the whole audit, gave no verdict."""
        return self.verdict["outcome"] == "error" or any(call["outcome"] == "error" for call in self.calls)

    def as_json(self) -> dict[str, Any]:
        """The line."""
        line = {key: getattr(self, name) for key, name in _LINE.items()}
        label = {key: getattr(self, name) for key, name in _LABEL.items()}
        return {key: _plain(value) for key, value in line.items()} | {"label": _plain(label)}

    @classmethod
    def from_json(cls, value: Any, where: str) -> AuditLine:
        """A line that `as_json` made. TraceError where it is none; where: for the message."""
        if not isinstance(value, dict):
            raise TraceError(f"{where}: no line of an audit: no JSON object. {_REMEDY}")
        try:
            read = {name: value["label"][key] for key, name in _LABEL.items()}
            read |= {name: value[key] for key, name in _LINE.items() if key not in ("digest", "spent")}
            read |= {name: int(read[name]) for name in ("n_steps", "possible_calls")}
            read |= {"digest": str(value.get("digest", "")), "spent": _read_spent(value.get("spent", {}))}
            read |= {"outcome": Outcome(read["outcome"]), "groups": dict(read["groups"])}
            read["faults"] = tuple((agent, mode) for agent, mode in read["faults"])
            read["pairs"] = None if read["pairs"] is None else tuple((agent, mode) for agent, mode in read["pairs"])
            read["modes"] = None if read["modes"] is None else tuple(read["modes"])
            read["verdict"], *calls = (
                {**said, "outcome": str(said["outcome"])} for said in (read["verdict"], *read["calls"])
            )
            return cls(**read | {"calls": tuple(calls)})
        except KeyError as exc:
            raise TraceError(f"{where}: no line of an audit: {str(exc)[:100]} is missing. {_REMEDY}") from exc
        except (TypeError, ValueError, AttributeError) as exc:
            raise TraceError(f"{where}: no line of an audit: a value is of another kind. {_REMEDY}") from exc


#: Keys of a line, in their order, and the fields that they hold; the label's own stand apart.
_LINE = {key: key for key in ("run_id", "task_id", "groups")} | {"steps": "n_steps"} | {
    key: key
    for key in ("digest", "protocol", "verdict", "alarm_step", "pairs", "modes", "possible_calls", "calls", "spent")
}  # fmt: skip
_LABEL = {"outcome": "outcome", "step": "gold_step", "agent": "gold_agent", "faults": "faults"}


def _plain(value: Any) -> Any:
    """As JSON has it; numbers stay as they are."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value.value if isinstance(value, Outcome) else value


def audit_line(run: Run[StepRecord], protocol: str, found: Inspection) -> AuditLine:
    """The line of a run that was inspected."""
    return AuditLine(
        run_id=run.run_id,
        n_steps=len(run.records),
        protocol=protocol,
        verdict=found.verdict.as_json(),
        alarm_step=found.alarm_step,
        calls=found.calls,
        possible_calls=found.possible_calls,
        pairs=found.pairs,
        modes=found.modes,
        digest=records_digest(run.records),
        **_labels(run),
    )


def relabelled(line: AuditLine, run: Run[StepRecord]) -> AuditLine:
    """The line with what the run's labels say now: they are no part of what was asked."""
    return replace(line, **_labels(run))


def _labels(run: Run[StepRecord]) -> dict[str, Any]:
    mistake = run.mistake
    return {
        "task_id": run.task_id,
        "outcome": run.outcome,
        "gold_step": None if mistake is None else mistake.step,
        "gold_agent": None if mistake is None else mistake.agent,
        "groups": dict(run.groups),
        "faults": tuple((fault.agent, fault.mode) for fault in run.faults),
    }


def records_digest(records: Iterable[StepRecord]) -> str:
    """SHA-256, as hex, of all that an auditor may be shown of records: their texts and who acted."""
    shown = list(records)
    agents = json.dumps([[record.index, record.agent] for record in shown])
    return hashlib.sha256(f"{run_digest(shown)}{agents}".encode()).hexdigest()


def spent_on(line: AuditLine) -> dict[str, Any]:
    """What a run has taken so far, this line and all before it.

    tries: lines. questions, tokens_in, tokens_out, seconds; cost: of those whose cost is known, None where none is;
    cost_unknown: number of the others. A question without a reply may have cost something, nobody knows what; an answer
    costs None without prices.
    """
    costs = [call["cost"] for call in line.calls]
    known = [cost for cost in (*costs, line.spent.get("cost")) if cost is not None]
    now = {
        "tries": 1,
        "questions": len(line.calls),
        "tokens_in": sum(call["tokens_in"] for call in line.calls),
        "tokens_out": sum(call["tokens_out"] for call in line.calls),
        "cost_unknown": sum(call["cost"] is None or call["fault"] in _NO_REPLY for call in line.calls),
    }
    return {
        **{name: now[name] + line.spent.get(name, 0) for name in _COUNTS},
        "cost": math.fsum(known) if known else None,
        "seconds": math.fsum((*(call["seconds"] for call in line.calls), line.spent.get("seconds", 0.0))),
    }


def _read_spent(value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        return {}
    cost = None if value["cost"] is None else float(value["cost"])
    return {**{name: int(value[name]) for name in _COUNTS}, "cost": cost, "seconds": float(value["seconds"])}
