"""Sinks that post: what a receiver on loopback gets, and what becomes of receivers that answer badly, late or not."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from http_receiver import HttpReceiver, Play, answer, close_half_way, hang, trickle
from watched import BLAMED, SECRET, fail, watched

from prefixguard import LangfuseSink, PhoenixSink, WebhookSink
from prefixguard.errors import ConfigError, OutputError
from prefixguard.integrations import Guard
from prefixguard.integrations.sinks import Sink, SpanIds, outgoing
from prefixguard.integrations.sinks.queue import UndeliveredError
from prefixguard.runtime import Monitor

SPAN = SpanIds("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1)
TEXT, WORD = {"type": "string"}, {"type": "string", "minLength": 1}


def closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """A schema of an object that has these members, may have those, and no others."""
    members = {"properties": {**required, **optional}, "required": list(required)}
    return {"type": "object", "additionalProperties": False, **members}


#: As the specifications have them: CloudEvents 1.0.2; Langfuse, ScoreEvent; Phoenix, AnnotateSpansRequestBody.
CLOUD_EVENT = closed(
    {"specversion": {"const": "1.0"}, "id": WORD, "source": WORD, "type": WORD},
    subject=WORD, time={"type": "string", "format": "date-time"}, datacontenttype={"const": "application/json"},
    data={"type": "object"}, traceparent={"pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"},
)  # fmt: skip
SCORE = closed(
    {"name": TEXT, "value": {"type": ["number", "string"]}}, id=TEXT, traceId={"pattern": "^[0-9a-f]{32}$"},
    observationId={"pattern": "^[0-9a-f]{16}$"}, comment=TEXT, metadata={"type": "object"},
    environment={"pattern": "^(?!langfuse)[a-z0-9_-]+$"}, dataType={"enum": ["NUMERIC", "BOOLEAN", "CATEGORICAL"]},
)  # fmt: skip
INGESTION = closed({"batch": {"type": "array", "items": closed(
    {"id": WORD, "timestamp": {"const": "2023-11-14T22:13:20.250Z"}, "type": {"const": "score-create"}, "body": SCORE}
)}})  # fmt: skip
RESULT = closed(
    {}, label={"type": ["string", "null"]}, score={"type": ["number", "null"]}, explanation={"type": ["string", "null"]}
)
ANNOTATIONS = closed({"data": {"type": "array", "items": closed(
    {"span_id": {"pattern": "^[0-9a-f]{16}$"}, "name": TEXT, "annotator_kind": {"enum": ["LLM", "CODE", "HUMAN"]}},
    result=RESULT, metadata={"type": "object"}, identifier=TEXT,
)}})  # fmt: skip


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between retries are noted, not waited for; those of sinks that other tests left behind are neither."""
    waits: list[float] = []
    mine, sleep = threading.get_ident(), time.sleep
    monkeypatch.setattr(
        outgoing, "sleep", lambda wait: waits.append(wait) if threading.get_ident() == mine else sleep(wait)
    )
    return waits


def test_webhook(events_monitor: Monitor) -> None:
    """An alarm is one CloudEvent, with the headers asked for and without the secret that a reason quotes."""
    with HttpReceiver(answer(204, b"")) as receiver, HttpReceiver(answer(204, b"")) as another:
        all_of_it = WebhookSink(another.url, all_readings=True)
        hook = WebhookSink(f"{receiver.url}/hook?key=a1", headers={"Authorization": "Bearer very-secret-value"})
        with (
            Guard(events_monitor, on_alarm="nudge", sinks=[hook, all_of_it]) as guard,
            guard.run("x", run_id="r7") as run,
        ):
            fail(run)
        hook.emit(watched(span=SPAN, run="\ud800\n"))
        every = WebhookSink(receiver.url, all_readings=True)
        every.emit(watched(risk=None))
        hook.emit(watched(is_alarm=False, **BLAMED))
    alarm, by_hand, unknown, blamed = events = [json.loads(one.body) for one in receiver.received]
    for event in events:
        jsonschema.validate(event, CLOUD_EVENT, format_checker=jsonschema.FormatChecker())
        assert SECRET[:12] not in str(event)
    one = receiver.received[0]
    assert (one.path, one.headers["authorization"]) == ("/hook?key=a1", "Bearer very-secret-value")
    assert one.headers["content-type"] == "application/cloudevents+json"
    assert (alarm["type"], alarm["subject"]) == ("prefixguard.alarm", "r7")
    assert (alarm["data"]["step"], alarm["data"]["acted"], alarm["data"]["is_alarm"]) == (2, "nudge", True)
    sinks = {name: n for name, n in guard.counters.items() if name.startswith("sinks.")}
    assert sinks == {"sinks.emitted.WebhookSink": 1, "sinks.emitted.WebhookSink-2": 4}  # what a sink was to send
    assert by_hand["data"]["reasons"] == ["word `<masked key 1>` in the result", "errors: 3"]
    assert (by_hand["traceparent"], by_hand["subject"]) == (f"00-{SPAN.trace_id}-{SPAN.span_id}-01", r"\ud800\n")
    assert by_hand["time"] == "2023-11-14T22:13:20.250000+00:00"
    assert (unknown["type"], unknown["data"]["unknown_reason"]) == ("prefixguard.reading", "cannot read <masked key 1>")
    assert (blamed["type"], blamed["data"]["verdict"]["step"], blamed["data"]["verdict_about"]) == (
        "prefixguard.verdict", 2, 3
    )  # fmt: skip
    assert len({event["id"] for event in events}) == 4


