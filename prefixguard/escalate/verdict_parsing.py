"""The verdict in a reply: tolerant in form, strict in content. What is no verdict is an ERROR, never SAFE."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from prefixguard.escalate.agent_names import AgentNames, agent_of
from prefixguard.escalate.endpoint import Reply
from prefixguard.escalate.prompting import PromptKind, halves
from prefixguard.escalate.reply_json import JsonObject, find_answers
from prefixguard.escalate.transcript_text import neutral
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord

#: Characters of one field, and of a quote, that are looked at.
MAX_FIELD = 1 << 20
MAX_QUOTE = 2000

_BACKSLASHES = re.compile(r"\\{2,}")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf]|)")
_MARKS = str.maketrans(
    dict.fromkeys("\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4", "'") | {"\u2011": "-"}
)
_GONE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]+"
)
_OMISSION = re.compile(r"\[?\s?(?:\.{3}|\u2026)\s?\]?")


def plain(text: str) -> str:
    """A text as it is compared.

    >>> plain('He  said:\\n \u201cno\u201d') == plain(r'He said:\\n \\"no\\"')
    True
    """
    text = _ESCAPED.sub(lambda met: chr(int(met[1], 16)) if met[1] else "", _BACKSLASHES.sub(r"\\", text))
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")  # pairs of escapes are one character
    return _GONE.sub("", unicodedata.normalize("NFKC", text)).translate(_MARKS)


def stands_in(quote: str, record: StepRecord) -> bool:
    """Are these words in one field of the step? Words around an omission (...) must follow each other in order.

    A call counts as one field with its tool in front. A quote without a letter or digit stands nowhere.
    """
    pieces = [piece for piece in map(plain, _OMISSION.split(quote[:MAX_QUOTE])) if piece]
    if not any(char.isalnum() for piece in pieces for char in piece):
        return False
    fields = (record.observation, record.action, f"{record.tool} {record.arguments}", record.result)
    return any(_in_order(pieces, plain(field[:MAX_FIELD])) for field in fields)


def _in_order(pieces: list[str], text: str) -> bool:
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


#: Who may be blamed: agents only, or whoever acted.
Blame = Literal["agents", "anyone"]

#: Every fault of a reply, and what it means.
FAULTS: Mapping[str, str] = MappingProxyType(
    {
        "empty": "the reply is empty",
        "refusal": "the model refused, or a filter stopped it",
        "truncated": "the reply ends before its answer does",
        "no-verdict": "the reply holds no answer object",
        "answer-in-thought": "the only answer stands inside the thought",
        "malformed": "the answer is no JSON object with an answer in it",
        "two-answers": "the reply gives two answers that contradict each other",
        "not-a-step": "the answer is neither a whole number nor SAFE nor UNSURE",
        "step-out-of-range": "the run has no such step",
        "future-step": "the step comes after those that were shown",
        "step-not-shown": "the step was left out of what was shown",
        "step-not-asked": "the question was not about that step",
        "not-an-agent-step": "no agent acted at that step",
    }
)
#: Characters of a reason that are kept; shorter than the second is noted.
_MOST_REASON, _LEAST_REASON = 1000, 15
_STEP = re.compile(r"(?:step)?\s?[#:]?\s?([+-]?\d{1,9})(?:\.0{1,6})?", re.IGNORECASE | re.ASCII)
_WORDS = {
    "safe": VerdictOutcome.SAFE,
    "unsure": VerdictOutcome.ABSTAIN,
    "abstain": VerdictOutcome.ABSTAIN,
    "uncertain": VerdictOutcome.ABSTAIN,
}
_AROUND = " \t\r\n\"'`*.!?,;:()[]<>"


class _Fault(Exception):
    """No verdict. fault: one of FAULTS."""

    def __init__(self, fault: str, more: str = "") -> None:
        super().__init__(f"{FAULTS[fault]}{': ' if more else ''}{more}")
        self.fault = fault


def read_verdict(
    reply: Reply,
    records: Sequence[StepRecord],
    *,
    kind: PromptKind = PromptKind.ONLINE,
    blame: Blame = "agents",
    elided: Sequence[tuple[int, int]] = (),
    within: tuple[int, int] | None = None,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """The verdict in a reply on these records. Never raises for what a model said.

    elided: ranges of steps that were not shown (`RunExcerpt.elided`). within: the range that was halved, for
    BINARY_SEARCH; the verdict's step is then the first step of the half that was chosen. aliases: see AgentNames.
    A step that was not shown, not asked about, or at which no agent acted, is an ERROR, not put right. A name that is
    no agent of the run leaves the alarm and its step, with a note.
    """
    kind = PromptKind(kind)
    notes: list[str] = []
    try:
        answer, outcome, step = _answer(reply, notes)
        if outcome is not VerdictOutcome.ALARM:
            if answer.get("agent") not in (None, "", "null", "None"):
                notes.append("an agent is named without a step")
            if kind is PromptKind.BINARY_SEARCH and outcome is VerdictOutcome.SAFE:
                notes.append("SAFE was not offered")
            verdict = Verdict(outcome, reason=_reason(answer, notes))
        else:
            step, possible = _checked(step, records, kind, blame, elided, within, notes)
            agent = _agent(answer.get("agent"), AgentNames.of(records, aliases), notes)
            if agent is not None and all(agent_of(record) != agent for record in possible):
                notes.append("agent did not act there")
            reason = _reason(answer, notes)
            verdict = Verdict(outcome, step, agent, reason, *_quote(answer.get("quote"), records, possible, notes))
    except _Fault as fault:
        verdict = Verdict(VerdictOutcome.ERROR, fault=fault.fault, detail=neutral(str(fault)[:300]))
    return replace(verdict, notes=tuple(dict.fromkeys(notes)))


def _answer(reply: Reply, notes: list[str]) -> tuple[JsonObject, VerdictOutcome, int]:
    """The answer object, what it answers, and its number (0 where it gives none)."""
    if reply.refusal.strip():
        raise _Fault("refusal", reply.refusal[:200])
    cut = reply.finish in ("length", "limit", "max_tokens")
    text, all_thought = reply.text, False
    if not text.strip() and reply.reasoning.strip():
        text, all_thought = reply.reasoning, True
        notes.append("the answer stands in the reasoning field")
    found = find_answers(text, all_thought=all_thought)
    notes.extend(found.notes)
    if found.fault:
        if reply.finish == "content_filter":
            raise _Fault("refusal", "content filter")
        if cut:
            raise _Fault("truncated", f"finish reason {reply.finish}")
        raise _Fault("empty" if not text.strip() else found.fault)
    if cut:
        notes.append("cut off after its answer")
    values = []
    for answer in found.objects:
        if "answer" in answer.clashing:
            raise _Fault("two-answers", "the key stands twice in one object")
        values.append(_value(answer["answer"], notes))
    if len(set(values)) > 1:
        raise _Fault("two-answers")
    if len(values) > 1:
        notes.append("several answers that agree")
    if found.objects[-1].clashing:
        notes.append("a key stands twice")
    return found.objects[-1], *values[-1]


def _value(value: Any, notes: list[str]) -> tuple[VerdictOutcome, int]:
    """What an answer's value says. A bool is no number; a float only if it is whole."""
    if isinstance(value, str) and len(value) <= 60:
        word = _WORDS.get(value.strip(_AROUND).lower())
        if word is not None:
            return word, 0
        met = _STEP.fullmatch(value.strip().rstrip(".").strip("\"'`* "))
        if met:
            notes.append("the number is a text")
            return VerdictOutcome.ALARM, int(met.group(1))
    elif type(value) is int:
        return VerdictOutcome.ALARM, value
    elif type(value) is float and value.is_integer():
        notes.append("the number has a decimal point")
        return VerdictOutcome.ALARM, int(value)
    raise _Fault("not-a-step", neutral(repr(value)[:80]))


