"""What a judge is asked about one prefix, and the wording it is asked in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from types import MappingProxyType

from prefixguard.escalate import Endpoint, MaskedRecords, Message, estimated_tokens, fit, shown_url
from prefixguard.stepview import StepRecord

#: Tokens of an answer where nothing is known yet: a short sentence and two numbers.
TOKENS_OUT = 60
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
