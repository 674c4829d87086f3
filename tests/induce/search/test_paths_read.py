"""What the report says is read and left out: no part of what is read is called left out, and no call goes unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.explanations import _read

RULES: list[Any] = [
    {"when": {"@.kind": "call"}, "emit": "call", "tool": "@.name", "arguments": "@.params"},
    {
        "when": {"@.extra": {"present": True}},
        "emit": "result",
        "each": "@.blocks[*]",
        "result": {"text": "@.text"},
        "action": "^.said",
        "comment": "@.nothing",
    },
]


def test_places_that_are_read_and_those_that_only_tell_events_apart() -> None:
    read, asked = _read({"rules": RULES, "join": {"by": "id"}, "status": [{"when": {"@.ok": True}, "is": "ok"}]})
    assert read == {("name",), ("params",), ("blocks", "text"), ("said",)}
    assert asked == {("kind",), ("extra",), ("ok",)}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Steps of a home-grown format: a whole step an event, with arguments that hold most of the text."""
    for i in range(8):
        steps = [
            {
                "tool": ("find", "read", "write")[(i + k) % 3],
                "params": {("q", "path", "text")[(i + k) % 3]: f"the {k} word of {i} and some more text"},
                "thought": f"I try step {k} of run {i}, because nothing else helps {k * i}",
                "result": f"found {k} things in place {i}: a, b, c{k}",
                "debug": f"trace {i} {k} of the machine that nobody sees at all",
            }
            for k in range(3 + i % 4)
        ]
        (tmp_path / f"run{i}.json").write_text(json.dumps({"goal": f"do {i}", "ok": i % 2 == 0, "steps": steps}))
    return tmp_path


def test_a_whole_step_s_tool_and_arguments_are_said_and_no_part_of_them_is_left_out(rows: Path) -> None:
    made = propose_by_search(open_samples(rows), name="rows")
    said = {(one.raw.partition(" when ")[0], one.field) for one in made.mapped}
    assert {("@.tool", "tool"), ("@.params", "arguments"), ("@.result", "result")} <= said
    left = {one.raw for one in made.left_out}
    assert not {path for path in left if path.startswith("@.params")} and "@.debug" in left
