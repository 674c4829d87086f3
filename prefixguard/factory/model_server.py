"""An endpoint on loopback for a model in this process: chat completions, as `audit` asks them.

It is for trying a model that was trained here: one question at a time, no streaming, no keys, on 127.0.0.1 only. To
deploy one, serve its folder with a server made for that, such as vLLM.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Messages, the most tokens of a reply and the temperature to the reply, whether it ended by itself, and its tokens:
#: of the prompt and of the reply.
Answer = Callable[[Sequence[Mapping[str, str]], int, float], tuple[str, bool, int, int]]
#: Bytes of a request that are read.
_LARGEST = 16 << 20
_REPLY_TOKENS = 1024


@contextmanager
def serve(answer: Answer, name: str) -> Iterator[str]:
    """Serve a model while the block runs. Gives the base URL. name: of the model, for its clients."""
    lock = threading.Lock()  # a model answers one question at a time

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are written apart: else each answer waits 40 ms

        def do_GET(self) -> None:
            if self.path.endswith("/models"):
                self._send(200, {"object": "list", "data": [{"id": name, "object": "model"}]})
            else:
                self._refuse(404, f"{self.path}: ask /v1/chat/completions or /v1/models.")

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not self.path.endswith("/chat/completions"):
                self._refuse(404, f"{self.path}: ask /v1/chat/completions.")
            elif not length.isdecimal() or int(length) > _LARGEST:
                self.close_connection = True
                self._refuse(413, f"a body of at most {_LARGEST:,} bytes, with its Content-Length, is read.")
            else:
                self._complete(self.rfile.read(int(length)))

        def _complete(self, body: bytes) -> None:
            try:
                asked = json.loads(body)
                messages = [{"role": str(one["role"]), "content": str(one["content"])} for one in asked["messages"]]
                most = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or _REPLY_TOKENS)
                temperature = float(asked.get("temperature") or 0)
                if not messages or most < 1 or not 0 <= temperature <= 2:
                    raise ValueError("messages, tokens or temperature")
            except (ValueError, KeyError, TypeError, RecursionError):
                self._refuse(400, "a JSON object with messages, each with role and content, is needed.")
                return
            if asked.get("stream"):
                self._refuse(400, "stream: replies are not streamed here.")
                return
            try:
                with lock:
                    text, ended, n_in, n_out = answer(messages, most, temperature)
            except Exception as exc:  # whatever a model raises on what it is sent is the request's fault
                self._refuse(400, f"the model cannot answer this ({type(exc).__name__}: {str(exc)[:200]}).")
                return
            choice = {"index": 0, "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out}
            choices = [{**choice, "finish_reason": "stop" if ended else "length"}]
            self._send(
                200, {"id": "chat", "object": "chat.completion", "model": name, "choices": choices, "usage": usage}
            )

        def _refuse(self, status: int, message: str) -> None:
            self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

        def _send(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
