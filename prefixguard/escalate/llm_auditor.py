"""An auditor behind an endpoint: asks, reads the reply, counts the cost. Never raises for what the endpoint does."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate.circuit import CircuitBreaker, NoReplyError
from prefixguard.escalate.confidence import ConfidenceMap, raw_confidence
from prefixguard.escalate.endpoint import Client, Reply
from prefixguard.escalate.masking import MaskedRecords
from prefixguard.escalate.prompting import MIN_BUDGET, PromptKind, VerdictPrompt, ask_for_verdict, prompt_version
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictCache, VerdictOutcome, as_cached
from prefixguard.escalate.verdict_parsing import Blame, read_verdict
from prefixguard.stepview import StepRecord

#: The note of a verdict whose confidence is what the model's own probabilities say.
RAW_CONFIDENCE = "confidence not calibrated"


class LlmAuditor:
    """A language model as auditor: one question a call of `judge`. May be used by several tasks at once."""

    def __init__(
        self,
        client: Client,
        kind: PromptKind = PromptKind.ONLINE,
        *,
        budget_tokens: int = 24_000,
        aliases: Mapping[str, str] = MappingProxyType({}),
        cache: VerdictCache | None = None,
        logprobs: bool = False,
        confidence: ConfidenceMap | None = None,
        known_failed: bool = False,
        blame: Blame = "agents",
        mask: bool = True,
    ) -> None:
        """budget_tokens, known_failed: see `ask_for_verdict`; aliases, blame: see `read_verdict`.

        cache: verdicts that need not be asked for again; errors are never kept. logprobs: ask for log-probabilities,
        and give the verdict a confidence where the server sends them. confidence: the map that calibrates it; without
        one it stays raw, with a note. mask: mask likely secrets of the records (`Masker`) before they are cut to the
        budget and sent; False sends them as they are. ConfigError below MIN_BUDGET.
        """
        if budget_tokens < MIN_BUDGET:
            raise ConfigError(f"budget_tokens {budget_tokens}: tokens of a prompt, {MIN_BUDGET} or more.")
        self._client, self.kind, self.budget_tokens = client, PromptKind(kind), budget_tokens
        self._aliases, self._cache, self._blame = dict(aliases), cache, blame
        self._logprobs, self._confidence, self._known_failed = logprobs, confidence, known_failed
        self._mask = mask

    @property
    def model(self) -> str:
        """What is asked."""
        return self._client.endpoint.model

    @property
    def breaker(self) -> CircuitBreaker | None:
        """The client's circuit breaker, where it has one: a `RequestQueue` takes no question while it is open."""
        found = getattr(self._client, "breaker", None)
        return found if isinstance(found, CircuitBreaker) else None

    @property
    def prompt_version(self) -> str:
        """Which question asks, with the hash of its wording."""
        return prompt_version(self.kind)

    async def aclose(self) -> None:
        """Close the client's connections, where it has any; on the loop that it was asked on."""
        aclose = getattr(self._client, "aclose", None)
        if aclose is not None:
            await aclose()

    def key_of(
        self, records: Sequence[StepRecord], *, answer: str | None = None, within: tuple[int, int] | None = None
    ) -> str:
        """The `AuditResult.key` that `judge` on these records would have."""
        return self._key(self._asked(records, answer, within)[1])

    def left_out(
        self, records: Sequence[StepRecord], *, answer: str | None = None, within: tuple[int, int] | None = None
    ) -> tuple[tuple[int, int], ...]:
        """Ranges of steps that the prompt of `judge` on these records does not show, both ends included."""
        return self._asked(records, answer, within)[1].excerpt.elided

    async def judge(
        self,
        records: Sequence[StepRecord],
        *,
        seconds: float | None = None,
        answer: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> AuditResult:
        """The verdict on these records, the steps of a run so far. seconds: at most so long.

        answer, within: see `ask_for_verdict`, whose ConfigError may leave this. `AuditResult.reply` is the raw reply,
        behind what the model thought where the server sends that apart.
        """
        begin = time.monotonic()
        shown, prompt = self._asked(records, answer, within)
        key = self._key(prompt)
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is not None:
            return replace(as_cached(kept), masked=shown.counts)
        try:
            reply = await self._client.ask(prompt.messages, seconds=seconds, logprobs=self._logprobs)
        except EndpointError as exc:
            return replace(_without_reply(exc, key, time.monotonic() - begin), masked=shown.counts)
        verdict = read_verdict(
            reply,
            shown.records,
            kind=self.kind,
            blame=self._blame,
            elided=prompt.excerpt.elided,
            within=within,
            aliases=self._aliases,
        )
        verdict = replace(verdict, agent=shown.agents.get(verdict.agent or "", verdict.agent))
        judged = AuditResult(
            verdict=self._with_confidence(verdict, reply),
            key=key,
            cached=False,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            estimated=reply.estimated,
            cost=self._client.endpoint.cost(reply.tokens_in, reply.tokens_out),
            seconds=time.monotonic() - begin,
            attempts=reply.attempts,
            reply=f"<think>\n{reply.reasoning}\n</think>\n{reply.text}" if reply.reasoning else reply.text,
            finish=reply.finish,
            masked=shown.counts,
        )
        if self._cache is not None:
            self._cache.put(key, judged)
        return judged

    def _asked(
        self, records: Sequence[StepRecord], answer: str | None, within: tuple[int, int] | None
    ) -> tuple[MaskedRecords, VerdictPrompt]:
        """The records as they may be shown, and the question about them."""
        shown = MaskedRecords.of(records, mask=self._mask, known=getattr(self._client, "secrets", ()))
        answer = shown.masker.mask(answer) if self._mask and answer is not None else answer
        known = self._known_failed
        prompt = ask_for_verdict(
            self.kind, shown.records, self.budget_tokens, answer=answer, known_failed=known, within=within
        )
        return shown, prompt

    def _key(self, prompt: VerdictPrompt) -> str:
        """Everything that is sent, and how the reply is read."""
        parts = [prompt.messages, self.model, prompt.prompt_version, self._blame, sorted(self._aliases.items())]
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    def _with_confidence(self, verdict: Verdict, reply: Reply) -> Verdict:
        if not reply.logprobs or verdict.outcome is VerdictOutcome.ERROR:
            return verdict
        value: str | int | None = "SAFE" if verdict.outcome is VerdictOutcome.SAFE else None
        if verdict.outcome is VerdictOutcome.ALARM and self.kind is not PromptKind.BINARY_SEARCH:
            value = verdict.step
        raw = raw_confidence(reply.logprobs, "answer", value)
        if raw is None:
            return verdict
        if self._confidence is not None:
            return replace(verdict, confidence=self._confidence(raw))
        return replace(verdict, confidence=raw, notes=(*verdict.notes, RAW_CONFIDENCE))


def _without_reply(exc: EndpointError, key: str, seconds: float) -> AuditResult:
    """What a request costs that was sent and not answered is not known; one that was not sent costs nothing."""
    verdict = Verdict(VerdictOutcome.ERROR, fault="no-answer", detail=str(exc)[:500])
    if not isinstance(exc, NoReplyError):
        return AuditResult(verdict, key, False, 0, 0, True, None, seconds, 0, "")
    verdict = replace(verdict, fault=exc.fault.value, notes=exc.notes)
    cost = None if exc.attempts else 0.0
    return AuditResult(verdict, key, False, 0, 0, exc.attempts > 0, cost, seconds, exc.attempts, "")
