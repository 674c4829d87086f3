"""A model that plays a script, on a loopback port, and speaks Anthropic's Messages API: Claude Code runs without a key.

    with serve({"clerk": [calls(("Bash", {"command": "ls"})), says("Done.")]}) as base_url:
        ...  # the environment of the agent: ANTHROPIC_BASE_URL=base_url, ANTHROPIC_API_KEY=none

As `scripted_model`: the agent is found by its name in the system prompt, or in what it was first asked; the reply by
how often it has spoken in the conversation.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scripted_model import Reply, says


@contextmanager
def serve(scripts: Mapping[str, Sequence[Reply]], saw: Callable[[dict[str, Any]], Any] | None = None) -> Iterator[str]:
    """Play these scripts, by agent, at the address that this gives. saw : called with the body of every request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if not self.path.split("?")[0].endswith("/messages"):
                self._send(b'{"input_tokens": 1}', "application/json")
                return
            if saw is not None:
                saw(body)
            made = _message(body, _reply(scripts, body), len(body["messages"]))
            if body.get("stream"):
                self._send("".join(_events(made)).encode(), "text/event-stream")
            else:
                self._send(json.dumps(made).encode(), "application/json")

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _reply(scripts: Mapping[str, Sequence[Reply]], body: Mapping[str, Any]) -> Reply:
    asked = json.dumps([body.get("system"), body["messages"][0]])
    name = next((name for name in scripts if f"You are the {name}." in asked), next(iter(scripts)))
    script, spoken = scripts[name], sum(message["role"] == "assistant" for message in body["messages"])
    return script[spoken] if spoken < len(script) else says("Done.")


def _message(body: Mapping[str, Any], reply: Reply, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply["text"]}] if reply["text"] else []
    salt = abs(hash(json.dumps(body["messages"][0]))) % 10**8  # parallel conversations have calls of their own
    for k, (name, given) in enumerate(reply["calls"]):
        content.append({"type": "tool_use", "id": f"toolu_{salt}_{number}_{k}", "name": name, "input": given})
    return {
        "id": f"msg_{salt}_{number}", "type": "message", "role": "assistant", "model": body.get("model", ""),
        "content": content, "stop_reason": "tool_use" if reply["calls"] else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10 + number, "output_tokens": 5},
    }  # fmt: skip


def _events(made: Mapping[str, Any]) -> Iterator[str]:
    yield _event({"type": "message_start", "message": {**made, "content": [], "stop_reason": None}})
    for index, block in enumerate(made["content"]):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": made["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ended, "usage": made["usage"]})
    yield _event({"type": "message_stop"})


def _event(data: Mapping[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"
