"""Places in decoded JSON: paths with every list position made one, how the spec spells them, what they find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prefixguard.stepview import parse_path

#: A step of a place: a name, or None for "all elements" (of a list, or of an object that maps ids to things).
Place = tuple[str | None, ...]

#: Nothing deeper is looked at.
DEEPEST = 12
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
#: Elements of an event that is a short list are called by their position.
_POSITION = re.compile(r"\[\d\]\Z")


def spell(root: str, place: Place) -> str:
    """The place as a path of the spec.

    >>> spell("@", ("message", "content", None, "a b"))
    '@.message.content[*]["a b"]'
    """
    parts = [root]
    for step in place:
        if step is None:
            parts.append("[*]")
        elif _POSITION.match(step):
            parts.append(step)
        elif _PLAIN.match(step):
            parts.append(f".{step}")
        else:
            parts.append(f"['{step}']" if '"' in step else f'["{step}"]')
    return "".join(parts)


def place_of(path: str) -> tuple[str, Place]:
    """Root and place of a path of the spec; a filter counts as "all". AdapterError where it is no path.

    >>> place_of('@.message.content[*]["a b"]')
    ('@', ('message', 'content', None, 'a b'))
    """
    root, steps = parse_path(path, "path")
    return root, tuple(
        step[1] if step[0] == "name" else f"[{step[1]}]" if step[0] == "index" else None for step in steps
    )


def find(value: Any, place: Place) -> list[Any]:
    """Everything at the place; empty where there is nothing."""
    found = [value]
    for step in place:
        if step is None:
            found = [
                item
                for one in found
                for item in (one if isinstance(one, list) else one.values() if isinstance(one, dict) else ())
            ]
        else:
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
        if not found:
            break
    return found


def first(value: Any, place: Place) -> Any:
    """What is at the place (no "all" in it); None where nothing is."""
    for step in place:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Scalars and their places; lists and what is deeper than DEEPEST are walked with their position made one."""
    if isinstance(value, dict):
        if len(place) < DEEPEST:
            for key, inner in value.items():
                yield from leaves(inner, (*place, str(key)))
    elif isinstance(value, list):
        if len(place) < DEEPEST:
            for inner in value:
                yield from leaves(inner, (*place, None))
    else:
        yield place, value


def own_leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """As `leaves`, but lists of objects are left to themselves: they are yielded whole, with their place."""
    if isinstance(value, dict):
        if len(place) < DEEPEST:
            for key, inner in value.items():
                yield from own_leaves(inner, (*place, str(key)))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        yield place, value
    else:
        yield place, value


def text_size(value: Any) -> int:
    """Characters of all strings inside."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, list) else 0
