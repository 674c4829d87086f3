"""Who speaks and what comes back, where no name says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hand_written import TOWNS, chats, propose, steps, wanted


def unnamed(names: dict[str, str]) -> list[dict[str, Any]]:
    """Chats with words for who speaks that mean nothing."""
    runs = chats()
    for run in runs:
        for message in run["messages"]:
            message["role"] = names[message["role"]]
    return runs


def test_ids_tell_who_calls_and_who_answers(tmp_path: Path) -> None:
    _, found = propose(tmp_path, {"a.json": unnamed({"assistant": "zu", "tool": "ka", "user": "mo", "system": "li"})})
    assert [steps(run)[:3] for run in found] == [wanted(i)[:3] for i in range(6)]
    assert all("A seat to" in run.records[0].observation for run in found)
    assert all("You book trains" not in run.records[0].observation for run in found)


def test_swapped_names_do_not_turn_answers_into_calls(tmp_path: Path) -> None:
    swapped = {"assistant": "user", "user": "assistant", "tool": "tool", "system": "system"}
    _, found = propose(tmp_path, {"a.json": unnamed(swapped)})
    acts = [[one for one in steps(run) if one[0] != "respond"] for run in found]
    assert acts == [wanted(i)[:3] for i in range(6)]


def test_the_side_whose_text_holds_calls_is_the_agent(tmp_path: Path) -> None:
    runs = []
    for i in range(8):
        turns = [{"w": "p", "t": f"Find me {TOWNS[i]} on the map and tell me number {i}"}]
        for j in range(4):
            turns.append(
                {"w": "q", "t": f"I need to know more.\nAction: {('search', 'lookup')[j % 2]}[{TOWNS[i]} {j}]"}
            )
            turns.append({"w": "p", "t": f"There are {i * j} pages on {TOWNS[i]} in the index"})
        runs.append({"id": f"run-{i}", "turns": turns})
    _, found = propose(tmp_path, {"a.json": runs})
    record = found[3].records[1]
    assert (record.tool, record.arguments) == ("lookup", f"{TOWNS[3]} 1")
    assert record.result == f"There are 3 pages on {TOWNS[3]} in the index"
    assert len(found[3].records) == 4


def test_who_does_not_begin_is_the_agent_where_nothing_else_is_known(tmp_path: Path) -> None:
    runs = [
        {
            "id": f"run-{i}",
            "turns": [
                {"w": "pq"[j % 2], "t": f"{TOWNS[(i + j) % 8]} is nice, and so is word {i * j} that I say"}
                for j in range(8)
            ],
        }
        for i in range(8)
    ]
    _, found = propose(tmp_path, {"a.json": runs})
    assert [len(run.records) for run in found] == [4] * 8
    assert {one.tool for run in found for one in run.records} == {"respond"}
    assert found[0].records[0].observation.startswith("Oslo")
    assert found[0].records[0].action.startswith("Rome")


def test_several_agents_keep_their_names(tmp_path: Path) -> None:
    names = ("planner", "coder", "critic")
    runs = [
        {
            "id": f"run-{i}",
            "chat": [{"role": "user", "name": "human", "content": f"Build the house number {i}"}]
            + [
                {"role": "assistant", "name": names[j % 3], "content": f"As {names[j % 3]} I say {j} about house {i}"}
                for j in range(6)
            ],
        }
        for i in range(6)
    ]
    _, found = propose(tmp_path, {"a.json": runs})
    assert [one.agent for one in found[0].records] == list(names) * 2