def _checked(
    step: int,
    records: Sequence[StepRecord],
    kind: PromptKind,
    blame: Blame,
    elided: Sequence[tuple[int, int]],
    within: tuple[int, int] | None,
    notes: list[str],
) -> tuple[int, list[StepRecord]]:
    """The step of a verdict, and the records in which the mistake may be: one, or those of a half."""
    last = records[-1].index if records else 0
    if step > last and kind in (PromptKind.ONLINE, PromptKind.STEP_BY_STEP):
        raise _Fault("future-step", f"{step}, the newest is {last}")
    there = [record for record in records if record.index == step]
    if not there:
        raise _Fault("step-out-of-range", f"{step}, the run has {last}")
    if kind is PromptKind.BINARY_SEARCH and within is not None:
        half = next(((begin, end) for begin, end in halves(within) if begin <= step <= end), None)
        if half is None:
            raise _Fault("step-not-asked", f"{step}, asked were {within[0]} to {within[1]}")
        if step != half[0]:
            notes.append("another step of the half was named")
        return half[0], [record for record in records if half[0] <= record.index <= half[1]]
    if any(begin <= step <= end for begin, end in elided):
        raise _Fault("step-not-shown", str(step))
    if kind is PromptKind.STEP_BY_STEP and step != last:
        raise _Fault("step-not-asked", f"{step}, asked was {last}")
    if blame == "agents" and there[0].actor != "agent":
        raise _Fault("not-an-agent-step", f"step {step} is of: {there[0].actor}")
    return step, there


def _is_nothing(said: Any) -> bool:
    return said is None or (isinstance(said, str) and said.strip().lower() in ("", "null", "none"))


def _agent(said: Any, names: AgentNames, notes: list[str]) -> str | None:
    if isinstance(said, list) and len(said) == 1:
        notes.append("the agent stands in a list")
        said = said[0]
    if _is_nothing(said):
        return None
    agent = names.resolve(said) if isinstance(said, str) else None
    if agent is None:
        notes.append("no such agent in the run")
    return agent


def _reason(answer: JsonObject, notes: list[str]) -> str:
    said = answer.get("reason")
    reason = " ".join(neutral(said[: _MOST_REASON + 1]).split()) if isinstance(said, str) else ""
    if len(reason) > _MOST_REASON:
        notes.append("the reason was shortened")
        reason = reason[:_MOST_REASON]
    if len(reason) < _LEAST_REASON:
        notes.append("hardly a reason" if reason else "no reason")
    return reason


def _quote(
    said: Any, records: Sequence[StepRecord], possible: Sequence[StepRecord], notes: list[str]
) -> tuple[str | None, bool | None]:
    """The quote, and whether it stands in one of the records in which the mistake may be."""
    if _is_nothing(said):
        return None, None
    if not isinstance(said, str):
        notes.append("the quote is no text")
        return None, None
    quote = neutral(said[:MAX_QUOTE])
    if any(stands_in(quote, record) for record in possible):
        return quote, True
    elsewhere = next((record.index for record in records if stands_in(quote, record)), None)
    notes.append("quote not found" if elsewhere is None else f"the quote stands in step {elsewhere}")
    return quote, False
