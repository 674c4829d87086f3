"""Spans of instrumentations: what they tell is what the hooks of clients tell, joined to runs and agents."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest
from made_spans import (
    ASKED,
    CONVENTIONS,
    Tracer,
    answered,
    call,
    conversation,
    genai,
    lines,
    openinference,
    recorded,
    says,
)

from prefixguard.errors import MissingExtraError
from prefixguard.integrations import Guard
from prefixguard.integrations.conversation import tell_chat_input, tell_chat_reply
from prefixguard.integrations.opentelemetry import SpanWatcher
from prefixguard.runtime import Monitor


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("name", CONVENTIONS)
def test_spans_tell_what_the_hook_of_a_client_tells(name: str, is_wrapped: bool, tmp_path: Path) -> None:
    """Many conversations at once, in any order, joined by a span around each or by the messages that they repeat."""
    rng = random.Random(7)
    conversations = [list(conversation(rng, f"c{n}")) for n in range(40)]
    hooks, spans = Guard.recording(tmp_path / "hooks"), Guard.recording(tmp_path / "spans")
    for one in conversations:
        with hooks.run() as run:
            for messages, reply in one:
                tell_chat_input(run, messages)
                tell_chat_reply(run, reply)
    tracer = Tracer(spans)
    wrappers = [tracer.begin("answer") if is_wrapped else None for _ in conversations]
    left = [list(one) for one in conversations]
    while any(left):
        n = rng.choice([n for n, one in enumerate(left) if one])
        messages, reply = left[n].pop(0)
        span = tracer.begin("chat", wrappers[n])
        tracer.end(span, **CONVENTIONS[name](messages, reply))
    for wrapper in wrappers:
        if wrapper is not None:
            tracer.end(wrapper)
    tracer.watcher.close()
    assert recorded(tmp_path / "spans") == recorded(tmp_path / "hooks")
    assert set(spans.counters) == {"events", "late_results"}


def test_threads_that_say_the_same_are_as_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations that nothing tells apart, at once: whichever is joined to whichever, each of them is whole."""
    run = SpanWatcher._run

    def slow(*given: Any) -> Any:
        found = run(*given)
        sleep(0.002)  # others choose a run before this call is told
        return found

    monkeypatch.setattr(SpanWatcher, "_run", slow)
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)

    def play() -> None:
        for messages, reply in conversation(random.Random(0), "c"):
            tracer.end(tracer.begin("chat"), **genai(messages, reply))

    threads = [Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tracer.watcher.close()
    found = recorded(tmp_path)
    assert (len(found), found) == (8, [found[0]] * 8)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_results_come_once_and_errors_are_errors(name: str, tmp_path: Path) -> None:
    """From the tool's span, by id or by name and arguments; from the next messages, where the span has none, with the
    error that the span tells of; from the error itself, where nothing comes."""
    of, guard = CONVENTIONS[name], Guard.recording(tmp_path)
    tool = {"genai": {"gen_ai.operation.name": "execute_tool"}, "openinference": {"openinference.span.kind": "TOOL"}}[
        name
    ]
    named, given, gave, made = {
        "genai": ("gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.call.id"),
        "openinference": ("tool.name", "input.value", "output.value", "tool_call.id"),
    }[name]
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    first = says("", call("a", "find", id=1), call("b", "find", id=2), call("c", "find", id=3))
    tracer.end(tracer.begin("chat", root), **of(ASKED, first))
    tracer.end(tracer.begin("x", root, **tool), **{named: "find", given: '{"id":2}', gave: "two"})
    tracer.end(tracer.begin("x", root, **tool), "gone", **{named: "find", made: "a", given: "?", gave: "it is gone"})
    tracer.end(tracer.begin("x", root, **tool), "lost", **{named: "find", made: "c"})
    second = says("", call("d", "pay"))
    messages = answered(first, "it is gone", "two", "We lost it.")
    tracer.end(tracer.begin("chat", root), **of(messages, second))
    tracer.end(tracer.begin("x", root, **tool), "no money", **{named: "pay"})
    tracer.end(root)
    assert [line[1:] for line in lines(tmp_path)] == [
        ("task", "Where?", None), ("called", "find", None), ("called", "find", None), ("called", "find", None),
        ("returned", "two", None), ("returned", "it is gone", True), ("returned", "We lost it.", True),
        ("called", "pay", None), ("returned", "LookupError: no money", True), ("ended", "", None),
    ]  # fmt: skip
    assert guard.counters == {"events": 10, "late_results": 1}


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_tool_that_no_model_called_is_a_call(is_streamed: bool, tmp_path: Path) -> None:
    """But not while a model's span goes on, as of a stream that is left open: that model has called it."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root, tool = tracer.begin("answer"), {"openinference.span.kind": "TOOL", "tool.name": "find", "input.value": "{}"}
    tracer.end(tracer.begin("chat", root), **openinference(ASKED, says("Yes?")))
    first = says("", call("c1", "find"))
    model = tracer.begin("chat", root, **{"openinference.span.kind": "LLM"}) if is_streamed else None
    tracer.end(tracer.begin("find", root, **tool), **{"output.value": "got it"})
    if model is not None:
        begun = [*ASKED, says("Yes?")]
        tracer.end(model, **openinference(begun, first))
        messages = [*begun, *answered(first, "got it")[1:]]
        tracer.end(tracer.begin("chat", root), **openinference(messages, says("Done.")))
    tracer.end(root)
    expected = [("task", "Where?"), ("said", "Yes?"), ("called", "find"), ("returned", "got it")]
    assert [line[1:3] for line in lines(tmp_path)] == [*expected, *[("said", "Done.")] * is_streamed, ("ended", "")]


def test_agents_below_tools_and_agents_have_paths_of_their_own(tmp_path: Path) -> None:
    """Below a tool's span, though it says what it is when it is over; below an agent's span; beside, on other messages.
    A handoff goes on in its path. Two spans of one call tell it once."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root = tracer.begin("flow", **{"openinference.span.kind": "AGENT"})
    clerk = tracer.begin("clerk", root, **{"openinference.span.kind": "AGENT"})
    first = says("", call("c1", "research", q=1))
    outer = tracer.begin("llm", clerk)
    tracer.end(tracer.begin("inner", outer), **genai(ASKED, first))
    tracer.end(outer, **openinference(ASKED, first))
    research = tracer.begin("research", clerk)
    tracer.end(tracer.begin("chat", research), **openinference(ASKED, says("It was moved.")))
    tracer.end(research, **{"openinference.span.kind": "TOOL", "tool.name": "research", "output.value": "moved"})
    tracer.end(clerk)
    closer = tracer.begin("closer", root, **{"openinference.span.kind": "AGENT"})
    helper = tracer.begin("helper", closer, **{"openinference.span.kind": "AGENT"})
    summing = tracer.begin("chat", closer)
    tracer.end(tracer.begin("chat", closer), **openinference(answered(first, "moved"), says("Bern.")))
    tracer.end(tracer.begin("chat", helper), **openinference(ASKED, says("I help.")))
    tracer.end(summing, **openinference([{"role": "user", "content": "Sum up."}], says("Summed.")))
    for span in (helper, closer, root):
        tracer.end(span)
    paths: dict[str, list[str]] = {}
    for path, kind, text, _ in lines(tmp_path):
        paths.setdefault(path.partition("#")[0] + ("#c1" if path.endswith("#c1") else ""), []).append(f"{kind} {text}")
    assert paths == {
        "main": ["task Where?", "called research", "returned moved", "said Bern.", "ended "],
        "main/research#c1": ["task Where?", "said It was moved.", "ended "],
        "main/helper": ["task Where?", "said I help.", "ended "],
        "main/closer": ["task Sum up.", "said Summed.", "ended "],
    }


def test_conversations_are_joined_by_their_id(tmp_path: Path) -> None:
    """Whatever the messages are; an id that comes again when the run is over begins another run."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    for text in ("One.", "Two."):
        tracer.end(tracer.begin("chat"), **genai(ASKED, says(text)), **{"gen_ai.conversation.id": "talk"})
    assert (guard.open_runs, guard.is_open("talk")) == (1, True)
    guard.feed({"run": "talk", "kind": "ended"})
    tracer.end(tracer.begin("chat"), **openinference(ASKED, says("Three.")), **{"session.id": "talk"})
    assert (guard.open_runs, guard.is_open("talk-2")) == (1, True)


def test_without_the_sdk_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtraError, match=r"watching OpenTelemetry needs opentelemetry.*\[otel\]"):
        Guard.recording(tmp_path).otel()


def test_what_cannot_be_joined_is_counted(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    first = says("", call("c1", "find"))
    for _ in range(2):
        tracer.end(tracer.begin("chat"), **genai(ASKED, first))
    tracer.end(tracer.begin("chat"), **genai(answered(first, "x"), says("Done.")))
    tracer.end(tracer.begin("chat"), **genai(answered(says("", call("c9", "find")), "x"), says("Done.")))
    tracer.end(tracer.begin("find", **{"openinference.span.kind": "TOOL"}))
    assert (guard.counters["ambiguous_model_calls"], guard.counters["unjoined_model_calls"]) == (1, 1)
    assert (guard.counters["tools_outside_runs"], guard.open_runs) == (1, 3)


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_results_alone_belong_to_the_calls_that_wait(is_wrapped: bool, tmp_path: Path) -> None:
    """Where a provider keeps the messages, a model is asked with what is new."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    roots = [tracer.begin("answer") if is_wrapped else None for _ in range(2)]
    for n, root in enumerate(roots):
        tracer.end(tracer.begin("chat", root), **genai(ASKED, says("", call(f"c{n}", "find"))))
    for n, root in enumerate(roots):
        result = {"role": "tool", "tool_call_id": f"c{n}", "content": f"got {n}"}
        tracer.end(tracer.begin("chat", root), **genai([result], says("Done.")))
    tracer.watcher.close()
    found = [[event.get("text", event.get("tool")) for event in one] for one in recorded(tmp_path)]
    assert found == [["Where?", "find", f"got {n}", "Done.", None] for n in range(2)]


@pytest.mark.parametrize(("action", "done"), [("stop", "stop"), ("nudge", "warn")])
def test_the_host_asks_whether_to_stop_and_nobody_nudges(action: Any, done: str, events_monitor: Monitor) -> None:
    acted: set[str] = set()

    class Sink:
        def emit(self, watched: Any) -> None:
            acted.add(watched.acted)

    guard = Guard(events_monitor, on_alarm=action, sinks=[Sink()])
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    run_id = f"{root.context.trace_id:032x}"
    messages = list(ASKED)
    for n in range(6):
        reply = says("", call(f"c{n}", "find"))
        tracer.end(tracer.begin("chat", root), **genai(messages, reply))
        messages += [reply, {"role": "tool", "tool_call_id": f"c{n}", "content": "error: not found"}]
    assert (guard.stopped(run_id) or "").startswith(f"run {run_id}, step " if action == "stop" else "")
    assert guard.stopped("another") is None
    guard.close()
    assert acted == {"", done}


def test_a_host_asks_by_the_id_that_it_gave(events_monitor: Monitor, tmp_path: Path) -> None:
    guard = Guard(events_monitor, on_alarm="stop", record=tmp_path)
    for _ in range(2):
        with guard.run("x", run_id="mine") as run:
            assert guard.stopped("mine") is None
            for n in range(6):
                run.returned(run.called("find", call_id=f"c{n}"), "error: not found", is_error=True)
            assert guard.stopped("mine") == run.stopped is not None


@pytest.mark.filterwarnings("ignore")
def test_readings_stand_at_the_span_that_told_of_the_step(events_monitor: Monitor) -> None:
    """So that sinks put them there, and not at the span around it, or nowhere."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    found: list[Any] = []
    guard = Guard(events_monitor, sinks=[SimpleNamespace(emit=found.append)])
    provider = sdk.TracerProvider()
    provider.add_span_processor(guard.otel())
    with provider.get_tracer("host").start_as_current_span("chat", attributes=genai(ASKED, says("Bern."))) as span:
        ids = span.get_span_context()
    provider.shutdown()
    guard.close()
    assert [(one.span.trace_id, one.span.span_id) for one in found] == [(f"{ids.trace_id:032x}", f"{ids.span_id:016x}")]
