"""The endpoint on loopback: what a client of chat completions gets, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

import pytest

from prefixguard.escalate import AsyncClient, Endpoint
from prefixguard.factory.model_server import serve


def echo(messages, most: int, temperature: float) -> tuple[str, bool, int, int]:
    if messages[-1]["content"] == "break":
        raise ValueError("too long")
    return f"{messages[-1]['content']} {most} {temperature}", most > 1, 3, 2


def test_our_own_client_is_answered() -> None:
    with serve(echo, "mine") as url:
        client = AsyncClient(Endpoint("mine", url, max_reply_tokens=9, temperature=0.5))

        async def ask():
            try:
                return await client.ask([{"role": "user", "content": "hello"}])
            finally:
                await client.aclose()

        reply = asyncio.run(ask())
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out) == ("hello 9 0.5", "stop", 3, 2)


def post(url: str, body: bytes) -> tuple[int, dict]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/embeddings", {}, 404, "ask /v1/chat/completions."),
        ("/chat/completions", {}, 400, "a JSON object with messages, each with role and content, is needed."),
        ("/chat/completions", [1], 400, "a JSON object with messages"),
        ("/chat/completions", {"messages": [{"role": "user", "content": "x"}], "stream": True}, 400, "not streamed"),
        ("/chat/completions", {"messages": [{"role": "user", "content": "break"}]}, 400, "(ValueError: too long)"),
    ],
)
def test_what_it_cannot_do_it_says(path: str, body, status: int, sentence: str) -> None:
    with serve(echo, "mine") as url:
        assert url.startswith("http://127.0.0.1:")
        answered, said = post(url + path, json.dumps(body).encode())
    assert answered == status and sentence in said["error"]["message"]


def test_a_reply_that_was_cut_says_so() -> None:
    with serve(echo, "mine") as url:
        asked = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        _, said = post(f"{url}/chat/completions", json.dumps(asked).encode())
        with urllib.request.urlopen(f"{url}/models") as listed:
            assert json.load(listed)["data"][0]["id"] == "mine"
    assert said["choices"][0]["finish_reason"] == "length"
