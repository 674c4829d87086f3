"""An HTTP receiver on loopback that keeps what it is sent and answers as it is told: also badly, late or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Play = Callable[[BaseHTTPRequestHandler, threading.Event], None]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"{}", **headers: str) -> Play:
    """Answers so; an underscore in a header's name stands for a hyphen."""

    def play(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        handler.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return play


def hang(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """Says nothing, as long as it may."""
    closing.wait(60)


def trickle(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """A byte of a header now and then, without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not closing.wait(0.05):
        handler.wfile.write(b"x")


def close_half_way(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """Begins an answer and goes away."""
    handler.wfile.write(b"HTTP/1.1 2")
    handler.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients go away: that is what is tried here


class HttpReceiver:
    """`received`, in order; the n-th request is met with the n-th play, all further ones with the last."""

    def __init__(self, *plays: Play) -> None:
        self.received: list[Received] = []
        self._closing, counting = threading.Event(), threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with counting:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    receiver.received.append(Received(self.path, headers, body))
                    n = len(receiver.received)
                plays[min(n, len(plays)) - 1](self, receiver._closing)

            def log_message(self, *args: object) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> HttpReceiver:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
