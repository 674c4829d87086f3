"""Questions to an endpoint, one at a time, for code that is not asynchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint, Reply
from prefixguard.escalate.request_forms import Message


class Chat:
    """A conversation partner: an `AsyncClient` with a loop of its own for each question, on a thread of its own.
    Remembers what the server accepts. Not for use by several threads at once (UsageError)."""

    def __init__(
        self, endpoint: Endpoint, schema: Mapping[str, Any] | None = None, *, breaker: CircuitBreaker | None = None
    ) -> None:
        """schema: JSON Schema of the reply, asked of servers that can hold a model to one; None for free text.

        breaker: may be shared with other clients of the endpoint; None for none, since questions come one at a time.
        MissingExtraError without the packages; ConfigError without a key where one is needed.
        """
        self._client = AsyncClient(endpoint, schema, breaker=breaker or False, concurrency=1)
        self.endpoint = endpoint

    @property
    def form(self) -> tuple[str, ...]:
        """What requests ask for now: some of json_schema, json_object, stream."""
        return self._client.form

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
        """The reply to these messages ({"role": ..., "content": ...}). seconds: at most, where less than the patience.

        listen: told, on the caller's thread, of retries and plainer forms. logprobs: ask for the answer's tokens.
        NoReplyError (an EndpointError) where the server refuses, or does not answer in time after all retries.
        """
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


__all__ = ["Chat", "Message"]
