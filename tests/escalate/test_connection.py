"""What servers send: read within limits, over real HTTP where events are taken apart, or refused in a sentence."""

from __future__ import annotations

import asyncio
import json
import math
import tracemalloc
from typing import Any

import pytest
from model_server import Play, chunk, model_server

from prefixguard.escalate import connection
from prefixguard.escalate.circuit import NoReplyFault
from prefixguard.escalate.connection import Connection, ReplyReader, RequestFault, retry_seconds
from prefixguard.escalate.endpoint import Endpoint, Reply

EVENTS = "text/event-stream; charset=utf-8"


def event(**choice: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


def document(message: Any, **choice: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop", **choice}]}).encode()


def sends(kind: str, *chunks: bytes) -> Play:
    """Answers with these bytes, one chunk after another."""

    def play(exchange: Any) -> None:
        exchange.begin(kind)
        for data in chunks:
            exchange.write(data)

    return play


async def requested(url: str, seconds: float = 20.0) -> Reply:
    made = Connection(Endpoint("m", url), "none")
    try:
        return await made.request({"model": "m", "messages": []}, seconds)
    finally:
        await made.aclose()


def received(kind: str, *chunks: bytes) -> Reply:
    """What is read of a server's answer of these bytes."""
    with model_server(sends(kind, *chunks)) as server:
        return asyncio.run(requested(server.url))


def added(part: str, *documents: Any) -> Reply:
    reader = ReplyReader()
    for one in documents:
        reader.take(one, part)
    return reader.reply()


def uncounted(text: str = "", finish: str = "") -> Reply:
    return Reply(text, finish, "", 0, 0, True, 0.0, 1)


def piece(**choice: Any) -> dict[str, Any]:
    return {"choices": [choice]}


def tokens(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": value, "top_logprobs": []} for token, value in pairs]}


STREAM = b"".join(
    [
        b": hello\n\n",
        event(delta={"role": "assistant", "content": ""}),
        event(delta={"reasoning_content": "Why né?"}, logprobs=None),
        event(delta={"content": "ja "}, logprobs=tokens(("ja", -0.5), (" ", 0))),
        b"event: message\r\n",
        event(delta={"content": "né"}, logprobs=tokens(("né", -1.25))).replace(b"\n", b"\r\n"),
        event(delta={}, finish_reason="stop"),
        b'data: {"choices": [], "model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}\n\n',
        b"data: [DONE]\n\n",
        event(delta={"content": " after the end"}),
    ]
)
TOKENS = (("ja", -0.5), (" ", 0.0), ("né", -1.25))
SAID = Reply("ja né", "stop", "", 7, 3, False, 0.0, 1, "m", reasoning="Why né?", logprobs=TOKENS)


@pytest.mark.parametrize("size", [len(STREAM), 97, 11])
def test_however_a_stream_is_cut_it_reads_alike(size: int) -> None:
    assert received(EVENTS, *(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == SAID


def test_where_events_end_is_seen_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_EVENT", 200)
    for end in (b"\n", b"\r\n"):
        lines = [event(delta={"content": "x"}).rstrip() + end, end] * 20
        assert received(EVENTS, *lines).text == "x" * 20


def test_a_stream_that_does_not_call_itself_one_is_read() -> None:
    assert received("text/plain", STREAM[:90], STREAM[90:]) == SAID


def test_a_document_where_a_stream_was_asked_for_is_read() -> None:
    data = document({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 7]}, finish_reason="x")
    assert received("application/json", data[:9], data[9:]) == uncounted("ab", "x")


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "b"}, "b"),
        ({"reasoning": "a", "reasoning_content": "a"}, "a"),
        ({"reasoning_content": None, "reasoning": "c"}, "c"),
        ({"reasoning": {"effort": "high"}}, ""),
        ({"reasoning": ["a"]}, ""),
        ({}, ""),
    ],
)
def test_reasoning_in_either_field_whole_or_streamed(message: dict[str, Any], thought: str) -> None:
    assert added("message", piece(message={"content": "x", **message})).reasoning == thought
    assert added("delta", piece(delta=message), piece(delta=message)).reasoning == thought * 2


def test_reasoning_is_bounded_and_the_answer_after_it_is_kept() -> None:
    long = piece(delta={"reasoning": "r" * 100_000})
    body = added("delta", *[long] * 9, piece(delta={"content": "x"}, finish_reason="stop"))
    assert (len(body.reasoning), body.text, body.finish) == (connection.MAX_REPLY, "x", "stop")


@pytest.mark.parametrize(
    "odd",
    [
        ("a", 0.1), ("a", math.nan), ("a", math.inf), ("a", -math.inf), ("a", True), ("a", "-1"), ("a", None),
        (None, -1.0), (7, -1.0), ("a", -(10**400)), ("a", [-1.0]),
    ],
)  # fmt: skip
def test_a_list_with_an_odd_token_is_no_list(odd: tuple[Any, Any]) -> None:
    body = added("message", piece(message={"content": "xy"}, logprobs=tokens(("x", -1.0), odd, ("y", -1.0))))
    assert (body.text, body.logprobs) == ("xy", ())
    streamed = added("delta", piece(logprobs=tokens(odd)), piece(logprobs=tokens(("y", -1.0))))
    assert streamed.logprobs == ()


