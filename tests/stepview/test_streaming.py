"""A live run and a whole run read the same: records are equal whatever the events and wherever the stream is cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.stepview import Adapter, StepRecord
from prefixguard.stepview.parser import parse_whole
from prefixguard.stepview.paths import Scope

SPEC: dict[str, Any] = {
    "schema": "prefixguard/adapter/v1",
    "name": "stream",
    "version": "1",
    "container": {"format": "json"},
    "run": {"preamble": "$.question"},
    "events": "$.messages[*]",
    "rules": [
        {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content"}},
        {
            "when": {"@.role": "assistant", "@.calls": {"present": True}},
            "emit": "call",
            "each": "@.calls[*]",
            "action": {"text": "^.content"},
            "call_id": "@.id",
            "tool": "@.name",
            "arguments": {"json": "@.args"},
        },
        {"when": {"@.role": "assistant"}, "emit": "say", "action": {"text": "@.content"}},
        {
            "when": {"@.role": "tool", "open_call": True},
            "emit": "result",
            "call_id": "@.id",
            "result": {"text": "@.content"},
        },
        {"when": {"@.role": "tool"}, "emit": "observe", "observation": {"text": "@.content"}},
    ],
    "status": [{"when": {"result": {"re": "(?i)error"}}, "is": "error"}, {"is": "ok"}],
    "budgets": {"observation": [6, 3], "action": [6, 3], "result": [6, 3], "arguments": [6, 3]},
}
ids = st.sampled_from(["a", "b", "c", None, 1])
texts = st.one_of(st.none(), st.text(max_size=12), st.just("Error"), st.lists(st.text(max_size=5), max_size=2))
tool_calls = st.lists(st.fixed_dictionaries({"id": ids, "name": texts, "args": texts}), max_size=3)
message = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": texts, "turn": st.sampled_from([1, 2, None])}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": texts, "calls": tool_calls, "turn": st.sampled_from([1, 2])}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "id": ids, "content": texts}),
    st.sampled_from([None, 3, [], {}, "x", {"role": 7}]),
)
variants = st.sampled_from(
    [
        {},
        {"turn": "@.turn"},
        {"join": {"by": "order"}},
        {"join": {"by": "id", "scope": "run", "else": ["position", "last"], "mismatch": "else"}},
        {"events": {"path": "$.messages[*]", "drop_repeats": "@.id", "until": {"@.role": 7}}},
    ]
)


def whole(adapter: Adapter, run: Any) -> list[StepRecord]:
    return parse_whole(adapter.program, Scope(run=run))[0]


@settings(max_examples=300, deadline=None)
@given(st.lists(message, max_size=12), variants)
def test_events_one_by_one_give_the_records_of_the_whole(messages: list[Any], variant: dict[str, Any]) -> None:
    adapter = Adapter(SPEC | variant)
    run = {"question": "why?", "messages": messages}
    parser = adapter.parser({"question": "why?"})
    chunks = [parser.observe(event) for event in messages]
    streamed = [record for chunk in chunks for record in chunk] + parser.end()
    assert streamed == whole(adapter, run)
    assert [record.index for record in streamed] == list(range(1, len(streamed) + 1))
    for record in streamed:
        for field in (record.tool, record.arguments, record.observation, record.action, record.result):
            field.encode("utf-8")


@settings(max_examples=200, deadline=None)
@given(st.lists(message, max_size=8))
def test_nothing_that_was_said_is_lost(messages: list[Any]) -> None:
    generous = {name: [10_000, 0] for name in ("observation", "action", "result", "arguments")}
    adapter = Adapter(SPEC | {"budgets": generous})
    parser = adapter.parser()
    records = [record for event in messages for record in parser.observe(event)] + parser.end()
    shown = (
        "\n".join(f"{r.observation}\n{r.action}\n{r.result}" for r in records)
        + "\n"
        + parser.state()["machine"]["pending"]
    )
    for event in messages:
        if isinstance(event, dict) and isinstance(event.get("content"), str) and event.get("calls") != []:
            assert event["content"] in shown


LOG = SPEC | {
    "container": {"format": "text"},
    "events": {"split": {"head": r"(?P<kind>Say|Do|Got) ?\d*: ?", "cut": "secret"}},
    "rules": [
        {"when": {"@.kind": "Say"}, "emit": "say", "action": "@.body"},
        {"when": {"@.kind": "Do"}, "emit": "call", "arguments": "@.body"},
        {"when": {"@.kind": "Got"}, "emit": "result", "result": "@.body"},
    ],
    "join": {"by": "order"},
    "run": {},
}
PIECES = [
    "Say 1: ",
    "Do 22: x",
    "Got: ",
    "Got 1: y",
    "text",
    "\n",
    "\r\n",
    "\r",
    "\x1b[2K",
    "sec",
    "ret",
    "é",
    "😀",
    " ",
    "Sa",
]
lines = st.lists(st.sampled_from([*PIECES, "é", "😀", " ", "Sa"]), max_size=25).map("".join)


@settings(max_examples=300, deadline=None)
@given(lines, st.lists(st.integers(0, 100), max_size=6))
def test_text_cut_anywhere_gives_the_records_of_the_whole(text: str, cuts: list[int]) -> None:
    adapter = Adapter(LOG)
    expected = whole(adapter, {"text": text})
    data = text.encode()
    for source in (text, data):
        parser = adapter.parser()
        records = []
        at = 0
        for cut in sorted(min(cut, len(source)) for cut in cuts):
            records += parser.observe(source[at:cut])
            at = cut
        records += parser.observe(source[at:])
        assert records + parser.end() == expected


def test_an_idle_parser_is_small() -> None:
    adapter = Adapter(SPEC)
    event = {"role": "assistant", "content": "x", "calls": [{"id": "a", "name": "t", "args": "{}"}]}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    parsers = [adapter.parser({"question": "why?", "tools": "x" * 10}) for _ in range(1000)]
    idle = (tracemalloc.get_traced_memory()[0] - before) / len(parsers)
    for parser in parsers:
        parser.observe(event)
        parser.observe({"role": "tool", "id": "a", "content": "y" * 10_000})
        parser.observe({"role": "user", "content": "z" * 10_000})
    used = (tracemalloc.get_traced_memory()[0] - before) / len(parsers)
    tracemalloc.stop()
    assert idle < 3_000
    assert used < 4_000


@pytest.mark.parametrize(
    "value",
    [None, 1, "x", [], {}, True, 1.5, {"role": "assistant", "calls": 3}, {"role": "assistant", "calls": [None, 3, []]}],
)
def test_no_event_makes_a_live_parser_raise(value: Any) -> None:
    parser = Adapter(SPEC).parser()
    parser.observe(value)
    parser.end()


def test_the_same_bytes_give_the_same_records_under_another_hash_seed(tmp_path: Any) -> None:
    run = {
        "messages": [
            {"role": "user", "content": "ü"},
            {"role": "assistant", "content": "ok", "calls": [{"id": "a", "args": '{"b":1,"a":2}'}]},
        ]
    }
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    (tmp_path / "run.json").write_text(json.dumps(run))
    code = (
        "import sys; from prefixguard.stepview import load_adapter, read_runs, serialize;"
        "print([serialize(r) for run in read_runs(sys.argv[2], load_adapter(sys.argv[1])) for r in run.records])"
    )
    outputs = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"}
        command = [sys.executable, "-c", code, str(tmp_path / "spec.json"), str(tmp_path / "run.json")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert '{"a":2\\n[...]\\n:1}' in outputs.pop()


def test_a_header_is_kept_only_where_rules_read_it() -> None:
    header = {"question": "why?", "tools": ["t"]}
    assert Adapter(SPEC).parser(header).state()["header"] is None
    reading = [{"emit": "say", "action": {"text": "$.tools[*]"}}]
    parser = Adapter(SPEC | {"rules": reading}).parser(header)
    assert parser.observe({})[0].action == "t"
    assert header == {"question": "why?", "tools": ["t"]}
    above = [{"emit": "say", "action": {"text": "^.question"}}]
    assert Adapter(SPEC | {"rules": above}).parser(header).observe({})[0].action == "why?"
