"""Questions to an endpoint, many at a time, on one event loop: slots, deadlines, retries, circuit breaker."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prefixguard.errors import ConfigError, EndpointError, UsageError, missing_extra
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, CircuitState, NoReplyError
from prefixguard.escalate.connection import Connection
from prefixguard.escalate.endpoint import Endpoint, Reply
from prefixguard.escalate.key_masking import masked, secrets_of
from prefixguard.escalate.request_forms import Form, Message, RequestForms
from prefixguard.escalate.retries import Unreached, endpoint_failed, fault_of, remedy, retrying, why
from prefixguard.escalate.wire import Body, ServerFault

MOST_CONCURRENCY = 1000
#: Seconds after its deadline until a question is given up that did not end at it.
_GRACE = 0.25


@dataclass(frozen=True, slots=True)
class _Line:
    """What belongs to one event loop: connections, and slots for requests."""

    connection: Connection
    slots: asyncio.Semaphore


@dataclass(slots=True)
class _Question:
    """One question under way. begin, end: by time.monotonic(). fault: what the server answered last."""

    messages: Sequence[Message]
    logprobs: bool
    begin: float
    end: float
    say: Callable[[str], None]
    attempts: int = 0
    fault: ServerFault | None = None

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
        MissingExtraError without the packages; ConfigError without a key where one is needed.
        """
        try:
            import openai  # noqa: F401  (missed here, before anything is asked)
            import tenacity  # noqa: F401
        except ImportError as exc:
            raise missing_extra("asking a model", "llm", exc) from exc
        if not 1 <= concurrency <= MOST_CONCURRENCY:
            raise ConfigError(f"concurrency {concurrency}: requests at a time, from 1 to {MOST_CONCURRENCY}.")
        self.endpoint, self.concurrency = endpoint, concurrency
        self.breaker = CircuitBreaker() if breaker is None else breaker or None
        self._key = endpoint.key()
        self._secrets = secrets_of(endpoint, self._key)
        self._forms = RequestForms(endpoint, schema)
        self._line: _Line | None = None

    @property
    def form(self) -> tuple[str, ...]:
        """What requests ask for now: some of json_schema, json_object, stream."""
        return self._forms.now().asks

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
        if not isinstance(found, Body):  # raised here and not where it was met: errors below may repeat the key
            told = " ".join(part for part in (f"{self.endpoint.shown}: {_sentence(why(found))}", remedy(found)) if part)
            raise NoReplyError(
                masked(told, self._secrets),
                fault_of(found),
                attempts=question.attempts,
                seconds=spent,
                status=found.status or None if isinstance(found, ServerFault) else None,
                notes=tuple(notes),
            )
        counted = found.usage is not None
        sent = sum(len(message["content"]) for message in messages)
        tokens_in, tokens_out = found.usage or (sent // 4, (len(found.text) + len(found.reasoning)) // 4)
        clean = self._clean
        text = clean(found.text)
        return Reply(
            text=text,
            finish=clean(found.finish),
            refusal=clean(found.refusal),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            estimated=not counted,
            seconds=spent,
            attempts=question.attempts,
            model=clean(found.model),
            notes=tuple(notes),
            reasoning=clean(found.reasoning),
            logprobs=self._clean_tokens(found.logprobs) if text == found.text else (),
        )

    async def aclose(self) -> None:
        """Closes the connections; questions under way fail. Does nothing where none was asked."""
        line, self._line = self._line, None
        if line is not None and not line.connection.loop.is_closed():
            await line.connection.aclose()

    def _clean(self, text: str) -> str:
        """Servers repeat what they were sent, the key too; what is in a reply is written to files and shown."""
        return masked(text, self._secrets)

    def _clean_tokens(self, tokens: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        """None of them where a secret is in them, whole or spread over several: they fit no other text then."""
        joined = "".join(token for token, _ in tokens)
        return tokens if self._clean(joined) == joined else ()

    def _opened(self) -> _Line:
        loop = asyncio.get_running_loop()
        if self._line is not None and self._line.connection.loop.is_closed():  # asyncio.run has ended without aclose
            self._line = None
        if self._line is None:
            self._line = _Line(Connection(self.endpoint, self._key), asyncio.Semaphore(self.concurrency))
        elif self._line.connection.loop is not loop:
            raise UsageError("this client is in use on another event loop. Close it there first, or make one for each.")
        return self._line

    async def _answered(self, question: _Question) -> Body | Exception:
        """The body of the reply, or what is in its way after all retries."""
        if self.breaker is not None:
            try:
                self.breaker.check()  # costs nothing, unlike what follows
            except CircuitOpenError as exc:
                return exc
        line = self._opened()

        def is_over() -> bool:
            return line.connection.closed or (self.breaker is not None and self.breaker.state is CircuitState.OPEN)

        tries = retrying(self.endpoint, question.end, question.say, is_over)
        try:
            async with asyncio.timeout(question.seconds + _GRACE):
                body: Body = await tries(self._once, line, question)
                return body
        except TimeoutError:
            return question.fault or Unreached(f"no answer within {question.seconds:g} s", timed_out=True)
        except Unreached as exc:
            # Where the question's end cut the last try off, the answer before it says what was in the way.
            was_cut_off = exc.timed_out and time.monotonic() >= question.end
            return question.fault if was_cut_off and question.fault is not None else exc
        except (ServerFault, EndpointError) as exc:
            return exc

    async def _once(self, line: _Line, question: _Question) -> Body:
        """One try, in plainer and plainer forms where the server refuses the form."""
        while True:
            form = self._forms.now(question.logprobs)
            try:
                return await self._in_turn(line, question, form)
            except ServerFault as fault:
                if not self._forms.plainer(fault, form, question.logprobs):
                    question.fault = fault
                    raise
                question.say(f"the server does not take this form of request ({fault.message[:120]}); asking plainer")

    async def _in_turn(self, line: _Line, question: _Question, form: Form) -> Body:
        """One request, when a slot is free and the circuit breaker lets it go."""
        breaker = self.breaker
        if breaker is not None:
            breaker.check()  # before waiting for a slot
        try:
            async with asyncio.timeout(question.end - time.monotonic()):
                await line.slots.acquire()
        except TimeoutError:
            why_not = f"no request was free to go within {question.seconds:g} s ({self.concurrency} at a time)"
            raise Unreached(why_not, timed_out=True, told=False) from None
        try:
            if line.connection.closed:
                raise Unreached("the client was closed", timed_out=False, told=False)
            if breaker is None:
                return await self._request(line, question, form)
            permit = breaker.admit()
            is_down: bool | None = None
            cause = ""
            try:
                body = await self._request(line, question, form)
                is_down = False
                return body
            except Exception as exc:
                is_down = endpoint_failed(exc)
                cause = self._clean(why(exc))
                raise
            finally:  # a question that was cancelled tells nothing
                if is_down:
                    breaker.failed(permit, cause)
                elif is_down is None:
                    breaker.released(permit)
                else:
                    breaker.succeeded(permit)
        finally:
            line.slots.release()

    async def _request(self, line: _Line, question: _Question, form: Form) -> Body:
        """One request. ServerFault, Unreached or EndpointError, without the key; not later than its deadline."""
        endpoint = self.endpoint
        seconds = min(endpoint.timeout, question.end - time.monotonic())
        if seconds <= 0:
            raise Unreached(f"no answer within {question.seconds:g} s", timed_out=True, told=False)
        question.attempts += 1
        try:
            return await line.connection.request(self._forms.arguments(form, question.messages), seconds)
        except Unreached as exc:
            if exc.timed_out:  # the rest of a question may be too short for any server
                exc.told = seconds >= min(endpoint.timeout, question.seconds) / 2
            raise


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


__all__ = ["AsyncClient", "Message"]
