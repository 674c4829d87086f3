"""Hand-made runs in an invented format, and adapters for them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

#: Reads `runs` below as it should be read.
GOOD: Mapping[str, Any] = {
    "schema": "prefixguard/adapter/v1",
    "name": "whatever",
    "version": "7",
    "container": {"format": "json", "files": "runs/*.json"},
    "run": {
        "id": "$.run",
        "task": "$.job",
        "outcome": {"of": "$.verdict.passed", "type": "boolean", "success": True, "failure": False},
    },
    "events": "$.log[*]",
    "rules": [
        {"when": {"@.who": "person"}, "emit": "observe", "observation": {"text": "@.text"}},
        {
            "when": {"@.who": "bot", "@.uses": {"present": True}},
            "emit": "call",
            "each": "@.uses[*]",
            "action": {"text": "^.text"},
            "call_id": "@.key",
            "tool": "@.does",
            "arguments": {"json": "@.with"},
        },
        {"when": {"@.who": "bot"}, "emit": "say", "action": {"text": "@.text"}},
        {"when": {"@.who": "machine"}, "emit": "result", "call_id": "@.key", "result": {"text": "@.text"}},
    ],
    "status": [{"when": {"@.broken": True}, "is": "error"}, {"when": {"@.broken": False}, "is": "ok"}],
    "hidden": ["$.verdict"],
}

TOWNS = ("Oslo", "Lima", "Cairo", "Quito", "Hanoi", "Turin")


def booking(i: int) -> dict[str, Any]:
    """A run of two calls side by side and one alone."""
    town, passed = TOWNS[i % len(TOWNS)], i % 3 != 0
    return {
        "run": f"r{i}",
        "job": f"job-{i // 2}",
        "log": [
            {"who": "person", "text": f"Please book a table for {2 + i % 5} in {town} on day {i}."},
            {
                "who": "bot",
                "text": f"Let me look for tables in {town}.",
                "uses": [
                    {"key": "a", "does": "find", "with": json.dumps({"town": town, "seats": i})},
                    {"key": "b", "does": "hours", "with": "{}"},
                ],
            },
            {"who": "machine", "key": "b", "text": f"open from {8 + i % 4} to 22 in {town}", "broken": False},
            {"who": "machine", "key": "a", "text": f"found {i} tables near the harbour", "broken": i % 4 == 1},
            {
                "who": "bot",
                "text": "Booking the second one.",
                "uses": [{"key": "a", "does": "book", "with": json.dumps({"table": 10 + i})}],
            },
            {"who": "machine", "key": "a", "text": f"booked as number {1000 + 37 * i}", "broken": False},
            {"who": "bot", "text": f"Your table in {town} is booked as number {1000 + 37 * i}."},
        ],
        "verdict": {"passed": passed, "points": 1.0 if passed else 0.25},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight runs, a file each."""
    (tmp_path / "set" / "runs").mkdir(parents=True)
    for i in range(8):
        (tmp_path / "set" / "runs" / f"{i}.json").write_text(json.dumps(booking(i)), encoding="utf-8")
    return tmp_path / "set"


@pytest.fixture
def run_of() -> Callable[[int], dict[str, Any]]:
    """Makes the i-th run."""
    return booking


@pytest.fixture
def good() -> dict[str, Any]:
    return copy.deepcopy(dict(GOOD))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
