"""Logs of Inspect: which agent works where, messages from events, and what is no log. Real ones: recorded exports."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import TraceError
from prefixguard.stepview import AgentSpans, ReadReport, load_adapter, read_runs
from prefixguard.stepview.inspect_logs import conversations


def begins(span: str, parent: str | None, kind: str, name: str = "") -> dict[str, Any]:
    return {"event": "span_begin", "id": span, "parent_id": parent, "type": kind, "name": name or kind}


def model(span: str, asked: list[Any], text: str = "", *calls: str, **more: Any) -> dict[str, Any]:
    made = [{"id": call, "function": "look", "arguments": {}} for call in calls]
    message = {"id": f"m-{text}-{calls}", "role": "assistant", "content": text, "tool_calls": made}
    return {"event": "model", "span_id": span, "input": asked, "output": {"choices": [{"message": message}]}, **more}


def tool(span: str, call: str, result: Any = "done", **more: Any) -> dict[str, Any]:
    return {"event": "tool", "span_id": span, "id": call, "function": "look", "result": result, **more}


def user(text: str, key: str = "") -> dict[str, Any]:
    return {"id": key or f"u-{text}", "role": "user", "content": text}


def shown(sample: dict[str, Any]) -> dict[str | None, list[Any]]:
    return {
        key: [(m["role"], m["content"] or [call["id"] for call in m.get("tool_calls") or ()]) for m in messages]
        for key, messages in conversations(sample)
    }


def test_agents_below_calls_are_apart() -> None:
    events = [
        begins("s", None, "solver"), begins("a", "s", "agent", "clerk"),
        model("a", [user("Where?")], "", "c1", "c2"),
        begins("t1", "a", "tool", "research"), tool("a", "c1"), begins("b1", "t1", "agent", "re/searcher"),
        model("b1", [user("one")], "", "c1"),
        begins("h", "b1", "handoff", "deep"), begins("t3", "h", "tool", "transfer"), tool("b1", "c1", "given on"),
        begins("d", "t3", "agent", "deep"), model("d", [user("Where?", "x")], "So."),
        begins("t2", "a", "tool", "ask"), tool("a", "c2"), model("t2", [user("What is it?")], "A model in a tool."),
        {"event": "span_end", "id": "a"}, begins("a2", "s", "agent", "closer"), model("a2", [user("Where?")], "Here."),
        begins("sc", None, "scorers"), begins("sc1", "sc", "scorer"), begins("g", "sc1", "agent", "grader"),
        model("g", [user("Is it right?")], "GRADE: C"), begins("t4", "sc1", "tool"), tool("sc1", "c9"),
        model("t4", [], "no"), model("sc1", [], "no"),
    ]  # fmt: skip
    assert shown({"events": events}) == {
        None: [
            ("user", "Where?"), ("assistant", ["c1", "c2"]), ("tool", "done"), ("tool", "done"), ("assistant", "Here."),
        ],
        "re_searcher#c1": [("user", "one"), ("assistant", ["c1"]), ("tool", "given on")],
        "re_searcher#c1/deep#c1": [("user", "Where?"), ("assistant", "So.")],
        "ask#c2": [("user", "What is it?"), ("assistant", "A model in a tool.")],
    }  # fmt: skip


def test_what_others_said_is_not_the_agents_and_every_message_comes_once() -> None:
    before = {"id": "old", "role": "assistant", "content": "[other] Hello.", "tool_calls": []}
    result = {"id": "r", "role": "tool", "tool_call_id": "c1", "content": "seen by the model"}
    first = [{"role": "system", "content": "x"}, user("Where?"), before]
    events = [
        model("", first, "", "c1", error="no network"), model("", first, "", "c1", pending=True),
        model("", first, "", "c1"), model("", [*first, result, user("Go on.")], "Here."),
        tool("", "c1", "came late"), tool("", "c2", error={"message": "none"}), tool("", "c3", pending=True),
    ]  # fmt: skip
    assert shown({"events": events}) == {None: [
        ("user", "Where?"), ("assistant", ["c1"]), ("tool", "seen by the model"), ("user", "Go on."),
        ("assistant", "Here."), ("assistant", ["c2"]), ("tool", "done"), ("assistant", ["c3"]),
    ]}  # fmt: skip


def test_messages_that_the_log_keeps_once_and_texts_that_it_keeps_apart(tmp_path: Path) -> None:
    pool = [user("no"), user("attachment://abc"), user("two")]
    more = {"input_refs": [[1, 2], [2, 3], [7, 9], [-1, 1], "x", [True]]}
    sample = {
        "uuid": "r", "id": 1, "events": [model("", [], "attachment://none", **more)],
        "events_data": {"messages": pool}, "attachments": {"abc": "Where is it?"},
    }  # fmt: skip
    (tmp_path / "log.json").write_text(json.dumps({"samples": [sample, 7]}))
    report = ReadReport()
    (run,) = read_runs(tmp_path, load_adapter("inspect_log"), report=report)
    assert [(r.observation, r.action) for r in run.records] == [("Where is it?\ntwo", "attachment://none")]
    assert (
        "run 2: a run that is a whole number" in report.skipped[0][1] or "run 2: a run that is" in report.skipped[0][1]
    )


RECORDED = Path(__file__).parents[1] / "stepview_adapters" / "recorded" / "inspect-ai-0.3.285" / "json"


def test_steps_take_what_the_events_of_a_log_took() -> None:
    """Over the runs of a sample: the sums over its events, counted here anew."""
    file = RECORDED / "nested_parallel" / "log.json"
    events = [event for sample in json.loads(file.read_text())["samples"] for event in sample["events"]]
    models = [event for event in events if event["event"] == "model" and event["output"]["choices"]]
    records = [one.signals for run in read_runs(file, load_adapter("inspect_log")) for one in run.records]
    assert models and all(one is not None and one.seconds is not None for one in records)
    for name, key in (("tokens_in", "input_tokens"), ("tokens_out", "output_tokens")):
        told = sum(event["output"]["usage"][key] for event in models)
        assert sum(getattr(one, name) or 0 for one in records if one is not None) == told

    def ended(event: dict[str, Any]) -> float:
        at = [datetime.fromisoformat(event[name]).timestamp() for name in ("timestamp", "completed")]
        return at[1] - at[0]

    tools = [event for event in events if event["event"] == "tool"]
    seconds = sum(map(ended, (*models, *tools)))
    assert sum(one.seconds or 0 for one in records if one is not None) == pytest.approx(seconds, abs=1e-3)


def test_a_log_without_events_has_the_samples_messages() -> None:
    for events in (None, [], [tool("a", "c1")], [model("", [], "No.", error="no network")]):
        assert conversations({"messages": [user("x")], "events": events}) == [(None, [user("x")])]


@pytest.mark.parametrize("text", ["{}", "[]", '{"samples": null}', '{"samples": {}}', "7"])
def test_what_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"log.json: no samples; a log of Inspect is an object with `samples`"):
        list(read_runs(path, load_adapter("inspect_log"), strict=True))
    path.with_suffix(".eval").write_text(text)
    with pytest.raises(TraceError, match=r"log.eval: not a zip archive"):
        list(read_runs(path.with_suffix(".eval"), load_adapter("inspect_log"), strict=True))


ANY = st.one_of(st.none(), st.integers(), st.sampled_from(["a", "b", "c"]), st.lists(st.integers(), max_size=2))
EVENT = st.fixed_dictionaries(
    {"event": st.sampled_from(["span_begin", "span_end", "model", "tool", None])},
    optional=dict.fromkeys(("id", "parent_id", "span_id", "name", "result", "error", "pending"), ANY)
    | {
        "type": st.sampled_from(["agent", "tool", "subtask", "scorers", None]),
        "output": st.just({"choices": [{"message": {"content": "x"}}]}),
        "input": st.lists(st.one_of(ANY, st.just({"role": "user", "content": "u"})), max_size=2),
        "input_refs": st.lists(st.one_of(ANY, st.lists(ANY, max_size=2)), max_size=2),
    },
)


@given(st.lists(st.one_of(ANY, EVENT), max_size=10), ANY)
def test_whatever_a_log_holds_is_read_or_left_out(events: list[Any], pool: Any) -> None:
    """Also spans in a circle, of themselves, twice, and without a beginning; the main agent comes first and once."""
    found = conversations({"events": events, "events_data": pool})
    assert found[0][0] is None and all(key for key, _ in found[1:])
    spans = AgentSpans()
    for event in events:
        if isinstance(event, dict) and event["event"] == "span_begin":
            spans.begins(str(event.get("id")), str(event.get("parent_id")), str(event.get("type")), "x")
            assert spans.agent(str(event.get("id"))) in (None, spans.main) or spans.agent("none") is spans.main
