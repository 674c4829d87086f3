"""From what a judge wrote to its two probabilities: tolerant of prose around the answer, strict about the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from prefixguard.escalate import Reply, json_objects, without_thoughts

#: The shape asked of servers that can hold a model to one.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "fails": {"type": ["number", "null"], "minimum": 0, "maximum": 100},
        "fails_soon": {"type": ["number", "null"], "minimum": 0, "maximum": 100},
    },
    "required": ["reason", "fails", "fails_soon"],
    "additionalProperties": False,
}
#: Letters of a reply that are looked at, from its end.
_LOOKED_AT = 64 * 1024
_CUT_OFF = ("length", "limit", "max_tokens")


class JudgeOutcome(StrEnum):
    """What became of a question.

    ANSWERED: two probabilities. ABSTAINED: the judge said that it cannot tell. UNREADABLE: it replied, and not in the
    form asked for. FAILED: there was no reply at all.
    """

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    UNREADABLE = "unreadable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """What a judge said of one prefix.

    fails, fails_soon: ANSWERED only: probability in [0, 1] that the run fails; that it fails and ends within the
        horizon. fault: UNREADABLE and FAILED only: a word of a fixed list, for counts.
    """

    outcome: JudgeOutcome
    fails: float | None = None
    fails_soon: float | None = None
    fault: str = ""

    @property
    def contradicts_itself(self) -> bool:
        """Whether failing soon is said to be more likely than failing at all."""
        return self.fails is not None and self.fails_soon is not None and self.fails_soon > self.fails


#: No reply: the endpoint refused, failed, or did not answer in time.
NO_REPLY = JudgeAnswer(JudgeOutcome.FAILED, fault="no reply")


def read_answer(reply: Reply) -> JudgeAnswer:
    """The answer in a reply. Never raises: whatever a server sends has an outcome.

    Prose, fences and a block of thought around the one JSON object do not matter. Numbers are numbers from 0 to 100; a
    number in quotes, a bool, a share written as "70 %", a key that stands twice, or two objects that differ: no answer.
    """
    if reply.refusal or reply.finish == "content_filter":
        return _unreadable("refused")
    text = without_thoughts(reply.text)[-_LOOKED_AT:]
    objects = [found.value for found in json_objects(text) if not found.fault]
    found = [value for value in objects if "fails" in value or "fails_soon" in value]
    if not found:
        return _unreadable("cut off" if reply.finish in _CUT_OFF else "no answer in it")
    if any(value != found[0] for value in found):
        return _unreadable("two answers")
    numbers = [found[0].get(name, False) for name in ("fails", "fails_soon")]
    if None in numbers:
        return JudgeAnswer(JudgeOutcome.ABSTAINED)
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        return _unreadable("not a number")
    if not all(0 <= number <= 100 for number in numbers):  # nor NaN
        return _unreadable("out of range")
    return JudgeAnswer(JudgeOutcome.ANSWERED, numbers[0] / 100, numbers[1] / 100)


def _unreadable(fault: str) -> JudgeAnswer:
    return JudgeAnswer(JudgeOutcome.UNREADABLE, fault=fault)
