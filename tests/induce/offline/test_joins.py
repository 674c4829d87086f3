"""Calls and results meet by ids, and by nothing that only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import chats, propose, steps, wanted

from prefixguard.induce.offline.joins import Join, find_joins
from prefixguard.induce.offline.kinds import divide
from prefixguard.induce.offline.units import Unit, part_of_unit, table_of, units_of


def joined(listings: list[list[Any]]) -> list[tuple[str, str, Join]]:
    """Joins as the names of their columns."""
    table = table_of(listings)
    units: list[Unit] = units_of(table, divide(table.events, table.runs))
    found = find_joins(units, [part_of_unit(unit) for unit in units])
    return [(join.call_id.name, join.result_id.name, join) for join in found]


def trips(call: str = "id", result: str = "ref", *, number: bool = False) -> list[list[dict[str, Any]]]:
    """Calls that are events of their own, results later, others between."""
    out = []
    for i in range(5):
        events: list[dict[str, Any]] = [{"kind": "user", "text": f"do {i}, please"}]
        for j in range(4):
            one: Any = 100 * i + j if number else f"c{i}-{j}"
            events.append({"kind": "call", "tool": ("see", "go")[j % 2], "args": {"at": j}, call: one})
            events.append({"kind": "note", "text": f"between {j} of {i}"})
            events.append({"kind": "result", "output": f"seen {j} of {i}", result: one})
        out.append(events)
    return out


@pytest.mark.parametrize(("call", "result"), [("id", "ref"), ("call_id", "call_id"), ("k1", "k2"), ("k1", "k1")])
def test_ids_that_pair_join_whatever_they_are_called(call: str, result: str) -> None:
    (found,) = joined(trips(call, result))
    assert found[:2] == (f"@.{call}", f"@.{result}")
    assert found[2].matched == 1.0


def test_numbers_join_only_under_the_same_name() -> None:
    assert [one[:2] for one in joined(trips("n", "n", number=True))] == [("@.n", "@.n")]
    assert joined(trips("n", "m", number=True)) == []


def test_ids_that_nothing_repeats_do_not_join() -> None:
    events = trips()
    for listing in events:
        for event in listing:
            if "ref" in event:
                event["ref"] = "other-" + event["ref"]
    assert joined(events) == []


def test_a_chain_of_events_is_no_join() -> None:
    """Every event has an id, and that of the event before it."""
    listings = []
    for i in range(6):
        events = []
        for j in range(8):
            events.append(
                {
                    "role": ("user", "assistant")[j % 2],
                    "text": f"words {j} of {i}",
                    "uuid": f"u{i}-{j}",
                    "parent": f"u{i}-{j - 1}" if j else None,
                }
            )
        listings.append(events)
    assert joined(listings) == []


def test_one_id_for_many_results_is_a_group_and_no_call() -> None:
    listings = [
        [{"kind": "assistant", "text": f"turn {j} of {i}", "turn": f"t{i}-{j // 4}"} for j in range(1)]
        + [{"kind": "tool", "output": f"part {j} of {i}", "of": f"t{i}-0"} for j in range(6)]
        for i in range(6)
    ]
    assert joined(listings) == []


def test_ids_that_start_again_in_every_message_pair_within_it(tmp_path: Path) -> None:
    runs = []
    for i in range(6):
        steps_ = []
        for j in range(4):
            calls = [
                {"id": f"call_{k}", "name": ("see", "go")[k % 2], "arguments": {"x": f"{i}{j}{k}"}} for k in (0, 1)
            ]
            back = [{"call": f"call_{k}", "content": f"came {i}{j}{k}"} for k in (1, 0)]
            steps_.append(
                {"source": "agent", "message": f"step {j} of {i}", "calls": calls, "observation": {"results": back}}
            )
        runs.append({"id": f"r{i}", "steps": steps_})
    _, found = propose(tmp_path, {"a.json": runs})
    for i, run in enumerate(found):
        assert [(one.arguments, one.result) for one in run.records] == [
            (f'{{"x":"{i}{j}{k}"}}', f"came {i}{j}{k}") for j in range(4) for k in (0, 1)
        ]


def test_results_without_ids_meet_their_calls_in_order(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for message in run["messages"]:
            message.pop("tool_call_id", None)
            for call in message.get("tool_calls", ()):
                del call["id"]
    proposal, found = propose(tmp_path, {"a.json": runs})
    assert proposal.spec["join"] == {"by": "order"}
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]


def test_calls_of_separate_events_stand_open_together(tmp_path: Path) -> None:
    runs = []
    for i in range(6):
        events: list[dict[str, Any]] = [{"type": "user", "text": f"go to {i}"}]
        for j in range(3):
            for k in range(2):
                events.append({"type": "call", "id": f"{i}{j}{k}x", "tool": ("see", "go")[k], "input": {"ab"[k]: j}})
            for k in (1, 0):
                events.append({"type": "result", "call": f"{i}{j}{k}x", "output": f"got {i}{j}{k}"})
        runs.append({"run": f"r{i}", "events": events})
    proposal, found = propose(tmp_path, {"a.json": runs})
    assert proposal.spec["join"]["scope"] == "run"
    assert [one.result for one in found[2].records] == [f"got 2{j}{k}" for j in range(3) for k in range(2)]
    assert [str(one.status) for one in found[2].records] == ["ok"] * 6