def test_langfuse() -> None:
    said = b'{"successes": [], "errors": [{"id": "1", "status": 400, "message": "no such project"}]}'
    plays = answer(207, b'{"successes": [], "errors": []}'), answer(207, said), answer(200, b"<html>")
    with HttpReceiver(*plays) as receiver:
        sink = LangfuseSink(receiver.url, public_key="pk-1", secret_key="sk-2", environment="prod")
        batch = [watched(span=SPAN), watched(step=4, risk=None, span=SPAN), watched(span=SPAN, **BLAMED)]
        sink.emit_all(batch)
        with pytest.raises(UndeliveredError, match="no such project") as refused:
            sink.emit_all([*batch, watched()])
        assert refused.value.readings == 2  # one refused, one without a span
        with pytest.raises(UndeliveredError, match="not that of Langfuse's ingestion: check the URL"):
            sink.emit(watched(span=SPAN))
        with pytest.raises(UndeliveredError, match="no span of OpenTelemetry was current when the reading was made"):
            sink.emit(watched())
    first, again, _ = bodies = [json.loads(one.body) for one in receiver.received]
    for body in bodies:
        jsonschema.validate(body, INGESTION)
        assert SECRET[:12] not in str(body)
    one = receiver.received[0]
    assert (one.path, one.headers["content-type"]) == ("/api/public/ingestion", "application/json")
    assert one.headers["authorization"] == "Basic " + base64.b64encode(b"pk-1:sk-2").decode()
    risk, unknown, blamed = (event["body"] for event in first["batch"])
    assert (blamed["name"], blamed["value"], blamed["dataType"]) == ("auditor_verdict", "alarm", "CATEGORICAL")
    assert blamed["comment"] == "the auditor blames step 2 by clerk: It shows <masked key 1>."
    assert (risk["name"], risk["value"], risk["dataType"]) == ("failure_risk", 0.75, "NUMERIC")
    assert (unknown["name"], unknown["value"], unknown["dataType"]) == ("failure_risk_unknown", 1, "BOOLEAN")
    assert (risk["traceId"], risk["observationId"], risk["environment"]) == (SPAN.trace_id, SPAN.span_id, "prod")
    assert risk["comment"] == "word `<masked key 1>` in the result; errors: 3" and risk["metadata"]["run"] == "r1"
    assert [e["body"]["id"] for e in first["batch"]] == [e["body"]["id"] for e in again["batch"]], "replaces itself"
    assert not {e["id"] for e in first["batch"]} & {e["id"] for e in again["batch"]}, "an event comes once"


