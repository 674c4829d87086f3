"""An auditor behind an endpoint: asks, reads the reply, counts the cost. Never raises for what the endpoint does."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from prefixguard.escalate.endpoint import Endpoint, Reply
from prefixguard.escalate.judged import Judged
from prefixguard.escalate.prompting import PromptKind, ask_for_verdict, prompt_version
from prefixguard.escalate.verdict_parsing import Blame, read_verdict
from prefixguard.stepview import StepRecord


class Client(Protocol):
    """Asks an endpoint (`AsyncClient`)."""

    @property
    def endpoint(self) -> Endpoint: ...

    async def ask(
        self, messages: Sequence[Mapping[str, str]], *, seconds: float | None = None, logprobs: bool = False
    ) -> Reply: ...


class VerdictCache(Protocol):
    """Verdicts by key."""

    def get(self, key: str) -> Judged | None: ...

    def put(self, judged: Judged) -> None: ...


class LlmAuditor:
    """A language model as auditor; one question a call of `judge`."""

    def __init__(
        self,
        client: Client,
        kind: PromptKind = PromptKind.ONLINE,
        *,
        budget_tokens: int = 24_000,
        aliases: Mapping[str, str] = MappingProxyType({}),
        cache: VerdictCache | None = None,
        logprobs: bool = False,
        known_failed: bool = False,
        blame: Blame = "agents",
    ) -> None:
        self._client, self.kind, self.budget_tokens = client, PromptKind(kind), budget_tokens
        self._aliases, self._cache, self._logprobs = aliases, cache, logprobs
        self._known_failed, self._blame = known_failed, blame

    @property
    def model(self) -> str:
        """What is asked."""
        return self._client.endpoint.model

    @property
    def prompt_version(self) -> str:
        """Which question asks, with the hash of its wording."""
        return prompt_version(self.kind)

    async def judge(
        self,
        records: Sequence[StepRecord],
        *,
        seconds: float | None = None,
        answer: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> Judged:
        """The verdict on these records, the steps of a run so far. seconds: at most so long; see `ask_for_verdict` for
        answer and within."""
        raise NotImplementedError
