"""What an auditor says of a run, or of the part of it that is there: four outcomes, never two."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
        return {
            "outcome": self.outcome.value,
            "step": self.step,
            "agent": self.agent,
            "reason": self.reason,
            "quote": self.quote,
            "quote_found": self.quote_found,
            "confidence": self.confidence,
            "fault": self.fault,
            "detail": self.detail,
            "notes": list(self.notes),
        }
