"""Questions to an endpoint: slots, deadlines, retries, circuit breaker, and plainer forms for plainer servers."""

from __future__ import annotations

import asyncio
import math
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from prefixguard.errors import ConfigError, UsageError, missing_extra
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, CircuitState, NoReplyError, NoReplyFault
from prefixguard.escalate.connection import Connection, RequestFault, timed_out
from prefixguard.escalate.endpoint import Endpoint, Reply, masked, secrets_of

MOST_CONCURRENCY = 1000
#: Seconds after its deadline until a question is given up that did not end at it.
_GRACE = 0.25
#: Seconds: the longest wait of our own between two tries, and a Retry-After from which it is taken instead.
_LONGEST_WAIT, _LONG = 60.0, 1.0

#: Who says what: {"role": ..., "content": ...}.
Message = Mapping[str, str]

#: From the form we like best to the plainest. A server that answers 400 gets the next one, once.
_FREE: tuple[tuple[str, ...], ...] = (("stream",), ())
_SHAPED: tuple[tuple[str, ...], ...] = (("json_schema", "stream"), ("json_object", "stream"), *_FREE)
#: Settings that some models refuse by name (OpenAI's reasoning models take the default temperature only).
_LEFT_OUT = ("temperature", "seed")


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of request. asks: some of json_schema, json_object, stream. logprobs: may they be asked for. limit: what
    this server calls the greatest length of a reply. without: settings of the endpoint that it does not take."""

    asks: tuple[str, ...]
    logprobs: bool = True
    limit: str = "max_tokens"
    without: tuple[str, ...] = ()

    def plainer(
        self, fault: RequestFault, endpoint: Endpoint, forms: Sequence[tuple[str, ...]], logprobs: bool
    ) -> _Form | None:
        """The next plainer form where the fault may be about this one; None: give up. logprobs: were they asked for."""
        text = fault.message.lower()
        if fault.status not in (400, 415, 422):
            return None
        if self.limit == "max_tokens" and "max_completion_tokens" in text and endpoint.max_reply_tokens:
            return replace(self, limit="max_completion_tokens")
        logprobs = logprobs and self.logprobs
        if logprobs and "logprob" in text:
            return replace(self, logprobs=False)
        refused = [name for name in _LEFT_OUT if name in fault.words and getattr(endpoint, name) is not None]
        if refused := [name for name in refused if name not in self.without]:
            return replace(self, without=(*self.without, *refused))
        if fault.is_about_length:
            return None
        place = forms.index(self.asks)
        if place + 1 < len(forms):
            about_stream = "stream" in text and "response_format" not in text
            return replace(self, asks=forms[-1] if about_stream else forms[place + 1])
        return replace(self, logprobs=False) if logprobs else None

    def body(self, endpoint: Endpoint, messages: Sequence[Message], schema: Any, logprobs: bool) -> dict[str, Any]:
        """The request."""
        asked: dict[str, Any] = {"model": endpoint.model, "messages": [dict(message) for message in messages]}
        if "json_schema" in self.asks:
            named = {"name": "answer", "schema": schema, "strict": False}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        elif "json_object" in self.asks:
            asked["response_format"] = {"type": "json_object"}
        if "stream" in self.asks:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        if logprobs and self.logprobs:
            asked["logprobs"] = True
        if endpoint.max_reply_tokens is not None:
            asked[self.limit] = endpoint.max_reply_tokens
        for name in _LEFT_OUT:
            value = getattr(endpoint, name)
            if value is not None and name not in self.without:
                asked[name] = value
        return asked


@dataclass(slots=True)
class _Question:
    """One question under way. begin, end: by time.monotonic(). fault: what the server answered last."""

    messages: Sequence[Message]
    logprobs: bool
    begin: float
    end: float
    say: Callable[[str], None]
    attempts: int = 0
    fault: RequestFault | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class AsyncClient:
    """Asks an endpoint; remembers which form of request it takes. On one event loop from its first question to
    `aclose`; after that it may be used again, on any loop. Any number of questions may be under way at once, and each
    may be cancelled."""

    def __init__(
        self,
        endpoint: Endpoint,
        schema: Mapping[str, Any] | None = None,
        *,
        breaker: CircuitBreaker | Literal[False] | None = None,
        concurrency: int = 16,
    ) -> None:
        """schema: JSON Schema of the reply, asked of servers that can hold a model to one; None for free text.

        breaker: may be shared by several clients of one endpoint; None for one of its own, False for none.
        concurrency: requests under way at most, 1 to 1000.
        MissingExtraError without the package; ConfigError without a key where one is needed.
        """
        try:
            import openai  # noqa: F401  (missed here, before anything is asked)
        except ImportError as exc:
            raise missing_extra("asking a model", "llm", exc) from exc
        if not 1 <= concurrency <= MOST_CONCURRENCY:
            raise ConfigError(f"concurrency {concurrency}: requests at a time, from 1 to {MOST_CONCURRENCY}.")
        self.endpoint, self.concurrency = endpoint, concurrency
        self.breaker = CircuitBreaker() if breaker is None else breaker or None
        self._key = endpoint.key()
        self._secrets = secrets_of(endpoint, self._key)
        self._schema = schema
        self._forms = _FREE if schema is None else _SHAPED
        self._form = _Form(self._forms[0])
        self._connection: Connection | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written anywhere."""
        return self._secrets

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        seconds: float | None = None,
        logprobs: bool = False,
        listen: Callable[[str], None] | None = None,
    ) -> Reply:
        """The reply to these messages ({"role": ..., "content": ...}).

        seconds: at most, where less than the endpoint's patience; waiting for a slot included. logprobs: ask for the
        tokens of the answer; `Reply.logprobs` stays empty where the server sends none. listen: told, on the loop's
        thread, of retries and plainer forms.
        NoReplyError (an EndpointError) where there is none; its subclass CircuitOpenError where nothing was sent.
        UsageError on another event loop than the questions before.
        """
        if seconds is not None and math.isnan(seconds):
            raise ConfigError(f"seconds {seconds}: a number of seconds, or None.")
        patience = self.endpoint.patience
        begin = time.monotonic()
        notes: list[str] = []

        def say(text: str) -> None:
            notes.append(masked(text, self._secrets))
            if listen is not None:
                listen(notes[-1])

        end = begin + (patience if seconds is None else min(patience, max(seconds, 0.0)))
        question = _Question(messages, logprobs, begin, end, say)
        found = await self._answered(question)
        spent = time.monotonic() - begin
        if isinstance(found, CircuitOpenError):
            found.attempts, found.seconds, found.notes = question.attempts, spent, tuple(notes)
            raise found
        if isinstance(found, RequestFault):  # raised here and not where it was met: errors below may repeat the key
            why = found.why()
            told = (
                f"{self.endpoint.shown}: {why}{'' if why.endswith(('.', '!', '?')) else '.'} {found.remedy()}".rstrip()
            )
            raise NoReplyError(
                masked(told, self._secrets),
                found.fault,
                attempts=question.attempts,
                seconds=spent,
                status=found.status or None,
                notes=tuple(notes),
            )
        sent = sum(len(message["content"]) for message in messages)
        received = len(found.text) + len(found.reasoning)
        clean = self._clean
        text, joined = clean(found.text), "".join(token for token, _ in found.logprobs)
        return replace(
            found,
            text=text,
            finish=clean(found.finish),
            refusal=clean(found.refusal),
            tokens_in=sent // 4 if found.estimated else found.tokens_in,
            tokens_out=received // 4 if found.estimated else found.tokens_out,
            seconds=spent,
            attempts=question.attempts,
            model=clean(found.model),
            notes=tuple(notes),
            reasoning=clean(found.reasoning),
            # None where a secret is in the text or in them, whole or spread over several: they fit no text then.
            logprobs=found.logprobs if text == found.text and clean(joined) == joined else (),
        )

    async def aclose(self) -> None:
        """Closes the connections; questions under way fail. Does nothing where none was asked."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.loop.is_closed():
            await connection.aclose()

    def _clean(self, text: str) -> str:
        """Servers repeat what they were sent, the key too; what is in a reply is written to files and shown."""
        return masked(text, self._secrets)

    def _opened(self) -> Connection:
        found = self._connection
        if found is None or found.loop.is_closed():  # the latter: asyncio.run has ended without aclose
            found = self._connection = Connection(self.endpoint, self._key, self.concurrency)
        elif found.loop is not asyncio.get_running_loop():
            raise UsageError("this client is in use on another event loop. Close it there first, or make one for each.")
        return found

    async def _answered(self, question: _Question) -> Reply | RequestFault | CircuitOpenError:
        """The reply as it came, or what is in its way after all retries."""
        try:
            if self.breaker is not None:
                self.breaker.check()  # costs nothing, unlike what follows
            async with asyncio.timeout(question.seconds + _GRACE):
                return await self._tried(self._opened(), question)
        except TimeoutError:
            return question.fault or timed_out(question.seconds)
        except RequestFault as exc:
            # Where the question's end cut the last try off, the answer before it says what was in the way.
            was_cut_off = exc.fault is NoReplyFault.TIMEOUT and time.monotonic() >= question.end
            return question.fault if was_cut_off and question.fault is not None else exc
        except CircuitOpenError as exc:
            return exc

    async def _tried(self, connection: Connection, question: _Question) -> Reply:
        """Tries with exponential backoff and jitter between them, or as long as the server asks (Retry-After).

        A busy server that says when to come back is asked again until the question's end, however often: that is its
        rate limit and no fault. Other tries are counted (`Endpoint.max_retries`; with 0 nothing is asked again). A wait
        that would reach the end is not begun. The openai package's own retries know neither end nor rate limit.
        """
        endpoint, tries, counted = self.endpoint, 0, 0
        while True:
            try:
                return await self._once(connection, question)
            except RequestFault as fault:
                tries += 1
                asked = fault.retry_after
                counted += not (endpoint.max_retries and fault.is_busy and asked is not None)
                jitter = random.uniform(0, min(1.0, endpoint.first_wait))
                if asked is not None and asked >= _LONG:  # it knows better; a short one would be asked in a hurry
                    wait = asked + jitter
                else:
                    wait = max(min(endpoint.first_wait * 2 ** min(tries - 1, 20), _LONGEST_WAIT) + jitter, asked or 0.0)
                is_open = self.breaker is not None and self.breaker.state is CircuitState.OPEN
                is_over = connection.closed or is_open or time.monotonic() + wait >= question.end
                if not fault.passes or counted > endpoint.max_retries or is_over:
                    raise
                question.say(f"{fault.why()}; trying again in {wait:.1f} s")
            await asyncio.sleep(wait)

    async def _once(self, connection: Connection, question: _Question) -> Reply:
        """One try, in plainer and plainer forms where the server refuses the form. What was found out is kept for all
        questions, and several under way that meet the same fault take one step together."""
        while True:
            form = self._form
            try:
                return await self._in_turn(connection, question, form)
            except RequestFault as fault:
                if fault.status is None:
                    raise
                plainer = form.plainer(fault, self.endpoint, self._forms, question.logprobs)
                if self._form != form and fault.status in (400, 415, 422):  # another question has found out already
                    plainer = self._form
                if plainer is None:
                    question.fault = fault
                    raise
                self._form = plainer
                question.say(f"the server does not take this form of request ({fault.message[:120]}); asking plainer")

    async def _in_turn(self, connection: Connection, question: _Question, form: _Form) -> Reply:
        """One request, when a slot is free and the circuit breaker lets it go."""
        breaker = self.breaker
        if breaker is not None:
            breaker.check()  # before waiting for a slot
        try:
            async with asyncio.timeout(question.end - time.monotonic()):
                await connection.slots.acquire()
        except TimeoutError:
            why_not = f"no request was free to go within {question.seconds:g} s ({self.concurrency} at a time)"
            raise RequestFault(NoReplyFault.TIMEOUT, why_not, told=False) from None
        permit, is_down, cause = None, None, ""
        try:
            if connection.closed:
                raise RequestFault(NoReplyFault.UNREACHED, "the client was closed", told=False)
            permit = None if breaker is None else breaker.admit()
            reply = await self._request(connection, question, form)
            is_down = False
            return reply
        except RequestFault as exc:
            is_down, cause = exc.is_down, self._clean(exc.why())
            raise
        finally:
            connection.slots.release()
            if breaker is not None and permit is not None:
                breaker.ended(permit, is_down, cause)

    async def _request(self, connection: Connection, question: _Question, form: _Form) -> Reply:
        """One request. RequestFault, without the key; not later than its deadline."""
        endpoint = self.endpoint
        seconds = min(endpoint.timeout, question.end - time.monotonic())
        if seconds <= 0:
            raise timed_out(question.seconds, told=False)
        question.attempts += 1
        body = form.body(endpoint, question.messages, self._schema, question.logprobs)
        try:
            return await connection.request(body, seconds)
        except RequestFault as exc:
            if exc.fault is NoReplyFault.TIMEOUT:  # the rest of a question may be too short for any server
                exc.told = seconds >= min(endpoint.timeout, question.seconds) / 2
            raise


class Chat:
    """A conversation partner for code that is not asynchronous: an `AsyncClient` with a loop of its own for each
    question, on a thread of its own. Remembers what the server accepts. Not for use by several threads at once
    (UsageError)."""

    def __init__(
        self, endpoint: Endpoint, schema: Mapping[str, Any] | None = None, *, breaker: CircuitBreaker | None = None
    ) -> None:
        """schema: as for `AsyncClient`, whose errors it raises.

        breaker: may be shared with other clients of the endpoint; None for none, since questions come one at a time.
        """
        self._client = AsyncClient(endpoint, schema, breaker=breaker or False, concurrency=1)
        self.endpoint = endpoint

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written anywhere."""
        return self._client.secrets

    def ask(
        self,
        messages: Sequence[Message],
        listen: Callable[[str], None] | None = None,
        seconds: float | None = None,
        logprobs: bool = False,
    ) -> Reply:
        """The reply to these messages; as `AsyncClient.ask`. listen: told on the caller's thread."""
        said: queue.SimpleQueue[str | Reply | BaseException] = queue.SimpleQueue()
        under_way: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def question() -> Reply:
            task = asyncio.current_task()
            if task is not None:
                under_way.append((asyncio.get_running_loop(), task))
            try:
                return await self._client.ask(messages, seconds=seconds, logprobs=logprobs, listen=said.put)
            finally:
                await self._client.aclose()

        def work() -> None:
            with asyncio.Runner() as runner:
                try:
                    end: Reply | BaseException = runner.run(question())
                except BaseException as exc:
                    end = exc
                said.put(end)  # before the loop closes: a name that is being looked up would hold that up

        threading.Thread(target=work, name="prefixguard-endpoint", daemon=True).start()
        try:
            while isinstance(found := said.get(), str):
                if listen is not None:
                    listen(found)
        except BaseException:  # the caller was interrupted, or what listens failed
            for loop, task in under_way:
                with suppress(RuntimeError):  # its loop has ended
                    loop.call_soon_threadsafe(task.cancel)
            raise
        if isinstance(found, Reply):
            return found
        raise found
