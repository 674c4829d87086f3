"""Which place of an event is what was said, and what came back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import chats, propose, steps, wanted

WELL = "All is done for traveller 3."


def changed(change: Any) -> list[dict[str, Any]]:
    """Chats with the content of every third message in another form."""
    runs = chats()
    for i, run in enumerate(runs):
        for j, message in enumerate(run["messages"]):
            message["content"] = change(message["content"], i + j)
    return runs


def block(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text, _: block(text), id="blocks"),
        pytest.param(lambda text, n: block(text) if n % 3 else text, id="texts and blocks"),
        pytest.param(lambda text, _: {"parts": [{"text": text}]}, id="parts"),
        pytest.param(lambda text, _: {"value": text, "lang": "en"}, id="an object"),
    ],
)
def test_text_is_read_in_whatever_it_is_wrapped(change: Any, tmp_path: Path) -> None:
    _, found = propose(tmp_path, {"a.json": changed(change)})
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]
    assert found[3].records[-1].action == WELL
    assert "A seat to Bonn" in found[3].records[0].observation


@pytest.mark.parametrize("name", ["t", "model", "status", "id", "zu", "call_id"])
def test_the_name_of_a_place_does_not_hide_what_is_said_there(name: str, tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for message in run["messages"]:
            message[name] = message.pop("content")
    _, found = propose(tmp_path, {"a.json": runs})
    assert found[3].records[-1].action == WELL
    assert [steps(run) for run in found] == [wanted(i) for i in range(6)]


def test_reasoning_that_is_not_shown_is_not_said(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for j, message in enumerate(run["messages"]):
            if message["role"] == "assistant":
                message["reasoning_content"] = f"The traveller wants {j}, hm, and then something else, so what do I do?"
    _, found = propose(tmp_path, {"a.json": runs})
    assert found[3].records[-1].action == WELL
    assert not any("hm, and" in f"{one.action}{one.observation}" for run in found for one in run.records)


def test_an_error_that_stands_in_place_of_a_result_is_read(tmp_path: Path) -> None:
    runs = chats()
    for i, run in enumerate(runs):
        for j, message in enumerate(run["messages"]):
            if message["role"] == "tool" and (i + j) % 3 == 0:
                message["error"] = f"broke: {message.pop('content')}"
    _, found = propose(tmp_path, {"a.json": runs})
    results = [one.result for run in found for one in run.records[:-1]]
    assert all(results)
    assert sum(result.startswith("broke: ") for result in results) == 6
