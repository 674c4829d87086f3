"""Spans of instrumentations, made by hand: what they tell is what the hooks of clients tell, whatever they lack."""

from __future__ import annotations

import json
import logging
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from prefixguard.errors import MissingExtraError
from prefixguard.integrations import Guard
from prefixguard.integrations.conversation import tell_chat_input, tell_chat_reply
from prefixguard.integrations.opentelemetry import SpanWatcher
from prefixguard.runtime import Monitor

Message = dict[str, Any]
_IDS = count(1)


class Tracer:
    """Makes spans as an SDK does, for a watcher. Times are the order of what happens."""

    def __init__(self, guard: Guard) -> None:
        self.watcher = SpanWatcher(guard, {})

    def begin(self, name: str, above: Any = None, **attributes: Any) -> Any:
        trace = next(_IDS) if above is None else above.context.trace_id
        span = SimpleNamespace(
            name=name, attributes=attributes, events=(), status=None, start_time=next(_IDS), end_time=None,
            context=SimpleNamespace(trace_id=trace, span_id=next(_IDS)), dropped_attributes=0,
            parent=None if above is None else above.context, instrumentation_scope=SimpleNamespace(name="test"),
        )  # fmt: skip
        self.watcher.begins(span)
        return span

    def end(self, span: Any, error: str = "", **attributes: Any) -> None:
        span.attributes = {**span.attributes, **attributes}
        span.end_time = next(_IDS)
        if error:
            said = {"exception.type": "builtins.LookupError", "exception.message": error}
            span.events = (SimpleNamespace(name="exception", attributes=said),)
            span.status = SimpleNamespace(status_code=SimpleNamespace(name="ERROR"), description=error)
        self.watcher.ends(span)


def genai(messages: list[Message], reply: Message) -> dict[str, Any]:
    def parts(message: Message) -> dict[str, Any]:
        if message["role"] == "tool":
            part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
            return {"role": "tool", "parts": [part]}
        made = [{"type": "text", "content": message["content"]}] if message["content"] else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            given = json.loads(function["arguments"])
            made.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": given})
        return {"role": message["role"], "parts": made}

    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(message) for message in messages]),
        "gen_ai.output.messages": json.dumps([parts(reply)]),
    }


