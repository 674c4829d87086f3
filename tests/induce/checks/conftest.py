"""Chats with tools, written by a seeded program, and the spec that reads them rightly; tests plant faults in both."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.checks import CheckReport, check_adapter
from prefixguard.stepview import Adapter

SPEC: dict[str, Any] = {
    "schema": "prefixguard/adapter/v1",
    "name": "chat",
    "version": "1.0.0",
    "container": {"format": "json", "runs": "$[*]"},
    "run": {
        "id": "$.id",
        "task": "$.task",
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
    "hidden": ["$.reward"],
}

_WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "kelp", "larch",
    "maple", "nectar", "otter", "plume", "quartz", "ridge", "sable", "thorn", "umber", "vale", "willow",
    "yarrow", "zephyr", "basin", "cliff", "dune", "estuary", "flint",
)  # fmt: skip

Runs = list[dict[str, Any]]
Check = Callable[..., CheckReport]


def phrase(chance: random.Random, words: int) -> str:
    """Words at random: no two texts of a set have much in common."""
    return " ".join(chance.choice(_WORDS) for _ in range(words))


def chats(n: int = 40, seed: int = 1, steps: tuple[int, int] = (3, 8)) -> Runs:
    """Runs of which every second succeeds; nothing in their messages tells which."""
    chance = random.Random(seed)
    runs: Runs = []
    for i in range(n):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You help people."},
            {"role": "user", "content": f"Please {phrase(chance, 12)}."},
        ]
        for k in range(chance.randint(*steps)):
            call = {
                "id": f"c{k}",
                "name": chance.choice(("find", "read", "write")),
                "arguments": {"q": phrase(chance, 3)},
            }
            messages.append({"role": "assistant", "content": f"I will {phrase(chance, 8)}.", "tool_calls": [call]})
            failed = "Error: " if chance.random() < 0.2 else ""
            messages.append({"role": "tool", "call_id": f"c{k}", "content": failed + phrase(chance, 15)})
        messages.append({"role": "assistant", "content": f"Here it is: {phrase(chance, 8)}."})
        runs.append({"id": f"r{i}", "task": f"t{i % 10}", "reward": float(i % 2), "messages": messages})
    return runs


def won(run: dict[str, Any]) -> bool:
    return bool(run["reward"] >= 1.0)


@pytest.fixture
def spec() -> dict[str, Any]:
    """The spec, to change at will."""
    return copy.deepcopy(SPEC)


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check a spec on runs; in one process unless told otherwise."""

    def run(spec: dict[str, Any], runs: Any, **options: Any) -> CheckReport:
        path = tmp_path / "runs.json"
        path.write_text(json.dumps(runs), encoding="utf-8")
        options.setdefault("processes", False)
        return check_adapter(Adapter(spec), path, **options)

    return run


@pytest.fixture
def make_chats() -> Callable[..., Runs]:
    return chats
