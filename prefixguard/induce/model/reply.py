"""From what a model wrote to the spec in it: tolerant of the form, strict about the content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.escalate import Reply, json_objects, without_thoughts

#: The shape asked of servers that can hold a model to one. The spec itself stays open: its grammar is ours to check.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"notes": {"type": "array", "items": {"type": "string"}}, "spec": {"type": "object"}},
    "required": ["spec"],
}
_NOTES, _NOTE_LENGTH = 12, 300
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m sorry|sorry|i can(?:no|['’])t|i am (?:unable|not able)|i['’]?m (?:unable|not able))", re.I
)
#: A text, which stays as it is; or a comment, or a comma before a closing bracket.
_NO_JSON = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\n]*|,(?=\s{0,200}[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """spec: None where there is none. notes: the model's remarks. fault: what was wrong, for the model. is_refusal:
    it would not answer."""

    spec: dict[str, Any] | None
    notes: tuple[str, ...] = ()
    fault: str = ""
    is_refusal: bool = False


def read_answer(reply: Reply) -> Answer:
    """The spec in a reply: the last complete JSON object that is one, or that has one under `spec`.

    Fences, prose, blocks of thought, comments and trailing commas do not matter; a key that stands twice in one object
    does.
    """
    text = without_thoughts(reply.text)
    found, fault = _last_spec(text)
    if found is None:
        found, _ = _last_spec(_NO_JSON.sub(lambda met: met[1] or "", text))
    return found if found is not None else _without_spec(text, reply, fault)


def _last_spec(text: str) -> tuple[Answer | None, str]:
    best: Answer | None = None
    fault = ""
    for found in json_objects(text):
        if found.fault:
            fault = fault or found.fault
            continue
        value = found.value
        spec = value.get("spec")
        if isinstance(spec, str):
            spec = next((inner.value for inner in json_objects(spec) if not inner.fault), None)
        if isinstance(spec, dict):
            best = Answer(spec, _notes(value.get("notes")))
        elif "rules" in value and ("container" in value or "schema" in value):
            best = Answer(value, _notes(value.pop("notes", None)))
    return best, fault


def _notes(notes: Any) -> tuple[str, ...]:
    said = [notes] if isinstance(notes, str) else notes if isinstance(notes, list) else []
    return tuple(" ".join(note.split())[:_NOTE_LENGTH] for note in said if isinstance(note, str))[:_NOTES]


def _without_spec(text: str, reply: Reply, fault: str) -> Answer:
    words = reply.refusal or ("" if "{" in text or not _REFUSAL.match(text.lstrip()[:200]) else text)
    if reply.finish == "content_filter" or words:
        said = " ".join(words.split())[:200] or "content filter"
        return Answer(None, fault=f"the model refused: {said}", is_refusal=True)
    if reply.finish in ("length", "limit", "max_tokens"):
        said = "the answer was cut off before its end; answer shorter: the JSON object only, no blanks, no comments"
    elif not text.strip():
        said = "the answer was empty; answer with the JSON object"
    elif "{" not in text:
        said = "the answer held no JSON object; answer with the JSON object and nothing else"
    elif fault:
        said = f"no spec could be read from the answer: {fault}"
    else:
        said = 'the answer held no spec; it is one JSON object {"notes": [...], "spec": {...}}'
    return Answer(None, fault=said)
