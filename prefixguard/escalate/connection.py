"""Requests over HTTP through the openai package: one request, its deadline, and how much of an answer is read.

Every request ends at its deadline, whatever the server does (sends a header byte a second, never ends, says nothing):
time-outs of the openai package alone hold for one read, not for the whole. Redirects are not followed, so the key goes
to the named server only. The package takes events apart, without limits of its own: here the bytes of an answer, of one
event, of the text, its reasoning and its tokens are each bounded, so nothing that a server does can fill memory.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from prefixguard.errors import ConfigError
from prefixguard.escalate.circuit import NoReplyFault
from prefixguard.escalate.endpoint import Endpoint, Reply, certificates, masked, proxy_for, secrets_of, shown_proxy

#: Characters of a reply, and of its reasoning. An adapter's spec is a few thousand, a verdict a few hundred.
MAX_REPLY = 256 * 1024
#: Tokens of a reply whose log-probabilities are kept, and characters of one of them.
MAX_TOKENS = 32 * 1024
MAX_TOKEN = 256
#: Bytes of a body that is one JSON document, of a stream of events (each wraps a few characters in some hundred bytes),
#: of one event, and of an error's body.
MAX_DOCUMENT = 8 << 20
MAX_STREAM = 64 << 20
MAX_EVENT = 1 << 20
_ERROR = 4096
_CLOSING = 1.0  # seconds
#: Packages below openai, by release; their errors share no base with its own.
_HTTP_PACKAGES = ("httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio")
#: Where servers put what a model thought, by how common: a server that sends both sends the same twice.
_REASONING = ("reasoning_content", "reasoning")
_OVERLOADED = (408, 409, 425, 429)
_TOO_LONG = ("context length", "context_length", "too long", "maximum context")
#: What to do about an error status.
_REMEDIES = {
    **dict.fromkeys((401, 403), "Check the key and what it may use."),
    **dict.fromkeys(range(300, 400), "Redirects are not followed; name the server's own URL."),
    404: "Check the base URL (it usually ends in /v1) and the name of the model.",
    413: "If the prompt is too long for the model, ask with fewer tokens.",
    429: "Wait, or ask for a higher limit.",
}
_EVENTS = "text/event-stream"
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")


class RequestFault(Exception):
    """A request without a reply. The message never holds the key.

    status: HTTP's, or what the error inside an answer says, 0 where it says none; None where no error was answered.
    retry_after: seconds that the server asks to wait. told: was the endpoint given its time (a question that waited for
    its turn until nothing was left says nothing about the endpoint).
    """

    def __init__(
        self,
        fault: NoReplyFault,
        message: str,
        status: int | None = None,
        retry_after: float | None = None,
        told: bool = True,
    ) -> None:
        super().__init__(message)
        self.fault, self.message, self.status, self.retry_after, self.told = fault, message, status, retry_after, told

    @classmethod
    def answered(cls, status: int, message: str, retry_after: float | None = None) -> RequestFault:
        """The server answered with an error."""
        if status in _OVERLOADED:
            return cls(NoReplyFault.OVERLOADED, message, status, retry_after)
        refused = 300 <= status < 500
        return cls(NoReplyFault.REFUSED if refused else NoReplyFault.SERVER_ERROR, message, status, retry_after)

    @property
    def passes(self) -> bool:
        """Is it worth trying again?"""
        if self.status is not None:
            return self.status in _OVERLOADED or self.status >= 500
        return self.fault in (NoReplyFault.TIMEOUT, NoReplyFault.UNREACHED)

    @property
    def is_busy(self) -> bool:
        """Does it show a server that lives and has no room now: 429, or 503 that says when to come back?"""
        return self.status == 429 or (self.status == 503 and self.retry_after is not None)

    @property
    def is_down(self) -> bool | None:
        """Does it show that the endpoint is out of order? False: it shows that it lives. None: it shows nothing."""
        if self.status:
            return not self.is_busy and (self.status >= 500 or self.status == 408)
        return True if self.status is None and self.passes and self.told else None

    @property
    def is_about_length(self) -> bool:
        """May it be about a prompt that is too long?"""
        text = self.message.lower()
        return any(said in text for said in _TOO_LONG) or "tokens" in self.words

    @property
    def words(self) -> set[str]:
        """The words of the message, in small letters."""
        return set(re.findall(r"[a-z0-9_]+", self.message.lower()))

    def why(self) -> str:
        """What happened, for a person."""
        if self.status is None:
            return self.message
        return f"the server answered {self.status or 'with an error'}: {self.message[:300]}"

    def remedy(self) -> str:
        """What to do about it; "" where the message says so itself."""
        if self.fault is NoReplyFault.UNREADABLE:
            return ""
        if self.status in (400, 422):
            return _REMEDIES[413] if self.is_about_length else "The message says what the server does not take."
        return _REMEDIES.get(self.status or 0, "Is the server up? A slow model needs a longer time-out.")


def unreadable(message: str) -> RequestFault:
    """The fault of an answer that is no chat completion, or too big."""
    return RequestFault(NoReplyFault.UNREADABLE, message)


def timed_out(seconds: float, *, told: bool = True, complete: str = "") -> RequestFault:
    """The fault of a request or question whose time was up."""
    return RequestFault(NoReplyFault.TIMEOUT, f"no {complete}answer within {round(seconds, 2):g} s", told=told)


class ReplyReader:
    """Adds up the documents of one answer: a whole completion, or pieces of one. Their fields may be of any type."""

    def __init__(self) -> None:
        self._refusal = self._finish = self._model = ""
        self._usage: tuple[int, int] | None = None
        self._parts: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._room = {"text": MAX_REPLY, "reasoning": MAX_REPLY}
        self._tokens: list[tuple[str, float]] | None = []  # None: one was odd, so none is used

    @property
    def is_full(self) -> bool:
        """Whether the text is as long as it may be, so that the rest need not be read."""
        return self._finish == "limit"

    def reply(self) -> Reply:
        """What was said, after one try. Tokens that the server did not count are 0, `estimated`."""
        text, reasoning = (_sound("".join(self._parts[name])) for name in ("text", "reasoning"))
        counted, tokens = self._usage or (0, 0), tuple(self._tokens or ())
        estimated = self._usage is None
        return Reply(
            text, self._finish, self._refusal, *counted, estimated, 0.0, 1, self._model, (), reasoning, tokens
        )  # fmt: skip

    def take(self, document: Mapping[str, Any], part: str) -> None:
        """Adds what one document says. part: "message" of a whole completion, "delta" of a piece. RequestFault where it
        holds an error."""
        if error := document.get("error"):
            raise error_inside(error)
        if isinstance(document.get("model"), str):
            self._model = document["model"][:200]
        usage = document.get("usage")
        if isinstance(usage, dict):
            counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
            if all(type(n) is int and 0 <= n < 10**9 for n in counts):
                self._usage = (int(counts[0] or 0), int(counts[1] or 0))
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"][:40]
        self._take_logprobs(choice.get("logprobs"))
        said = choice.get(part) if isinstance(choice.get(part), dict) else choice.get("message")
        if not isinstance(said, dict):
            return
        if isinstance(said.get("refusal"), str):
            self._refusal = (self._refusal + said["refusal"])[:2000]
        self._add("reasoning", next((said[name] for name in _REASONING if isinstance(said.get(name), str)), ""))
        content = said.get("content")
        pieces = content[:1000] if isinstance(content, list) else [{"text": content}]
        for text in [one.get("text") for one in pieces if isinstance(one, dict)]:
            if isinstance(text, str) and not self._add("text", text):
                self._finish = "limit"

    def _add(self, name: str, text: str) -> bool:
        """Whether all of the text had room."""
        kept = text[: self._room[name]]
        self._parts[name].append(kept)
        self._room[name] -= len(kept)
        return len(kept) == len(text)

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


class Connection:
    """Connections to one endpoint, kept open between requests. Belongs to the event loop that it is made on.

    slots: places for requests under way.
    """

    def __init__(self, endpoint: Endpoint, key: str, concurrency: int = 1) -> None:
        import openai

        self.loop = asyncio.get_running_loop()
        self.slots = asyncio.Semaphore(concurrency)
        self.closed = False
        self._openai = openai
        self._secrets = secrets_of(endpoint, key)
        url = endpoint.url  # never None: the openai package would ask OPENAI_BASE_URL
        options: dict[str, Any] = {}
        if "@" in (parts := urlsplit(url)).netloc:  # the http packages log the URL they ask
            options["auth"] = (unquote(parts.username or ""), unquote(parts.password or ""))
            url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        proxy, verify = proxy_for(url), certificates()
        try:
            http_client: Any = openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                timeout=endpoint.timeout,
                event_hooks={"response": [_bound]},
                trust_env=False,  # nothing of it but what is said here: no credentials of a netrc, no other proxy
                proxy=proxy,
                verify=verify,
                **options,
            )
        except (ImportError, ValueError, TypeError) as exc:
            if proxy is None:
                raise
            raise ConfigError(
                f"the proxy {shown_proxy(url)} cannot be used ({type(exc).__name__}). Set another one in HTTPS_PROXY, "
                "or name the endpoint's host in NO_PROXY."
            ) from None
        self._client: Any = openai.AsyncOpenAI(
            api_key=key,
            base_url=url,
            max_retries=0,  # of a question, not of a request: see AsyncClient
            timeout=endpoint.timeout,
            default_headers={"Accept-Encoding": "identity"},  # a small body must not unpack to a big one
            http_client=http_client,
        )

    async def request(self, arguments: Mapping[str, Any], seconds: float) -> Reply:
        """Sends one request for a completion. arguments: its body. seconds: until the answer must be complete.

        RequestFault, which does not hold the key.
        """
        deadline = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(arguments, seconds, deadline)
        except TimeoutError:
            fault: Exception = timed_out(seconds, complete="complete ")
        except Exception as exc:
            fault = self._fault(exc, seconds)
        raise fault  # not where it was met: what was raised there may repeat the key

    async def aclose(self) -> None:
        """Closes the connections; requests under way fail. Waits no longer than a second."""
        self.closed = True
        try:
            async with asyncio.timeout(_CLOSING):
                await self._client.close()
        except (TimeoutError, OSError):
            pass  # nothing waits for it

    async def _exchange(self, arguments: Mapping[str, Any], seconds: float, deadline: float) -> Reply:
        stream: Any = await self._client.post(
            "/chat/completions",
            cast_to=object,  # documents as they are: servers send fields of any type
            body=dict(arguments),
            options={"timeout": seconds},
            stream=True,
            stream_cls=self._openai.AsyncStream[object],
        )
        async with stream:
            response = stream.response
            if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise unreadable("the endpoint compresses its answer although it was asked not to.")
            reader, met = ReplyReader(), False
            kind = response.headers.get("content-type", "")
            if not kind.strip().lower().startswith(_EVENTS):
                data = await response.aread()
                if not data[:64].lstrip().startswith((b"data:", b"event:", b": ")):
                    reader.take(_document(data, kind.partition(";")[0].strip().lower()), "message")
                    return reader.reply()
            async for document in stream:  # events that do not call themselves so among them
                if time.monotonic() > deadline:  # where the loop had no time to say so
                    raise TimeoutError
                if isinstance(document, dict):
                    met = True
                    reader.take(document, "delta")
                if reader.is_full:
                    break
            if not met:
                raise unreadable("the endpoint sent an event stream with no chat completion in it. Check the base URL.")
            return reader.reply()

    def _fault(self, met: Exception, seconds: float) -> Exception:
        """What was met, as one of ours and without the key."""
        openai = self._openai
        found = met.__cause__ if isinstance(met.__cause__, RequestFault) else met  # some releases wrap it
        if isinstance(found, openai.APIStatusError):
            found = _fault_from_answer(found.response)
        elif type(found) is openai.APIError:  # an event that holds an error
            found = error_inside(getattr(found, "body", None) or str(found))
        if isinstance(found, RequestFault):
            message = masked(found.message, self._secrets)
            return RequestFault(found.fault, message, found.status, found.retry_after, found.told)
        below = type(found).__module__.partition(".")[0] in _HTTP_PACKAGES
        if isinstance(found, openai.APITimeoutError) or (below and "Timeout" in type(found).__name__):
            return timed_out(seconds)
        if self.closed:
            return RequestFault(NoReplyFault.UNREACHED, "the client was closed", told=False)
        if isinstance(found, openai.APIConnectionError | OSError) or below:
            cause = found.__cause__ or found
            said = masked(str(cause), self._secrets)[:200]
            return RequestFault(NoReplyFault.UNREACHED, f"the connection failed ({type(cause).__name__}: {said})")
        if isinstance(found, ValueError | RecursionError):
            return unreadable("the endpoint sent an event that is no JSON. Check the base URL; it usually ends in /v1.")
        if isinstance(found, openai.OpenAIError):
            return unreadable(f"the openai package gave up: {masked(str(found), self._secrets)[:300]}")
        return met


async def _bound(response: Any) -> None:
    """Bounds what is read of an answer: of an error the beginning, of all else as much as a reply can have."""
    package: Any = sys.modules[type(response).__module__.partition(".")[0]]
    inner, is_error = response.stream, not 200 <= response.status_code < 300
    is_stream = response.headers.get("content-type", "").strip().lower().startswith(_EVENTS)
    if is_error:
        response.headers.pop("content-encoding", None)  # its beginning is shown as it came

    class Bounded(package.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = event = 0
            tail = b""  # the end of an event may be cut in two
            async for chunk in inner:
                total += len(chunk)
                if is_error:
                    yield chunk[: len(chunk) - max(0, total - _ERROR)]
                    if total >= _ERROR:
                        return
                    continue
                if total > (MAX_STREAM if is_stream else MAX_DOCUMENT):
                    where = "" if is_stream else " in one answer"
                    most = (MAX_STREAM if is_stream else MAX_DOCUMENT) >> 20
                    raise unreadable(f"the endpoint sent more than {most} MiB{where}; it was not read further.")
                joined = tail + chunk
                ends = [end.end() for end in _END_OF_EVENT.finditer(joined)]
                event = len(joined) - ends[-1] if ends else event + len(chunk)
                tail = joined[-3:]
                if is_stream and event > MAX_EVENT:
                    raise unreadable(f"the endpoint sent an event of more than {MAX_EVENT >> 20} MiB; it was not read.")
                yield chunk

        async def aclose(self) -> None:
            await inner.aclose()

    response.stream = Bounded()


def _fault_from_answer(response: Any) -> RequestFault:
    """What an answer with an error status says, in the beginning of its body."""
    data = bytes(response.content)
    document = _object(data) or {}
    error = document.get("error", document.get("detail"))
    message = error_inside(error).message if error else _shown(data)
    after = response.headers.get("retry-after")
    return RequestFault.answered(response.status_code, message, None if after is None else retry_seconds(after[:100]))


def _document(data: bytes, kind: str) -> dict[str, Any]:
    document = _object(data)
    if document is None:
        raise unreadable(
            f"the endpoint answered with {kind[:100] or 'an unnamed type'} that is no chat completion: "
            f"{_shown(data)}. Check the base URL; it usually ends in /v1."
        )
    return document


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def error_inside(error: Any) -> RequestFault:
    """What the error inside an answer says."""
    status = 0
    message = str(error)
    if isinstance(error, dict):
        message = str(error.get("message") or error.get("type") or error)
        code = error.get("code", error.get("status"))
        if type(code) is int or (isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3):
            status = int(code)
    return RequestFault.answered(status, _sound(message[:500]))


def retry_seconds(retry_after: str) -> float | None:
    """Seconds from a Retry-After header (a number, or a date); None where it says nothing usable. RFC 9110, 10.2.3.

    >>> retry_seconds("2.5"), retry_seconds("soon"), retry_seconds("99999")
    (2.5, None, None)
    """
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
    token, value = (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
    if not isinstance(token, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer beyond every float is none either.
    return (_sound(token[:MAX_TOKEN]), float(value)) if -sys.float_info.max <= value <= 0 else None


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate is no text


def _shown(data: bytes) -> str:
    text = " ".join(data[:200].decode("utf-8", "replace").split())
    return repr(text) if text else "nothing"
