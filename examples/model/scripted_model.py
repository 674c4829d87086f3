"""A model that plays a script, on a loopback port, and speaks OpenAI's two APIs: every example runs without a key.

    with serve({"clerk": [calls(("find_order", {"id": "A1"})), says("It is in Bern.")]}) as base_url:
        client = openai.OpenAI(base_url=base_url, api_key="none")

The agent is found by its name in the system message or instructions ("You are the clerk."); the reply by how often it
has spoken in the conversation. Behind the end of its script it says "Done.". A system of one
agent may leave its name out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = dict[str, Any]


def says(text: str) -> Reply:
    return {"text": text, "calls": []}


def calls(*wanted: tuple[str, Any], text: str = "") -> Reply:
    """wanted: name and arguments of each call of this reply."""
    return {"text": text, "calls": list(wanted)}


@contextmanager
def serve(
    scripts: Mapping[str, Sequence[Reply]], heard: Callable[[dict[str, Any]], Any] = id, *, by_requests: bool = False
) -> Iterator[str]:
    """The base URL of a server that plays these scripts, by name of the agent, until the block is left.

    heard: called with the body of every request. by_requests: a conversation is as far as it has been asked, for
    frameworks that rewrite what was said; conversations of one agent are told apart by their first message.
    """

    asked: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard(body)
            is_chat = self.path.endswith("/chat/completions")
            number = _asked(asked, body) if by_requests else _spoken(body, is_chat)
            reply = _reply(scripts, body, is_chat, number)
            made = _chat(body, reply, number) if is_chat else _response(body, reply, number)
            if body.get("stream"):
                events = _chat_chunks(made) if is_chat else _response_events(made)
                data, kind = "".join(events).encode(), "text/event-stream"
            else:
                data, kind = json.dumps(made).encode(), "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _items(body: dict[str, Any], is_chat: bool) -> list[dict[str, Any]]:
    given = body.get("messages" if is_chat else "input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _asked(asked: dict[str, int], body: dict[str, Any]) -> int:
    """How often this conversation has been asked before. What it began with may have grown since: smolagents puts an
    error of the first step behind the task, into the same message."""
    opening = "\n".join(_said(message.get("content")) for message in body["messages"][:2])
    key = max((known for known in asked if opening.startswith(known)), key=len, default=opening)
    asked[key] = asked.get(key, -1) + 1
    return asked[key]


def _said(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(part.get("text")) for part in content or ())


def _reply(scripts: Mapping[str, Sequence[Reply]], body: dict[str, Any], is_chat: bool, n: int) -> Reply:
    system = str(body.get("instructions") or "") + " ".join(
        json.dumps(item.get("content")) for item in _items(body, is_chat) if item.get("role") in ("system", "developer")
    )
    named = [name for name in scripts if name and name in system]
    script = scripts[named[0]] if named else next(iter(scripts.values()))
    return script[n] if n < len(script) else says("Done.")


def _spoken(body: dict[str, Any], is_chat: bool) -> int:
    """How often the agent has spoken: a text and the calls that follow it are one reply."""
    items = _items(body, is_chat)
    if is_chat:
        return sum(item.get("role") == "assistant" for item in items)
    n, within = 0, False
    for item in items:
        speaks = item.get("type") == "function_call" or item.get("role") == "assistant"
        n += speaks and not within
        within = speaks
    return n


def _call_id(number: int, k: int) -> str:
    return f"call_{number}_{k}"


def _chat(body: dict[str, Any], reply: Reply, number: int) -> dict[str, Any]:
    made = [
        {"id": _call_id(number, k), "type": "function", "function": {"name": name, "arguments": _text(arguments)}}
        for k, (name, arguments) in enumerate(reply["calls"])
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply["text"] or None}
    if made:
        message["tool_calls"] = made
    reason = "tool_calls" if made else "stop"
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1_700_000_000,
        "model": body.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 10 + number, "completion_tokens": 5, "total_tokens": 15 + number},
    }  # fmt: skip


def _chat_chunks(made: dict[str, Any]) -> Iterator[str]:
    message = made["choices"][0]["message"]
    text, made_calls = message["content"] or "", message.get("tool_calls", [])
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": part} for part in (text[:5], text[5:]) if part]
    for k, call in enumerate(made_calls):
        first = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": k, "id": call["id"], "type": "function", "function": first}]})
        arguments = call["function"]["arguments"]
        for part in (arguments[:4], arguments[4:]):
            deltas.append({"tool_calls": [{"index": k, "function": {"arguments": part}}]})
    head = {name: made[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in deltas:
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reason = made["choices"][0]["finish_reason"]
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    yield _event(head | {"choices": [], "usage": made["usage"]})
    yield "data: [DONE]\n\n"


def _response(body: dict[str, Any], reply: Reply, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if reply["text"]:
        content = [{"type": "output_text", "text": reply["text"], "annotations": []}]
        output.append(
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for k, (name, arguments) in enumerate(reply["calls"]):
        call = {
            "id": f"fc_{number}_{k}",
            "type": "function_call",
            "call_id": _call_id(number, k),
            "status": "completed",
        }
        output.append(call | {"name": name, "arguments": _text(arguments)})
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "status": "completed", "error": None,
        "incomplete_details": None, "instructions": body.get("instructions"), "metadata": {},
        "model": body.get("model"), "output": output, "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "top_p": 1.0,
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": 10 + number, "output_tokens": 5, "total_tokens": 15 + number,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip


def _response_events(made: dict[str, Any]) -> Iterator[str]:
    begun = made | {"output": [], "status": "in_progress"}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for n, item in enumerate(made["output"]):
        where = {"output_index": n, "item_id": item["id"]}
        empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
        added = item | empty | {"status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": n, "item": added})
        if item["type"] == "message":
            part = item["content"][0]
            text = where | {"content_index": 0, "logprobs": []}
            events += [
                {"type": "response.content_part.added", **where, "content_index": 0, "part": part | {"text": ""}},
                {"type": "response.output_text.delta", **text, "delta": part["text"]},
                {"type": "response.output_text.done", **text, "text": part["text"]},
                {"type": "response.content_part.done", **where, "content_index": 0, "part": part},
            ]
        else:
            arguments = item["arguments"]
            events += [
                {"type": "response.function_call_arguments.delta", **where, "delta": arguments},
                {
                    "type": "response.function_call_arguments.done",
                    **where,
                    "arguments": arguments,
                    "name": item["name"],
                },
            ]
        events.append({"type": "response.output_item.done", "output_index": n, "item": item})
    events.append({"type": "response.completed", "response": made})
    for n, event in enumerate(events):
        yield f"event: {event['type']}\n" + _event(event | {"sequence_number": n})


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
