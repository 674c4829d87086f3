"""What a chat-completions server sends, read within limits: a JSON document, or server-sent events.

Nothing that a server does can fill memory: raw bytes, one event, the reply's text, its reasoning and its tokens are
each bounded, and what is beyond the bound of the text is not read at all. Bytes are pushed in as they come, so that
the same reader serves any kind of connection.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from prefixguard.errors import EndpointError

#: Characters of a reply, and of its reasoning. An adapter's spec is a few thousand, a verdict a few hundred.
MAX_REPLY = 256 * 1024
#: Tokens of a reply whose log-probabilities are kept, and characters of one of them.
MAX_TOKENS = 32 * 1024
MAX_TOKEN = 256
#: Bytes of a body that is one JSON document.
MAX_DOCUMENT = 8 << 20
#: Bytes of a stream of events (each wraps a few characters in some hundred bytes), and of one event.
MAX_STREAM = 64 << 20
MAX_EVENT = 1 << 20

#: Where servers put what a model thought, by how common: a server that sends both sends the same twice.
_REASONING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class Body:
    """What was read. finish: the server's word (stop, length, content_filter, ...), "limit" where we stopped reading,
    "" where it said nothing. usage: tokens (in, out); None where the server did not count. reasoning: what the model
    thought, where that is a field of its own; cut at the bound. logprobs: tokens of the answer and their natural
    log-probabilities, <= 0, in order; empty where there are none, or where one of them is no log-probability."""

    text: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""
    usage: tuple[int, int] | None = None
    reasoning: str = ""
    logprobs: tuple[tuple[str, float], ...] = ()


class ServerFault(Exception):
    """The server answered with an error. status: HTTP's, or what the error says; 0 where unknown."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class BodyReader:
    """Reads the bytes of one 2xx answer as they come.

    `feed` every chunk until it says that the reply is whole, then `close`. Both raise EndpointError where the answer
    is no chat completion or too big, and ServerFault where it holds an error.
    """

    def __init__(self, content_type: str) -> None:
        self._kind = content_type.partition(";")[0].strip().lower()
        self._is_stream = self._kind == "text/event-stream"
        self._waiting = bytearray()  # of a stream: the line that has not ended; of a document: all of it
        self._scanned = 0  # bytes of `_waiting` that hold no end of line
        self._total = 0
        self._met = False  # an event that says something
        self._done = False
        self._body = Body()
        self._text = _Pieces(MAX_REPLY)
        self._reasoning = _Pieces(MAX_REPLY)
        self._tokens: list[tuple[str, float]] | None = []  # None: one was odd, so none is used

    def feed(self, chunk: bytes) -> bool:
        """Takes some bytes. True when the reply is whole (or as long as it may be) and the rest need not be read."""
        if self._done:
            return True
        self._total += len(chunk)
        if not self._is_stream:
            if self._total > MAX_DOCUMENT:
                raise EndpointError(
                    f"the endpoint sent more than {MAX_DOCUMENT >> 20} MiB in one answer; it was not read further."
                )
            self._waiting += chunk
            return False
        if self._total > MAX_STREAM:
            raise EndpointError(f"the endpoint sent more than {MAX_STREAM >> 20} MiB; it was not read further.")
        self._waiting += chunk
        self._take_lines()
        return self._done

    def close(self) -> Body:
        """The reply."""
        if not self._is_stream:
            head = bytes(self._waiting[:64]).lstrip()
            if head.startswith((b"data:", b"event:", b": ")):  # events that do not call themselves so
                self._is_stream = True
                self._take_lines()
            else:
                self._take(_document(bytes(self._waiting), self._kind), "message")
        if self._is_stream:
            if not self._done and self._waiting.startswith(b"data:"):
                self._event(bytes(self._waiting[5:]).strip())
            if not self._met:
                raise EndpointError(
                    "the endpoint sent an event stream with no chat completion in it. Check the base URL."
                )
        self._waiting = bytearray()
        self._body.text, self._body.reasoning = self._text.joined(), self._reasoning.joined()
        self._body.logprobs = tuple(self._tokens or ())
        return self._body

    def _take_lines(self) -> None:
        """Payloads of server-sent events, one `data:` line each (as every chat server sends them)."""
        begin = 0
        while not self._done and (end := self._waiting.find(b"\n", max(begin, self._scanned))) >= 0:
            line = bytes(self._waiting[begin:end])
            begin = end + 1
            if line.startswith(b"data:"):
                self._event(line[5:].strip())
        del self._waiting[:begin]
        self._scanned = len(self._waiting)
        if not self._done and self._scanned > MAX_EVENT:
            raise EndpointError(f"the endpoint sent an event of more than {MAX_EVENT >> 20} MiB; it was not read.")

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._met = self._done = True
            return
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self._met = True
            self._take(document, "delta")
            self._done = self._body.finish == "limit"

    def _take(self, document: dict[str, Any], part: str) -> None:
        """Adds what one document (a whole completion, or a piece of one) says."""
        body, error = self._body, document.get("error")
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
        self._take_logprobs(choice.get("logprobs"))
        said = choice.get(part) if isinstance(choice.get(part), dict) else choice.get("message")
        if not isinstance(said, dict):
            return
        if isinstance(said.get("refusal"), str):
            body.refusal = (body.refusal + said["refusal"])[:2000]
        thought = next((said[name] for name in _REASONING if isinstance(said.get(name), str)), "")
        self._reasoning.add(thought)
        self._add(said.get("content"))

    def _add(self, content: Any) -> None:
        if isinstance(content, list):  # content parts
            for piece in content[:1000]:
                text = piece.get("text") if isinstance(piece, dict) else None
                if isinstance(text, str):
                    self._add(text)
        elif isinstance(content, str) and not self._text.add(content):
            self._body.finish = "limit"

    def _take_logprobs(self, found: Any) -> None:
        entries = found.get("content") if isinstance(found, dict) else None
        if not isinstance(entries, list) or self._tokens is None:
            return
        for entry in entries[: MAX_TOKENS - len(self._tokens)]:
            token = _token(entry)
            if token is None:
                self._tokens = None  # a list with a hole would put the other tokens in the wrong places
                return
            self._tokens.append(token)


