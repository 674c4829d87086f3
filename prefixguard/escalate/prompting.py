"""What an auditor is sent: the transcript first, then the question; both within one budget of tokens."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from importlib import resources
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate.agent_names import AgentNames, shown_name
from prefixguard.escalate.transcript_text import CHARS_PER_TOKEN, RunExcerpt, estimated_tokens, fit, neutral
from prefixguard.stepview import StepRecord

Message = dict[str, str]

#: Form of the transcript's text; a new number where the same records would be shown otherwise.
RENDERING = "2"
#: Tokens that every question is given, used or not: so different questions show a run in the same way, and share it in
#: a server's cache. A question that is longer takes more.
_QUESTION = 1200
#: Tokens for the remark on what was left out, roles, and breaks between messages.
_MARGIN = 200
#: Tokens of the list of agents, and of the reference answer, at most.
_AGENTS, _ANSWER = 400, 400
#: The least budget of a prompt: it holds the longest question and the shortest transcript.
MIN_BUDGET = 4000
_BLANKS = re.compile(r"\{\{(\w+)\}\}")
#: What may be answered instead of a step's number. SAFE is not offered where it is no answer to the question.
_WORDS, _ONLY_UNSURE = '"SAFE" or "UNSURE"', '"UNSURE"'


class PromptKind(StrEnum):
    """ONLINE: a prefix; a step may be named, now or earlier. POST_HOC: the whole run at once. STEP_BY_STEP: is the
    newest step the decisive mistake? BINARY_SEARCH: in which half of a range of steps is it?"""

    ONLINE = "online"
    POST_HOC = "post_hoc"
    STEP_BY_STEP = "step_by_step"
    BINARY_SEARCH = "binary_search"


#: JSON Schema of a reply, for servers that hold a model to one (`AsyncClient(endpoint, VERDICT_SCHEMA)`). A reply is
#: then one JSON object without a think block, so "thinking" comes first in it: a model reasons before it answers.
#: A model that reasons in a field of its own, or as free text, does better without a schema.
VERDICT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "thinking": {"type": "string"},
        "answer": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": ["SAFE", "UNSURE"]}]},
        "agent": {"type": ["string", "null"]},
        "reason": {"type": "string"},
        "quote": {"type": ["string", "null"]},
    },
    "required": ["thinking", "answer", "agent", "reason", "quote"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class VerdictPrompt:
    """A question about the steps of a run.

    messages: a system message that is the same for every question, and one of the user: transcript, then question.
    excerpt: what is shown of the run. prompt_version: name of the question and hash of the wording.
    """

    messages: tuple[Message, ...]
    excerpt: RunExcerpt
    prompt_version: str


def ask_for_verdict(
    kind: PromptKind,
    records: Sequence[StepRecord],
    budget_tokens: int,
    *,
    answer: str | None = None,
    known_failed: bool = False,
    within: tuple[int, int] | None = None,
) -> VerdictPrompt:
    """The messages that ask for a verdict on these records, the steps of a run so far.

    budget_tokens: of all messages together, by `estimated_tokens`, MIN_BUDGET or more; the reply is not counted.
    answer: the task's reference answer; it is shown only if given. known_failed: for POST_HOC: the run is known to have
    failed. within: for BINARY_SEARCH, and needed there: the range of steps that is halved.
    Nothing but the records, and what is given here, can reach the messages.
    ConfigError where the budget is too small, there are no records, or an option does not fit the kind.
    """
    kind = PromptKind(kind)
    if (within is not None) != (kind is PromptKind.BINARY_SEARCH):
        raise ConfigError("within: a range of steps for binary_search, and for no other kind of question.")
    if known_failed and kind is not PromptKind.POST_HOC:
        raise ConfigError("known_failed: for post_hoc only; other questions do not know how the run ends.")
    if budget_tokens < MIN_BUDGET:
        raise ConfigError(f"budget_tokens {budget_tokens}: {MIN_BUDGET} or more; the question alone takes about half.")
    if not records:
        raise ConfigError("a question needs at least one step of a run; there is none.")
    system, question = _part("system"), partial(_question, kind, records, answer, known_failed, within)
    used = estimated_tokens(system) + max(_QUESTION, estimated_tokens(question(None)) + _MARGIN)
    excerpt = fit(records, budget_tokens - used, focus=within)
    messages = (
        {"role": "system", "content": system},
        {"role": "user", "content": f"{excerpt.text}\n\n{question(excerpt)}"},
    )
    return VerdictPrompt(messages, excerpt, prompt_version(kind))


@cache
def prompt_version(kind: PromptKind) -> str:
    """Name of a question and a hash of all that decides how it is worded."""
    names = ["system", "reply", "reference", "agents", "view", kind.value]
    if kind is PromptKind.POST_HOC:
        names += ["ending_failed", "ending_unknown", "options_failed", "options_unknown"]
    text = "\0".join((RENDERING, _WORDS, _ONLY_UNSURE, *(_part(name) for name in names)))
    return f"{kind.value}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def halves(within: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two halves of a range of at least two steps; the first one is the longer where they differ.

    >>> halves((1, 5)), halves((7, 8))
    (((1, 3), (4, 5)), ((7, 7), (8, 8)))
    """
    begin, end = within
    if not 1 <= begin < end:
        raise ConfigError(f"within {within}: a range of two steps or more, from 1.")
    middle = (begin + end) // 2
    return (begin, middle), (middle + 1, end)


