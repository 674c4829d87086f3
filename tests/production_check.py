"""Does a bundle run where only the run-time packages are installed?

    python production_check.py BUNDLE

Run by CI in an environment with numpy, onnxruntime, google-re2, orjson and PrefixGuard itself (without its
dependencies). BUNDLE reads chat-completions events (adapter `openai_chat`). Leaves with status 1 and a sentence if
something is wrong. Not a pytest file: pytest's environment has everything.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from typing import Any

ABSENT = ("torch", "sklearn", "lightgbm", "aalpy", "openai", "typer", "rich", "scipy", "onnx")


def _call(key: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": key, "type": "function", "function": function}]}


#: A run as an agent would show it, event by event: five steps (three calls, two messages).
EVENTS: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "You are a customer service agent."},
    {"role": "user", "content": "Please cancel order #W1234567. My email is ada@example.com."},
    _call("a", "find_user", {"email": "ada@example.com"}),
    {"role": "tool", "tool_call_id": "a", "content": '{"user_id": "ada_1"}'},
    _call("b", "get_order", {"order_id": "#W7654321"}),
    {"role": "tool", "tool_call_id": "b", "content": "Error: order #W7654321 not found"},
    {"role": "assistant", "content": "Sorry, one moment."},
    {"role": "user", "content": "It is #W1234567."},
    _call("c", "get_order", {"order_id": "#W1234567"}),
    {"role": "tool", "tool_call_id": "c", "content": '{"order_id": "#W1234567", "status": "pending"}'},
    {"role": "assistant", "content": "I see it. Shall I cancel it?"},
)
STEPS = 5


def problems(folder: str) -> list[str]:
    """What is wrong, a sentence each; empty if all is well."""
    found = [f"{name} is installed here, so this proves nothing" for name in ABSENT if importlib.util.find_spec(name)]

    from prefixguard import runtime

    monitor = runtime.load(folder)
    session = monitor.start()
    readings = [reading for event in EVENTS for reading in session.observe(event)]
    readings += session.end()
    if [reading.step for reading in readings] != list(range(1, STEPS + 1)):
        found.append(f"{STEPS} steps gave readings for steps {[reading.step for reading in readings]}")
    for reading in readings:
        risks = (reading.imminent_risk, reading.outcome_risk)
        if not all(risk is not None and math.isfinite(risk) and 0 <= risk <= 1 for risk in risks):
            found.append(f"step {reading.step}: risks {risks} are not probabilities ({reading.unknown_reason})")
        if reading.level not in ("OK", "WATCH", "ALARM"):
            found.append(f"step {reading.step}: level {reading.level} ({reading.unknown_reason})")
    found += escalation_problems(monitor)
    found += [f"{name} was imported" for name in ABSENT if name in sys.modules]
    return found


def escalation_problems(monitor: Any) -> list[str]:
    """The escalation tier works with an auditor of the host's own; the packages are asked for by an endpoint alone."""
    from prefixguard import escalate
    from prefixguard.errors import MissingExtraError

    class Unsure:
        model, prompt_version = "own", "1"

        async def judge(self, records: Any, *, seconds: float | None = None) -> Any:
            verdict = escalate.Verdict(escalate.VerdictOutcome.ABSTAIN)
            return escalate.AuditResult(verdict, str(len(records)), False, 0, 0, False, 0.0, 0.0, 1, "")

    found = []
    policy = escalate.EscalationPolicy(mark=1e-9, every=1, gap=1, mode="block", deadline=30.0)
    with escalate.Escalator(monitor, Unsure(), policy) as escalator:
        session = escalator.start()
        said = [reading for event in EVENTS for reading in session.observe(event)] + session.end()
    if len(said) != STEPS or escalator.counts.answered != STEPS:
        found.append(f"{STEPS} steps gave {len(said)} escalated readings and {escalator.counts}")
    try:
        escalate.AsyncClient(escalate.Endpoint("m", "http://127.0.0.1:1/v1"))
        found.append("a client was made without the openai package")
    except MissingExtraError as exc:
        if 'pip install "prefixguard-monitor[llm]' not in str(exc):
            found.append(f"the remedy is not said: {exc}")
    return found


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python production_check.py BUNDLE")
    found = problems(sys.argv[1])
    if found:
        sys.exit("\n".join(found))
    sys.stdout.write(f"{STEPS} steps judged with the run-time packages alone\n")


if __name__ == "__main__":
    main()
