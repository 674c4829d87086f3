"""A chat-completions server on loopback that plays models, good and bad, over real HTTP."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Play = Callable[["Exchange"], None]


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int, closing: threading.Event):
        self.handler, self.body, self.number, self.closing = handler, body, number, closing

    def send(self, status: int, data: bytes, kind: str = "application/json", **headers: str) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def begin(self, kind: str = "text/event-stream") -> None:
        """Headers of an answer whose end is the end of the connection."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()
        self.handler.close_connection = True

    def write(self, data: bytes) -> None:
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def wait(self, seconds: float) -> None:
        self.closing.wait(seconds)


def chunk(**choice: Any) -> bytes:
    """A piece of a streamed completion."""
    return b"data: " + json.dumps({"model": "played", "choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


def says(text: str, finish: str = "stop", usage: bool = True, refusal: str | None = None) -> Play:
    """Answers with a text: streamed where that was asked for, else as one document."""

    def play(exchange: Exchange) -> None:
        counted = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        if exchange.body.get("stream"):
            exchange.begin()
            for i in range(0, len(text), 4000):
                exchange.write(chunk(delta={"content": text[i : i + 4000]}))
            exchange.write(chunk(delta={"refusal": refusal} if refusal else {}, finish_reason=finish))
            if usage:
                exchange.write(b"data: " + json.dumps({"choices": [], "usage": counted}).encode() + b"\n\n")
            exchange.write(b"data: [DONE]\n\n")
            return
        message = {"role": "assistant", "content": text, "refusal": refusal}
        document: dict[str, Any] = {"model": "played", "choices": [{"message": message, "finish_reason": finish}]}
        if usage:
            document["usage"] = counted
        exchange.send(200, json.dumps(document).encode())

    return play


def whole(text: str) -> Play:
    """Answers with one document although a stream was asked for, as simple servers do."""

    def play(exchange: Exchange) -> None:
        message = {"role": "assistant", "content": text}
        exchange.send(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())

    return play


def tells(message: dict[str, Any], **choice: Any) -> Play:
    """Answers with one document whose message has these fields; choice: more of what stands beside the message."""
    document = {"model": "played", "choices": [{"message": message, "finish_reason": "stop", **choice}]}
    return lambda exchange: exchange.send(200, json.dumps(document).encode())


def streams(*pieces: dict[str, Any], ends_after: float = 0.0) -> Play:
    """Answers with these pieces of a choice, an event each, on a connection that stays open (chunked). ends_after:
    seconds between the last event and the end of the body."""

    def play(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Content-Type", "text/event-stream")
        exchange.handler.send_header("Transfer-Encoding", "chunked")
        exchange.handler.end_headers()
        for data in [*(chunk(**piece) for piece in pieces), b"data: [DONE]\n\n"]:
            exchange.write(b"%x\r\n%b\r\n" % (len(data), data))
        if ends_after:
            exchange.wait(ends_after)
        exchange.write(b"0\r\n\r\n")

    return play


class Crowd:
    """Answers after a while, and counts how many requests it is answering. most: at once."""

    def __init__(self, seconds: float, play: Play) -> None:
        self.seconds, self.play, self.now, self.most = seconds, play, 0, 0
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        exchange.wait(self.seconds)
        with self._lock:  # before the answer: who has it may ask again at once
            self.now -= 1
        self.play(exchange)


def later(seconds: float, play: Play) -> Play:
    """Does so after a while."""

    def wait(exchange: Exchange) -> None:
        exchange.wait(seconds)
        play(exchange)

    return wait


def fails(status: int, message: str = "no", **headers: str) -> Play:
    """Answers with an error status."""
    return lambda exchange: exchange.send(status, json.dumps({"error": {"message": message}}).encode(), **headers)


def page(exchange: Exchange) -> None:
    """An answer of another server: a page of HTML."""
    exchange.send(200, b"<html><body>Welcome</body></html>", "text/html")


def silent(exchange: Exchange) -> None:
    """Takes the request and says nothing."""
    exchange.wait(30)


def trickling(exchange: Exchange) -> None:
    """A byte of header now and then, for ever: no single read takes long."""
    exchange.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not exchange.closing.wait(0.05):
        exchange.write(b"a")


def pinging(exchange: Exchange) -> None:
    """A stream of comments that never says anything."""
    exchange.begin()
    while not exchange.closing.wait(0.05):
        exchange.write(b": ping\n\n")


def endless(exchange: Exchange) -> None:
    """A stream of text without end, as fast as it goes."""
    exchange.begin()
    while not exchange.closing.is_set():
        exchange.write(chunk(delta={"content": "never ends " * 400}))


def huge_line(exchange: Exchange) -> None:
    """One event without end."""
    exchange.begin()
    exchange.write(b"data: ")
    while not exchange.closing.is_set():
        exchange.write(b"x" * 65536)


def huge_document(exchange: Exchange) -> None:
    """One JSON document without end."""
    exchange.begin("application/json")
    exchange.write(b'{"choices": [{"message": {"content": "')
    while not exchange.closing.is_set():
        exchange.write(b"x" * 65536)


def endless_error(exchange: Exchange) -> None:
    """An error whose body has no end."""
    exchange.handler.send_response(500)
    exchange.handler.end_headers()
    exchange.handler.close_connection = True
    while not exchange.closing.is_set():
        exchange.write(b"x" * 65536)


def hangs_up(exchange: Exchange) -> None:
    """Closes the connection in the middle of an answer."""
    exchange.handler.send_response(200)
    exchange.handler.send_header("Content-Length", "1000")
    exchange.handler.end_headers()
    exchange.write(b'{"choices"')
    exchange.handler.close_connection = True


def redirects(to: str) -> Play:
    """Sends the client elsewhere."""
    return lambda exchange: exchange.send(307, b"", Location=to)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # the default of 5 refuses clients that ask much at once, on a busy machine

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that goes away is no fault of the server's
            super().handle_error(request, client_address)


class ModelServer:
    """url: to give as base URL. requests: bodies received, in order. headers: of each request. ports: of the clients'
    connections."""

    def __init__(self, plays: list[Play]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.ports: set[int] = set()
        self.closing = threading.Event()
        counting = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(length := int(self.headers.get("Content-Length", 0)))
                if len(data) < length:  # the client went away
                    self.close_connection = True
                    return
                body = json.loads(data)
                with counting:
                    server.requests.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    server.ports.add(self.client_address[1])
                    number = len(server.requests) - 1
                play = plays[min(number, len(plays) - 1)]  # the last one goes on
                try:
                    play(Exchange(self, body, number, server.closing))
                except OSError:  # the client went away
                    self.close_connection = True

            def do_GET(self) -> None:
                server.requests.append({"GET": self.path})
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def model_server(*plays: Play) -> Iterator[ModelServer]:
    """A server that answers its first request with the first play, and so on; the last play goes on."""
    with ModelServer(list(plays)) as server:
        yield server


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails where the block takes much longer: as long as the servers here keep a client waiting that has no deadline.

    A busy machine may take twenty seconds more than an idle one; what waits for a silent server takes thirty.
    """
    begin = time.monotonic()
    yield
    took = time.monotonic() - begin
    assert took < seconds + 20, f"took {took:.1f} s, more than {seconds} s and what a busy machine explains"
