"""A monitor with a language model behind it, by the name of an endpoint."""

from __future__ import annotations

from typing import Any

from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.llm_auditor import LlmAuditor
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.session import Escalator
from prefixguard.escalate.verdict import VerdictCache
from prefixguard.runtime import Monitor

#: Bytes of text that a token of a prompt shows at most, nearly always: what a session keeps of a run goes by it.
_BYTES_A_TOKEN = 3


def model_escalator(
    monitor: Monitor,
    endpoint: Endpoint,
    *,
    budget_tokens: int = 24_000,
    mask: bool = True,
    cache: VerdictCache | None = None,
    **policy: Any,
) -> Escalator:
    """An escalator that asks this endpoint. A dead endpoint opens a circuit breaker, and then nothing is asked.

    budget_tokens: tokens of a prompt; what a session keeps of a run, and what a question is held to take, follow from
    it. mask, cache: see `LlmAuditor`, `Escalator`. policy: other fields of `EscalationPolicy`.
    Raises ConfigError, MissingExtraError.
    """
    follows = {
        "question_tokens": budget_tokens + (endpoint.max_reply_tokens or 0),
        "keep_texts": max(1024, _BYTES_A_TOKEN * budget_tokens),
        "seconds": endpoint.timeout,
    }
    chosen, breaker = EscalationPolicy(**{**follows, **policy}), CircuitBreaker()
    auditor = LlmAuditor(AsyncClient(endpoint, breaker=breaker), budget_tokens=budget_tokens, mask=mask)
    return Escalator(monitor, auditor, chosen, cache, breaker=breaker)
