"""Exports that were recorded from the real packages, read by the shipped adapters: all steps and fields that they hold,
live as from the file.

`python -m benchmarks.record_exports` writes the folders of `recorded/`, with the true steps in truth.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from prefixguard.stepview import ReadReport, StepRecord, load_adapter, losses, read_runs

RECORDED = Path(__file__).parent / "recorded"
FIELDS = ("tool", "arguments", "observation", "action", "result", "status")
Step = dict[str, str]


@dataclass(frozen=True)
class Lacks:
    """What an export does not hold of an agent's steps, and why: fields of all of them, and steps with these tools."""

    fields: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)

    def held(self, path: list[Step]) -> list[Step]:
        kept = [step for step in path if step["tool"] not in self.tools]
        return [{name: "" if name in self.fields else step[name] for name in FIELDS} for step in kept]


@dataclass(frozen=True)
class Reading:
    """adapter : that reads the export. events : of a run. The rest is what the export does not hold.

    delegates : of agents besides the first; None: as of the first; a text: nothing is held, and why. together : results
    of the calls of one reply apart; they are one text. switch : that was not set, so that there are no texts, and
    nothing is compared.
    """

    adapter: str
    caller: Lacks = Lacks()
    delegates: Lacks | str | None = None
    together: str = ""
    events: Callable[[Any], list[Any]] = itemgetter("events")
    switch: str = ""

    def held(self, paths: list[list[Step]]) -> list[list[Step]]:
        """Of the true steps of every agent."""
        first, *others = paths
        below = self.caller if self.delegates is None else self.delegates
        kept = [] if isinstance(below, str) else [below.held(path) for path in others]
        return [path for path in (self.caller.held(first), *kept) if path]


_NO_TEXT = "spans of Responses export no text of the model"
_WHOLE = itemgetter(slice(None))
_OPENINFERENCE = (
    "langchain-0.1.80/langchain_agent",
    "openai-0.1.66/openai_chat",
    "openai-0.1.66/openai_chat_alone",
    "openai-0.1.66/openai_responses",
    "openai-agents-2.6.0/agents_chat",
    "openai-agents-2.6.0/agents_responses",
)
_V2 = "opentelemetry-instrumentation-openai-v2-2.4b0"
READINGS = {
    **{f"openinference-instrumentation-{name}": Reading("openinference") for name in _OPENINFERENCE},
    f"{_V2}/otel_chat": Reading("otel_genai"),
    f"{_V2}/otel_chat_alone": Reading("otel_genai"),
    f"{_V2}/otel_chat_defaults": Reading("otel_genai", switch="CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
    "claude-agent-sdk-0.2.187/messages": Reading(
        "claude_agent_sdk",
        Lacks({"observation": "the messages begin behind the prompt"}),
        Lacks(tools={"respond": "a sub-agent's last words are not among the messages"}),
    ),
    "claude-agent-sdk-0.2.187/sessions": Reading("claude_code"),
    "langgraph-1.2.22/state": Reading(
        "langgraph",
        delegates="an agent in a tool leaves nothing in the state but its result",
        events=itemgetter("messages"),
    ),
    "langgraph-1.2.22/updates": Reading(
        "langgraph_stream", Lacks({"observation": "updates do not hold what the graph was given"})
    ),
    "inspect-ai-0.3.285/eval": Reading("inspect_log", events=itemgetter("messages")),
    "inspect-ai-0.3.285/json": Reading("inspect_log", events=itemgetter("messages")),
    "openai-agents-0.24.0/chat": Reading("openai_agents"),
    "openai-agents-0.24.0/chat_beside": Reading("openai_agents"),
    "openai-agents-0.24.0/responses": Reading(
        "openai_agents", Lacks({"action": _NO_TEXT, "observation": _NO_TEXT}, {"respond": _NO_TEXT})
    ),
    "openai-agents-0.24.0/responses_full": Reading("openai_agents"),
    "pydantic-ai-slim-2.68.0/otel_pydantic_ai": Reading("otel_genai"),
    "pydantic-ai-slim-2.68.0/history": Reading(
        "pydantic_ai", delegates="an agent that a tool runs has a history of its own", events=_WHOLE
    ),
    "smolagents-1.26.0/memory": Reading("smolagents", together="a step has one text of observations", events=_WHOLE),
}


def shown(records: Sequence[StepRecord]) -> list[Step]:
    return [{name: getattr(record, name) for name in FIELDS} for record in records]


def joined(path: list[Step]) -> tuple[str, list[Step]]:
    """The results as one text, and the steps without them."""
    return "\n".join(filter(None, (step["result"] for step in path))), [step | {"result": ""} for step in path]


def truth(export: str) -> dict[str, list[list[Step]]]:
    """By scenario, the steps of every agent."""
    found: dict[str, list[list[Step]]] = json.loads((RECORDED / export / "truth.json").read_text(encoding="utf-8"))
    return found


CASES = [(export, scenario) for export, reading in READINGS.items() if not reading.switch for scenario in truth(export)]


def test_every_recording_is_read() -> None:
    assert sorted(READINGS) == sorted(str(path.parent.relative_to(RECORDED)) for path in RECORDED.rglob("truth.json"))


@pytest.mark.parametrize(("export", "scenario"), CASES)
def test_what_an_export_holds_is_read(export: str, scenario: str) -> None:
    reading = READINGS[export]
    true = reading.held(truth(export)[scenario])
    events: list[list[Any]] = []
    adapter = load_adapter(reading.adapter)
    folder = RECORDED / export / scenario
    runs = read_runs(folder, adapter, strict=True, witness=lambda scope: events.append(reading.events(scope.run)))
    read = [shown(run.records) for run in runs]
    if reading.together and scenario == "parallel":
        assert [joined(path) for path in read] == [joined(path) for path in true]
    else:
        assert sorted(read, key=str) == sorted(true, key=str)
    live = []
    for of_run in events:
        parser = adapter.parser({})
        live.append(shown([record for event in of_run for record in parser.observe(event)] + parser.end()))
    assert live == read


def test_what_spans_of_responses_lack_is_said() -> None:
    report, adapter = ReadReport(), load_adapter("openai_agents")
    assert list(read_runs(RECORDED / "openai-agents-0.24.0" / "responses", adapter, report=report))
    (loss,) = [one for one in losses(report.fills, adapter) if one.field == "observation"]
    assert "let the exporter add their input and response (docs/integrations.md)" in loss.text
    full = ReadReport()
    assert list(read_runs(RECORDED / "openai-agents-0.24.0" / "responses_full", adapter, report=full))
    assert not losses(full.fills, adapter)
