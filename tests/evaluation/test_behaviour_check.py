"""A file of behaviours, tried on runs: what is counted, and what is said of behaviours that hold nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest

import prefixguard
from prefixguard.errors import ConfigError

MINE: dict[str, Any] = {
    "schema": "prefixguard/behaviours/v1",
    "name": "shop",
    "behaviours": [
        {"name": "pays", "sentence": "The agent pays.", "when": {"tool": "pay"}},
        {"name": "sings", "sentence": "The agent sings.", "when": {"tool": "sing"}},
    ],
}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(MINE))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    def run(i: int, tool: str, outcome: str) -> dict[str, Any]:
        call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        return {
            "run_id": f"r{i}", "task_id": f"t{i}", "outcome": outcome,
            "messages": [
                {"role": "user", "content": "Please."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "done"},
            ],
        }  # fmt: skip

    path = tmp_path / "runs.jsonl"
    lines = [run(1, "pay", "failure"), run(2, "look", "failure"), run(3, "pay", "success")]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_what_is_counted(mine: Path, runs: Path) -> None:
    found = prefixguard.check_behaviours(mine, runs, adapter="openai_chat")
    assert (found.runs, found.failed, found.succeeded, found.steps) == (3, 2, 1, 3)
    pays, sings, *others = found.counts
    assert (pays.name, pays.steps, pays.failed, pays.succeeded) == ("pays", 2, 1, 1)
    assert pays.first == "pays, run r1: The agent pays: step 1 (pay {})"
    assert found.silent == ("sings",) and sings.steps == 0
    assert {one.name: one.steps for one in others}["new_tool"] == 3
    text = found.to_text()
    assert "50.0 %" in text and "sings holds nowhere in these runs: is its condition right?" in text


def test_a_file_alone(mine: Path) -> None:
    found = prefixguard.check_behaviours(mine)
    assert (found.declared, found.tools, found.runs, found.silent) == (2, 0, 0, ())
    assert "Not tried on runs." in found.to_text()


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"mine\.json: an object with some of these keys is needed"):
        prefixguard.check_behaviours(tmp_path / "mine.json")
    with pytest.raises(ConfigError, match=r"Name a \.json file of behaviours"):
        prefixguard.check_behaviours(tmp_path / "none.json")
