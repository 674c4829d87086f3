"""Questions to an endpoint, many at a time, on one event loop: slots, deadlines, retries, circuit breaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.endpoint import Endpoint, Reply

Message = Mapping[str, str]


class AsyncClient:
    """Asks an endpoint. Belongs to the event loop that asks first; `aclose` when done."""

    def __init__(
        self,
        endpoint: Endpoint,
        schema: Mapping[str, Any] | None = None,
        *,
        breaker: CircuitBreaker | None = None,
        concurrency: int = 16,
    ) -> None:
        """schema: JSON Schema of the reply, asked of servers that can hold a model to one; None for free text.

        breaker: may be shared by several clients of one endpoint. concurrency: requests under way at most, 1 to 1000.
        MissingExtraError without the packages; ConfigError without a key where one is needed.
        """
        self.endpoint, self.breaker = endpoint, breaker

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        seconds: float | None = None,
        logprobs: bool = False,
    ) -> Reply:
        """The reply to these messages ({"role": ..., "content": ...}).

        seconds: at most, where less than the endpoint's patience; waiting for a slot included. logprobs: ask for the
        tokens of the answer; `Reply.logprobs` stays empty where the server sends none.
        NoReplyError (an EndpointError) where there is none; its subclass CircuitOpenError where nothing was sent.
        """
        raise NotImplementedError

    async def aclose(self) -> None:
        """Closes the connections. Nothing may be asked after it."""


__all__ = ["AsyncClient", "Message"]
