"""What a judge is asked about one prefix, in which words, and how its two probabilities are read from what it wrote.

Reading is tolerant of prose around the answer and strict about the answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from prefixguard.escalate import (
    Endpoint,
    MaskedRecords,
    Message,
    Reply,
    estimated_tokens,
    fit,
    json_objects,
    shown_url,
    without_thoughts,
)
from prefixguard.stepview import StepRecord

#: Tokens of an answer where nothing is known yet: a short sentence and two numbers.
TOKENS_OUT = 60
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
#: Letters of a reply that are read, from its end.
_LOOKED_AT = 64 * 1024
_CUT_OFF = ("length", "limit", "max_tokens")
_CUT = " For want of room some of it is left out, where the recorder says so."
_PARTED = "\n---\n"
#: Filled in one pass: what looks like a blank in the text of a run stays as it is.
_BLANK = re.compile(r"\{(horizon|steps|cut|transcript)\}")


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One prefix to be judged.

    run: position of its run among those evaluated. step: its last step, from 1. messages: what is sent.
    left_out, shortened: steps that are not shown, and steps of which a field is shown in part, for want of room.
    masked: different secrets that were masked in the steps, by kind.
    """

    run: int
    step: int
    messages: tuple[Message, ...]
    left_out: int = 0
    shortened: int = 0
    masked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tokens(self) -> int:
        """Tokens that are sent, about."""
        return sum(estimated_tokens(message["content"]) for message in self.messages)

    def key(self, endpoint: Endpoint) -> str:
        """SHA-256 of all that an answer depends on: model, place, options and every word that is sent."""
        sent = {
            "model": endpoint.model,
            "base_url": None if endpoint.base_url is None else shown_url(endpoint.base_url),
            "max_reply_tokens": endpoint.max_reply_tokens,
            "temperature": endpoint.temperature,
            "messages": [dict(message) for message in self.messages],
        }
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()


def ask_about(
    run: int, records: Sequence[StepRecord], *, horizon: int, budget_tokens: int, mask: bool = True
) -> JudgeQuestion:
    """The question about these steps, the first ones of a run. horizon: H. budget_tokens: of the transcript.
    mask: mask likely secrets before the records are cut to it.

    The judge is shown what a monitor sees, the step records without the names of agents, and nothing of the run's name,
    task id, file or end. Raises ConfigError where the budget is too small for any transcript.
    """
    shown = MaskedRecords.of([replace(record, agent="") for record in records], mask=mask)
    view = fit(shown.records, budget_tokens)
    left_out = sum(last - first + 1 for first, last in view.elided)
    system, asked = _wording()
    facts = {
        "horizon": str(horizon),
        "steps": f"the first {len(records)} steps" if len(records) > 1 else "the first step",
        "cut": _CUT if left_out or view.cut_steps else "",
        "transcript": view.text,
    }
    messages = tuple(
        {"role": role, "content": _BLANK.sub(lambda blank: facts[blank[1]], text)}
        for role, text in (("system", system), ("user", asked))
    )
    return JudgeQuestion(run, len(records), messages, left_out, len(view.cut_steps), shown.counts)


def prompt_version() -> str:
    """Which wording asks: the beginning of its SHA-256."""
    return hashlib.sha256(_prompt().encode()).hexdigest()[:12]


@cache
def _prompt() -> str:
    file = resources.files("prefixguard.evaluation") / "prompts" / "judge.md"
    return file.read_text(encoding="utf-8").strip()


@cache
def _wording() -> tuple[str, str]:
    """System message and question, with blanks in braces."""
    system, _, asked = _prompt().partition(_PARTED)
    return system.strip(), asked.strip()


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
    number in quotes, a bool, a share written as "70 %", a key given twice, or two objects that differ: no answer.
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
