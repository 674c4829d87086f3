"""Where events come from and in which order: each construct, golden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.errors import AdapterError, TraceError
from prefixguard.stepview import StepRecord
from prefixguard.stepview.identity import REMEMBERED
from prefixguard.stepview.parser import parse_whole
from prefixguard.stepview.paths import Scope

STEP = [{"emit": "step", "action": {"text": "@.a"}, "result": {"text": "@.r"}}]
LOG = [
    {"when": {"@.kind": "Action"}, "emit": "call", "arguments": "@.body"},
    {"when": {"@.kind": "Observation", "open_call": True}, "emit": "result", "result": "@.body"},
    {"when": {"@.kind": "Thought"}, "emit": "say", "action": "@.body"},
]
HEAD = r"(?P<kind>Thought|Action|Observation) (?P<number>\d+): "


def whole(adapter: Any, run: Any) -> list[StepRecord]:
    return parse_whole(adapter.program, Scope(run=run))[0]


def test_zip_pairs_parallel_lists(make: Any) -> None:
    zipped = {"zip": {"a": "$.acts[*]", "r": "$.seen[*]"}}
    adapter = make(events=zipped, rules=STEP)
    records = whole(adapter, {"acts": ["x", "y"], "seen": ["1", "2"]})
    assert [(r.action, r.result, r.event) for r in records] == [("x", "1", 0), ("y", "2", 1)]
    with pytest.raises(TraceError, match=r"of different length: \$.seen\[\*\] has 1, \$.acts\[\*\] has 2"):
        whole(adapter, {"acts": ["x", "y"], "seen": ["1"]})
    with pytest.raises(TraceError, match=r"\$.seen\[\*\] is not there, while \$.acts\[\*\] is"):
        whole(adapter, {"acts": ["x"]})
    with pytest.raises(TraceError, match=r"\$.seen\[\*\] has 2, \$.acts\[\*\] has 1"):
        whole(make(events={**zipped, "pad": ["r"]}, rules=STEP), {"acts": ["x"], "seen": ["1", "2"]})
    padded = make(events={**zipped, "pad": ["r"]}, rules=STEP)
    assert [r.result for r in whole(padded, {"acts": ["x", "y"], "seen": ["1"]})] == ["1", ""]
    optional = make(events={**zipped, "optional": ["r"]}, rules=STEP)
    assert [r.result for r in whole(optional, {"acts": ["x", "y"]})] == ["", ""]
    assert whole(adapter, {"acts": [], "seen": []}) == []


def test_flatten_reaches_inner_events_and_what_they_stand_in(make: Any) -> None:
    adapter = make(
        events={"flatten": ["$.rounds[*]", "@.calls[*]"]},
        rules=[{"emit": "step", "agent": "^.who", "action": "@.a"}],
    )
    rounds = [{"who": "p", "calls": [{"a": "1"}, {"a": "2"}]}, {"who": "q"}, {"who": "r", "calls": [{"a": "3"}]}]
    run = {"rounds": rounds}
    assert [(r.agent, r.action, r.event) for r in whole(adapter, run)] == [("p", "1", 0), ("p", "2", 1), ("r", "3", 2)]
    deep = make(
        events={"flatten": ["$.a[*]", "@.b[*]", "@.c[*]"]},
        rules=[{"emit": "step", "agent": "^^.n", "tool": "^.n", "action": "@.n"}],
    )
    (record,) = whole(deep, {"a": [{"n": "1", "b": [{"n": "2", "c": [{"n": "3"}]}]}]})
    assert (record.agent, record.tool, record.action) == ("1", "2", "3")


def test_order_by_sorts_a_whole_run_and_within_a_window_live(make: Any) -> None:
    events = {"path": "$.spans[*]", "order_by": "@.t", "window": 2}
    adapter = make(events=events, rules=STEP)
    spans = [{"t": "30", "a": "c"}, {"t": 4, "a": "a"}, {"a": "beside a"}, {"t": "9", "a": "b"}]
    assert [r.action for r in whole(adapter, {"spans": spans})] == ["a", "beside a", "b", "c"]
    assert [r.event for r in whole(adapter, {"spans": spans})] == [1, 2, 3, 0]
    parser = adapter.parser()
    assert [len(parser.observe(span)) for span in spans] == [0, 0, 1, 1]
    assert [r.action for r in parser.end()] == ["b", "c"]


def test_drop_last_is_for_whole_runs_only(make: Any) -> None:
    adapter = make(events={"path": "$.steps[*]", "drop_last": 2}, rules=STEP)
    assert [r.action for r in whole(adapter, {"steps": [{"a": "1"}, {"a": "2"}, {"a": "3"}]})] == ["1"]
    assert whole(adapter, {"steps": [{"a": "1"}]}) == []
    with pytest.raises(AdapterError, match="a live run has no last event yet"):
        adapter.parser()


def test_until_ends_the_visible_part(make: Any) -> None:
    steps = [{"a": "1"}, {"a": "2", "end": True}, {"a": "3"}]
    without = make(events={"path": "$.steps[*]", "until": {"@.end": True}}, rules=STEP)
    assert [r.action for r in whole(without, {"steps": steps})] == ["1"]
    kept = make(events={"path": "$.steps[*]", "until": {"@.end": True}, "keep": True}, rules=STEP)
    assert [r.action for r in whole(kept, {"steps": steps})] == ["1", "2"]
    parser = without.parser()
    assert [len(parser.observe(step)) for step in steps] == [1, 0, 0]
    assert parser.counters["after_until"] == 2


def test_drop_repeats_takes_an_identifier_once(make: Any) -> None:
    adapter = make(events={"path": "$.lines[*]", "drop_repeats": "@.uuid"}, rules=STEP)
    lines = [{"uuid": "u1", "a": "1"}, {"uuid": "u1", "a": "1"}, {"a": "2"}, {"a": "2"}, {"uuid": None, "a": "3"}]
    assert [r.action for r in whole(adapter, {"lines": lines})] == ["1", "2", "2", "3"]
    parser = adapter.parser()
    for number in range(2 * REMEMBERED):
        parser.observe({"uuid": number, "a": "x"})
    assert "repeated_events" not in parser.counters
    parser.observe({"uuid": 2 * REMEMBERED - 1, "a": "x"})
    assert parser.counters["repeated_events"] == 1


def test_drop_repeats_takes_a_list_as_a_whole(make: Any) -> None:
    adapter = make(events={"path": "$.lines[*]", "drop_repeats": {"list": ["@.who", "@.more"]}}, rules=STEP)
    lines = [{"who": "a", "more": [n], "a": str(n)} for n in (1, 2, 1)]
    assert [r.action for r in whole(adapter, {"lines": [*lines, {"who": "a", "a": "3"}]})] == ["1", "2", "3"]


def test_drop_repeats_keeps_what_one_element_says_twice(make: Any) -> None:
    adapter = make(events={"flatten": ["$.requests[*]", "@.said[*]"], "drop_repeats": {"list": ["@.a"]}}, rules=STEP)
    talk = [{"a": "yes"}, {"a": "no"}, {"a": "yes"}, {"a": "yes"}]
    requests = [{"said": talk[:n]} for n in (1, 3, 4)]
    assert [r.action for r in whole(adapter, {"requests": requests})] == ["yes", "no", "yes", "yes"]
    parser = adapter.parser()
    assert [[r.action for r in parser.observe(request)] for request in requests] == [["yes"], ["no", "yes"], ["yes"]]
    assert parser.counters["repeated_events"] == 4


def test_decode_reads_fields_that_hold_json(make: Any) -> None:
    adapter = make(
        events={"path": "$.rows[*]", "decode": "@.payload"},
        rules=[
            {
                "when": {"@.payload.kind": "tool"},
                "emit": "step",
                "tool": "@.payload.name",
                "arguments": "@.payload.in",
            },
            {"emit": "say", "action": {"text": "@.payload"}},
        ],
    )
    rows = [
        {"payload": '{"kind": "tool", "name": "ls", "in": {"b": 1.10, "a": 2}}'},
        {"payload": "no JSON {"},
        {"payload": {"kind": "tool", "name": "rm", "in": "x"}},
        {"other": 1},
    ]
    records = [record for row in rows for record in adapter.parser().observe(row)]
    assert [(r.tool, r.arguments, r.action) for r in records] == [
        ("ls", '{"a":2,"b":1.10}', ""), ("respond", "", "no JSON {"), ("rm", "x", ""), ("respond", "", ""),
    ]  # fmt: skip
    assert rows[0]["payload"].startswith("{"), "the event itself is not changed"


def test_unflatten_reads_span_attributes(make: Any) -> None:
    adapter = make(
        events={"path": "$.spans[*]", "unflatten": "@.attributes"},
        rules=[
            {
                "when": {"@.attributes.gen_ai.operation.name": "execute_tool"},
                "emit": "step",
                "tool": "@.attributes.gen_ai.tool.name",
            }
        ],
    )
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "ls"}},
    ]
    span = {"attributes": attributes}
    assert [r.tool for r in whole(adapter, {"spans": [span, {"attributes": None}, {}]})] == ["ls"]
    assert span["attributes"] is attributes


def split(make: Any, **more: Any) -> Any:
    return make(events={"split": {"of": "$.log", "head": HEAD, **more}}, rules=LOG, join={"by": "order"})


TEXT = (
    "intro\nThought 1: hm\nAction 1: ls\n -l\nObservation 1: a\n\nb\n"
    "Action 2: rm\nObservation 2: score: 1.0\nThought 3: end"
)


def test_split_makes_events_of_a_log(make: Any) -> None:
    records = whole(split(make), {"log": TEXT})
    assert [(r.tool, r.action, r.arguments, r.result) for r in records] == [
        ("respond", "hm", "", ""),
        ("", "", "ls\n -l", "a\n\nb"),
        ("", "", "rm", "score: 1.0"),
        ("respond", "end", "", ""),
    ]
    assert whole(split(make, cut="score: .*"), {"log": TEXT})[2].result == ""


def test_a_head_that_a_chunk_cuts_is_still_found(make: Any) -> None:
    parser = split(make).parser()
    pieces = ["Acti", "on 1", "2: l", "s\nObservatio", "n 12: x\n", "Action 13"]
    assert [len(parser.observe(piece)) for piece in pieces] == [0] * 6
    assert [(r.arguments, r.result) for r in parser.observe(": y\n")] == [("ls", "x")]


def test_bytes_cut_inside_a_character(make: Any) -> None:
    data = "Thought 1: größer 😀\nThought 2: x".encode()
    for at in range(len(data)):
        parser = split(make).parser()
        records = [*parser.observe(data[:at]), *parser.observe(data[at:]), *parser.end()]
        assert [r.action for r in records] == ["größer 😀", "x"]
    parser = split(make).parser()
    parser.observe(b"Thought 1: a\xff\xfeb \xef\xbf\xbd\n\xe2\x82")
    assert parser.end()[0].action == "a\ufffd\ufffdb \ufffd\n\ufffd"
    assert parser.counters["bad_bytes"] == 3


def test_text_that_is_no_text(make: Any) -> None:
    with pytest.raises(TraceError, match="an event of type dict: this adapter reads text"):
        split(make).parser().observe({"role": "user"})
    with pytest.raises(TraceError, match="the log is an object, not a text"):
        whole(split(make), {"log": {}})


def test_a_text_without_end_is_bounded(make: Any) -> None:
    parser = split(make).parser()
    parser.observe("Thought 1: begin ")
    for _ in range(200):
        parser.observe("x" * 10_000)
    parser.observe("\n")
    for _ in range(200):
        parser.observe("line\n" * 200)
    assert len(json.dumps(parser.state())) < 8_000
    assert "long_texts_cut" not in parser.counters  # it is not over yet
    (record,) = parser.end()
    assert record.action.startswith("begin xxx")
    assert record.action.endswith("line\nline")
    assert parser.counters["long_texts_cut"] == 1


def test_events_of_the_wrong_type(make: Any) -> None:
    for value, called in (("x", "a text"), (3, "a number"), (True, "a boolean"), ({"a": 1}, "an object")):
        with pytest.raises(TraceError, match=f"the events are {called}, not a list"):
            whole(make(events="$.messages"), {"messages": value})
