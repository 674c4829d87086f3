"""Questions to an endpoint through the openai package: deadlines, retries, and how much of a reply is read.

Every request runs on a thread of its own and is given up at its deadline, whatever the server does (sends a header
byte a
second, never ends, says nothing): time-outs of the client alone hold for one read, not for the whole. Redirects are not
followed, so the key goes to the named server only.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prefixguard.errors import EndpointError, MissingExtraError
from prefixguard.escalate.endpoint import Endpoint, Reply
from prefixguard.escalate.wire import Body, ServerFault, fault_from_answer, read_body

Message = Mapping[str, str]

#: Forms of a request, from the one we like best to the plainest. A server that answers 400 gets the next one, once.
_FREE: tuple[tuple[str, ...], ...] = (("stream",), ())
_SHAPED: tuple[tuple[str, ...], ...] = (("json_schema", "stream"), ("json_object", "stream"), *_FREE)
_RETRIED = (408, 409, 425, 429)
#: Packages below openai, by release; their errors share no base with its own.
_HTTP_PACKAGES = ("httpx", "httpx2", "httpcore", "httpcore2", "h11")


class Chat:
    """A conversation partner. Remembers what the server accepts. Not for use by several threads at once."""

    def __init__(self, endpoint: Endpoint, schema: Mapping[str, Any] | None = None) -> None:
        """schema: JSON Schema of the reply, asked of servers that can hold a model to one; None for free text.

        MissingExtraError without the packages; ConfigError without a key where one is needed.
        """
        try:
            import openai
            import tenacity
        except ImportError as exc:
            raise MissingExtraError(
                f'asking a model needs {exc.name}. Install it with: pip install "prefixguard[llm]"'
            ) from exc
        self._openai, self._tenacity = openai, tenacity
        self.endpoint = endpoint
        self._key = endpoint.key()
        self._schema = schema
        self._forms = _FREE if schema is None else _SHAPED
        self._form = 0

    @property
    def form(self) -> tuple[str, ...]:
        """What requests ask for now: some of json_schema, json_object, stream."""
        return self._forms[self._form]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written anywhere."""
        return (self._key,)

    def ask(
        self,
        messages: Sequence[Message],
        listen: Callable[[str], None] | None = None,
        seconds: float | None = None,
    ) -> Reply:
        """The reply to these messages ({"role": ..., "content": ...}). seconds: at most, where less than the patience.

        EndpointError where the server refuses, or does not answer in time after all retries.
        """
        begin = time.monotonic()
        end = begin + min(self.endpoint.patience, self.endpoint.patience if seconds is None else seconds)
        attempts = 0
        notes: list[str] = []

        def say(text: str) -> None:
            notes.append(text)
            if listen is not None:
                listen(text)

        def once() -> Body:
            nonlocal attempts
            while True:
                attempts += 1
                try:
                    return self._request(messages, end)
                except ServerFault as fault:
                    if not self._plainer(fault):
                        raise
                    say(f"the server does not take this form of request ({fault.message[:120]}); asking plainer")

        body = self._retried(once, end, say)
        counted = body.usage is not None
        sent = sum(len(message["content"]) for message in messages)
        tokens_in, tokens_out = body.usage or (sent // 4, len(body.text) // 4)
        return Reply(
            text=body.text,
            finish=body.finish,
            refusal=body.refusal,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            estimated=not counted,
            seconds=time.monotonic() - begin,
            attempts=attempts,
            model=body.model,
            notes=tuple(notes),
        )

    def _plainer(self, fault: ServerFault) -> bool:
        """Takes the next plainer form of request, where the fault may be about the form."""
        text = fault.message.lower()
        if fault.status not in (400, 415, 422) or self._form + 1 >= len(self._forms):
            return False
        if any(word in text for word in ("context length", "context_length", "too long", "maximum context", "tokens")):
            return False
        about_stream = "stream" in text and "response_format" not in text
        self._form = len(self._forms) - 1 if about_stream else self._form + 1
        return True

    def _retried(self, once: Callable[[], Body], end: float, say: Callable[[str], None]) -> Body:
        tenacity, endpoint = self._tenacity, self.endpoint
        first = endpoint.first_wait
        backoff = tenacity.wait_exponential(multiplier=first, max=60) + tenacity.wait_random(0, min(1.0, first))

        def wait(state: Any) -> float:
            fault = state.outcome.exception()
            asked = fault.retry_after if isinstance(fault, ServerFault) else None
            return max(float(backoff(state)), asked or 0.0)

        def stop(state: Any) -> bool:
            too_often = state.attempt_number > endpoint.max_retries
            return bool(too_often or time.monotonic() + state.upcoming_sleep >= end)

        def told(state: Any) -> None:
            say(f"{_why(state.outcome.exception())}; trying again in {state.next_action.sleep:.1f} s")

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_passing),
            wait=wait,
            stop=stop,
            before_sleep=told,
            reraise=True,
        )
        try:
            body: Body = retrying(once)
        except (ServerFault, _Unreached) as exc:
            raise EndpointError(self._clean(f"{endpoint.shown}: {_why(exc)}. {_remedy(exc)}")) from None
        except EndpointError as exc:
            raise EndpointError(self._clean(f"{endpoint.shown}: {exc}")) from None
        return body

    def _request(self, messages: Sequence[Message], end: float) -> Body:
        """One request. ServerFault, _Unreached or EndpointError; never later than its deadline."""
        seconds = min(self.endpoint.timeout, end - time.monotonic())
        if seconds <= 0:
            raise _Unreached(f"no answer within {self.endpoint.patience:g} s")
        deadline = time.monotonic() + seconds
        box: queue.Queue[Body | BaseException] = queue.Queue(1)
        client = self._client(seconds)

        def tick() -> None:
            if time.monotonic() > deadline:
                raise _Unreached(f"the answer was not complete after {seconds:g} s")

        def work() -> None:
            try:
                box.put(self._exchange(client, messages, tick))
            except BaseException as exc:
                box.put(exc)
            finally:
                client.close()

        threading.Thread(target=work, name="prefixguard-endpoint", daemon=True).start()
        try:
            found = box.get(timeout=seconds + 0.25)
        except queue.Empty:
            client.close()  # the thread ends with its next read
            raise _Unreached(f"no complete answer within {seconds:g} s") from None
        if isinstance(found, Body):
            return found
        if isinstance(found, ServerFault | _Unreached | EndpointError):
            raise found
        openai = self._openai
        below = type(found).__module__.partition(".")[0] in _HTTP_PACKAGES
        if isinstance(found, openai.APITimeoutError) or (below and "Timeout" in type(found).__name__):
            raise _Unreached(f"no answer within {seconds:g} s")
        if isinstance(found, openai.APIConnectionError | OSError) or below:
            cause = found.__cause__ or found
            raise _Unreached(f"the connection failed ({type(cause).__name__}: {str(cause)[:200]})")
        if isinstance(found, openai.OpenAIError):
            raise EndpointError(f"the openai package gave up: {str(found)[:300]}")
        raise found

    def _client(self, seconds: float) -> Any:
        openai = self._openai
        return openai.OpenAI(
            api_key=self._key,
            base_url=self.endpoint.base_url,
            max_retries=0,
            timeout=seconds,
            default_headers={"Accept-Encoding": "identity"},  # a small body must not unpack to a big one
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False, timeout=seconds, event_hooks={"response": [_refuse_errors]}
            ),
        )

    def _exchange(self, client: Any, messages: Sequence[Message], tick: Callable[[], None]) -> Body:
        form, endpoint = self.form, self.endpoint
        asked: dict[str, Any] = {}
        if "json_schema" in form:
            schema = {"name": "answer", "schema": self._schema, "strict": False}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif "json_object" in form:
            asked["response_format"] = {"type": "json_object"}
        if "stream" in form:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        if endpoint.max_reply_tokens is not None:
            asked["max_tokens"] = endpoint.max_reply_tokens
        if endpoint.temperature is not None:
            asked["temperature"] = endpoint.temperature
        with client.chat.completions.with_streaming_response.create(
            model=endpoint.model, messages=[dict(message) for message in messages], **asked
        ) as answer:
            response = answer.http_response
            if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise EndpointError("the endpoint compresses its answer although it was asked not to.")
            return read_body(response.headers.get("content-type", ""), response.iter_raw(65536), tick)

    def _clean(self, text: str) -> str:
        return text.replace(self._key, "<masked key>") if len(self._key) >= 6 else text


