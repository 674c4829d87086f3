"""What a person says overrides what the samples look like; what leads nowhere is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import TOWNS, chats, propose, steps, wanted

from prefixguard.errors import TraceError
from prefixguard.induce import HINTS
from prefixguard.induce.fragments import EXAMPLES
from prefixguard.trace import Outcome


def acts() -> list[dict[str, Any]]:
    """Runs whose events have two of everything: what is meant only a person knows."""
    runs = []
    for i in range(8):
        events: list[dict[str, Any]] = []
        for j in range(4):
            one, two = f"a{i}-{j}", f"b{i}-{j}"
            events.append(
                {
                    "kind": "does",
                    "phase": ("early", "late")[j % 2],
                    "tool": ("open", "close")[j % 2],
                    "command": ("push", "pull", "turn")[(i + j) % 3],
                    "args": {"door": j},
                    "extra": {"force": i, "slow": True} if j % 2 else {"force": i},
                    "said": f"I try door {j} of {i} now",
                    "muttered": f"not again, {TOWNS[i]} {j}",
                    "id": one,
                    "other_id": two,
                }
            )
            events.append(
                {
                    "kind": "got",
                    "phase": ("early", "late")[j % 2],
                    "output": f"door {j} of {i} creaks",
                    "smell": f"it smells of {TOWNS[i]} at door {j}",
                    "for": one,
                    "for_other": two,
                    "is_error": j == 1,
                    "broken": j == 2,
                }
            )
        runs.append(
            {
                "run_id": f"r{i}",
                "tag": f"t{i}",
                "task_id": f"k{i % 4}",
                "puzzle": f"p{i % 2}",
                "success": i % 2 == 0,
                "happy": i % 4 == 0,
                "events": events,
                "drafts": [{"kind": "does", "tool": "dream", "args": {"of": k}, "id": f"d{k}"} for k in range(3)],
            }
        )
    return runs


def read(root: Path, **hints: str) -> tuple[dict[str, Any], list[Any]]:
    proposal, runs = propose(root, {"all.json": acts()}, hints)
    return {**proposal.spec, "notes": " ".join(proposal.notes)}, runs


@pytest.mark.parametrize(("key", "path"), [("task", "$.puzzle"), ("id", "$.tag")])
def test_parts_of_the_run_are_taken_from_the_hint(key: str, path: str, tmp_path: Path) -> None:
    spec, _ = read(tmp_path, **{key: path})
    assert spec["run"][key] == path


def test_the_outcome_is_taken_from_the_hint(tmp_path: Path) -> None:
    _, runs = read(tmp_path, outcome="$.happy")
    assert [run.outcome is Outcome.SUCCESS for run in runs] == [i % 4 == 0 for i in range(8)]


def test_events_are_divided_by_the_role_of_the_hint(tmp_path: Path) -> None:
    spec, _ = read(tmp_path, role="@.phase")
    tested = {path for rule in spec["rules"] for path in rule.get("when", {})}
    assert "@.phase" in tested


def test_events_are_where_the_hint_says(tmp_path: Path) -> None:
    spec, runs = read(tmp_path, events="$.drafts[*]")
    assert spec["events"] == "$.drafts[*]"
    assert len(runs) == 8
    assert {one.tool for run in runs for one in run.records} == {"dream"}


@pytest.mark.parametrize("path", ["$.messages[*]", "$.messages", '$["messages"][*]'])
def test_a_list_may_be_named_with_or_without_its_elements(path: str, tmp_path: Path) -> None:
    _, runs = propose(tmp_path, {"a.json": chats()}, {"events": path})
    assert [steps(run) for run in runs] == [wanted(i) for i in range(6)]


def test_a_list_too_small_to_be_noticed_is_read_where_the_hint_says(tmp_path: Path) -> None:
    runs = [{**run, "pages": [{"page": "x" * 900 + str(k)} for k in range(60)]} for run in chats(4, 1)]
    _, found = propose(tmp_path, {f"{i}.json": run for i, run in enumerate(runs)}, {"events": "$.messages[*]"})
    assert [steps(run) for run in found] == [wanted(i, 1) for i in range(4)]


def test_runs_are_where_the_hint_says(tmp_path: Path) -> None:
    days = [{"day": d, "seed": d * 7, "trips": chats(3)} for d in range(3)]
    spec, runs = read_days = propose(tmp_path, {"a.json": days}, {"runs": "$[*]"})
    assert spec.spec["container"]["runs"] == "$[*]"
    assert len(runs) == 3
    assert read_days is not None
    spec, runs = propose(tmp_path / "2", {"a.json": days}, {"runs": "$[*].trips[*]"})
    assert len(runs) == 9


@pytest.mark.parametrize("hints", [{"events": "$.nowhere[*]"}, {"runs": "$.nowhere[*]"}, {"runs": "@.nowhere"}])
def test_runs_or_events_that_are_nowhere_are_an_error(hints: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere"):
        propose(tmp_path, {"a.json": chats()}, hints)


def test_hints_make_runs_of_what_looks_like_none(tmp_path: Path) -> None:
    rooms = [
        {"flat": i, "rooms": [{"n": f"room {j}", "w": f"wall {i} {j} is wet"} for j in range(3)]} for i in range(4)
    ]
    with pytest.raises(TraceError, match="--hint events"):
        propose(tmp_path / "1", {"a.json": rooms})
    _, runs = propose(tmp_path / "2", {"a.json": rooms}, {"runs": "$[*]", "events": "$.rooms[*]", "action": "@.w"})
    assert [len(run.records) for run in runs] == [3] * 4
    assert runs[1].records[2].action == "wall 1 2 is wet"


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
    _, runs = propose(tmp_path, {"all.json": rows()}, {key: path})
    assert getattr(runs[0].records[0], field) == value
    assert [len(run.records) for run in runs] == [4] * 8


@pytest.mark.parametrize(("path", "at"), [("@.broken", 2), ("@.is_error", 1)])
def test_the_status_is_taken_from_the_hint(path: str, at: int, tmp_path: Path) -> None:
    _, runs = propose(tmp_path, {"all.json": rows()}, {"status": path})
    assert [str(one.status) for one in runs[0].records] == ["error" if j == at else "ok" for j in range(4)]


@pytest.mark.parametrize("key", ["tool", "arguments", "call_id", "result", "action", "role", "status"])
def test_a_hint_that_names_nothing_is_said_and_the_rest_goes_on(key: str, tmp_path: Path) -> None:
    proposal, runs = propose(tmp_path, {"all.json": chats()}, {key: "@.nowhere"})
    assert f"{key}=@.nowhere was not followed" in " ".join(proposal.notes)
    assert runs[0].records[0].tool == "search"


def test_a_tool_may_be_named_from_the_event_or_from_the_call(tmp_path: Path) -> None:
    for n, path in enumerate(("@.tool_calls[*].function.name", "@.function.name")):
        proposal, runs = propose(tmp_path / str(n), {"a.json": chats()}, {"tool": path})
        assert [one.tool for one in runs[0].records] == ["search", "book", "search", "respond"]
        assert "not followed" not in " ".join(proposal.notes)


def test_lines_are_gathered_by_the_id_of_the_hint(tmp_path: Path) -> None:
    lines = [
        {"shift": f"shift-{i // 3}", "trip": f"trip-{i}", **message}
        for i, run in enumerate(chats(6))
        for message in run["messages"]
    ]
    for path, n in (("@.shift", 2), ("@.trip", 6)):
        proposal, runs = propose(tmp_path / path[2:], {"log.jsonl": lines}, {"runs": path})
        assert proposal.spec["container"]["group_by"] == path
        assert len(runs) == n


def test_every_key_has_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{key}"' in source or f"{key}=" in source for key in HINTS if "." not in key and key not in EXAMPLES)
