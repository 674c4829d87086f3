"""Work and memory for one event are bounded, counted where something is left out; no clock decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.errors import TraceError
from prefixguard.stepview import Adapter, text
from prefixguard.stepview.machine import MOST_OPEN
from prefixguard.stepview.rules import MOST_ELEMENTS
from prefixguard.stepview.spellings import plain
from prefixguard.stepview.text import MOST_BLOCKS, to_text


def _holds_itself(width: int) -> list[Any]:
    found: list[Any] = ["x"]
    found.extend([found] * width)
    return found


def _shared(depth: int, width: int) -> list[Any]:
    found: list[Any] = ["x"]
    for _ in range(depth):
        found = [found] * width
    return found


@pytest.mark.parametrize("value", [_holds_itself(8), _shared(8, 8), _shared(3, 100), ["x"] * (3 * MOST_BLOCKS)])
def test_lists_in_lists_become_text_in_bounded_work(value: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    dear = 0
    canonical = text.canonical

    def counted(inner: Any) -> str:
        nonlocal dear
        dear += 1
        return canonical(inner)

    monkeypatch.setattr(text, "canonical", counted)
    found = to_text(value)
    assert found.count("x") <= MOST_BLOCKS
    assert found.endswith("[...]")
    assert dear <= MOST_BLOCKS // 100


@pytest.mark.parametrize(
    "part", [_holds_itself(2), _shared(40, 2), ["x" * 1000] * (1 << 20)], ids=["itself", "shared", "one long text"]
)
@pytest.mark.parametrize("place", ["content", "metadata"])
def test_an_event_without_end_is_refused_live(make: Any, part: list[Any], place: str) -> None:
    """Wherever it stands; no file holds one, and a large honest event is read."""
    parser = make().parser()
    with pytest.raises(TraceError, match="it may hold itself, or the same parts many times"):
        parser.observe({"role": "user", "content": "hello", place: part})
    parser.observe({"role": "user", "content": [{"type": "text", "text": "x"} for _ in range(100_000)]})


def test_honest_blocks_are_all_read() -> None:
    blocks = [{"type": "text", "text": str(n)} for n in range(1000)]
    assert to_text(blocks) == "\n".join(map(str, range(1000)))


def test_calls_of_one_event_are_bounded_and_counted(make: Any) -> None:
    parser = make().parser()
    made = [{"id": str(n), "name": "t", "arguments": "{}"} for n in range(20_000)]
    records = parser.observe({"role": "assistant", "content": "", "tool_calls": made}) + parser.end()
    assert len(records) == MOST_ELEMENTS
    assert parser.counters["calls_left_out"] == 20_000 - MOST_ELEMENTS
    assert MOST_ELEMENTS - MOST_OPEN <= parser.counters["calls_released_early"] < MOST_ELEMENTS


def test_one_call_with_full_fields_waits_uncut(make: Any) -> None:
    parser = make().parser()
    full = {"observation": "o" * 2000, "action": "a" * 2000, "arguments": json.dumps({"x": "y" * 1992})}
    parser.observe({"role": "user", "content": full["observation"]})
    call = {"id": "c" * 40, "name": "t" * 100, "arguments": full["arguments"]}
    parser.observe({"role": "assistant", "content": full["action"], "tool_calls": [call]})
    (record,) = parser.observe({"role": "tool", "call_id": "c" * 40, "content": "r"})
    assert (record.observation, record.action) == (full["observation"], full["action"])
    assert len(record.arguments) == 2000
    assert "cut_while_waiting" not in parser.counters


def test_what_does_not_fit_is_cut_and_counted(make: Any) -> None:
    parser = make().parser()
    parser.observe({"role": "user", "content": "o" * 2000})
    made = [{"id": str(n), "name": "t", "arguments": "y" * 2000} for n in range(4)]
    parser.observe({"role": "assistant", "content": "a" * 2000, "tool_calls": made})
    records = [
        record for n in range(4) for record in parser.observe({"role": "tool", "call_id": str(n), "content": "r"})
    ]
    assert [record.result for record in records] == ["r"] * 4
    assert all("[...]" in record.arguments for record in records)
    assert parser.counters["cut_while_waiting"] == 4


def test_a_long_id_still_joins(make: Any) -> None:
    parser = make().parser()
    call = {"id": "é" * 100_000, "name": "t", "arguments": "{}"}
    parser.observe({"role": "assistant", "tool_calls": [call, {**call, "id": "other"}]})
    assert parser.observe({"role": "tool", "call_id": "other", "content": "2"}) == []
    first, second = parser.observe({"role": "tool", "call_id": "é" * 100_000, "content": "1"})
    assert (first.result, second.result) == ("1", "2")


def test_events_that_do_not_fit_in_the_window_leave_early_and_late_ones_are_counted(make: Any) -> None:
    say = [{"emit": "say", "action": "@.a"}]
    parser = make(events={"path": "$.s[*]", "order_by": "@.at", "window": 8}, rules=say).parser()
    events = [{"at": 3, "a": "small"}, {"at": 2, "a": "b" * 5_000}, {"at": 1, "a": "late"}]
    records = [record for event in events for record in parser.observe(event)] + parser.end()
    assert [record.action[:5] for record in records] == ["bbbbb", "late", "small"]
    assert parser.counters["events_released_early"] == 1
    assert parser.counters["events_out_of_order"] == 1


@pytest.mark.parametrize(
    ("spelled", "value"),
    [("7", 7), ("-7", -7), ("--5", "--5"), ("²", "²"), ("٣", "٣"), ("-", "-"), ("", ""), ("9" * 30, "9" * 30)],
)
def test_an_integer_of_otlp_is_one_or_stays_as_it_is(spelled: str, value: Any) -> None:
    assert plain({"intValue": spelled}) == value


CHAT = [{"role": "system", "content": "You are a careful clerk of the shop. " * 3}, {"role": "user", "content": "Hi"}]
ANSWER = {"role": "assistant", "content": "Hello."}


def test_an_opening_that_comes_again_is_another_run(chat: dict[str, Any]) -> None:
    parser = Adapter(chat).parser()
    for event in [*CHAT, ANSWER, {"role": "user", "content": "Hi"}, ANSWER]:
        parser.observe(event)
    assert parser.other_run is None
    parser.observe({**CHAT[0], "id": "new", "created_at": 9})
    assert parser.other_run == ("the run begins a second time: its first event comes again after steps")


def test_a_first_event_that_acts_is_no_opening(chat: dict[str, Any]) -> None:
    parser = Adapter(chat).parser()
    for _ in range(3):
        parser.observe({"role": "assistant", "content": "I look at the shelf once more, as before. " * 3})
    assert parser.other_run is None


def test_another_id_or_numbers_from_the_start_are_another_run(chat: dict[str, Any]) -> None:
    parser = Adapter(chat).parser()
    parser.observe({**CHAT[1], "session_id": "s-1"})
    parser.observe({**ANSWER, "session_id": "s-1"})
    assert parser.other_run is None
    parser.observe({**ANSWER, "session_id": "s-2"})
    assert parser.other_run == ("session_id is 's-2' and was another at first")
    parser = Adapter(chat).parser()
    for number in (1, 2, 3):
        parser.observe({**ANSWER, "step_number": number})
    assert parser.other_run is None
    parser.observe({**ANSWER, "step_number": 1})
    assert parser.other_run == ("the run begins a second time: its steps are numbered from 1 again")
