"""Values as Python spells them (the `repr` of a dict), read as JSON. Nothing is evaluated: tokens are rewritten one
by one."""

from __future__ import annotations

import json
import re
from typing import Any

from prefixguard.stepview.jsontext import LONGEST_PARSED, decode_text

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*")|(?P<word>True|False|None)\b"""
    r"""|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<mark>[\[\](){},:]))"""
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))")
_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
}


def read_literal(text: str) -> Any:
    """The value of a Python literal made of dicts, lists, tuples (read as lists), texts, numbers, True, False and None.

    ValueError for anything else, and for texts too long to be arguments.

    >>> read_literal("{'open': True, 'items': ('a', \\"b's\\"), 'price': 1.50}")
    {'open': True, 'items': ['a', "b's"], 'price': 1.5}
    """
    if len(text) > LONGEST_PARSED:
        raise ValueError("too long for a literal")
    text = text.rstrip()
    parts: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"not a literal at character {at + 1}")
        at = token.end()
        kind = token.lastgroup or ""
        part = token[kind]
        if kind == "text":
            part = json.dumps(_ESCAPE.sub(_unescaped, part[1:-1]))
        elif kind == "word":
            part = _WORDS[part]
        elif part in "()":
            part = "[" if part == "(" else "]"
        if part in "]}" and parts and parts[-1] == ",":
            parts.pop()  # a comma may stand after the last item
        parts.append(part)
    return decode_text("".join(parts))


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        return chr(int(digits, 16))
    return _LETTERS.get(match[4], match[0])
