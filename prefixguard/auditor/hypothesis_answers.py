"""Reading a verifier's reply: tolerant in form, strict in content. What cannot be read is an error, never "neutral".

Taken: JSON objects one a line, a list of them, one object that holds them, code fences, prose around, a think block in
front, an answer block, other case, the letters A, B, C, one agent as a text, one object for each agent, a bare label.
Not taken: labels that are none, two labels for one hypothesis, a reply that ends before its answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from prefixguard.escalate import AgentNames, FoundJson, Reply, json_objects
from prefixguard.escalate.confidence import tokens_at
from prefixguard.results import fields_of

#: Characters at the end of a reply that are looked at: the answer comes last.
MAX_SCANNED = 64 * 1024
#: Agents of one object that are read.
_MAX_AGENTS = 50
_LETTERS = re.compile(r"[a-z]+")
_LABEL_VALUE = re.compile(r'"label"\s{0,20}:\s{0,20}"([^"]{0,40})"', re.IGNORECASE)
_CODE = re.compile(r"\s{0,3}(?:fm)?[\s_-]{0,3}([1-9])[._]([1-9])(?![\w.])", re.IGNORECASE)
_NOBODY = frozenset(("", "none", "null", "nobody", "unknown", "n/a"))


class HypothesisLabel(StrEnum):
    """ENTAIL: the run bears the hypothesis out. NEUTRAL: it does not settle it. CONTRADICT: it refutes it.

    ERROR: nobody knows what the verifier says (no answer, none that can be read). Never NEUTRAL.
    """

    ENTAIL = "entail"
    NEUTRAL = "neutral"
    CONTRADICT = "contradict"
    ERROR = "error"


_WORDS = {
    **dict.fromkeys(("a", "entail", "entails", "entailed", "entailment"), HypothesisLabel.ENTAIL),
    **dict.fromkeys(("b", "neutral"), HypothesisLabel.NEUTRAL),
    **dict.fromkeys(("c", "contradict", "contradicts", "contradicted", "contradiction"), HypothesisLabel.CONTRADICT),
}


@dataclass(frozen=True, slots=True)
class HypothesisAnswer:
    """What a verifier says of one failure mode.

    label: after the threshold, if one is set. said: before it. agents: ENTAIL only: who is blamed, as the run spells
    it, in the order in which they are named; empty where nobody of the run was named. unknown_agents: names that are
    none of the run's; nobody is blamed by them.
    probability: of the label that was said, in [0, 1], from log-probabilities; None where none were asked for or sent.
    fault, detail: ERROR only: a word for counts ("empty", "no-verdict", "unknown-label", "conflicting-labels",
        "truncated", "refusal", or what the endpoint did, such as "timeout"), and a sentence. notes: what was tolerated.
    raw: the part of the reply that it was read from; text from outside. label_at: where the label's value stands in the
    reply, (from, to); None where it is no JSON text.
    """

    code: str
    label: HypothesisLabel
    said: HypothesisLabel
    agents: tuple[str, ...] = ()
    unknown_agents: tuple[str, ...] = ()
    probability: float | None = None
    fault: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()
    raw: str = ""
    label_at: tuple[int, int] | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        """All fields but `label_at` as plain values."""
        return fields_of(self)


def _said(label: HypothesisLabel, raw: str, **more: Any) -> HypothesisAnswer:
    return HypothesisAnswer("", label, label, raw=raw, **more)


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object of the reply with a label or a mode. at: where the JSON it stands in begins and ends; alone: there
    is nothing else in it."""

    value: dict[str, Any]
    at: tuple[int, int]
    alone: bool = False


def failed(fault: str, detail: str, raw: str = "") -> HypothesisAnswer:
    """An error.

    >>> failed("empty", "The reply is empty.").label
    <HypothesisLabel.ERROR: 'error'>
    """
    return _said(HypothesisLabel.ERROR, raw, fault=fault, detail=detail)


def read_one(text: str, names: AgentNames, *, cut: bool = False) -> HypothesisAnswer:
    """The answer to a question about one hypothesis. cut: the server ended the reply at its limit of tokens.

    >>> names = AgentNames(("Planner", "Coder"))
    >>> answer = read_one('Here it is: {"label": "A", "agents": ["coder"]}', names)
    >>> answer.label.value, answer.agents
    ('entail', ('Coder',))
    """
    objects = [o for o in _objects(text) if "label" in o.value]
    if not objects:
        bare = label_of(text.strip()) if len(text) <= 200 else None
        if bare is not None and not cut:
            return _said(bare, text, notes=("a bare label, no JSON",))
        return _nothing(text, cut)
    return _merged(objects, text, names, cut)


def read_several(
    text: str, names: AgentNames, codes: Sequence[str], *, cut: bool = False
) -> dict[str, HypothesisAnswer]:
    """The answers to a question about several hypotheses, one a code, in the order of `codes`. Hypotheses that the
    reply does not speak of are errors; other codes are passed over."""
    of: dict[str, list[_Object]] = {code: [] for code in codes}
    for item in _objects(text):
        code = _code(item.value.get("mode", item.value.get("code")))
        if code in of and "label" in item.value:
            of[code].append(item)
    nothing = _nothing(text, cut)
    return {code: _merged(items, text, names, cut) if items else nothing for code, items in of.items()}


def label_of(said: Any) -> HypothesisLabel | None:
    """The label that a value means; None where it means none, or two.

    >>> label_of("A (entail)"), label_of("not entail"), label_of(True)
    (<HypothesisLabel.ENTAIL: 'entail'>, None, None)
    """
    if not isinstance(said, str) or len(said) > 200:
        return None
    met = {_WORDS.get(word) for word in _LETTERS.findall(said.lower())}
    return met.pop() if len(met) == 1 else None


