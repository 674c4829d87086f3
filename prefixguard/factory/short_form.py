"""A prompt in few words, for the tiny model alone.

A model of two layers cannot read the thousands of tokens of a real prompt. The tiny model that shows, on a CPU, that
training works is given this instead, made from the same prompt, in training and behind its endpoint alike. Its replies
have the full form, and the same parser reads them. No other model is ever given the short form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from prefixguard.auditor import MODES
from prefixguard.factory.prompt_steps import steps_of
from prefixguard.stepview import StepRecord

#: How a model is asked: with the prompt that `audit` sends, or with the short form of it.
PromptForm = Literal["full", "short"]
_WORD = re.compile(r"[a-z']+")
#: Steps that are kept, the newest; words of what a step says, and of what it saw.
_STEPS, _SAID, _SAW = 5, 2, 1


def short_form(messages: Sequence[Mapping[str, str]]) -> str:
    """Number, agent, tool and status of the newest steps shown, with the first words of what was said and seen; what
    is asked stands before the newest one."""
    shown = steps_of(messages)
    lines = [_line(step) for step in shown.records[-_STEPS:]]
    asked = next((mode.code for mode in MODES if mode.hypothesis in shown.question), "decisive")
    return "\n".join((*lines[:-1], f"{asked}? {lines[-1]}"))


def _line(step: StepRecord) -> str:
    said = " ".join(_WORD.findall(step.action.lower())[:_SAID])
    saw = " ".join(_WORD.findall(step.observation.lower())[:_SAW])
    failed = "failed" if step.status == "error" else ""
    who = f"{step.index}:{step.agent or step.actor}"
    parts = (f"({saw})" if saw else "", said, step.tool or "says", failed, who)
    return " ".join(filter(None, parts))


def in_form(form: PromptForm, messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages as a model of that form is given them."""
    if form == "short":
        return [{"role": "user", "content": short_form(messages)}]
    return [dict(message) for message in messages]
