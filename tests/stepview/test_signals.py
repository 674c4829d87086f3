"""What a step took stands beside its text: units, bounds, clocks, and the same live as in a file."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import AdapterError
from prefixguard.stepview import Adapter, Signals, SpooledRuns, StepRecord, load_adapter, raw_view, serialize
from prefixguard.stepview.signals import KEYS, SIGNALS, added, packed, unpacked
from prefixguard.trace import Outcome, Run

AGENT: dict[str, Any] = {
    "schema": "prefixguard/adapter/v1", "name": "t", "version": "1", "container": "jsonl", "events": "$.events[*]",
    "turn": "@.turn",
    "rules": [
        {"when": {"@.kind": "user"}, "emit": "observe", "observation": "@.text"},
        {"when": {"@.kind": "note"}, "emit": "skip"},
        {"when": {"@.kind": "say"}, "emit": "say", "action": "@.text"},
        {"when": {"@.kind": "call"}, "emit": "call", "call_id": "@.id", "tool": {"const": "go"}},
        {"when": {"@.kind": "calls"}, "emit": "call", "each": "@.ids[*]", "call_id": "@", "tool": {"const": "go"}},
        {"when": {"@.kind": "result"}, "emit": "result", "call_id": "@.id", "result": "@.text"},
    ],
}  # fmt: skip
PLAIN = {
    "at": "@.at",
    "seconds": "@.s",
    "tokens_in": "@.in",
    "tokens_out": "@.out",
    "dollars": "@.usd",
    "logprobs": "@.lp",
}


def read(
    events: list[dict[str, Any]], signals: dict[str, Any] | None = None
) -> tuple[list[StepRecord], dict[str, int]]:
    parser = Adapter({**AGENT, "signals": PLAIN if signals is None else signals}).parser()
    records = [record for event in events for record in parser.observe(event)] + parser.end()
    return records, dict(parser.counters)


def seconds(events: list[dict[str, Any]]) -> list[float | None]:
    return [record.signals and record.signals.seconds for record in read(events)[0]]


def test_absent_is_not_zero() -> None:
    records, counted = read(
        [{"kind": "say", "text": "a"}, {"kind": "say", "text": "b", "in": 0, "usd": None, "lp": []}]
    )
    assert [record.signals for record in records] == [None, Signals(tokens_in=0.0)] and not counted


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e40, "x", True, {"a": 1}, [1, "x"], "9" * 70])
def test_what_no_step_can_have_taken_is_left_out_and_counted(value: Any) -> None:
    records, counted = read([{"kind": "say", "text": "a", "in": value, "out": 3}])
    assert records[0].signals == Signals(tokens_out=3.0) and counted == {"signals_left_out": 1}


def test_units() -> None:
    for spec, event in (
        ({"milliseconds": "@.ms"}, {"ms": 1500}),
        ({"seconds": "@.s"}, {"s": "1.5"}),
        ({"began": "@.a", "ended": "@.b"}, {"a": "2026-03-04T07:03:02.300Z", "b": "2026-03-04T08:03:03.8+01:00"}),
        ({"began": "@.a", "ended": "@.b"}, {"a": "1772607780400000000", "b": 1772607781900}),
    ):
        assert read([{"kind": "say", **event}], spec)[0][0].signals == Signals(seconds=1.5), spec
    assert read([{"kind": "say", "a": 5, "b": 4}], {"began": "@.a", "ended": "@.b"})[1] == {"signals_left_out": 1}


def test_a_step_takes_the_time_since_the_one_before_or_since_what_it_was_told() -> None:
    said = [
        {"kind": "user", "text": "q", "at": 100}, {"kind": "call", "id": "1", "at": 103}, {"kind": "note", "at": 104},
        {"kind": "result", "id": "1", "at": 110}, {"kind": "say", "text": "a", "at": 111},
        {"kind": "user", "text": "q", "at": 900}, {"kind": "say", "text": "b", "at": 902},
    ]  # fmt: skip
    assert seconds(said) == [10.0, 1.0, 2.0]
    assert seconds(said[1:3]) == [None]  # nobody knows when it began


def test_clocks_that_jump_give_no_duration() -> None:
    events = [{"kind": "say", "at": at} for at in (100, 105, 50, 52, 52 + 10**8, 54 + 10**8)]
    assert seconds(events) == [None, 5.0, None, 2.0, None, 2.0]
    assert read(events)[1] == {"clock_jumps": 2}
    waiting = [
        {"kind": "user", "text": "q", "at": 99},
        {"kind": "call", "id": "1", "at": 100},
        {"kind": "say", "at": 50},
    ]
    assert seconds([*waiting, {"kind": "say", "at": 53}]) == [1.0, None, 3.0]


def test_calls_side_by_side_share_the_time_and_the_first_has_the_tokens() -> None:
    events = [
        {"kind": "user", "text": "q", "at": 100}, {"kind": "calls", "ids": ["1", "2"], "at": 101, "in": 7},
        {"kind": "result", "id": "2", "at": 104}, {"kind": "result", "id": "1", "at": 106},
    ]  # fmt: skip
    records = read(events)[0]
    assert [record.signals for record in records] == [Signals(seconds=6.0, tokens_in=7.0), Signals(seconds=0.0)]


def test_a_turn_counts_once_and_a_call_with_its_result_adds_up() -> None:
    events = [
        {"kind": "say", "text": "a", "turn": 1, "in": 9}, {"kind": "call", "id": "1", "turn": 1, "in": 9, "s": 1},
        {"kind": "result", "id": "1", "s": 2, "usd": 0.5}, {"kind": "say", "turn": 2, "in": 9},
    ]  # fmt: skip
    records = read(events)[0]
    assert [record.signals for record in records] == [Signals(tokens_in=9.0, seconds=None, dollars=0.5)._replace(
        seconds=2.0
    ), Signals(tokens_in=9.0)]  # fmt: skip


def test_log_probabilities_are_a_mean_and_a_minimum() -> None:
    records, counted = read([{"kind": "say", "lp": [-1, -3.0]}, {"kind": "say", "lp": [-1, 2, None]}])
    assert records[0].signals == Signals(logprob_mean=-2.0, logprob_min=-3.0)
    assert records[1].signals == Signals(logprob_min=-1.0) and counted == {"signals_left_out": 1}


@pytest.mark.parametrize(
    "spec",
    [{"s": "@.s"}, {"seconds": 3}, {"seconds": "@.s", "milliseconds": "@.s"}, {"began": "@.a"}, {"at": "$x"}, []],
)
def test_a_spec_that_is_wrong_is_refused(spec: Any) -> None:
    with pytest.raises(AdapterError, match="signals"):
        Adapter({**AGENT, "signals": spec})


def test_what_is_hidden_is_no_signal() -> None:
    with pytest.raises(AdapterError, match="hidden"):
        Adapter({**AGENT, "signals": {"seconds": "@.end.s"}, "hidden": ["$.events[*].end"]})


def test_text_and_the_raw_view_hold_none_of_it() -> None:
    event = {
        "schema": "prefixguard/event/v1",
        "run": "r",
        "agent_path": "main",
        "kind": "said",
        "text": "x",
        "cost": 0.25,
    }
    adapter = load_adapter("events")
    one, raw = (a.parser().observe(event)[0] for a in (adapter, raw_view(adapter)))
    assert one.signals == Signals(dollars=0.25) and raw.signals is None
    assert b"0.25" not in serialize(one)


def test_runs_set_aside_keep_them() -> None:
    record = StepRecord(1, "agent", "", "", "", "", "x", "", "ok", signals=Signals(seconds=2.0))
    run = Run("r", None, Outcome.SUCCESS, (record, StepRecord(2, "agent", "", "", "", "", "y", "", "ok")), "here")
    assert next(iter(SpooledRuns([run]))).records == run.records


EVENTS = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["user", "note", "say", "call", "calls", "result"])},
        optional={
            "id": st.sampled_from(["1", "2"]), "ids": st.just(["1", "2"]), "turn": st.integers(1, 3),
            "at": st.floats(0, 1e6) | st.just("x"), "s": st.floats(-1, 9), "in": st.integers(-1, 9),
            "lp": st.lists(st.floats(-9, 1), max_size=3), "text": st.just("t"),
        },
    ),
    max_size=12,
)  # fmt: skip


@given(EVENTS, st.integers(0, 12))
def test_a_saved_run_goes_on_as_it_was(events: list[dict[str, Any]], cut: int) -> None:
    adapter = Adapter({**AGENT, "signals": PLAIN})
    parser = adapter.parser()
    before = [record for event in events[:cut] for record in parser.observe(event)]
    other = adapter.parser()
    other.resume(json.loads(json.dumps(parser.state())))
    after = [record for event in events[cut:] for record in other.observe(event)] + other.end()
    whole, counted = read(events)
    assert before + after == whole and dict(other.counters) == counted
    for record in whole:
        assert record.signals is None or set(record.signals.to_json()) <= set(SIGNALS)
        for name, value in (record.signals or Signals()).to_json().items():
            assert value <= 0 if name.startswith("logprob") else value >= 0


def test_a_run_without_signals_saves_what_it_saved_before() -> None:
    parser = Adapter({**AGENT, "signals": PLAIN}).parser()
    parser.observe({"kind": "call", "id": "1"})
    assert "signals" not in parser.state()["machine"]


FIGURES = st.tuples(*[st.floats(-1e6, 1e6) | st.just(math.nan)] * (len(SIGNALS) + 1))


@given(FIGURES, FIGURES)
def test_nothing_that_is_known_is_lost_by_adding(one: tuple[float, ...], other: tuple[float, ...]) -> None:
    both = unpacked(added(packed(one), packed(other)))
    assert [math.isnan(x) for x in both] == [math.isnan(a) and math.isnan(b) for a, b in zip(one, other, strict=True)]
    assert added(b"", packed(one)) == added(packed(one), b"") == packed(one)


def test_messages_of_protocols_say_when() -> None:
    """Where who passes them on, or the state of the task, has the time; absent is not zero."""

    def status(second: int) -> dict[str, Any]:
        said = {"parts": [{"text": "On it."}]}
        at = f"2026-03-03T00:22:{second:02}.000Z"
        return {"statusUpdate": {"status": {"state": "TASK_STATE_WORKING", "timestamp": at, "message": said}}}

    def line(second: int, **message: Any) -> dict[str, Any]:
        return {"time": f"2026-03-03T00:22:{second:02}.000Z", "message": {"id": second // 10, **message}}

    calls, answers = [{"method": "tools/call", "params": {"name": "look"}}, {"result": {"content": []}}]
    for adapter, expected, events in (
        ("a2a", [None, 4.0, None], [status(3), status(7), {"role": "ROLE_AGENT", "parts": [{"text": "Done."}]}]),
        ("mcp", [None, 5.0], [line(10, **calls), line(13, **answers), line(15, **calls), line(17, **answers)]),
    ):
        parser = load_adapter(adapter).parser()
        records = [record for event in events for record in parser.observe(event)] + parser.end()
        took = [record.signals and record.signals.seconds for record in records]
        assert took == expected


def test_every_key_is_documented() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "adapter-spec.md").read_text("utf-8").partition("## Signals")[2]
    assert all(f"`{key}`" in page for key in KEYS)


def test_an_event_that_tells_and_acts_gives_its_figures_to_the_step() -> None:
    rules = [{"when": {"@.task": {"present": True}}, "then": "continue", "emit": "observe", "observation": "@.task"}]
    adapter = Adapter({**AGENT, "signals": PLAIN, "rules": [*rules, *AGENT["rules"]]})
    parser = adapter.parser()
    events = [{"kind": "user", "text": "q", "at": 90}, {"kind": "say", "task": "q", "at": 97, "in": 5}]
    records = [record for event in events for record in parser.observe(event)]
    assert [record.signals for record in records] == [Signals(seconds=7.0, tokens_in=5.0)]