def openinference(messages: list[Message], reply: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for side, given in (("input", messages), ("output", [reply])):
        for n, message in enumerate(given):
            at = f"llm.{side}_messages.{n}.message."
            for name in ("role", "content", "tool_call_id"):
                if message.get(name):
                    found[at + name] = message[name]
            for k, call in enumerate(message.get("tool_calls", ())):
                found[f"{at}tool_calls.{k}.tool_call.id"] = call["id"]
                for name, value in call["function"].items():
                    found[f"{at}tool_calls.{k}.tool_call.function.{name}"] = value
    return found


CONVENTIONS = {"genai": genai, "openinference": openinference}


def call(call_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": tool, "arguments": json.dumps(arguments)}}


def says(text: str = "", *calls: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def conversation(rng: random.Random, name: str) -> Iterator[tuple[list[Message], Message]]:
    """Requests and replies of a loop; further turns of the user, parallel calls, system messages in between."""
    messages: list[Message] = [{"role": "system", "content": "S"}] if rng.random() < 0.5 else []
    messages.append({"role": "user", "content": f"{name}?"})
    for turn in range(rng.randint(1, 5)):
        calls = [
            call(f"{name}-{turn}-{k}", rng.choice(("find", "pay")), id=k, of=name) for k in range(rng.randint(0, 3))
        ]
        reply = says(rng.choice(("", "I look.")) if calls else f"Said {turn}.", *calls)
        yield list(messages), reply
        messages.append(reply)
        messages += [{"role": "tool", "tool_call_id": one["id"], "content": f"got {turn}"} for one in calls]
        if not calls:
            messages.append({"role": "user", "content": f"and {turn}?"})


def recorded(folder: Path) -> list[list[dict[str, Any]]]:
    """The events of each file, without times, ids and the run's name; arguments in one spelling."""
    hidden = ("run", "at", "id", "task_id", "tokens_in", "tokens_out")
    found = []
    for path in folder.glob("*.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for event in events:
            with suppress(TypeError, KeyError, ValueError):
                event["arguments"] = json.loads(event["arguments"])
        found.append([{name: value for name, value in event.items() if name not in hidden} for event in events])
    return sorted(found, key=str)


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


def lines(folder: Path) -> list[tuple[Any, ...]]:
    """(agent path, kind, text or tool, whether it failed) of all events of the one file."""
    (events,) = recorded(folder)
    return [(e["agent_path"], e["kind"], e.get("tool") or e.get("text", ""), e.get("is_error")) for e in events]


ASKED: list[Message] = [{"role": "user", "content": "Where?"}]


def answered(reply: Message, *results: str) -> list[Message]:
    """The messages of the next call."""
    made = zip(reply["tool_calls"], results, strict=True)
    return [*ASKED, reply, *({"role": "tool", "tool_call_id": one["id"], "content": text} for one, text in made)]


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


def test_missing_contents_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All of them, the messages, or the texts; not where a call has failed, or where there was none."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    whole = openinference(ASKED, says("x"))
    texts = whole | {key: "__REDACTED__" for key in whole if key.endswith("content")}
    replies = {key: value for key, value in whole.items() if "output" not in key} | {"output.value": "__REDACTED__"}
    asked = {key: value for key, value in whole.items() if "input" not in key}
    bare = {"gen_ai.operation.name": "chat"}
    caplog.set_level(logging.WARNING, "prefixguard")
    for hidden in (bare | {"gen_ai.usage.input_tokens": 7}, texts, replies, asked):
        for _ in range(2):
            tracer.end(tracer.begin("chat", **hidden))
    tracer.end(tracer.begin("chat", **bare, **{"gen_ai.usage.input_tokens": 7}), "429")
    tracer.end(tracer.begin("prepares a call", **{"openinference.span.kind": "LLM", "input.value": "{}"}))
    assert guard.open_runs == 0
    said = "Spans of model calls do not hold their messages, so they cannot be watched: "
    assert [record.message for record in caplog.records] == [
        f"{said}set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY before the instrumentation is loaded.",
        f"{said}leave OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the switches of their messages and "
        "texts unset.",
    ]
    assert guard.counters == {"spans_without_content": 8}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_reply_that_a_span_lacks_stands_in_the_next_messages(name: str, tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    first = says("", call("c1", "find"))
    lacks = {key: value for key, value in CONVENTIONS[name](ASKED, first).items() if "output" not in key}
    tracer.end(tracer.begin("chat", root), **lacks)
    tracer.end(tracer.begin("chat", root), **CONVENTIONS[name](answered(first, "one"), says("Done.")))
    tracer.end(root)
    assert [line[1:3] for line in lines(tmp_path)] == [
        ("task", "Where?"), ("called", "find"), ("returned", "one"), ("said", "Done."), ("ended", ""),
    ]  # fmt: skip
    assert guard.counters == {"events": 5, "late_results": 1, "spans_without_reply": 1}


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


def test_lost_attributes_are_said_and_found_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An SDK drops the oldest attributes: a reply that is lost stands in the next call's messages."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    first, second = says("", call("c1", "find")), says("", call("c2", "pay"))
    tracer.end(tracer.begin("chat", root), **openinference(ASKED, first))
    for messages, reply, kept in (
        (answered(first, "one"), second, "llm.input_messages.2"),
        ([*answered(first, "one"), second, answered(second, "two")[-1]], says("Done."), "llm."),
    ):
        span = tracer.begin("chat", root)
        cut = {k: v for k, v in openinference(messages, reply).items() if k.startswith((kept, "openinference"))}
        span.dropped_attributes = kept != "llm."
        if kept != "llm.":
            cut |= {"llm.input_messages.1.message.role": "assistant"}
        tracer.end(span, **cut)
    tracer.end(root)
    assert [line[1:3] for line in lines(tmp_path)] == [
        ("task", "Where?"), ("called", "find"), ("returned", "one"), ("called", "pay"), ("returned", "two"),
        ("said", "Done."), ("ended", ""),
    ]  # fmt: skip
    assert guard.counters["spans_cut"] == 1
    assert [record.message for record in caplog.records] == [
        "Spans have lost messages to the limit of attributes: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000, or give the "
        "TracerProvider such limits."
    ]


def test_two_instrumentations_of_one_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Spans of two traces, one within the other in time: the first that ends is taken, and it is said once."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root = tracer.begin("graph")
    for messages, reply in conversation(random.Random(3), "c"):
        outer, inner = tracer.begin("llm", root), tracer.begin("chat")
        inner.instrumentation_scope = SimpleNamespace(name="of the client")
        tracer.end(inner, **genai(messages, reply))
        tracer.end(outer, **openinference(messages, reply))
    tracer.end(root)
    assert guard.open_runs == 1 and guard.counters["doubled_model_calls"] > 1
    assert [record.message for record in caplog.records] == [
        "Two instrumentations tell of the same model calls, and the one that ends first is taken: leave one of them "
        "out, the client's where a framework has its own."
    ]


ODD: tuple[Any, ...] = (
    None,
    7,
    "",
    "{",
    b"\xff",
    [],
    {},
    [None],
    '[{"role": 1, "parts": [3]}]',
    object(),
    "\ud800",
    (1, "a"),
)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_damaged_spans_disturb_nobody(name: str, tmp_path: Path) -> None:
    """Spans of another release: whatever a span lacks, nothing reaches the host, and a sound run beside is whole."""
    rng = random.Random(11)
    guard, alone = Guard.recording(tmp_path / "both"), Guard.recording(tmp_path / "alone")
    tracer, only = Tracer(guard), Tracer(alone)
    sound = [(t, t.begin("answer", service="sound")) for t in (tracer, only)]
    for n in range(300):
        root = tracer.begin("answer") if rng.random() < 0.5 else None
        for messages, reply in conversation(rng, f"d{n}"):
            attributes = CONVENTIONS[name](messages, reply) | {"tool.name": "find", "input.value": "{}"}
            for key in rng.sample(sorted(attributes), min(3, len(attributes))):
                attributes[key] = rng.choice(ODD)
            span = tracer.begin("chat", root)
            for field in rng.sample(sorted(vars(span)), 2):
                setattr(span, field, rng.choice(ODD))
            try:
                tracer.end(span, **attributes)
            except TypeError:  # the attributes themselves are damaged
                tracer.watcher.ends(span)
        if root is not None and rng.random() < 0.5:
            tracer.end(root)
    for messages, reply in conversation(random.Random(5), "sound"):
        for own, root in sound:
            own.end(own.begin("chat", root), **CONVENTIONS[name](messages, reply))
    for own, root in sound:
        own.end(root)
        own.watcher.close()
    assert recorded(tmp_path / "alone")[0] in recorded(tmp_path / "both")


def test_the_host_asks_whether_to_stop(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor, on_alarm="stop")
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    run_id = f"{root.context.trace_id:032x}"
    messages = list(ASKED)
    for n in range(6):
        reply = says("", call(f"c{n}", "find"))
        tracer.end(tracer.begin("chat", root), **genai(messages, reply))
        messages += [reply, {"role": "tool", "tool_call_id": f"c{n}", "content": "error: not found"}]
    assert (guard.stopped(run_id) or "").startswith(f"run {run_id}, step ")
    assert guard.stopped("another") is None


def test_a_host_asks_by_the_id_that_it_gave(events_monitor: Monitor, tmp_path: Path) -> None:
    guard = Guard(events_monitor, on_alarm="stop", record=tmp_path)
    for _ in range(2):
        with guard.run("x", run_id="mine") as run:
            assert guard.stopped("mine") is None
            for n in range(6):
                run.returned(run.called("find", call_id=f"c{n}"), "error: not found", is_error=True)
            assert guard.stopped("mine") == run.stopped is not None


def test_spans_that_never_end_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.integrations.opentelemetry._MOST_SPANS", 10)
    monkeypatch.setattr("prefixguard.integrations.opentelemetry._MOST_LOOSE", 10)
    tracer = Tracer(Guard.recording(tmp_path))
    for n in range(50):
        tracer.end(tracer.begin("chat", tracer.begin("never over")), **genai(ASKED, says("Yes.")))
        tracer.end(tracer.begin("chat"), **genai([{"role": "user", "content": f"{n}"}], says("Yes.")))
    assert len(tracer.watcher._nodes) <= 10 and len(tracer.watcher._loose) <= 10
