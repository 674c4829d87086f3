"""What samples say more than once is read once."""

from __future__ import annotations

from pathlib import Path

from hand_written import chats, propose, steps, wanted


def test_a_copy_of_the_calls_is_read_once(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for message in run["messages"]:
            if "tool_calls" in message:
                message["raw"] = {"provider": {"tool_calls": message["tool_calls"]}}
    _, found = propose(tmp_path, {"a.json": runs})
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]


def test_the_history_in_every_request_is_read_once(tmp_path: Path) -> None:
    runs = []
    for run in chats():
        messages = run["messages"]
        events = [
            {"kind": "generation", "input": messages[:k], "output": messages[k]}
            for k in range(2, len(messages))
            if messages[k]["role"] == "assistant"
        ]
        runs.append({"run_id": run["run_id"], "reward": run["reward"], "messages": messages, "requests": events})
    _, found = propose(tmp_path, {"a.json": runs})
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]


def test_an_answer_that_is_said_again_at_the_end_is_read_once(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        run["messages"].append({"role": "final_answer", "content": run["messages"][-1]["content"]})
    _, found = propose(tmp_path, {"a.json": runs})
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]
