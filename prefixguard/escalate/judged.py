"""A verdict with what it cost, and who can give one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from prefixguard.escalate.verdict import Verdict
from prefixguard.stepview import StepRecord


@dataclass(frozen=True, slots=True)
class Judged:
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
        return {
            **self.verdict.as_json(),
            "key": self.key,
            "cached": self.cached,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "estimated": self.estimated,
            "cost": self.cost,
            "seconds": self.seconds,
            "attempts": self.attempts,
            "reply": self.reply,
            "finish": self.finish,
            "masked": dict(self.masked),
        }


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

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> Judged:
        """The verdict on these records, the steps of a run so far, in order from 1. seconds: at most so long."""
        ...
