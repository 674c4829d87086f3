"""Values in other spellings than JSON: Python literals, and attributes of OpenTelemetry spans. Nothing is evaluated."""

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
_LETTERS = dict(zip("ntr0abfv\\'\"", "\n\t\r\0\a\b\f\v\\'\"", strict=True))


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


#: Deepest nesting and longest list that dotted names may ask for: `a.999999999.b` must not make a list of that length.
_DEEPEST = 32
_LONGEST = 10_000
_INTEGER = re.compile("-?[0-9]{1,29}")


def plain(value: Any, depth: int = 0) -> Any:
    """An OTLP typed value as the plain one; anything else unchanged.

    >>> plain({"arrayValue": {"values": [{"intValue": "3"}, {"stringValue": "x"}]}})
    [3, 'x']
    """
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    if len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
        if kind == "intValue":
            return int(inner) if isinstance(inner, str) and _INTEGER.fullmatch(inner) else inner
        if kind == "arrayValue" and isinstance(inner, dict):
            items = inner.get("values", [])
            return [plain(item, depth + 1) for item in items] if isinstance(items, list) else []
        if kind == "kvlistValue" and isinstance(inner, dict):
            return _pairs(inner.get("values", []), depth + 1)
    return value


def _pairs(pairs: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else []:
        name = pair.get("key", pair.get("name")) if isinstance(pair, dict) else None
        if isinstance(name, str):
            found[name] = plain(pair.get("value"), depth)
    return found


def unflatten(attributes: Any) -> Any:
    """Attributes (a list of key or name and typed value, or an object with dotted names) as nested objects and lists.

    Names of digits alone become positions in a list. Where a name is both a value and a prefix of others, the value
    is found under the empty name.

    >>> unflatten({"llm.messages.0.role": "user", "llm.messages.1.role": "tool"})
    {'llm': {'messages': [{'role': 'user'}, {'role': 'tool'}]}}
    """
    flat = _pairs(attributes, 0) if isinstance(attributes, list) else attributes
    if not isinstance(flat, dict):
        return flat
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *above, last = name.split(".", _DEEPEST)
        node = tree
        for part in above:
            below = node.get(part)
            if not isinstance(below, _Branch):
                node[part] = below = _Branch() if below is None else _Branch({"": below})
            node = below
        at = node.get(last)
        if isinstance(at, _Branch):
            at[""] = plain(value)
        else:
            node[last] = plain(value)
    return {name: _settle(value) for name, value in tree.items()}


class _Branch(dict[str, Any]):
    """A node that dotted names made (an object that was a value stays as it is)."""


def _settle(node: Any) -> Any:
    if not isinstance(node, _Branch):
        return node
    if node and all(name.isascii() and name.isdigit() and len(name) <= 5 for name in node):
        order = sorted(node, key=int)
        if int(order[-1]) < _LONGEST:
            return [_settle(node[name]) for name in order]
    return {name: _settle(value) for name, value in node.items()}
