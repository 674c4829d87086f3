"""JSON as text: reading it tolerantly, writing it canonically, and never losing the spelling of a number.

Two runs differ if one was called with 1.10 and the other with 1.1, so arguments keep their numbers as they were
written. orjson is fast but turns 1.10 into 1.1 and 1e3 into 1000.0; texts in which that could happen go a slower way.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import re2

from prefixguard.errors import TraceError

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

#: Numbers that orjson would spell differently: exponents, zeros after the last digit, negative zero, many digits,
#: tiny fractions. It may also match inside a string, which costs time and nothing else.
_RISKY = re2.compile(rb"[0-9][eE][-+0-9]|\.[0-9]+0(?:[^0-9]|$)|-0(?:[^.0-9]|$)|[0-9.]{16}|0\.0000", _OPTIONS)

#: Arguments longer than this (code points) are kept as they are: sorting the keys of a whole file is not worth it.
LONGEST_PARSED = 200_000


class SpelledFloat(float):
    """A float that remembers how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> SpelledFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number


class SpelledInt(int):
    """An int whose source spelling is not the usual one, or which is too long to convert (then its value is 0)."""

    text: str


def _spelled_int(text: str) -> int:
    if len(text) > 4000:
        number = SpelledInt(0)
        number.text = text
        return number
    value = int(text)
    if str(value) == text:
        return value
    number = SpelledInt(value)
    number.text = text
    return number


#: One for all: `json.loads` would make a new one every time, which waits for the garbage collector.
_DECODER = json.JSONDecoder(parse_float=SpelledFloat, parse_int=_spelled_int)


def decode(data: bytes) -> Any:
    """JSON bytes (valid UTF-8) as Python values; NaN, Infinity and lone surrogates are read; numbers keep their
    spelling.

    ValueError (orjson.JSONDecodeError and json.JSONDecodeError are ones, with lineno, colno and pos) for anything
    that is not JSON.

    >>> decode(b'[1e3, NaN]')
    [1000.0, nan]
    """
    if _RISKY.search(data) is None:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    return decode_text(data.decode("utf-8"))


def decode_text(text: str) -> Any:
    """As `decode`, from text, always the careful way."""
    try:
        return _DECODER.decode(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def decode_string(text: str) -> Any:
    """As `decode`, from text, which may hold half a character."""
    try:
        return decode(text.encode("utf-8"))
    except UnicodeEncodeError:
        return decode_text(text)


def canonical(value: Any) -> str:
    """The value as JSON: sorted keys, no blanks, numbers as they were spelled.

    >>> canonical({"b": 1, "a": [1.0, None]})
    '{"a":[1.0,null],"b":1}'
    """
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return _careful(value)
    if b"null" in data:  # orjson writes NaN and Infinity as null
        return _careful(value)
    return data.decode("utf-8")


def spelled(value: Any) -> str:
    """The value as JSON with its keys in their own order, so that reading it gives the value again; "" where it is
    nested too deeply."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return _careful(value, in_order=False)
    return data.decode("utf-8") if b"null" not in data else _careful(value, in_order=False)


def canonical_text(text: str) -> str:
    """JSON text rewritten canonically; the text itself where it is not a JSON object or array.

    >>> canonical_text('{"b": 1e3, "a": 1.10}')
    '{"a":1.10,"b":1e3}'
    >>> canonical_text("ls -l")
    'ls -l'
    """
    head = text[:32].lstrip()[:1]
    if head not in ("{", "[", '"') or not head or len(text) > LONGEST_PARSED:
        return text
    try:
        value = decode_string(text)
    except ValueError:
        return text
    if isinstance(value, str):  # encoded twice
        return canonical_text(value) if value[:1] in ("{", "[") else text
    return canonical(value)


#: Of one live event: lists and objects, counted as often as they would be written; how often one of them; characters
#: of texts; and parts of an event that is so small that it is not examined further.
MOST_PARTS, MOST_TIMES, MOST_CHARACTERS, _FEW = 1 << 20, 4096, 1 << 28, 1024


def refuse_endless(value: Any) -> None:
    """TraceError for a value that would be written without end, or nearly so: one that holds itself, or holds the same
    parts so many times. No JSON text gives such a value; a host's own objects can."""
    if value.__class__ is dict and {one.__class__ for one in value.values()} == {str}:
        return  # most events: a few texts
    waiting, parts, characters, times, most = [value], 0, 0, dict[int, int](), 0
    while waiting:
        inner = waiting.pop()
        if parts > _FEW:
            times[id(inner)] = most = times.get(id(inner), 0) + 1
        values = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list | tuple) else ()
        below = [one for one in values if isinstance(one, dict | list | tuple)]
        if len(below) < len(values):
            characters += sum([len(one) for one in values if one.__class__ is str])
        parts += 1 + len(below)
        if parts > MOST_PARTS or most > MOST_TIMES or characters > MOST_CHARACTERS:
            raise TraceError(
                f"an event of more than {MOST_PARTS:,} lists and objects, {MOST_TIMES:,} times the same one, or "
                f"{MOST_CHARACTERS:,} characters: it may hold itself, or the same parts many times. Feed the session "
                "what the event says, as plain JSON"
            )
        waiting += below


def _careful(value: Any, in_order: bool = True) -> str:
    try:
        return _write(value, in_order)
    except RecursionError:
        return ""


def _write(value: Any, in_order: bool) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool) or value is None:
        return "null" if value is None else ("true" if value else "false")
    if isinstance(value, SpelledFloat | SpelledInt):
        return value.text
    if isinstance(value, int):
        try:
            return str(value)
        except ValueError:  # more digits than Python converts
            return hex(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return json.dumps(value)
        return orjson.dumps(value).decode()
    if isinstance(value, dict):
        pairs = [(str(key), item) for key, item in value.items()]
        if in_order:
            pairs.sort(key=lambda pair: pair[0])
        written = (f"{json.dumps(key, ensure_ascii=False)}:{_write(item, in_order)}" for key, item in pairs)
        return "{" + ",".join(written) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_write(item, in_order) for item in value) + "]"
    return json.dumps(str(value), ensure_ascii=False)