class _Pieces:
    """Text in pieces, at most so many characters."""

    def __init__(self, most: int) -> None:
        self._room, self._parts = most, list[str]()

    def add(self, text: str) -> bool:
        """False where not all of it had room."""
        kept = text[: self._room]
        self._parts.append(kept)
        self._room -= len(kept)
        return len(kept) == len(text)

    def joined(self) -> str:
        return _sound("".join(self._parts))


def read_body(content_type: str, chunks: Iterable[bytes], tick: Callable[[], None]) -> Body:
    """A reply from the bytes of a 2xx answer. tick: called for every chunk; raises when time is up.

    EndpointError where it is no chat completion; ServerFault where it holds an error.
    """
    reader = BodyReader(content_type)
    for chunk in chunks:
        tick()
        if reader.feed(chunk):
            break
    return reader.close()


def fault_from_answer(status: int, data: bytes, retry_after: str | None) -> ServerFault:
    """What an answer with an error status says. data: the beginning of its body. retry_after: the header, if any."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    error = document.get("error", document.get("detail")) if isinstance(document, dict) else None
    message = _fault(error).message if error else _shown(data)
    return ServerFault(status, message, None if retry_after is None else _seconds(retry_after[:100]))


def _document(data: bytes, kind: str) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise EndpointError(
            f"the endpoint answered with {kind[:100] or 'an unnamed type'} that is no chat completion: "
            f"{_shown(data)}. Check the base URL; it usually ends in /v1."
        )
    return document


def _fault(error: Any) -> ServerFault:
    status = 0
    message = str(error)
    if isinstance(error, dict):
        message = str(error.get("message") or error.get("type") or error)
        code = error.get("code", error.get("status"))
        if type(code) is int or (isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3):
            status = int(code)
    return ServerFault(status, _sound(message[:500]))


def _seconds(retry_after: str) -> float | None:
    """Seconds from a Retry-After header (a number, or a date); None where it says nothing usable. RFC 9110, 10.2.3."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
        except (ValueError, OverflowError, OSError):
            return None
    return seconds if 0 <= seconds < 3600 else None


def _token(entry: Any) -> tuple[str, float] | None:
    """A token and its log-probability, finite and <= 0; None where the entry is something else."""
    if not isinstance(entry, dict):
        return None
    token, value = entry.get("token"), entry.get("logprob")
    if not isinstance(token, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond every float
        return None
    return (_sound(token[:MAX_TOKEN]), number) if math.isfinite(number) and number <= 0 else None


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is no text


def _shown(data: bytes) -> str:
    text = " ".join(data[:200].decode("utf-8", "replace").split())
    return repr(text) if text else "nothing"
