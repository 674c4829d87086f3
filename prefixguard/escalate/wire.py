"""What a chat-completions server sends, read within limits: a JSON document, or server-sent events.

Nothing that a server does can fill memory: raw bytes, one event and the reply's text are each bounded, and what is
beyond the bound of the text is not read at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import EndpointError

#: Characters of a reply. An adapter's spec is a few thousand, a verdict a few hundred.
MAX_REPLY = 256 * 1024
#: Bytes of a body that is one JSON document.
MAX_DOCUMENT = 8 << 20
#: Bytes of a stream of events (each wraps a few characters in some hundred bytes), and of one event.
MAX_STREAM = 64 << 20
MAX_EVENT = 1 << 20


@dataclass(slots=True)
class Body:
    """What was read. finish: the server's word (stop, length, content_filter, ...), "limit" where we stopped reading,
    "" where it said nothing. usage: tokens (in, out); None where the server did not count."""

    text: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""
    usage: tuple[int, int] | None = None
    _parts: list[str] = field(default_factory=list)
    _size: int = 0


class ServerFault(Exception):
    """The server answered with an error. status: HTTP's, or what the error says; 0 where unknown."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


def read_body(content_type: str, chunks: Iterable[bytes], tick: Callable[[], None]) -> Body:
    """A reply from the bytes of a 2xx answer. tick: called for every chunk; raises when time is up.

    EndpointError where it is no chat completion; ServerFault where it holds an error.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return _streamed(chunks, tick)
    data = bytearray()
    for chunk in chunks:
        tick()
        data += chunk
        if len(data) > MAX_DOCUMENT:
            raise EndpointError(
                f"the endpoint sent more than {MAX_DOCUMENT >> 20} MiB in one answer; it was not read further."
            )
    head = bytes(data[:64]).lstrip()
    if head.startswith((b"data:", b"event:", b": ")):  # events that do not call themselves so
        return _streamed([bytes(data)], tick)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise EndpointError(
            f"the endpoint answered with {kind or 'an unnamed type'} that is no chat completion: "
            f"{_shown(bytes(data))}. Check the base URL; it usually ends in /v1."
        )
    body = Body()
    _take(body, document, "message")
    return _closed(body)


def _streamed(chunks: Iterable[bytes], tick: Callable[[], None]) -> Body:
    body = Body()
    met = False
    for data in _events(chunks, tick):
        if data == b"[DONE]":
            met = True
            break
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            met = True
            _take(body, document, "delta")
            if body.finish == "limit":
                break
    if not met:
        raise EndpointError("the endpoint sent an event stream with no chat completion in it. Check the base URL.")
    return _closed(body)


def _events(chunks: Iterable[bytes], tick: Callable[[], None]) -> Iterator[bytes]:
    """Payloads of server-sent events, one `data:` line each (as every chat server sends them)."""
    total = 0
    waiting = bytearray()
    for chunk in chunks:
        tick()
        total += len(chunk)
        if total > MAX_STREAM:
            raise EndpointError(f"the endpoint sent more than {MAX_STREAM >> 20} MiB; it was not read further.")
        waiting += chunk
        *lines, rest = bytes(waiting).split(b"\n")
        waiting = bytearray(rest)
        if len(waiting) > MAX_EVENT:
            raise EndpointError(f"the endpoint sent an event of more than {MAX_EVENT >> 20} MiB; it was not read.")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if waiting.startswith(b"data:"):
        yield bytes(waiting[5:]).strip()


def _take(body: Body, document: dict[str, Any], part: str) -> None:
    """Adds what one document (a whole completion, or a piece of one) says."""
    error = document.get("error")
    if error:
        raise _fault(error)
    if isinstance(document.get("model"), str):
        body.model = document["model"][:200]
    usage = document.get("usage")
    if isinstance(usage, dict):
        counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        if all(type(n) is int and 0 <= n < 10**9 for n in counts):
            body.usage = (int(counts[0] or 0), int(counts[1] or 0))
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return
    if isinstance(choice.get("finish_reason"), str):
        body.finish = choice["finish_reason"][:40]
    said = choice.get(part) if isinstance(choice.get(part), dict) else choice.get("message")
    if not isinstance(said, dict):
        return
    if isinstance(said.get("refusal"), str):
        body.refusal = (body.refusal + said["refusal"])[:2000]
    _add(body, said.get("content"))


def _add(body: Body, content: Any) -> None:
    if isinstance(content, list):  # content parts
        for piece in content[:1000]:
            _add(body, piece.get("text") if isinstance(piece, dict) else None)
        return
    if not isinstance(content, str):
        return
    room = MAX_REPLY - body._size
    body._parts.append(content[:room])
    body._size += min(len(content), room)
    if len(content) > room:
        body.finish = "limit"


def _closed(body: Body) -> Body:
    body.text = "".join(body._parts).encode("utf-8", "replace").decode()  # a lone surrogate is no text
    body._parts = []
    return body


def _fault(error: Any) -> ServerFault:
    status = 0
    message = str(error)
    if isinstance(error, dict):
        message = str(error.get("message") or error.get("type") or error)
        code = error.get("code", error.get("status"))
        if type(code) is int or (isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3):
            status = int(code)
    return ServerFault(status, message[:500])


def fault_from_answer(status: int, data: bytes, retry_after: str | None) -> ServerFault:
    """What an answer with an error status says. data: the beginning of its body."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    error = document.get("error", document.get("detail")) if isinstance(document, dict) else None
    message = _fault(error).message if error else _shown(data)
    seconds: float | None = None
    try:
        seconds = float(retry_after) if retry_after is not None else None
    except ValueError:
        seconds = None
    return ServerFault(status, message, seconds if seconds is not None and 0 <= seconds < 3600 else None)


def _shown(data: bytes) -> str:
    text = " ".join(data[:200].decode("utf-8", "replace").split())
    return repr(text) if text else "nothing"
