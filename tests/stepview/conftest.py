"""A small spec to vary, and the two ways to read with it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prefixguard.stepview import Adapter, ReadReport, StepRecord, read_runs
from prefixguard.trace import Run

CHAT: dict[str, Any] = {
    "schema": "prefixguard/adapter/v1",
    "name": "chat",
    "version": "1.0.0",
    "container": {"format": "json", "runs": "$[*]"},
    "run": {
        "id": "$.id",
        "task": "$.task",
        "preamble": "$.question",
        "outcome": {"of": "$.reward", "type": "number", "success": {"ge": 1.0}, "failure": {"lt": 1.0}},
    },
    "events": "$.messages[*]",
    "rules": [
        {"when": {"@.role": "system"}, "emit": "skip"},
        {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content"}},
        {
            "when": {"@.role": "assistant", "@.tool_calls": {"present": True}},
            "emit": "call",
            "each": "@.tool_calls[*]",
            "action": {"text": "^.content"},
            "call_id": "@.id",
            "tool": "@.name",
            "arguments": {"json": "@.arguments"},
        },
        {"when": {"@.role": "assistant"}, "emit": "say", "action": {"text": "@.content"}},
        {"when": {"@.role": "tool"}, "emit": "result", "call_id": "@.call_id", "result": {"text": "@.content"}},
    ],
    "status": [{"when": {"result": {"re": "(?i)^error"}}, "is": "error"}, {"is": "ok"}],
    "hidden": ["$.reward", "$.info"],
}

Make = Callable[..., Adapter]
Read = Callable[..., list[Run[StepRecord]]]


@pytest.fixture
def chat() -> dict[str, Any]:
    """The spec of a chat with tools, to change at will."""
    return copy.deepcopy(CHAT)


@pytest.fixture
def make() -> Make:
    """An adapter from the chat spec with parts replaced; a part set to None is left out."""

    def build(**parts: Any) -> Adapter:
        spec = copy.deepcopy(CHAT) | parts
        return Adapter({key: value for key, value in spec.items() if value is not None})

    return build


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Runs of a document (JSON value, text or bytes) through an adapter."""

    def run(adapter: Adapter, document: Any, name: str = "runs.json", **options: Any) -> list[Run[StepRecord]]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(document, bytes):
            path.write_bytes(document)
        else:
            path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        options.setdefault("report", ReadReport())
        return list(read_runs(path, adapter, **options))

    return run
