"""Readings as sinks get them: of a run that fails, and made by hand."""

from __future__ import annotations

from typing import Any

from prefixguard.behaviours import BY_NAME, BehaviourFinding
from prefixguard.escalate import Verdict, VerdictOutcome
from prefixguard.integrations import WatchedReading, WatchedRun
from prefixguard.runtime import Level, Reading

SECRET = "sk-abcdefghijklmnopqrstuvwx"
#: Fields of a reading that comes again with a verdict.
BLAMED: dict[str, Any] = {
    "verdict": Verdict(VerdictOutcome.ALARM, 2, "clerk", f"It shows {SECRET}.", quote=SECRET), "about": 3
}  # fmt: skip


def fail(run: WatchedRun, steps: int = 4) -> WatchedRun:
    """The same call fails again and again: WATCH, then ALARM."""
    for n in range(steps):
        run.returned(run.called("find", {"id": "A1"}, call_id=f"{n}"), "error: not found", is_error=True)
    return run


def watched(step: int = 3, risk: float | None = 0.75, **fields: Any) -> WatchedReading:
    """An alarm whose reason quotes a secret; one of level UNKNOWN without a risk."""
    found = (
        BehaviourFinding(BY_NAME["missing_tool"], 1, 2, f"login {SECRET}"),
        BehaviourFinding(BY_NAME["call_failed"], 1, 2, f'login {{"key":"{SECRET[:16]}…'),
    )
    said = (f"word `{SECRET}` in the result", "errors: 3")
    alarm = Reading(step, 0.5, risk, Level.ALARM, 1, None, said, None, 120.0, found, found)
    unknown = Reading(step, None, None, Level.UNKNOWN, None, None, (), f"cannot read {SECRET}", 120.0)
    given = {"run": "r1", "agent_path": "main", "agent": "boss", "at": 1_700_000_000.25, "is_alarm": risk is not None}
    return WatchedReading(**{**given, "reading": unknown if risk is None else alarm, **fields})
