"""Rules, joins and turns of the spec that comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hand_written import chats, propose, steps, wanted


def split(turn: str | None) -> list[dict[str, Any]]:
    """Chats in which a reply is two events: what is said, and what is called; with an id of the reply or without."""
    runs = []
    for run in chats():
        events = []
        for k, message in enumerate(run["messages"]):
            of = {turn: f"msg-{run['run_id']}-{k}"} if turn else {}
            if message["role"] == "assistant" and "tool_calls" in message:
                call = message["tool_calls"][0]
                events.append({"kind": "message", "role": "assistant", "text": message["content"], **of})
                events.append(
                    {
                        "kind": "function_call",
                        "name": call["function"]["name"],
                        "arguments": call["function"]["arguments"],
                        "call_id": call["id"],
                        **of,
                    }
                )
            elif message["role"] == "tool":
                events.append(
                    {
                        "kind": "function_call_output",
                        "call_id": message["tool_call_id"],
                        "output": message["content"],
                        **of,
                    }
                )
            else:
                events.append({"kind": "message", "role": message["role"], "text": message["content"], **of})
        runs.append({**run, "messages": events})
    return runs


def test_without_one_there_is_no_turn(tmp_path: Path) -> None:
    proposal, found = propose(tmp_path, {"a.json": split(None)})
    assert "turn" not in proposal.spec
    acts = [[one for one in steps(run) if one[0] != "respond"] for run in found]
    assert acts == [wanted(i)[:3] for i in range(6)]


def test_nothing_of_the_system_reaches_a_record(tmp_path: Path) -> None:
    _, found = propose(tmp_path, {"a.json": chats()})
    assert not any("You book trains" in str(record) for run in found for record in run.records)
