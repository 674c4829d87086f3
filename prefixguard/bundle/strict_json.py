"""JSON of a bundle, read so that nothing passes that its writer would not have written. All raise ValueError."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

_T = TypeVar("_T")


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


def instance(cls: type[_T], document: Any, **readers: Callable[[Any, str], Any]) -> _T:
    """The dataclass from an object that has exactly its fields. readers: by field, what checks a value; given the value
    and how to name it. What they pass over, the dataclass checks itself."""
    found = exactly(document, (field.name for field in fields(cls)), cls.__name__)  # type: ignore[arg-type]
    return cls(
        **{name: readers[name](v, f"{cls.__name__}: {name}") if name in readers else v for name, v in found.items()}
    )


def optional(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """The reader, for a value that may be null."""
    return lambda value, what: None if value is None else read(value, what)


def text(value: Any, what: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is not text")
    return value


def whole(value: Any, what: str) -> int:
    """A whole number; a bool is none."""
    if type(value) is not int:
        raise ValueError(f"{what} is {str(value)[:40]}, not a count")
    return value


def share(value: Any, what: str, kind: str = "probability") -> float:
    """A number from 0 to 1. kind: what the message calls it."""
    if type(value) not in (int, float) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{what}: {str(value)[:40]} is not a {kind}")
    return value  # type: ignore[no-any-return]


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
