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
from types import MappingProxyType
from typing import Any

import pytest

from prefixguard.stepview import StepRecord, load_adapter, read_runs

RECORDED = Path(__file__).parent / "recorded"
FIELDS = ("tool", "arguments", "observation", "action", "result", "status")
Step = dict[str, str]


@dataclass(frozen=True)
class Reading:
    """adapter : that reads the export. events : of a run. The rest is what the export does not hold, and why.

    fields, tools : of steps. others : steps of agents besides the first. together : results of the calls of one reply
    apart; they are one text.
    """

    adapter: str
    fields: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    others: str = ""
    together: str = ""
    events: Callable[[Any], list[Any]] = itemgetter("events")


_NO_TEXT = MappingProxyType(dict.fromkeys(("action", "observation"), "spans of Responses export no text of the model"))
_NO_SPEECH = MappingProxyType({"respond": "spans of Responses export no text of the model"})
_OWN_HISTORY = "an agent that a tool runs has a history of its own"
_ONE_TEXT = "a step has one text of observations"
READINGS = {
    "openai-agents-0.24.0/chat": Reading("openai_agents"),
    "openai-agents-0.24.0/responses": Reading("openai_agents", _NO_TEXT, _NO_SPEECH),
    "openai-agents-0.24.0/responses_full": Reading("openai_agents"),
    "pydantic-ai-slim-2.68.0/history": Reading("pydantic_ai", others=_OWN_HISTORY, events=itemgetter(slice(None))),
    "smolagents-1.26.0/memory": Reading("smolagents", together=_ONE_TEXT, events=itemgetter(slice(None))),
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


CASES = [(export, scenario) for export in READINGS for scenario in truth(export)]


def test_every_recording_is_read() -> None:
    assert sorted(READINGS) == sorted(str(path.parent.relative_to(RECORDED)) for path in RECORDED.rglob("truth.json"))


@pytest.mark.parametrize(("export", "scenario"), CASES)
def test_what_an_export_holds_is_read(export: str, scenario: str) -> None:
    reading = READINGS[export]
    paths = truth(export)[scenario][: 1 if reading.others else None]
    kept = [[step for step in path if step["tool"] not in reading.tools] for path in paths]
    true = [[{name: "" if name in reading.fields else step[name] for name in FIELDS} for step in path] for path in kept]
    events: list[list[Any]] = []
    adapter = load_adapter(reading.adapter)
    folder = RECORDED / export / scenario
    runs = read_runs(folder, adapter, strict=True, witness=lambda scope: events.append(reading.events(scope.run)))
    read = [shown(run.records) for run in runs]
    if reading.together and scenario == "parallel":
        assert [joined(path) for path in read] == [joined(path) for path in true]
    else:
        assert sorted(read, key=str) == sorted(filter(None, true), key=str)
    live = []
    for of_run in events:
        parser = adapter.parser({})
        live.append(shown([record for event in of_run for record in parser.observe(event)] + parser.end()))
    assert live == read
