"""Clients of models and tools: every way to ask is watched, and a call that two of them tell of is one call."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from http_receiver import HttpReceiver, answer
from openai import AsyncOpenAI, OpenAI

from prefixguard import parse
from prefixguard.integrations import Guard

ASKED: Any = [{"role": "user", "content": "Where?"}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}]
USED = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
BASE = {"id": "x", "created": 1, "model": "m"}
CHAT = {
    **BASE, "object": "chat.completion", "usage": USED,
    "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": CALLS}, "finish_reason": "tool_calls"}],
}  # fmt: skip
CHUNK = {
    **BASE, "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": {"tool_calls": [{"index": 0, **CALLS[0]}]}, "finish_reason": "tool_calls"}
    ],
}  # fmt: skip
RESPONSE = {
    **BASE, "object": "response", "created_at": 1, "status": "completed", "tools": [], "tool_choice": "auto",
    "parallel_tool_calls": True,
    "output": [{"type": "function_call", "id": "f", "call_id": "c1", "name": "find", "arguments": '{"a": 1}'}],
}  # fmt: skip

Ask = Callable[[Any], Any]


def streamed_body(client: Any) -> Any:
    with client.chat.completions.with_streaming_response.create(model="m", messages=ASKED) as response:
        return response.parse()


def read_one_by_one(client: Any) -> None:
    chunks = client.chat.completions.create(model="m", messages=ASKED, stream=True)
    next(chunks)
    assert next(chunks, None) is None


def raw_stream(client: Any) -> None:
    response = client.chat.completions.with_raw_response.create(model="m", messages=ASKED, stream=True)
    assert response.parse() is response.parse()
    list(response.parse())


def helper_stream(client: Any) -> None:
    with client.chat.completions.stream(model="m", messages=ASKED) as stream:
        list(stream)


CHATS: dict[str, Ask] = {
    "raw": lambda c: c.chat.completions.with_raw_response.create(model="m", messages=ASKED).parse(),
    "raw of the client": lambda c: c.with_raw_response.chat.completions.create(model="m", messages=ASKED).parse(),
    "parsed twice": lambda c: [
        response.parse()
        for response in [c.chat.completions.with_raw_response.create(model="m", messages=ASKED)]
        for _ in "ab"
    ],
    "streamed body": streamed_body,
    "with_options": lambda c: c.with_options(timeout=3).chat.completions.create(model="m", messages=ASKED),
    "copy of a copy": lambda c: c.copy().copy().chat.completions.create(model="m", messages=ASKED),
    "raw of a copy": lambda c: c.copy().chat.completions.with_raw_response.create(model="m", messages=ASKED).parse(),
}
RESPONSES: dict[str, Ask] = {
    "raw": lambda c: c.responses.with_raw_response.create(model="m", input="Where?").parse(),
    "with_options": lambda c: c.with_options(timeout=3).responses.create(model="m", input="Where?"),
}
STREAMS: dict[str, Ask] = {"next": read_one_by_one, "raw": raw_stream, "helper": helper_stream}
WAYS = [
    pytest.param(ask, body, id=f"{kind}, {name}")
    for kind, body, asks in (("chat", CHAT, CHATS), ("stream", CHUNK, STREAMS), ("responses", RESPONSE, RESPONSES))
    for name, ask in asks.items()
]  # fmt: skip


def served(body: dict[str, Any]) -> HttpReceiver:
    if body is CHUNK:
        return HttpReceiver(
            answer(200, f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n".encode(), Content_Type="text/event-stream")
        )
    return HttpReceiver(answer(200, json.dumps(body).encode(), Content_Type="application/json"))


def calls(folder: Path) -> list[tuple[str, str, str]]:
    return [(one.tool, one.arguments, one.result) for run in parse(folder, "events") for one in run.records]


@pytest.mark.parametrize(("ask", "body"), WAYS)
def test_every_way_to_ask_is_watched(ask: Ask, body: dict[str, Any], tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    with served(body) as receiver:
        client = guard.openai(OpenAI(base_url=receiver.url, api_key="x"))
        assert client.chat.completions.with_raw_response is not None
        guard.openai(client)
        with guard.run("Where?"):
            ask(client)
    gc.collect()
    assert calls(tmp_path) == [("find", '{"a":1}', "")]
    assert guard.counters == {"events": 3}


def test_every_async_way_to_ask_is_watched(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)

    async def ask(url: str) -> None:
        client = guard.openai(AsyncOpenAI(base_url=url, api_key="x"))
        completions = client.chat.completions
        with guard.run("raw"):
            (await completions.with_raw_response.create(model="m", messages=ASKED)).parse()
        with guard.run("copy"):
            await client.with_options(timeout=3).chat.completions.create(model="m", messages=ASKED)
        with guard.run("streamed body"):
            async with completions.with_streaming_response.create(model="m", messages=ASKED) as response:
                await response.parse()

    with served(CHAT) as receiver:
        asyncio.run(ask(receiver.url))
    with served(CHUNK) as receiver:

        async def one_by_one() -> None:
            client = guard.openai(AsyncOpenAI(base_url=receiver.url, api_key="x"))
            with guard.run("next"):
                chunks = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
                await anext(chunks)
                assert await anext(chunks, None) is None

        asyncio.run(one_by_one())
    assert [tool for tool, _, _ in calls(tmp_path)] == ["find"] * 4
    assert "streams_given_up" not in guard.counters


def test_a_raw_response_that_nobody_parses_is_counted(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    with served(CHAT) as receiver, guard.run("Where?"):
        client = guard.openai(OpenAI(base_url=receiver.url, api_key="x"))
        client.chat.completions.with_raw_response.create(model="m", messages=ASKED)
    gc.collect()
    assert guard.counters["unparsed_replies"] == 1


@pytest.mark.parametrize(
    ("asked", "made", "records"),
    [
        ([("add", '{"a":1, "b":[2]}')], [("add", {"b": [2], "a": 1})], 1),
        ([("files__add", "{}")], [("add", None)], 1),
        ([("add", '{"a": 1}')] * 2, [("add", {"a": 1})] * 2, 2),
        ([("add", '{"a": 1}')], [("add", {"a": 1})] * 2, 2),
        ([("readd", '{"a": 1}')], [("add", {"a": 1})], 2),
        ([("add_all", '{"a": 1}')], [("add", {"a": 1})], 2),
        ([("add", '{"a": 2}')], [("add", {"a": 1})], 2),
        ([("add", "not JSON")], [("add", {})], 2),
        ([], [("add", {"a": 1})], 1),
    ],
)
def test_a_call_that_the_model_asks_for_and_a_session_makes_is_one(
    asked: list[tuple[str, str]], made: list[tuple[str, Any]], records: int, tmp_path: Path
) -> None:
    wanted = [{"id": f"c{n}", "function": {"name": t, "arguments": a}} for n, (t, a) in enumerate(asked)]
    replies = iter([{"tool_calls": wanted}, {"content": "done"}])

    class Completions:
        def create(self, **_: Any) -> Any:
            return {"choices": [{"message": next(replies)}]}

    class Session:
        async def call_tool(self, name: str, arguments: Any = None) -> Any:
            return SimpleNamespace(content=[{"type": "text", "text": "got"}], is_error=False)

    guard = Guard.recording(tmp_path)
    client = guard.openai(SimpleNamespace(chat=SimpleNamespace(completions=Completions())))
    session = guard.mcp(Session())
    with guard.run("x"):
        client.chat.completions.create(messages=ASKED)
        for name, arguments in made:
            asyncio.run(session.call_tool(name, arguments))
        results = [{"role": "tool", "tool_call_id": one["id"], "content": "got"} for one in wanted]
        client.chat.completions.create(messages=[*ASKED, {"role": "assistant", "tool_calls": wanted}, *results])
    found = [(tool, result) for tool, _, result in calls(tmp_path) if tool != "respond"]
    assert len(found) == records and {result for _, result in found} == {"got"}
    assert set(guard.counters) <= {"events"}
