"""What a person says of steps is obeyed by the search; what leads nowhere is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import TOWNS, chats, propose_now


def rows() -> list[dict[str, Any]]:
    """Runs whose steps have two of everything: what is meant only a person knows."""
    return [
        {
            "run_id": f"r{i}",
            "success": i % 2 == 0,
            "steps": [
                {
                    "tool": ("open", "close")[j % 2],
                    "command": ("push", "pull", "turn")[(i + j) % 3],
                    "args": {"door": j},
                    "extra": {"force": i, "slow": True} if j % 2 else {"force": i},
                    "thought": f"I try door {j} of {i} now",
                    "muttered": f"not again, {TOWNS[i]} number {j}",
                    "output": f"door {j} of {i} creaks and opens",
                    "smell": f"it smells of {TOWNS[i]} at door {j}",
                    "is_error": j == 1,
                    "broken": j == 2,
                }
                for j in range(4)
            ],
        }
        for i in range(8)
    ]


@pytest.mark.parametrize(
    ("key", "path", "field", "value"),
    [
        ("tool", "@.command", "tool", "push"),
        ("arguments", "@.extra", "arguments", '{"force":0}'),
        ("arguments", "@.args", "arguments", '{"door":0}'),
        ("result", "@.smell", "result", "it smells of Oslo at door 0"),
        ("action", "@.muttered", "action", "not again, Oslo number 0"),
        ("action", "@.thought", "action", "I try door 0 of 0 now"),
    ],
)
def test_fields_of_steps_are_taken_from_the_hint(key: str, path: str, field: str, value: str, tmp_path: Path) -> None:
    _, runs = propose_now(tmp_path, {"all.json": rows()}, {key: path})
    assert getattr(runs[0].records[0], field) == value
    assert [len(run.records) for run in runs] == [4] * 8


@pytest.mark.parametrize(("path", "at"), [("@.broken", 2), ("@.is_error", 1)])
def test_the_status_is_taken_from_the_hint(path: str, at: int, tmp_path: Path) -> None:
    _, runs = propose_now(tmp_path, {"all.json": rows()}, {"status": path})
    assert [str(one.status) for one in runs[0].records] == ["error" if j == at else "ok" for j in range(4)]


@pytest.mark.parametrize("key", ["tool", "arguments", "call_id", "result", "action", "role", "status"])
def test_a_hint_that_names_nothing_is_said_and_the_rest_goes_on(key: str, tmp_path: Path) -> None:
    proposal, runs = propose_now(tmp_path, {"all.json": chats()}, {key: "@.nowhere"})
    assert f"{key}=@.nowhere was not followed" in " ".join(proposal.notes)
    assert runs[0].records[0].tool == "search"


def test_a_tool_may_be_named_from_the_event_or_from_the_call(tmp_path: Path) -> None:
    for n, path in enumerate(("@.tool_calls[*].function.name", "@.function.name")):
        proposal, runs = propose_now(tmp_path / str(n), {"a.json": chats()}, {"tool": path})
        assert [one.tool for one in runs[0].records] == ["search", "book", "search", "respond"]
        assert "not followed" not in " ".join(proposal.notes)


def test_lines_are_gathered_by_the_id_of_the_hint(tmp_path: Path) -> None:
    lines = [
        {"shift": f"shift-{i // 3}", "trip": f"trip-{i}", **message}
        for i, run in enumerate(chats(6))
        for message in run["messages"]
    ]
    for path, n in (("@.shift", 2), ("@.trip", 6)):
        proposal, runs = propose_now(tmp_path / path[2:], {"log.jsonl": lines}, {"runs": path})
        assert proposal.spec["container"]["group_by"] == path
        assert len(runs) == n
