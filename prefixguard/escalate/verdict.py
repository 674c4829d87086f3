"""What an auditor says of a run, or of the part of it that is there, and what asking took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from prefixguard.stepview import StepRecord


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One question to an auditor and its answer.

    key: hash of everything that was sent (messages, model, prompt version): the same question has the same key.
    cached: answered from an earlier reply; nothing was sent and tokens and cost are 0.
    tokens_in, tokens_out: estimated where `estimated`. cost: in the currency of the prices; None where unknown.
    seconds: from question to verdict. attempts: requests sent. reply: the raw reply, kept for audit.
    masked: different secrets that were masked in the records, by kind.
    """

    verdict: Verdict
    key: str
    cached: bool
    tokens_in: int
    tokens_out: int
    estimated: bool
    cost: float | None
    seconds: float
    attempts: int
    reply: str
    finish: str = ""
    masked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values; the verdict's own beside them."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "verdict"}
        return {**self.verdict.as_json(), **own, "masked": dict(self.masked)}


class Auditor(Protocol):
    """Gives verdicts on prefixes. `judge` never raises for what the endpoint does: that is a verdict ERROR."""

    @property
    def model(self) -> str:
        """What is asked."""
        ...

    @property
    def prompt_version(self) -> str:
        """Which wording asks, with its hash."""
        ...

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
        """The verdict on these records, the steps of a run so far, in order from 1. seconds: at most so long."""
        ...


class VerdictOutcome(StrEnum):
    """ALARM: a step is named. SAFE: nothing decisive was found. ABSTAIN: the auditor said that it cannot tell.

    ERROR: there is no verdict (no answer, no answer in the protocol, an answer that the run refutes). Never SAFE.
    """

    ALARM = "alarm"
    SAFE = "safe"
    ABSTAIN = "abstain"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict.

    step: ALARM only: index of the record that is blamed, from 1, one of those that were shown.
    agent: ALARM only: the agent of the run that is blamed, as the run spells it; None where the auditor named none.
    reason: in the auditor's words; text from outside.
    quote: evidence that it quoted; None where it quoted none. quote_found: does it stand in the blamed record; None
        without a quote.
    confidence: probability, in [0, 1], that the verdict is right; None where nothing tells.
    fault: ERROR only: one word of a fixed list, for counts ("truncated", "no-answer", "step-out-of-range", ...).
    detail: ERROR only: what happened, in a sentence.
    notes: what was tolerated in the answer's form, or does not fit the run ("fenced", "agent did not act there"), one
        entry each.
    """

    outcome: VerdictOutcome
    step: int | None = None
    agent: str | None = None
    reason: str = ""
    quote: str | None = None
    quote_found: bool | None = None
    confidence: float | None = None
    fault: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "outcome": self.outcome.value, "notes": list(self.notes)}
