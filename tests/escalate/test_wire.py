"""What servers send: read alike however it is cut, within limits, or refused in a sentence."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import EndpointError
from prefixguard.escalate import wire
from prefixguard.escalate.wire import Body, BodyReader, ServerFault, fault_from_answer, read_body

EVENTS = "text/event-stream; charset=utf-8"


def event(**choice: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


def document(message: Any, **choice: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop", **choice}]}).encode()


def pushed(kind: str, *chunks: bytes) -> Body:
    reader = BodyReader(kind)
    for chunk in chunks:
        if reader.feed(chunk):
            break
    return reader.close()


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


def test_a_stream_is_read() -> None:
    assert pushed(EVENTS, STREAM) == Body(
        text="ja né",
        finish="stop",
        model="m",
        usage=(7, 3),
        reasoning="Why né?",
        logprobs=(("ja", -0.5), (" ", 0.0), ("né", -1.25)),
    )


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_however_a_stream_is_cut_it_reads_alike(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(places)]
    assert pushed(EVENTS, *chunks) == read_body(EVENTS, [STREAM], lambda: None)


def test_the_reader_says_when_a_stream_has_ended() -> None:
    reader = BodyReader(EVENTS)
    assert not reader.feed(event(delta={"content": "a"}))
    assert reader.feed(b"data: [DONE]\n\n")
    assert reader.feed(event(delta={"content": "b"})) and reader.close().text == "a"


def test_a_stream_that_does_not_call_itself_one_is_read() -> None:
    assert pushed("text/plain", STREAM[:90], STREAM[90:]) == pushed(EVENTS, STREAM)
    assert pushed("", b"data: {", b'"choices": [{"delta": {"content": "x"}}]}').text == "x"


def test_a_document_where_a_stream_was_asked_for_is_read() -> None:
    data = document({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 7]}, finish_reason="x")
    assert pushed("application/json", data[:9], data[9:]) == Body(text="ab", finish="x")


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
    assert pushed("application/json", document({"content": "x", **message})).reasoning == thought
    assert pushed(EVENTS, event(delta=message), event(delta=message)).reasoning == thought * 2


def test_reasoning_is_bounded_and_the_answer_after_it_is_kept() -> None:
    long = event(delta={"reasoning": "r" * 100_000})
    body = pushed(EVENTS, *[long] * 9, event(delta={"content": "x"}, finish_reason="stop"))
    assert (len(body.reasoning), body.text, body.finish) == (wire.MAX_REPLY, "x", "stop")


@pytest.mark.parametrize(
    "odd",
    [
        ("a", 0.1), ("a", math.nan), ("a", math.inf), ("a", -math.inf), ("a", True), ("a", "-1"), ("a", None),
        (None, -1.0), (7, -1.0), ("a", -(10**400)), ("a", [-1.0]),
    ],
)  # fmt: skip
def test_a_list_with_an_odd_token_is_no_list(odd: tuple[Any, Any]) -> None:
    body = pushed("application/json", document({"content": "xy"}, logprobs=tokens(("x", -1.0), odd, ("y", -1.0))))
    assert (body.text, body.logprobs) == ("xy", ())
    streamed = pushed(EVENTS, event(delta={"content": "x"}, logprobs=tokens(odd)), event(logprobs=tokens(("y", -1.0))))
    assert streamed.logprobs == ()


@pytest.mark.parametrize("odd", [None, [], 7, "x", {"content": None}, {"content": {}}, {"tokens": ["x"]}])
def test_no_list_is_no_fault(odd: Any) -> None:
    assert pushed("application/json", document({"content": "x"}, logprobs=odd)) == Body(text="x", finish="stop")


def test_tokens_are_bounded() -> None:
    many = event(delta={"content": "x"}, logprobs=tokens(*[("x", -0.5)] * 9000))
    body = pushed(EVENTS, *[many] * 5)
    assert len(body.logprobs) == wire.MAX_TOKENS
    long = pushed("application/json", document({"content": "x"}, logprobs=tokens(("y" * 5000, -0.5))))
    assert long.logprobs == (("y" * wire.MAX_TOKEN, -0.5),)


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    piece = event(delta={"content": "x" * 100_000})
    reader = BodyReader(EVENTS)
    assert [reader.feed(piece) for _ in range(4)] == [False, False, True, True]
    body = reader.close()
    assert (len(body.text), body.finish) == (wire.MAX_REPLY, "limit")


@pytest.mark.parametrize("kind", ["application/json", EVENTS])
def test_what_does_not_end_is_refused_within_its_bound(kind: str) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    tracemalloc.start()
    try:
        with pytest.raises(EndpointError, match="MiB"):
            read_body(kind, endless(), lambda: None)
        assert tracemalloc.get_traced_memory()[1] < 4 * wire.MAX_DOCUMENT
    finally:
        tracemalloc.stop()


def test_comments_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_STREAM", 1000)
    with pytest.raises(EndpointError, match="not read further"):
        pushed(EVENTS, *[b": ping\n\n"] * 200)


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("text/html", b"<html>Welcome</html>", "text/html that is no chat completion: '<html>Welcome</html>'"),
        ("", b"", "an unnamed type that is no chat completion: nothing"),
        ("application/json", b"[" * 100_000, "no chat completion"),
        ("application/json", b"[1]", "no chat completion"),
        ("application/json", b"\xff\xfe\x00", "no chat completion"),
        (EVENTS, b"data: {broken\n\n: x\n\n", "no chat completion in it"),
        (EVENTS, b"", "no chat completion in it"),
    ],
)
def test_garbage_is_refused_in_a_sentence(kind: str, data: bytes, said: str) -> None:
    with pytest.raises(EndpointError) as caught:
        pushed(kind, data)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        {}, {"choices": None}, {"choices": []}, {"choices": [7]}, {"choices": [{"message": 7}]},
        {"choices": [{"message": {"content": 7}}]}, {"choices": [{"message": {"content": [None, {"text": 7}, [1]]}}]},
        {"choices": [{"message": {}, "finish_reason": 7}], "usage": {"prompt_tokens": True, "completion_tokens": -1}},
    ],
)  # fmt: skip
def test_fields_of_any_type_are_an_empty_reply(document: dict[str, Any]) -> None:
    assert pushed("application/json", json.dumps(document).encode()) == Body()


def test_a_lone_surrogate_is_no_text() -> None:
    body = pushed(EVENTS, b'data: {"choices": [{"delta": {"content": "\\ud83d", "reasoning": "\\udc00"}}]}\n\n')
    assert (body.text, body.reasoning) == ("?", "?")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        ({"message": "busy", "code": 503}, 503, "busy"),
        ({"message": "busy", "code": "429"}, 429, "busy"),
        ({"type": "overloaded"}, 0, "overloaded"),
        ("plain", 0, "plain"),
    ],
)
def test_an_error_inside_an_answer(error: Any, status: int, message: str) -> None:
    for kind, data in (("application/json", b"%b"), (EVENTS, b"data: %b\n\n")):
        with pytest.raises(ServerFault) as caught:
            pushed(kind, data % json.dumps({"error": error}).encode())
        assert (caught.value.status, caught.value.message) == (status, message)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("2.5", 2.5), ("-1", None), ("nan", None), ("inf", None), ("99999", None), ("soon", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("Wed, 99 Oct 2015 07:28:00 GMT", None), ("", None)],
)  # fmt: skip
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert fault_from_answer(503, b'{"error": {"message": "no"}}', header).retry_after == seconds
