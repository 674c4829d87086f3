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
    known_failed : all runs failed and the auditor may know it: post-hoc and monitor only.
    mark: the risk above which the monitor escalates; None: its WATCH threshold.
    every : while the risk stays above: ask again after so many steps, 1 or more; no other limit.
    confirm : alarms in a row until one counts, 1 or more.
    budget_tokens : tokens of a prompt; longer runs are cut, and the prompt says where.
    logprobs : ask for log-probabilities: a verdict's confidence. Labelled verdicts, 40 or more, fit
        OUT/confidence.json.
    confidence: a map that calibrates the confidences. mask: mask likely secrets in what is sent.
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
        way, has_model = self.protocol, self.endpoint is not None
        is_alone, is_walk = way == "monitor", way in _WALKS
        if way not in PROTOCOLS:
            raise UsageError(f"--protocol {plain(way, 60)}: one of {', '.join(PROTOCOLS)}.")
        for is_wrong, said in (
            (is_alone and not self.gated,
             "nothing to audit with: name a model (--model), or a monitor (--monitor), or both."),
            (is_alone and has_model, "--protocol monitor asks no model: leave --model out."),
            (not is_alone and not has_model, f"--protocol {way} asks a model: name it with --model."),
            (self.gated and not (is_walk or is_alone),
             f"--protocol {way} looks at whole runs, so no monitor stands in front: leave it out."),
            (self.mark is not None and not self.gated, "--threshold is a risk of a monitor: name one with --monitor."),
            (self.known_failed and way not in ("post-hoc", "monitor"),
             f"--known-failed goes with post-hoc and monitor; {way} does not know how a run ends."),
            ((self.logprobs or self.confidence is not None) and way in ("hypotheses", "monitor"),
             f"--logprobs and --confidence are of a model's verdicts; {way} gives none."),
            (self.confirm > 1 and way != "online",
             f"--confirm counts alarms of an online walk; {way} asks about each step once."),
        ):  # fmt: skip
            if is_wrong:
                raise UsageError(said)

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
        asked: dict[str, Any] = dict.fromkeys(("model", "base_url", "reply_tokens", "temperature"))
        if (endpoint := self.endpoint) is not None:
            url = None if endpoint.base_url is None else shown_url(endpoint.base_url)
            asked |= {"model": endpoint.model, "base_url": url}
            asked |= {"reply_tokens": endpoint.max_reply_tokens, "temperature": endpoint.temperature}
        prompt = HYPOTHESES_VERSION if isinstance(protocol, HypothesisProtocol) else None
        if isinstance(protocol, WalkProtocol) and isinstance(protocol.auditor, LlmAuditor):
            prompt = protocol.auditor.prompt_version
        own = {name: value for name, value in asdict(self).items() if name not in ("endpoint", "gated", "confidence")}
        return {
            **own,
            "confidence": None if self.confidence is None else self.confidence.to_json(),
            **asked,
            "prompt_version": prompt,
            "adapter": adapter,
            "monitor": None if monitor is None else monitor.bundle.id,
        }
