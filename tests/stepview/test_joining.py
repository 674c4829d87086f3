"""Calls and results, speech and observations: when a record is complete, and what it holds then."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview import Adapter, StepRecord


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def calls(*ids: str | None, text: str = "", **more: Any) -> dict[str, Any]:
    made = [{"id": i, "name": f"tool_{i}", "arguments": "{}"} for i in ids]
    return {"role": "assistant", "content": text, "tool_calls": made, **more}


def result(call_id: str | None, text: str = "fine") -> dict[str, Any]:
    return {"role": "tool", "call_id": call_id, "content": text}


def live(adapter: Adapter, *events: Any) -> list[list[StepRecord]]:
    parser = adapter.parser()
    return [parser.observe(event) for event in events] + [parser.end()]


def records(adapter: Adapter, *events: Any) -> list[StepRecord]:
    return [record for step in live(adapter, *events) for record in step]


def brief(record: StepRecord) -> tuple[str, str, str, str]:
    return record.tool, record.observation, record.action, record.result


def test_speech_leaves_at_once_and_takes_what_was_said_before(make: Any) -> None:
    steps = live(make(), user("hello"), user("again"), say("hi"), user("thanks"))
    assert [len(step) for step in steps] == [0, 0, 1, 0, 0]
    assert brief(steps[2][0]) == ("respond", "hello\nagain", "hi", "")
    assert (steps[2][0].index, steps[2][0].event, steps[2][0].status) == (1, 2, "ok")


def test_a_call_leaves_with_its_result(make: Any) -> None:
    steps = live(make(), user("go"), calls("a", text="look"), result("a", "Error: no"), say("done"))
    assert [len(step) for step in steps] == [0, 0, 1, 1, 0]
    assert brief(steps[2][0]) == ("tool_a", "go", "look", "Error: no")
    assert steps[2][0].status == "error"
    assert steps[2][0].event == 1


def test_parallel_calls_leave_in_call_order_and_the_first_has_the_text(make: Any) -> None:
    steps = live(
        make(), user("go"), calls("a", "b", "c", text="plan"), result("b", "B"), result("a", "A"), result("c", "C")
    )
    assert [[r.tool for r in step] for step in steps] == [[], [], [], ["tool_a", "tool_b"], ["tool_c"], []]
    first, second = steps[3]
    assert brief(first) == ("tool_a", "go", "plan", "A")
    assert brief(second) == ("tool_b", "", "", "B")


def test_an_open_call_leaves_unknown_when_the_agent_acts_again(make: Any) -> None:
    parser = make().parser()
    parser.observe(calls("a"))
    left = parser.observe(say("never mind"))
    assert [(r.tool, r.status) for r in left] == [("tool_a", "unknown"), ("respond", "ok")]
    assert parser.counters["calls_without_result"] == 1
    assert parser.observe(result("a", "late news")) == []
    assert parser.counters["late_results"] == 1
    assert parser.observe(say("so?"))[0].observation == "late news"


def test_an_open_call_leaves_unknown_at_the_end(make: Any) -> None:
    steps = live(make(), calls("a", "b"), result("b", "B"))
    assert [(r.tool, r.result, r.status) for r in steps[-1]] == [("tool_a", "", "unknown"), ("tool_b", "B", "ok")]


BY_ORDER = (calls("a", "b"), result("q", "x"), result("q", "y"))
STRAY = (calls("a"), result("zz", "stray"), result("a", "A"))
REPEATED = (calls("a", "a"), result("a", "1"), result("a", "2"), calls("a"), result("a", "3"))


@pytest.mark.parametrize(
    ("join", "events", "expected"),
    [
        pytest.param(
            {}, (calls(None, None), result(None, "1"), result(None, "2")), ["1", "2"], id="without ids, first"
        ),
        pytest.param({}, STRAY, ["A"], id="an id of no open call is late"),
        pytest.param(
            {"by": "id", "else": "next", "mismatch": "else"}, STRAY, ["stray"], id="unless the spec says else"
        ),
        pytest.param({}, REPEATED, ["1", "2", "3"], id="repeated ids, one after the other"),
        pytest.param({"by": "order", "else": "next"}, BY_ORDER, ["x", "y"], id="next"),
        pytest.param({"by": "order", "else": "last"}, BY_ORDER, ["y", "x"], id="last"),
        pytest.param({"by": "order", "else": "position"}, BY_ORDER, ["x", "y"], id="position"),
        pytest.param({"by": "order", "else": "none"}, BY_ORDER, ["", ""], id="none"),
        pytest.param(
            {"by": "id", "else": "position"},
            (calls("a", None, None), result("a", "0"), result(None, "1"), result(None, "2")),
            ["0", "1", "2"],
            id="position counts results that went by id",
        ),
    ],
)
def test_which_call_a_result_belongs_to(make: Any, join: dict[str, str], events: Any, expected: list[str]) -> None:
    assert [record.result for record in records(make(join=join), *events)] == expected


def test_calls_in_separate_events_are_parallel_within_a_run_scope(make: Any) -> None:
    events = (calls("a"), calls("b"), result("a", "A"), result("b", "B"))
    assert [r.result for r in records(make(), *events)] == ["", "B"]
    wide = make(join={"by": "id", "scope": "run"})
    assert [(r.tool, r.result) for r in records(wide, *events)] == [("tool_a", "A"), ("tool_b", "B")]


def test_calls_without_ids_are_parallel_within_a_run_scope_by_order(make: Any) -> None:
    events = (calls(None), calls(None), result(None, "A"), result(None, "B"))
    assert [r.result for r in records(make(join={"by": "order"}), *events)] == ["", "A"]
    assert [r.result for r in records(make(join={"by": "order", "scope": "run"}), *events)] == ["A", "B"]
    assert [r.result for r in records(make(join={"by": "id", "scope": "run"}), *events)] == ["", "A"]


def test_a_turn_joins_lines_of_one_reply(make: Any) -> None:
    adapter = make(turn="@.turn")
    found = records(
        adapter, user("go"), say("I look.", turn=1), calls("a", text="", turn=1), calls("b", turn=1), result("a"),
        result("b"), say("one", turn=2), say("two", turn=2), say("other", turn=3), user("bye"),
    )  # fmt: skip
    assert [(r.tool, r.observation, r.action) for r in found] == [
        ("tool_a", "go", "I look."),
        ("tool_b", "", ""),
        ("respond", "", "one\ntwo"),
        ("respond", "", "other"),
    ]


HELD: list[dict[str, Any]] = [
    {"when": {"@.kind": "thought"}, "emit": "say", "hold": True, "action": "@.text"},
    {"when": {"@.kind": "user"}, "emit": "observe", "observation": "@.text"},
    {"when": {"@.kind": "call"}, "emit": "call", "tool": "@.tool", "action": "@.text"},
    {"when": {"@.kind": "out"}, "emit": "result", "result": "@.text"},
    {"when": {"@.kind": "step"}, "emit": "step", "tool": "@.tool", "action": "@.text", "result": "@.out"},
    {"emit": "say", "action": "@.text"},
]


def of(kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "text": text, **more}


def test_held_speech_becomes_part_of_the_call_that_follows(make: Any) -> None:
    adapter = make(rules=HELD, join={"by": "order"})
    steps = live(adapter, of("user", "go"), of("thought", "I look."), of("call", tool="ls"), of("out", "a b"))
    assert [len(step) for step in steps] == [0, 0, 0, 1, 0]
    assert brief(steps[3][0]) == ("ls", "go", "I look.", "a b")
    steps = live(adapter, of("thought", "One."), of("thought", "Two."), of("step", "Now.", tool="rm", out="ok"))
    (record,) = steps[2]
    assert brief(record) == ("rm", "", "One.\nTwo.\nNow.", "ok")


def test_held_speech_is_a_record_where_no_call_follows(make: Any) -> None:
    adapter = make(rules=HELD, join={"by": "order"})
    steps = live(adapter, of("thought", "Hm."), of("user", "hurry"), of("call", tool="ls"), of("thought", "Last."))
    assert [[r.tool for r in step] for step in steps] == [[], ["respond"], [], ["ls"], ["respond"]]
    assert brief(steps[1][0]) == ("respond", "", "Hm.", "")
    assert steps[3][0].observation == "hurry"
    assert [r.action for r in records(adapter, of("thought", "Hm."), of("answer", "42"))] == ["Hm.", "42"]


def test_a_held_thought_does_not_swallow_the_result_of_an_open_call(make: Any) -> None:
    adapter = make(rules=HELD, join={"by": "order"})
    events = (of("call", tool="ls"), of("thought", "While I wait."), of("out", "late"), of("call", tool="cat"))
    found = records(adapter, *events)
    assert [(r.tool, r.action, r.result) for r in found] == [
        ("ls", "", ""), ("respond", "While I wait.", ""), ("cat", "", ""),
    ]  # fmt: skip
    assert found[2].observation == "late"


def test_hold_is_true_or_false_and_goes_with_say(make: Any) -> None:
    with pytest.raises(AdapterError, match=r"rules\[0\].hold: true or false: does the speech wait"):
        make(rules=[{"emit": "say", "action": "@.text", "hold": "yes"}])
    with pytest.raises(AdapterError, match="hold"):
        make(rules=[{"emit": "step", "action": "@.text", "hold": True}])


def test_update_fills_an_open_call(make: Any, chat: dict[str, Any]) -> None:
    rules = [
        {"when": {"@.kind": "call"}, "emit": "call", "call_id": "@.id", "tool": "@.title"},
        {"when": {"@.kind": "update", "@.status": "done"}, "emit": "result", "call_id": "@.id", "result": "@.out"},
        {"when": {"@.kind": "update"}, "emit": "update", "call_id": "@.id", "arguments": "@.input"},
    ]
    parser = make(rules=rules).parser()
    parser.observe({"kind": "call", "id": 1, "title": "edit"})
    parser.observe({"kind": "update", "id": 1, "input": {"b": 1, "a": 2}})
    parser.observe({"kind": "update", "id": 9, "input": {}})
    (record,) = parser.observe({"kind": "update", "id": 1, "status": "done", "out": "ok"})
    assert (record.tool, record.arguments, record.result) == ("edit", '{"a":2,"b":1}', "ok")
    assert parser.counters["updates_without_call"] == 1


def test_one_event_can_be_result_and_observation(make: Any) -> None:
    rules = [
        {
            "when": {"@.role": "user"},
            "emit": "result",
            "each": "@.content[type=tool_result]",
            "call_id": "@.tool_use_id",
            "result": {"text": "@.content"},
            "status": [{"when": {"@.is_error": True}, "is": "error"}, {"is": "ok"}],
            "then": "continue",
        },
        {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content[type=text]"}},
        {
            "when": {"@.role": "assistant"},
            "emit": "call",
            "each": "@.content[type=tool_use]",
            "action": {"text": "^.content[type=text]"},
            "call_id": "@.id",
            "tool": "@.name",
            "arguments": "@.input",
        },
    ]
    parser = make(rules=rules).parser()
    tool_use = {"type": "tool_use", "id": "t", "name": "ls", "input": {"p": 1.0}}
    parser.observe({"role": "assistant", "content": [{"type": "text", "text": "hm"}, tool_use]})
    blocks = [
        {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True},
        {"type": "text", "text": "now"},
    ]
    (record,) = parser.observe({"role": "user", "content": blocks})
    assert (record.tool, record.action, record.arguments, record.status) == ("ls", "hm", '{"p":1.0}', "error")
    parser.observe({"role": "assistant", "content": [tool_use]})
    assert parser.end()[0].observation == "now"


def test_whole_steps_speakers_and_actors(make: Any) -> None:
    rules = [
        {"when": {"@.speaker": {"present": True}}, "emit": "agent", "agent": "@.speaker"},
        {
            "when": {"@.act": {"present": True}},
            "emit": "step",
            "actor": {"map": {"human": "user"}, "of": "@.who", "else": {"const": "agent"}},
            "observation": "@.seen",
            "action": "@.thought",
            "arguments": "@.act",
            "result": "@.out",
        },
        {"emit": "say", "actor": "environment", "action": "@.text"},
    ]
    parser = make(rules=rules).parser()
    parser.observe({"speaker": "Planner"})
    (one,) = parser.observe({"act": "go", "seen": "door", "thought": "open", "out": "error: shut"})
    assert (one.agent, one.actor, one.observation, one.action, one.arguments, one.result) == (
        "Planner", "agent", "door", "open", "go", "error: shut",
    )  # fmt: skip
    assert one.status == "error"
    assert parser.observe({"act": "x", "who": "human"})[0].actor == "user"
    assert parser.observe({"text": "bell"})[0].actor == "environment"


def test_events_that_no_rule_takes_are_counted_by_kind(make: Any) -> None:
    parser = make().parser()
    for event in ({"role": "narrator"}, {"role": "narrator"}, None, 3, "x", [], {}, {"a": 1, "b": 2}, {"type": "ping"}):
        assert parser.observe(event) == []
    assert dict(parser.counters) == {
        "skipped: role=narrator": 2,
        "skipped: null": 1,
        "skipped: number": 1,
        "skipped: text": 1,
        "skipped: list": 1,
        "skipped: empty object": 1,
        "skipped: object with a, b": 1,
        "skipped: type=ping": 1,
    }


def test_kinds_are_bounded(make: Any) -> None:
    parser = make().parser()
    for number in range(1000):
        parser.observe({"role": f"role {number}"})
    assert len(parser.counters) < 40
    assert sum(parser.counters.values()) == 1000


def test_fields_are_cut_to_their_budgets(make: Any) -> None:
    small = [10, 5]
    adapter = make(budgets={"result": small, "action": small, "observation": small, "arguments": small})
    parser = adapter.parser()
    for _ in range(50):
        parser.observe(user("u" * 1000))
    call = {"id": "a", "name": "t" * 500, "arguments": '{"x":"' + "y" * 1000 + '"}'}
    parser.observe({"role": "assistant", "content": "c" * 1000, "tool_calls": [call]})
    (record,) = parser.observe(result("a", "r" * 1000 + "END"))
    for text in (record.observation, record.action, record.arguments, record.result):
        assert len(text) == 15 + len("\n[...]\n")
    assert record.result.endswith("rrEND")
    assert len(record.tool) == 200


def test_open_calls_are_bounded(make: Any) -> None:
    parser = make().parser()
    left = parser.observe(calls(*(str(i) for i in range(400))))
    assert [record.index for record in left] == list(range(1, len(left) + 1))  # the oldest leave first
    assert {record.status for record in left} == {"unknown"}
    assert parser.counters["calls_released_early"] == len(left) > 300
    assert len(left) + len(parser.end()) == 400


def test_results_are_judged_by_what_the_record_shows(make: Any) -> None:
    adapter = make(status=[{"when": {"tool": "tool_a", "result": {"re": "0"}}, "is": "error"}])
    parser = adapter.parser()
    parser.observe(calls("a", "b"))
    assert parser.observe(result("a", "0"))[0].status == "error"
    assert parser.observe(result("b", "0"))[0].status == "unknown"


def test_the_preamble_is_seen_first(make: Any) -> None:
    parser = make().parser({"question": "Where is my order?"})
    parser.observe(user("hi"))
    assert parser.observe(say("hello"))[0].observation == "Where is my order?\nhi"


def test_a_result_without_an_id_is_of_the_call_with_its_tool_and_arguments(make: Any, chat: dict[str, Any]) -> None:
    *others, _ = chat["rules"]
    told = {"when": {"@.role": "tool"}, "emit": "result", "result": "@.content", "call_id": "@.call_id"}
    told |= {"tool": "@.tool", "arguments": {"json": "@.given"}}
    event = calls("a", "b", "c")
    for n, call in enumerate(event["tool_calls"]):
        call |= {"name": "find" if n < 2 else "sum", "arguments": f'{{"n": {n}}}'}
    for results, expected in (
        ([{"tool": "sum"}, {"tool": "find", "given": '{"n":1}'}, {"tool": "find", "given": {"n": 0}}], ["2", "1", "0"]),
        ([{"tool": "find"}, {"tool": "find"}, {"tool": "other"}], ["0", "1", "2"]),
        ([{"tool": "find", "call_id": "b"}, {"tool": "find", "given": '{"n":1}'}, {}], ["1", "0", "2"]),
    ):
        parser = make(rules=[*others, told]).parser()
        records = parser.observe(event)
        for one, position in zip(results, expected, strict=True):
            records += parser.observe({"role": "tool", "content": position, **one})
        assert [record.result for record in records] == ["0", "1", "2"]


def test_a_result_that_was_told_before_is_passed_over(make: Any, chat: dict[str, Any]) -> None:
    *others, told = chat["rules"]
    for again, counted, seen in (("skip", 0, ""), ("late", 1, "later")):
        parser = make(rules=[*others, told | {"again": again}]).parser()
        parser.observe(calls("a", "b"))
        assert not parser.observe(result("b", "two"))
        assert not parser.observe(result("b", "later"))
        assert [record.result for record in parser.observe(result("a", "one"))] == ["one", "two"]
        assert parser.counters.get("late_results", 0) == counted
        (spoken,) = parser.observe(say("done"))
        assert spoken.observation == seen
