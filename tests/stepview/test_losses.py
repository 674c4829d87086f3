"""What runs lost is said, by field, with its numbers and the remedy; and nothing is said of runs that are whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.stepview import FEWEST, NEARLY, Adapter, FillCounts, Loss, StepRecord, list_adapters, load_adapter
from prefixguard.stepview import losses as losses_of
from prefixguard.stepview.losses import written

CALL = StepRecord(1, "agent", "", "find", '{"id":1}', "", "I look", "found", "ok")
SAID = StepRecord(1, "agent", "", "respond", "", "", "Here it is.", "", "ok")


def run(i: int, calls: int = 5, **lost: str) -> list[StepRecord]:
    """A task, calls with results, a word at the end; every text is another. lost: what all calls have instead."""
    first = replace(CALL, observation=f"Please {i}.")
    made = [
        replace(
            first if k == 0 else CALL,
            tool=("find", "read")[k % 2],
            arguments=f'{{"id":{i}{k}}}',
            action=f"I look {i} {k}",
            result=f"found {i} {k}",
        )
        for k in range(calls)
    ]
    return [*(replace(one, **lost) for one in made), replace(SAID, action=f"Here is {i}.")]


def said(runs: list[list[StepRecord]], adapter: Adapter | None = None) -> dict[tuple[str, str], str]:
    fills = FillCounts()
    for records in runs:
        fills.add(records)
    found = losses_of(fills, adapter or load_adapter("openai_chat"), "mine.jsonl")
    assert all(isinstance(one, Loss) for one in found)
    return {(one.severity, one.field): one.text for one in found}


def test_whole_runs_lost_nothing() -> None:
    assert said([run(i) for i in range(10)]) == {}
    assert said([]) == {}


def test_the_case_that_was_seen() -> None:
    """1,694 of 1,994 records without the agent's text, and no call with a result."""
    runs = [run(i, 6 if i < 194 else 5, action="", result="") for i in range(300)]
    found = said(runs)
    assert set(found) == {("warning", "action"), ("warning", "result")}
    assert "1,694 of 1,694 calls (100 %) have no result" in found["warning", "result"]
    assert "The agent's text is empty in 1,694 of 1,994 steps (85 %)" in found["warning", "action"]
    for text in found.values():
        assert text.endswith("Look how they are read: prefixguard parse mine.jsonl --adapter openai_chat")
    assert "In the adapter: what its rules read as `result`." in found["warning", "result"]
    assert "That is right where the agent calls tools without a word" in found["warning", "action"]


def test_a_field_that_the_adapter_does_not_read_is_no_loss(chat: dict[str, Any]) -> None:
    chat["rules"] = [rule for rule in chat["rules"] if rule["emit"] not in ("result", "say")]
    for rule in chat["rules"]:
        rule.pop("action", None)
    adapter = Adapter(chat)
    assert written(adapter) == {"tool", "arguments", "observation"}
    found = said([run(i, action="", result="")[:-1] for i in range(10)], adapter)
    assert set(found) == {("note", "result")}
    assert "the adapter reads none" in found["note", "result"]


def test_the_switch_of_a_framework_is_named() -> None:
    found = said([run(i, result="") for i in range(10)], load_adapter("openinference"))
    assert "OPENINFERENCE_HIDE_OUTPUTS must not be set" in found["warning", "result"]


@pytest.mark.parametrize(
    ("lost", "field", "sentence"),
    [
        ({"observation": ""}, "observation", "10 of 10 runs (100 %) have no observation: neither the task nor"),
        ({"arguments": ""}, "arguments", "50 of 50 calls (100 %) have no arguments."),
        ({"result": "OK"}, "result", "All 50 results are the same ('OK'), so they tell nothing"),
    ],
)
def test_each_field_says_so(lost: dict[str, str], field: str, sentence: str) -> None:
    found = said([run(i, **lost) for i in range(10)])
    assert set(found) == {("warning", field)}
    assert sentence in found["warning", field]


def test_speech_without_text() -> None:
    found = said([[*run(i)[:-1], replace(SAID, action="")] for i in range(20)])
    assert "20 of 20 steps in which the agent speaks have no text." in found["warning", "action"]


def test_nothing_to_learn_is_an_error() -> None:
    bare = {"action": "", "result": "", "observation": "", "arguments": ""}
    found = said([[replace(CALL, tool="", **bare)] * 4 for _ in range(10)])
    assert set(found) == {("error", "action")}
    assert "None of the 40 steps has a text" in found["error", "action"]
    found = said([[CALL] * 4 for _ in range(10)])
    assert "All 40 steps say the same, word for word" in found["error", "action"]


def test_runs_of_one_step_are_a_warning() -> None:
    assert "30 of 30 runs (100 %) have one step" in said([run(i)[:1] for i in range(30)])["warning", "runs"]
    found = said([run(i)[: 1 if i else 3] for i in range(30)])
    assert "29 of 30 runs (97 %) have one step" in found["warning", "runs"]


def test_one_tool_is_a_note() -> None:
    found = said([run(i, tool="bash")[:-1] for i in range(10)])
    assert found == {("note", "tool"): found["note", "tool"]} and "the tool is 'bash'" in found["note", "tool"]
    found = said([[replace(SAID, action=f"{i} {k}", observation=f"{i}?") for k in range(3)] for i in range(10)])
    assert "the agent speaks and calls no tool" in found["note", "tool"]


def test_the_control_of_an_adapter_has_one_field_only() -> None:
    from prefixguard.stepview import raw_view

    bare = {"tool": "", "arguments": "", "observation": "", "result": ""}
    runs = [[replace(one, **bare) for one in run(i)] for i in range(10)]
    assert said(runs, raw_view(load_adapter("openai_chat"))) == {}


@settings(max_examples=60, deadline=None)
@given(calls=st.integers(FEWEST, 200), lost=st.integers(0, 200))
def test_the_threshold_is_the_one_that_is_stated(calls: int, lost: int) -> None:
    """Whatever the numbers: a warning exactly from the stated share on."""
    lost = min(lost, calls)
    records = [
        replace(CALL, tool=f"t{k % 3}", arguments=str(k), action=f"I {k}", result="" if k < lost else f"r {k}")
        for k in range(calls)
    ]
    runs = [[replace(one, observation=f"o {k}") if k == 0 else one for k, one in enumerate(records)]]
    assert (("warning", "result") in said(runs)) is (lost >= NEARLY * calls)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_counts_do_not_depend_on_the_order_of_runs(order: list[int]) -> None:
    runs: list[Any] = [run(i, 1 + i % 4, result="" if i % 3 else "r") for i in order]
    assert said(runs) == said(list(reversed(runs)))


@pytest.mark.parametrize("name", list_adapters())
def test_what_every_shipped_adapter_writes_is_known(name: str) -> None:
    fields = written(load_adapter(name))
    assert fields & {"action", "arguments", "result"} or name == "scores"
    assert fields <= {"tool", "arguments", "observation", "action", "result"}