def _merged(objects: Sequence[_Object], text: str, names: AgentNames, cut: bool) -> HypothesisAnswer:
    """One answer from all objects about one hypothesis."""
    raw = "\n".join(dict.fromkeys(text[o.at[0] : o.at[1]] for o in objects))
    labels = [label_of(o.value["label"]) for o in objects]
    if None in labels:
        said = objects[labels.index(None)].value["label"]
        return failed("unknown-label", f"{str(said)[:60]!r} is no label.", raw)
    if len(set(labels)) > 1:
        both = ", ".join(sorted({label.value for label in labels if label is not None}))
        return failed("conflicting-labels", f"One hypothesis got several labels: {both}.", raw)
    label = labels[0] or HypothesisLabel.ERROR
    notes = ["the reply was cut after this answer"] if cut else []
    agents, unknown = _agents(objects, names, notes)
    if label is not HypothesisLabel.ENTAIL and (agents or unknown):
        notes.append(f"agents were named with {label.value}")
        agents, unknown = [], []
    if label is HypothesisLabel.ENTAIL and not agents:
        notes.append("no agent of the run is named")
    met = _LABEL_VALUE.search(text, *objects[0].at) if objects[0].alone else None
    at = met.span(1) if met is not None and label_of(met.group(1)) is label else None
    named = {"agents": tuple(agents), "unknown_agents": tuple(unknown)}
    return _said(label, raw, **named, label_at=at, notes=tuple(notes))


def _agents(objects: Sequence[_Object], names: AgentNames, notes: list[str]) -> tuple[list[str], list[str]]:
    """Agents of the run that are named, and names that are none of theirs; each once."""
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for item in objects:
        said = item.value.get("agents", item.value.get("agent"))
        for name in (said if isinstance(said, list) else [said])[:_MAX_AGENTS]:
            if name is None:
                continue
            if not isinstance(name, str):
                notes.append("an agent that is no text")
                continue
            for part in _parts(name, names):
                agent = names.resolve(part)
                if agent is not None:
                    known[agent] = None
                elif part.strip().lower() not in _NOBODY:
                    unknown[part[:80]] = None
    return list(known), list(unknown)


def _parts(name: str, names: AgentNames) -> list[str]:
    """A text that is no name but holds commas is a list of names."""
    if names.resolve(name) is not None or "," not in name:
        return [name]
    return [part.strip() for part in name.split(",")][:_MAX_AGENTS]


def _nothing(text: str, cut: bool) -> HypothesisAnswer:
    if cut:
        return failed("truncated", "The reply ends at its limit of tokens, before an answer.", text)
    if not text.strip():
        return failed("empty", "The reply is empty.", text)
    return failed("no-verdict", "The reply holds no JSON object with a label for this hypothesis.", text)


def _code(said: Any) -> str | None:
    """A mode's code in its usual spelling."""
    met = _CODE.match(said) if isinstance(said, str) else None
    return f"FM-{met.group(1)}.{met.group(2)}" if met else None


def _objects(text: str) -> Iterator[_Object]:
    """Objects with a label or a mode, lower-case keys, in order; one level of lists and wrappers is opened."""
    for found in _values(text):
        value, at = found.value, found.at
        for inner in value if isinstance(value, list) else [value]:
            if not isinstance(inner, dict):
                continue
            lowered = {key.lower(): item for key, item in inner.items()}
            if "label" in lowered:
                yield _Object(lowered, at, alone=inner is value)
                continue
            for key, item in inner.items():  # {"answers": [...]}, {"FM-1.1": {...}}, {"FM-1.1": "neutral"}
                for one in item if isinstance(item, list) else [item]:
                    if isinstance(one, dict):
                        named = {k.lower(): v for k, v in one.items()}
                        yield _Object({"mode": key, **named} if _code(key) else named, at)
                    elif _code(key) and isinstance(one, str):
                        yield _Object({"mode": key, "label": one}, at)


def _values(text: str) -> Iterator[FoundJson]:
    """JSON lists and objects of the answering part of a reply, with their places; what lies in one is not told again.

    The answering part: what follows the last end of a think block, and there the last answer block if there is one. An
    open think block is no answer.
    """
    lowered = text.lower()
    closed = lowered.rfind("</think")
    if lowered.rfind("<think") > closed:
        return
    begin = max(0, len(text) - MAX_SCANNED, closed + 1)
    begin = max(begin, lowered.rfind("<answer", begin) + 1)
    yield from (found for found in json_objects(text, begin, lists=True) if not found.fault)


def label_probability(reply: Reply, at: tuple[int, int]) -> float | None:
    """The probability, in [0, 1], of the tokens that spell `reply.text[at[0]:at[1]]`, given what stands before them.

    None where the server sent no log-probabilities, or their tokens, joined, do not hold the reply's text once, or one
    of them is no number of at most 0. Tokens that stick out over the label's ends (a quotation mark, a blank) count
    whole: what they add is nearly certain in the form that was asked for.
    """
    joined = "".join(token for token, _ in reply.logprobs)
    offset = joined.find(reply.text) if reply.text else -1
    if offset < 0 or joined.find(reply.text, offset + 1) >= 0:
        return None
    tokens = tokens_at(reply.logprobs, (offset + at[0], offset + at[1]))
    if not tokens or any(math.isnan(value) or value > 0 for _, value in tokens):
        return None
    return math.exp(sum(value for _, value in tokens))
