"""Spans of instrumentations, made by hand, and what a guard recorded of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prefixguard.integrations import Guard
from prefixguard.integrations.opentelemetry import SpanWatcher

Message = dict[str, Any]
_IDS = count(1)


class Tracer:
    """Makes spans as an SDK does, for a watcher. Times are the order of what happens."""

    def __init__(self, guard: Guard) -> None:
        self.watcher = SpanWatcher(guard, {})

    def begin(self, name: str, above: Any = None, **attributes: Any) -> Any:
        trace = next(_IDS) if above is None else above.context.trace_id
        span = SimpleNamespace(
            name=name, attributes=attributes, events=(), status=None, start_time=next(_IDS), end_time=None,
            context=SimpleNamespace(trace_id=trace, span_id=next(_IDS)), dropped_attributes=0,
            parent=None if above is None else above.context, instrumentation_scope=SimpleNamespace(name="test"),
        )  # fmt: skip
        self.watcher.begins(span)
        return span

    def end(self, span: Any, error: str = "", **attributes: Any) -> None:
        span.attributes = {**span.attributes, **attributes}
        span.end_time = next(_IDS)
        if error:
            said = {"exception.type": "builtins.LookupError", "exception.message": error}
            span.events = (SimpleNamespace(name="exception", attributes=said),)
            span.status = SimpleNamespace(status_code=SimpleNamespace(name="ERROR"), description=error)
        self.watcher.ends(span)


def genai(messages: list[Message], reply: Message) -> dict[str, Any]:
    def parts(message: Message) -> dict[str, Any]:
        if message["role"] == "tool":
            part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
            return {"role": "tool", "parts": [part]}
        made = [{"type": "text", "content": message["content"]}] if message["content"] else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            given = json.loads(function["arguments"])
            made.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": given})
        return {"role": message["role"], "parts": made}

    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(message) for message in messages]),
        "gen_ai.output.messages": json.dumps([parts(reply)]),
    }


def openinference(messages: list[Message], reply: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for side, given in (("input", messages), ("output", [reply])):
        for n, message in enumerate(given):
            at = f"llm.{side}_messages.{n}.message."
            for name in ("role", "content", "tool_call_id"):
                if message.get(name):
                    found[at + name] = message[name]
            for k, call in enumerate(message.get("tool_calls", ())):
                found[f"{at}tool_calls.{k}.tool_call.id"] = call["id"]
                for name, value in call["function"].items():
                    found[f"{at}tool_calls.{k}.tool_call.function.{name}"] = value
    return found


CONVENTIONS = {"genai": genai, "openinference": openinference}


def call(call_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": tool, "arguments": json.dumps(arguments)}}


def says(text: str = "", *calls: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def conversation(rng: random.Random, name: str) -> Iterator[tuple[list[Message], Message]]:
    """Requests and replies of a loop; further turns of the user, parallel calls, system messages in between."""
    messages: list[Message] = [{"role": "system", "content": "S"}] if rng.random() < 0.5 else []
    messages.append({"role": "user", "content": f"{name}?"})
    for turn in range(rng.randint(1, 5)):
        calls = [
            call(f"{name}-{turn}-{k}", rng.choice(("find", "pay")), id=k, of=name) for k in range(rng.randint(0, 3))
        ]
        reply = says(rng.choice(("", "I look.")) if calls else f"Said {turn}.", *calls)
        yield list(messages), reply
        messages.append(reply)
        messages += [{"role": "tool", "tool_call_id": one["id"], "content": f"got {turn}"} for one in calls]
        if not calls:
            messages.append({"role": "user", "content": f"and {turn}?"})


ASKED: list[Message] = [{"role": "user", "content": "Where?"}]


def answered(reply: Message, *results: str) -> list[Message]:
    """The messages of the next call."""
    made = zip(reply["tool_calls"], results, strict=True)
    return [*ASKED, reply, *({"role": "tool", "tool_call_id": one["id"], "content": text} for one, text in made)]


def recorded(folder: Path) -> list[list[dict[str, Any]]]:
    """The events of each file, without times, ids and the run's name; arguments in one spelling."""
    hidden = ("run", "at", "id", "task_id", "tokens_in", "tokens_out")
    found = []
    for path in folder.glob("*.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for event in events:
            with suppress(TypeError, KeyError, ValueError):
                event["arguments"] = json.loads(event["arguments"])
        found.append([{name: value for name, value in event.items() if name not in hidden} for event in events])
    return sorted(found, key=str)


def lines(folder: Path) -> list[tuple[Any, ...]]:
    """(agent path, kind, text or tool, whether it failed) of all events of the one file."""
    (events,) = recorded(folder)
    return [(e["agent_path"], e["kind"], e.get("tool") or e.get("text", ""), e.get("is_error")) for e in events]
