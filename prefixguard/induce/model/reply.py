"""From what a model wrote to the spec in it: tolerant of the form, strict about the content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: The shape asked of servers that can hold a model to one. The spec itself stays open: its grammar is ours to check.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "notes": {"type": "array", "items": {"type": "string"}},
        "spec": {"type": "object"},
    },
    "required": ["spec"],
}
#: Where an object may begin that are tried; an answer has a few.
_TRIED = 400
_NOTES = 12
_NOTE_LENGTH = 300

#: What reasoning models put before their answer.
_THOUGHTS = ("think", "thinking", "thought", "reasoning", "scratchpad")
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
    kept = _without_thoughts(text)
    found, fault = _last_spec(kept)
    if found is None:
        mended = _without_trailing_commas(kept)
        if mended != kept:
            found, fault = _last_spec(mended)
    if found is not None:
        return found
    return Answer(None, fault=_what_is_wrong(kept, finish, refusal, fault))


def _without_thoughts(text: str) -> str:
    """The text without blocks of thought, also where only the end of one is there. Linear in the text."""
    for name in _THOUGHTS:
        opening, closing = f"<{name}>", f"</{name}>"
        lowered = text.lower()
        if len(lowered) != len(text) or closing not in lowered:  # some letters change length in lower case
            lowered = text
        parts, at = [], 0
        while (begin := lowered.find(opening, at)) >= 0 and (end := lowered.find(closing, begin)) >= 0:
            parts.append(text[at:begin])
            at = end + len(closing)
        text = "".join((*parts, text[at:]))
        text = text[text.rfind(closing) + len(closing) :] if closing in text else text
    return text


def _last_spec(text: str) -> tuple[Answer | None, str | None]:
    best: Answer | None = None
    fault: str | None = None
    for value in _objects(text):
        if isinstance(value, str):
            fault = fault or value
            continue
        spec = value.get("spec")
        if isinstance(spec, str) and spec.lstrip().startswith("{"):
            spec = next((one for one in _objects(spec) if isinstance(one, dict)), None)
        if isinstance(spec, dict):
            best = Answer(spec, _notes(value.get("notes")))
        elif "rules" in value and ("container" in value or "schema" in value):
            best = Answer(value, _notes(value.pop("notes", None)))
    return best, fault


def _objects(text: str) -> Iterator[dict[str, Any] | str]:
    """JSON objects of a text, outermost first, one after the other; a sentence where one is broken."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
    at = 0
    for _ in range(_TRIED):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as exc:
            yield f"the JSON breaks off at line {exc.lineno}, column {exc.colno}: {exc.msg}"
            at += 1
            continue
        except RecursionError:
            yield "the JSON is nested too deeply"
            return
        except ValueError as exc:
            yield str(exc)[:200]
            at += 1
            continue
        if isinstance(value, dict):
            yield value
        at = end


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object; combine the two")
        out[key] = value
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


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