@pytest.mark.parametrize("odd", [None, [], 7, "x", {"content": None}, {"content": {}}, {"tokens": ["x"]}])
def test_no_list_is_no_fault(odd: Any) -> None:
    assert added("message", piece(message={"content": "x"}, logprobs=odd)) == uncounted("x")


def test_tokens_are_bounded() -> None:
    many = piece(logprobs=tokens(*[("x", -0.5)] * 9000))
    assert len(added("delta", *[many] * 5).logprobs) == connection.MAX_TOKENS
    long = added("delta", piece(logprobs=tokens(("y" * 5000, -0.5))))
    assert long.logprobs == (("y" * connection.MAX_TOKEN, -0.5),)


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    body = received(EVENTS, *[event(delta={"content": "x" * 100_000})] * 4)
    assert (len(body.text), body.finish) == (connection.MAX_REPLY, "limit")


@pytest.mark.parametrize(
    ("kind", "name", "data"),
    [
        ("application/json", "MAX_DOCUMENT", b"x"),
        (EVENTS, "MAX_STREAM", b": ping\n\n"),
        (EVENTS, "MAX_EVENT", b"data: x"),
        (EVENTS, "MAX_EVENT", b"data: x\n"),
    ],
)
def test_what_does_not_end_is_refused_at_its_bound(
    kind: str, name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, name, 1 << 20)

    def play(exchange: Any) -> None:
        exchange.begin(kind)
        while not exchange.closing.is_set():
            exchange.write(data * (65_536 // len(data)))

    received("application/json", document({"content": "x"}))  # what is imported once is none of it
    tracemalloc.start()
    try:
        with model_server(play) as server, pytest.raises(RequestFault, match="more than 1 MiB") as caught:
            asyncio.run(requested(server.url, 60.0))
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.fault is NoReplyFault.UNREADABLE


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("text/html", b"<html>Welcome</html>", "text/html that is no chat completion: '<html>Welcome</html>'"),
        ("", b"", "an unnamed type that is no chat completion: nothing"),
        ("application/json", b"[" * 100_000, "no chat completion"),
        ("application/json", b"[1]", "no chat completion"),
        ("application/json", b"\xff\xfe\x00", "no chat completion"),
        (EVENTS, b"data: {broken\n\n: x\n\n", "an event that is no JSON"),
        (EVENTS, b"data: \xff\xfe\n\n", "an event that is no JSON"),
        (EVENTS, b"data: " + b"[" * 100_000 + b"\n\n", "an event that is no JSON"),
        (EVENTS, b"", "no chat completion in it"),
        (EVENTS, b"data: 7\n\ndata: [DONE]\n\n", "no chat completion in it"),
    ],
)
def test_garbage_is_refused_in_a_sentence(kind: str, data: bytes, said: str) -> None:
    with pytest.raises(RequestFault) as caught:
        received(kind, data)
    assert said in str(caught.value) and caught.value.fault is NoReplyFault.UNREADABLE


@pytest.mark.parametrize(
    "odd",
    [
        {}, {"choices": None}, {"choices": []}, {"choices": [7]}, {"choices": [{"message": 7}]},
        {"choices": [{"message": {"content": 7}}]}, {"choices": [{"message": {"content": [None, {"text": 7}, [1]]}}]},
        {"choices": [{"message": {}, "finish_reason": 7}], "usage": {"prompt_tokens": True, "completion_tokens": -1}},
    ],
)  # fmt: skip
def test_fields_of_any_type_are_an_empty_reply(odd: dict[str, Any]) -> None:
    assert added("message", odd) == added("delta", odd) == uncounted()
    assert received(EVENTS, b"data: " + json.dumps(odd).encode() + b"\n\n") == uncounted()


def test_a_lone_surrogate_is_no_text() -> None:
    body = received(EVENTS, b'data: {"choices": [{"delta": {"content": "\\ud83d", "reasoning": "\\udc00"}}]}\n\n')
    assert (body.text, body.reasoning) == ("?", "?")


@pytest.mark.parametrize(
    ("error", "status", "message", "passes"),
    [
        ({"message": "busy", "code": 503}, 503, "busy", True),
        ({"message": "busy", "code": "429"}, 429, "busy", True),
        ({"type": "overloaded"}, 0, "overloaded", False),
    ],
)
def test_an_error_inside_an_answer(error: Any, status: int, message: str, passes: bool) -> None:
    for kind, data in (("application/json", b"%b"), (EVENTS, chunk(delta={"content": "a"}) + b"data: %b\n\n")):
        with pytest.raises(RequestFault) as caught:
            received(kind, data % json.dumps({"error": error}).encode())
        assert (caught.value.status, caught.value.message, caught.value.passes) == (status, message, passes)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("2.5", 2.5), ("-1", None), ("nan", None), ("inf", None), ("99999", None), ("soon", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("Wed, 99 Oct 2015 07:28:00 GMT", None), ("", None)],
)  # fmt: skip
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_seconds(header) == seconds