class _Unreached(Exception):
    """No answer: a time-out, or a connection that failed."""


def _refuse_errors(response: Any) -> None:
    """Turns every answer that is not 2xx into a ServerFault, reading the beginning of its body only: the client would
    read all of it."""
    if 200 <= response.status_code < 300:
        return
    data = b""
    for chunk in response.iter_raw(4096):
        data += chunk
        if len(data) >= 4096:
            break
    raise fault_from_answer(response.status_code, data, response.headers.get("retry-after"))


def _passing(exc: BaseException) -> bool:
    """Is it worth trying again?"""
    if isinstance(exc, ServerFault):
        return exc.status in _RETRIED or exc.status >= 500
    return isinstance(exc, _Unreached)


def _why(exc: BaseException | None) -> str:
    if isinstance(exc, ServerFault):
        return f"the server answered {exc.status or 'with an error'}: {exc.message[:300]}"
    return str(exc)


def _remedy(exc: ServerFault | _Unreached) -> str:
    status = exc.status if isinstance(exc, ServerFault) else None
    if status in (401, 403):
        return "Check the key and what it may use."
    if status == 404:
        return "Check the base URL (it usually ends in /v1) and the name of the model."
    if status is not None and 300 <= status < 400:
        return "Redirects are not followed; name the server's own URL."
    if status in (400, 413, 422):
        return "If the prompt is too long for the model, give fewer tokens to the samples."
    if status == 429:
        return "Wait, or ask for a higher limit."
    return "Is the server up? A slow model needs a longer time-out."


__all__ = ["Chat", "Message"]
