"""How `audit` goes through runs: its options, checked, and what they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.auditor.hypotheses import PROMPT_VERSION as HYPOTHESES_VERSION
from prefixguard.auditor.protocols import AuditProtocol, HypothesisProtocol, MonitorProtocol, WalkProtocol
from prefixguard.auditor.trigger import EscalationTrigger
from prefixguard.errors import UsageError
from prefixguard.escalate import (
    AsyncClient,
    CircuitBreaker,
    ConfidenceMap,
    Endpoint,
    EscalationPolicy,
    LlmAuditor,
    PromptKind,
    VerdictCache,
    shown_url,
)
from prefixguard.runtime import Monitor, plain
from prefixguard.stepview import StepRecord

PROTOCOLS = ("online", "post-hoc", "step-by-step", "binary-search", "hypotheses", "monitor")
_WALKS = ("online", "step-by-step")


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """Options of an audit. UsageError where they do not go together.

    protocol: one of PROTOCOLS; "": online where there is an endpoint, else monitor. gated: a monitor stands in front.
    The others are those of the command.
    """

    protocol: str
    endpoint: Endpoint | None
    gated: bool
    known_failed: bool = False
    mark: float | None = None
    every: int = 5
    confirm: int = 1
    budget_tokens: int = 24_000
    logprobs: bool = False
    confidence: ConfidenceMap | None = None
    mask: bool = True

    def __post_init__(self) -> None:
        if not self.protocol:
            object.__setattr__(self, "protocol", "monitor" if self.endpoint is None else "online")
        way = self.protocol
        if way not in PROTOCOLS:
            raise UsageError(f"--protocol {plain(way, 60)}: one of {', '.join(PROTOCOLS)}.")
        if way == "monitor" and not self.gated:
            raise UsageError("nothing to audit with: name a model (--model), or a monitor (--monitor), or both.")
        if way == "monitor" and self.endpoint is not None:
            raise UsageError("--protocol monitor asks no model: leave --model out.")
        if way != "monitor" and self.endpoint is None:
            raise UsageError(f"--protocol {way} asks a model: name it with --model.")
        if self.gated and way not in (*_WALKS, "monitor"):
            raise UsageError(f"--protocol {way} looks at whole runs, so no monitor stands in front: leave it out.")
        if self.mark is not None and not self.gated:
            raise UsageError("--mark is a risk of a monitor: name one with --monitor.")
        if self.known_failed and way not in ("post-hoc", "monitor"):
            raise UsageError(f"--known-failed goes with post-hoc and monitor; {way} does not know how a run ends.")
        if (self.logprobs or self.confidence is not None) and way in ("hypotheses", "monitor"):
            raise UsageError(f"--logprobs and --confidence are of a model's verdicts; {way} gives none.")
        if self.confirm > 1 and way != "online":
            raise UsageError(f"--confirm counts alarms of an online walk; {way} asks about each step once.")

    def audit_protocol(
        self,
        monitor: Monitor | None,
        workers: int = 4,
        replies: Path | None = None,
        own: Mapping[str, Sequence[StepRecord]] = MappingProxyType({}),
    ) -> AuditProtocol:
        """What goes through the runs. replies: folder of verdicts that need not be asked for again. own: see
        `EscalationTrigger`."""
        gate = None
        if monitor is not None:
            gate = EscalationTrigger(
                monitor, EscalationPolicy(mark=self.mark, every=self.every, gap=1, calls_a_run=None), own
            )
        if self.endpoint is None:
            if gate is None:
                raise UsageError("nothing to audit with: name a model, or a monitor.")
            return MonitorProtocol(gate, self.known_failed)
        client = AsyncClient(self.endpoint, breaker=CircuitBreaker(), concurrency=max(16, workers))
        if self.protocol == "hypotheses":
            return HypothesisProtocol(client, budget_tokens=self.budget_tokens, mask=self.mask)
        auditor = LlmAuditor(
            client,
            PromptKind(self.protocol.replace("-", "_")),
            budget_tokens=self.budget_tokens,
            cache=None if replies is None else VerdictCache(replies),
            known_failed=self.known_failed,
            logprobs=self.logprobs or self.confidence is not None,
            confidence=self.confidence,
            mask=self.mask,
        )
        return WalkProtocol(auditor, gate, self.confirm)

    def settings(self, protocol: AuditProtocol, adapter: str, monitor: Monitor | None) -> dict[str, Any]:
        """All that verdicts rest on, as plain values. adapter: its hash."""
        endpoint = self.endpoint
        asked = {
            "model": None if endpoint is None else endpoint.model,
            "base_url": None if endpoint is None or endpoint.base_url is None else shown_url(endpoint.base_url),
            "reply_tokens": None if endpoint is None else endpoint.max_reply_tokens,
            "temperature": None if endpoint is None else endpoint.temperature,
        }
        prompt = None
        if isinstance(protocol, WalkProtocol) and isinstance(protocol.auditor, LlmAuditor):
            prompt = protocol.auditor.prompt_version
        elif isinstance(protocol, HypothesisProtocol):
            prompt = HYPOTHESES_VERSION
        own = {name: value for name, value in asdict(self).items() if name not in ("endpoint", "gated", "confidence")}
        own["confidence"] = None if self.confidence is None else self.confidence.to_json()
        return {
            **own,
            **asked,
            "prompt_version": prompt,
            "adapter": adapter,
            "monitor": None if monitor is None else monitor.bundle.id,
        }
