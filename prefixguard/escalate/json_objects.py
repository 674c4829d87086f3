"""The JSON in a model's reply, strictly read: objects one after another with their places, and why one is broken.

What stands around them (prose, fences) is passed over. Not read: an object that names a key twice, which says two
things, and NaN and infinities, which no JSON has. Replies are hostile: so many places are tried and no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Places of a text that are tried, whole and broken; an answer has a few objects.
MAX_TRIES = 400
_OBJECT, _OBJECT_OR_LIST = re.compile(r"\{"), re.compile(r"[{\[]")
#: What reasoning models put around what they think before they answer.
_THOUGHT_TAGS = re.compile(r"<(?P<end>/?)(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundJson:
    """JSON at one place of a text.

    value: the object (or list); None where it is broken. at: where it begins and ends; a broken one ends where it
    begins. fault: why it cannot be read, a clause for the model that wrote it; "" where it can.
    """

    value: Any
    at: tuple[int, int]
    fault: str = ""


def json_objects(text: str, begin: int = 0, *, lists: bool = False) -> Iterator[FoundJson]:
    """Objects of a text from `begin` on, outermost first: what lies in a whole one is not told again, what lies in a
    broken one is. lists: lists as well.

    >>> [(found.value, found.at) for found in json_objects('So: {"a": 1}, not {"a": {}}.')]
    [({'a': 1}, (4, 12)), ({'a': {}}, (18, 27))]
    >>> [found.fault for found in json_objects('{"a": 1, "a": 2}')]
    ["the key 'a' stands twice in one object; combine the two"]
    """
    opening = _OBJECT_OR_LIST if lists else _OBJECT
    position = begin
    for _ in range(MAX_TRIES):
        met = opening.search(text, position)
        if met is None:
            return
        start = met.start()
        try:
            value, position = _STRICT.raw_decode(text, start)
        except (ValueError, RecursionError) as exc:
            position = start + 1
            yield FoundJson(None, (start, start), _fault(exc))
        else:
            yield FoundJson(value, (start, position))


def without_thoughts(text: str) -> str:
    """The text without blocks of thought, and without all before an end of one that has no beginning. Linear in the
    text. A block that does not end is left standing.

    >>> without_thoughts("It may be A. </think>B<THINK>, or C?</THINK>.")
    'B.'
    """
    kept: list[str] = []
    at, thought = 0, None  # where what is kept begins, and where the thought that is open does
    for tag in _THOUGHT_TAGS.finditer(text):
        if not tag["end"]:
            thought = tag.start() if thought is None else thought
            continue
        if thought is None:
            kept.clear()
        else:
            kept.append(text[at:thought])
        at, thought = tag.end(), None
    return "".join((*kept, text[at:]))


def _fault(exc: Exception) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"the JSON breaks off at line {exc.lineno}, column {exc.colno}: {exc.msg}"
    return "the JSON is nested too deeply" if isinstance(exc, RecursionError) else str(exc)[:200]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:80]!r} stands twice in one object; combine the two")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


__all__ = ["MAX_TRIES", "FoundJson", "json_objects", "without_thoughts"]
