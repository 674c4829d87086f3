"""What a monitor says after a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefixguard.alarm import Level


@dataclass(frozen=True, slots=True)
class Reading:
    """The judgement after one step, or why there is none.

    step: number of the step, from 1; for an event that did not become a step, the number of steps so far.
    imminent_risk: calibrated probability that the run fails and ends within the horizon; None when UNKNOWN.
    outcome_risk: calibrated probability that the run fails; None when UNKNOWN. Alarms go by this one.
    level: OK, WATCH, ALARM or UNKNOWN.
    symbol: the step's symbol, from 0; None when UNKNOWN.
    state: the automaton's state, from 0; None for monitors of kind onnx.
    reasons: in words, strongest first, at WATCH and ALARM. They quote the run: treat them as text from outside.
    unknown_reason: why nothing could be judged; None unless level is UNKNOWN.
    latency_us: microseconds from the event (or from the reading before, if one event gave several) to this reading.
    """

    step: int
    imminent_risk: float | None
    outcome_risk: float | None
    level: Level
    symbol: int | None
    state: int | None
    reasons: tuple[str, ...]
    unknown_reason: str | None
    latency_us: float

    def to_json(self) -> dict[str, Any]:
        """The fields that `score` and `watch --json` write, times left out: the same run gives the same lines."""
        return {
            "step": self.step,
            "imminent_risk": self.imminent_risk,
            "outcome_risk": self.outcome_risk,
            "level": self.level.value,
            "symbol": self.symbol,
            "state": self.state,
            "reasons": list(self.reasons),
            "unknown_reason": self.unknown_reason,
        }


def plain(text: str, limit: int) -> str:
    r"""Text from outside, made harmless for a terminal or a log: one line, control characters escaped, cut to `limit`.

    >>> plain("red\x1b[31m\n" + "x" * 50, 20)
    'red\\x1b[31m\\nxxxxxx…'
    """
    if len(text) > limit or not text.isprintable():
        head = text[: limit + 1]
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in head)
    return text if len(text) <= limit else text[: limit - 1] + "…"