@cache
def _part(name: str) -> str:
    return (resources.files("prefixguard.escalate") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def _filled(name: str, **values: object) -> str:
    """A part with its blanks filled, in one pass: what is filled in is not looked at again."""
    return _BLANKS.sub(lambda met: str(values[met.group(1)]), _part(name))


def _question(
    kind: PromptKind,
    records: Sequence[StepRecord],
    answer: str | None,
    known_failed: bool,
    within: tuple[int, int] | None,
    excerpt: RunExcerpt | None,
) -> str:
    """excerpt: None while its room is not known yet."""
    last = records[-1].index
    if kind is PromptKind.POST_HOC:
        how = "failed" if known_failed else "unknown"
        asked = _filled("post_hoc", last=last, ending=_part(f"ending_{how}"), options=_part(f"options_{how}"))
    elif within is not None:
        (begin, middle), (following, end) = halves(within)
        if begin < records[0].index or end > last:
            raise ConfigError(f"within {within}: steps of this run, which ends with step {last}.")
        asked = _filled("binary_search", begin=begin, middle=middle, next=following, end=end)
    else:
        asked = _filled(kind.value, last=last)
    parts = [asked, _filled("agents", agents=_listed(AgentNames.of(records).names))]
    if answer is not None:
        text = answer[: _ANSWER * CHARS_PER_TOKEN]
        while estimated_tokens(text) > _ANSWER:
            text = text[: len(text) * 3 // 4]
        parts.append(_filled("reference", answer=_as_string(text)))
    if excerpt is not None and (holes := _holes(excerpt)):
        parts.append(_filled("view", holes=holes))
    words = _ONLY_UNSURE if known_failed or kind is PromptKind.BINARY_SEARCH else _WORDS
    parts.append(_filled("reply", mark=excerpt.mark if excerpt is not None else "#00000000", words=words))
    return "\n\n".join(parts)


def _as_string(text: str) -> str:
    """Data inside a question: one line between quotation marks that it cannot close."""
    return json.dumps(neutral(text), ensure_ascii=False)


def _listed(names: Sequence[str]) -> str:
    """The names of agents, as many as there is room for."""
    listed: list[str] = []
    left = _AGENTS
    for name in names:
        listed.append(_as_string(shown_name(name)))
        left -= estimated_tokens(listed[-1]) + 1
        if left < 0:
            return ", ".join(listed[:-1]) + f", and {len(names) - len(listed) + 1} more"
    return ", ".join(listed)


def _holes(excerpt: RunExcerpt) -> str:
    """What is not shown, in words; "" where all is."""
    said = []
    if excerpt.elided:
        ranges = [f"{begin}" if begin == end else f"{begin}-{end}" for begin, end in excerpt.elided]
        said.append(f"steps {', '.join(ranges)} are not shown and cannot be an answer")
    if excerpt.cut_steps:
        said.append(f"long texts of {len(excerpt.cut_steps)} of the steps shown keep their beginning and end only")
    return "; ".join(said)