def test_phoenix() -> None:
    with HttpReceiver(answer(200, b'{"data": []}')) as receiver:
        sink = PhoenixSink(f"{receiver.url}/s/space/", api_key="phx-key")
        sink.emit_all([watched(span=SPAN), watched(risk=None, span=SPAN), watched(span=SPAN, **BLAMED)])
    (one,) = receiver.received
    body = json.loads(one.body)
    jsonschema.validate(body, ANNOTATIONS)
    assert (one.path, one.headers["authorization"]) == ("/s/space/v1/span_annotations", "Bearer phx-key")
    risk, unknown, blamed = body["data"]
    assert (blamed["name"], blamed["result"]["label"]) == ("auditor_verdict", "alarm")
    assert blamed["identifier"] == "prefixguard/r1/main/3/verdict"
    assert (risk["span_id"], risk["annotator_kind"], risk["name"]) == (SPAN.span_id, "CODE", "failure_risk")
    why = "word `<masked key 1>` in the result; errors: 3"
    assert risk["result"] == {"label": "ALARM", "score": 0.75, "explanation": why}
    assert (risk["identifier"], unknown["identifier"]) == ("prefixguard/r1/main/3", "prefixguard/r1/main/3/unknown")
    assert unknown["result"]["score"] is None


@pytest.mark.parametrize(
    ("plays", "said", "sent"),
    [
        ([answer(500), answer(503, Retry_After="3"), answer(200)], None, 3),
        ([close_half_way, answer(204, b"")], None, 2),
        ([answer(500, b"down: Bearer very-secret-value")], r"answered 500: down: <masked key>$", 3),
        ([answer(401)], "answered 401. Check the key or the header", 1),
        ([answer(302, Location="http://a:pw@b.example/x?key=1")], "to http://b.example/x. Redirects are not", 1),
        ([close_half_way], "BadStatusLine", 3),
        ([hang], "TimeoutError: ", 3),
        ([trickle], "TimeoutError: no whole answer within 0.3 s", 3),
    ],
)
def test_receivers_that_answer_badly(plays: list[Play], said: str | None, sent: int, no_waits: list[float]) -> None:
    """What may pass is tried again, with waits that double; what does not is said without the secrets."""
    with HttpReceiver(*plays) as receiver:
        url = f"{receiver.url}/hook?key=very-secret"
        sink = WebhookSink(url, headers={"Authorization": "Bearer very-secret-value"}, timeout=0.3, retries=2)
        began = time.monotonic()
        if said is None:
            sink.emit(watched())
        else:
            with pytest.raises(OutputError, match=said) as raised:
                sink.emit(watched())
            assert str(raised.value).startswith(f"{receiver.url}/hook: ") and "very-secret" not in str(raised.value)
        assert time.monotonic() - began < 10
    assert len(receiver.received) == sent
    assert len({json.loads(one.body)["id"] for one in receiver.received}) == 1
    assert len(no_waits) == sent - 1 and all(wait <= 10 for wait in no_waits)
    if len(plays) == 3:
        assert 0.4 <= no_waits[0] <= 0.6 and no_waits[1] == 3.0


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    refused: list[tuple[Callable[[], Sink], str]] = [
        (lambda: WebhookSink("http://example.org/hook"), "unencrypted. Use https; or say allow_http=True"),
        (lambda: WebhookSink("ftp://example.org"), "begins with https:// and names a server"),
        (lambda: WebhookSink("https://[::1"), "is none"),
        (lambda: WebhookSink("https://me:pw@example.org"), r"'https://example.org' holds a name or a password"),
        (lambda: WebhookSink("https://example.org", headers={"X-Key": "secret\r\nX: y"}), "'X-Key': names and"),
        (lambda: WebhookSink("https://example.org", timeout=0), "timeout is 0 and retries 3"),
        (lambda: WebhookSink("https://example.org", retries=11), "from 0 to 10"),
        (lambda: LangfuseSink("https://example.org"), "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or give them"),
        (lambda: PhoenixSink("http://localhost:6006", name="note"), "give another one"),
    ]
    for make, sentence in refused:
        with pytest.raises(ConfigError, match=sentence) as raised:
            make()
        assert "secret\r" not in str(raised.value) and "pw" not in str(raised.value)
    for fine in ("http://example.org", "http://[::1]:9/x"):
        WebhookSink(fine, allow_http=True)


def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(10)
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pw@127.0.0.1:{proxy.getsockname()[1]}")
        sink = WebhookSink("https://hooks.example/x", timeout=0.5, retries=0)
        with pytest.raises(OutputError, match=r"https://hooks.example/x: "):
            sink.emit(watched())
        asked, _ = proxy.accept()
        with asked:
            said = asked.recv(4096).decode()
    assert said.startswith("CONNECT hooks.example:443 HTTP/1.")
    assert f"Basic {base64.b64encode(b'me:pw').decode()}" in said
