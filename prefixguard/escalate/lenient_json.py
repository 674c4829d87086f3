"""A JSON object as language models write it: single quotes, trailing commas, bare words, quotes that are not escaped.

Strict JSON is read as such; only what is none is read leniently. Nothing is evaluated; depth and length are bounded.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

#: Characters of one object, and how deep objects and lists may stand in each other.
MAX_OBJECT = 64 * 1024
MAX_DEPTH = 8

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,4})?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9-]{0,39}(?![\w.])", re.ASCII)
_ESCAPE = re.compile(r"u([0-9a-fA-F]{4})|.", re.DOTALL)
_ENDS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]"), "\u201c": re.compile(r"[\u201d\\]")}
# what stands behind a text: the end, or another entry
_CLOSES = re.compile(r"\s*(?:[}\]]|\Z|,\s*(?:[\"'\u201c{}\[\]\d+-]|\Z|\w{1,40}\s*[:,\]}]))")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": math.nan, "infinity": math.inf}
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class BrokenJson(ValueError):
    """No object. cut: the text ends before the object does. position: where reading stopped."""

    def __init__(self, message: str, position: int, *, cut: bool = False) -> None:
        super().__init__(message)
        self.position, self.cut = position, cut


class JsonObject(dict[str, Any]):
    """An object, its keys in lower case. clashing: keys with several different values; the last one is kept."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        folded = [(key.strip().lower(), value) for key, value in pairs]
        super().__init__(folded)
        self.clashing = frozenset(key for key, value in folded if repr(value) != repr(self[key]))


@dataclass(frozen=True, slots=True)
class ReadObject:
    """end: position behind the object. lenient: it is no strict JSON."""

    value: JsonObject
    end: int
    lenient: bool = False


def read_object(text: str, start: int) -> ReadObject:
    """The object whose brace stands at `start`. BrokenJson where there is none.

    >>> read_object("{'answer': SAFE,}", 0).value
    {'answer': 'SAFE'}
    """
    part = text[start : start + MAX_OBJECT]
    try:
        value, end = _STRICT.raw_decode(part)
        if isinstance(value, JsonObject):
            return ReadObject(value, start + end)
    except (ValueError, RecursionError):
        pass
    value, end = _object(part, 0, 0, start)
    return ReadObject(value, start + end, lenient=True)


def _integer(digits: str) -> int | float:
    """An integer; one that no step has becomes infinite instead of costing time."""
    return int(digits) if len(digits) <= 18 else math.copysign(math.inf, -1 if digits.startswith("-") else 1)


_STRICT = json.JSONDecoder(strict=False, object_pairs_hook=JsonObject, parse_int=_integer, parse_constant=float)


def _after_space(text: str, position: int, base: int) -> int:
    met = _SPACE.match(text, position)
    position = met.end() if met else position
    if position >= len(text):
        raise BrokenJson("the object does not end", base + position, cut=True)
    return position


def _object(text: str, position: int, depth: int, base: int) -> tuple[JsonObject, int]:
    pairs: list[tuple[str, Any]] = []
    position = _after_space(text, position + 1, base)
    while text[position] != "}":
        key, position = _key(text, position, base)
        position = _after_space(text, position, base)
        if text[position] != ":":
            raise BrokenJson("a key without its value", base + position)
        value, position = _value(text, _after_space(text, position + 1, base), depth + 1, base)
        pairs.append((key, value))
        position = _next(text, position, "}", base)
    return JsonObject(pairs), position + 1


def _key(text: str, position: int, base: int) -> tuple[str, int]:
    if text[position] in _ENDS:
        return _string(text, position, base, key=True)
    met = _WORD.match(text, position)
    if met is None:
        raise BrokenJson("a key is no text", base + position)
    return met.group(), met.end()


def _list(text: str, position: int, depth: int, base: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    position = _after_space(text, position + 1, base)
    while text[position] != "]":
        value, position = _value(text, position, depth + 1, base)
        values.append(value)
        position = _next(text, position, "]", base)
    return values, position + 1


def _next(text: str, position: int, end: str, base: int) -> int:
    """Where the next entry begins, or the end stands. A comma before the end is allowed."""
    position = _after_space(text, position, base)
    if text[position] == ",":
        return _after_space(text, position + 1, base)
    if text[position] != end:
        raise BrokenJson("two entries without a comma", base + position)
    return position


def _value(text: str, position: int, depth: int, base: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise BrokenJson("nested too deep", base + position)
    char = text[position]
    if char == "{":
        return _object(text, position, depth, base)
    if char == "[":
        return _list(text, position, depth, base)
    if char in _ENDS:
        return _string(text, position, base)
    met = _NUMBER.match(text, position)
    if met:
        said = met.group()
        return (_integer(said) if said.lstrip("+-").isdigit() else float(said)), met.end()
    met = _WORD.match(text, position)
    if met:
        word = met.group()
        return _WORDS.get(word.lower(), word), met.end()
    raise BrokenJson("neither text nor number", base + position)


def _string(text: str, position: int, base: int, *, key: bool = False) -> tuple[str, int]:
    """A text. In a value, a quotation mark ends it only where another entry can follow: marks inside need no escape."""
    ends = _ENDS[text[position]]
    parts: list[str] = []
    begin = position + 1
    while met := ends.search(text, begin):
        stop = met.start()
        parts.append(text[begin:stop])
        begin = stop + 1
        if met.group() != "\\":
            if key or _CLOSES.match(text, begin):
                return "".join(parts), begin
            parts.append(met.group())
            continue
        escape = _ESCAPE.match(text, begin)
        if escape is None:
            break
        code = escape.group(1)
        parts.append(chr(int(code, 16)) if code else _ESCAPED.get(escape.group(), escape.group()))
        begin = escape.end()
    raise BrokenJson("a text does not end", base + len(text), cut="}" not in text[position:])
