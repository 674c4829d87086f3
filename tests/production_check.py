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
    found += [f"{name} was imported" for name in ABSENT if name in sys.modules]
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
