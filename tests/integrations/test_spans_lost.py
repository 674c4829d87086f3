"""Spans that lack something, tell it twice, or are damaged: said, found again where it can be, and never raised."""

from __future__ import annotations

import logging
import random
from pathlib import Path
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

from prefixguard.integrations import Guard


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


def test_spans_that_never_end_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.integrations.opentelemetry._MOST_SPANS", 10)
    monkeypatch.setattr("prefixguard.integrations.opentelemetry._MOST_LOOSE", 10)
    tracer = Tracer(Guard.recording(tmp_path))
    for n in range(50):
        tracer.end(tracer.begin("chat", tracer.begin("never over")), **genai(ASKED, says("Yes.")))
        tracer.end(tracer.begin("chat"), **genai([{"role": "user", "content": f"{n}"}], says("Yes.")))
    assert len(tracer.watcher._nodes) <= 10 and len(tracer.watcher._loose) <= 10


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("lost", ["no reply", "unreadable", "empty"])
def test_a_model_that_gave_no_reply_is_asked_again(name: str, lost: str, tmp_path: Path) -> None:
    """Nothing was said in the call that failed without saying so: what was said before it is told once."""
    guard = Guard.recording(tmp_path)
    tracer = Tracer(guard)
    root = tracer.begin("answer")
    first = says("Hm.", call("c1", "find"))
    tracer.end(tracer.begin("chat", root), **CONVENTIONS[name](ASKED, first))
    again = CONVENTIONS[name](answered(first, "one"), says("Done."))
    broken = {key: value for key, value in again.items() if "output" not in key}
    if lost != "no reply":
        broken["gen_ai.output.messages"] = "not JSON" if lost == "unreadable" else "[]"
    for _ in range(2):
        tracer.end(tracer.begin("chat", root), **broken)
    tracer.end(tracer.begin("chat", root), **again)
    tracer.end(root)
    assert [line[1:3] for line in lines(tmp_path)] == [
        ("task", "Where?"), ("called", "find"), ("returned", "one"), ("said", "Done."), ("ended", ""),
    ]  # fmt: skip
