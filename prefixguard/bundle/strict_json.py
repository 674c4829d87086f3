"""JSON of a bundle, read so that nothing passes that its writer would not have written. All raise ValueError."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def load_json(data: bytes) -> Any:
    """The decoded document; NaN and infinities, which JSON does not have, are refused."""
    return json.loads(data, parse_constant=_refuse)


def exactly(document: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """The document, if it is an object with these fields and no other."""
    if not isinstance(document, dict):
        raise ValueError(f"{what} is not an object")
    odd = sorted(map(str, document.keys() ^ set(names)))
    if odd:
        raise ValueError(f"{what}: fields missing or unknown: {', '.join(odd)[:120]}")
    return document


def listed(value: Any, what: str, n: int | None = None) -> list[Any]:
    """The value, if it is a list, of n entries where n is given."""
    if not isinstance(value, list) or (n is not None and len(value) != n):
        raise ValueError(f"{what}: not a list" + (f" of {n}" if n is not None else ""))
    return value


def wholes(value: Any, what: str, low: int, high: int, n: int | None = None) -> list[int]:
    """A list of whole numbers from low up to, not including, high."""
    for x in listed(value, what, n):
        if type(x) is not int or not low <= x < high:
            raise ValueError(f"{what}: {str(x)[:40]} is not a whole number from {low} to {high - 1}")
    return list(value)


def numbers(value: Any, what: str) -> list[float]:
    """A list of numbers; a bool is none."""
    for x in listed(value, what):
        if type(x) not in (int, float):
            raise ValueError(f"{what}: {str(x)[:40]} is not a number")
    return list(value)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number")
