"""From what a model wrote to the spec in it: tolerant of the form, strict about the content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.escalate import json_objects, without_thoughts

#: The shape asked of servers that can hold a model to one. The spec itself stays open: its grammar is ours to check.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "notes": {"type": "array", "items": {"type": "string"}},
        "spec": {"type": "object"},
    },
    "required": ["spec"],
}
_NOTES = 12
_NOTE_LENGTH = 300
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m sorry|sorry|i can(?:no|['’])t|i am (?:unable|not able)|i['’]?m (?:unable|not able))", re.I
)


@dataclass(frozen=True, slots=True)
class Answer:
    """spec: None where there is none. notes: the model's remarks. fault: what was wrong, for the model; None if
    nothing."""

    spec: dict[str, Any] | None
    notes: tuple[str, ...] = ()
    fault: str | None = None


def read_answer(text: str, finish: str = "stop", refusal: str = "") -> Answer:
    """The spec in a reply: the last complete JSON object that is one, or that has one under `spec`.

    finish: why the reply ended, as the server says. Fences, prose, blocks of thought, comments and trailing commas do
    not matter; a key that stands twice in one object does.
    """
    kept = without_thoughts(text)
    found, fault = _last_spec(kept)
    if found is None:
        mended = _without_trailing_commas(kept)
        if mended != kept:
            found, fault = _last_spec(mended)
    if found is not None:
        return found
    return Answer(None, fault=_what_is_wrong(kept, finish, refusal, fault))


def _last_spec(text: str) -> tuple[Answer | None, str | None]:
    best: Answer | None = None
    fault: str | None = None
    for found in json_objects(text):
        if found.fault:
            fault = fault or found.fault
            continue
        value = found.value
        spec = value.get("spec")
        if isinstance(spec, str) and spec.lstrip().startswith("{"):
            spec = next((inner.value for inner in json_objects(spec) if not inner.fault), None)
        if isinstance(spec, dict):
            best = Answer(spec, _notes(value.get("notes")))
        elif "rules" in value and ("container" in value or "schema" in value):
            best = Answer(value, _notes(value.pop("notes", None)))
    return best, fault


def _notes(notes: Any) -> tuple[str, ...]:
    if isinstance(notes, str):
        notes = [notes]
    if not isinstance(notes, list):
        return ()
    return tuple(" ".join(note.split())[:_NOTE_LENGTH] for note in notes if isinstance(note, str))[:_NOTES]


def _without_trailing_commas(text: str) -> str:
    """The text without commas before a closing bracket and without // comments, outside of strings."""
    out: list[str] = []
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        if c == '"':
            end = i + 1
            while end < n and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            out.append(text[i : end + 1])
            i = end + 1
        elif c == "/" and text.startswith("//", i):
            end = text.find("\n", i)
            i = n if end < 0 else end
        elif c == "," and text[i + 1 : i + 200].lstrip()[:1] in ("}", "]"):
            i += 1
        else:
            out.append(c)
            i += 1
    return "".join(out)


def _what_is_wrong(text: str, finish: str, refusal: str, fault: str | None) -> str:
    if finish == "content_filter" or refusal:
        return f"the model refused: {' '.join(refusal.split())[:200] or 'content filter'}"
    if finish in ("length", "limit", "max_tokens"):
        return (
            "the answer was cut off before its end; answer shorter: the JSON object only, without blanks and comments"
        )
    if not text.strip():
        return "the answer was empty; answer with the JSON object"
    if _REFUSAL.match(text.lstrip()[:200]) and "{" not in text:
        return f"the model refused: {' '.join(text.split())[:200]}"
    if "{" not in text:
        return "the answer held no JSON object; answer with the JSON object and nothing else"
    if fault is not None:
        return f"no spec could be read from the answer: {fault}"
    return 'the answer held no spec; it is one JSON object {"notes": [...], "spec": {...}}'


def is_refusal(fault: str | None) -> bool:
    """Does the fault of an answer say that the model refused?"""
    return fault is not None and fault.startswith("the model refused")


__all__ = ["Answer", "is_refusal", "read_answer"]
