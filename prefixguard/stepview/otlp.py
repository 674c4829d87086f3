"""Attributes of OpenTelemetry spans: typed values and dotted names, made into plain nested JSON."""

from __future__ import annotations

import re
from typing import Any

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
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            found[pair["key"]] = plain(pair.get("value"), depth)
    return found


def unflatten(attributes: Any) -> Any:
    """Attributes (a list of key and typed value, or an object with dotted names) as nested objects and lists.

    Names of digits alone become positions in a list. Where a name is both a value and a prefix of others, the value
    stands under the empty name.

    >>> unflatten({"llm.messages.0.role": "user", "llm.messages.1.role": "tool"})
    {'llm': {'messages': [{'role': 'user'}, {'role': 'tool'}]}}
    """
    flat = _pairs(attributes, 0) if isinstance(attributes, list) else attributes
    if not isinstance(flat, dict):
        return flat
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        parts = name.split(".", _DEEPEST)
        node = tree
        for part in parts[:-1]:
            below = node.get(part)
            if not isinstance(below, _Branch):
                branch = _Branch()
                if below is not None:
                    branch[""] = below
                node[part] = below = branch
            node = below
        last = parts[-1]
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
