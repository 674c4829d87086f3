"""What tells tasks apart without being an id: texts that repeat, the first words of the user, tables of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.run_places import Places, RunView
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import canonical

#: Texts from this length on are compared as what a task says.
LEAST_TEXT = 24

Key = tuple[str | None, ...]


def evidence_of(views: Sequence[RunView], places: Places) -> list[Key]:
    """What tells tasks apart without being an id: texts that repeat, the first words of the user, definitions."""
    n = len(views)
    documents = tuple(view.file for view in views)
    found: list[tuple[float, Key]] = []
    for column in places.columns:
        if column.near == "document" or not column.is_text or column.length < LEAST_TEXT or column.coverage < 0.6:
            continue
        own = (
            column.distinct == n and affinity(column.name, Meaning.TASK_TEXT) >= 0.9
        )  # every run asks its own question
        if not (own or 1 < column.distinct < n) or constant_within(column.texts, documents):
            continue
        if column.distinct <= max(2, 0.01 * n):
            continue
        found.append((affinity(column.name, Meaning.TASK_TEXT), column.texts))
    opening = tuple(opening_text(view.events) for view in views)
    if _tells(opening, n) and not constant_within(opening, documents):
        found.append((0.5, opening))
    found.extend((0.8, key) for key in _definitions(views, places))
    found.sort(key=lambda item: -item[0])
    return [tuple(None if text is None else _gist(text) for text in key) for _, key in found[:8]]


def _gist(text: str) -> str:
    """The beginning of a text without what changes on the way between two sources: blanks, signs, capitals."""
    return "".join(letter for letter in text[:1200].lower() if letter.isalnum())[:800]


def _tells(key: Key, n: int) -> bool:
    here = [text for text in key if text is not None]
    return len(here) >= 0.6 * n and 1 < len(set(here)) < 0.9 * n


def opening_text(events: Sequence[Any]) -> str | None:
    """The text of the user's first turn, where one is among the first events."""
    for event in events[:4]:
        if not isinstance(event, Mapping):
            continue
        role = [v for v in event.values() if isinstance(v, str) and len(v) <= 24]
        if any(affinity(value, Meaning.ROLE_USER) >= 0.9 for value in role):
            text = longest_text(event)
            return text if text and len(text) >= LEAST_TEXT else None
    return None


def longest_text(value: Any, depth: int = 0) -> str:
    """The longest string inside a value."""
    if isinstance(value, str):
        return value
    if depth > 5 or not isinstance(value, Mapping | list):
        return ""
    inner: Iterable[Any] = value.values() if isinstance(value, Mapping) else value[:50]
    return max((longest_text(one, depth + 1) for one in inner), key=len, default="")


def _definitions(views: Sequence[RunView], places: Places) -> list[Key]:
    """Tables of tasks in the documents: lists of objects of which one has the run's id as a value."""
    tables = [c for c in places.columns if c.near == "document" and any(_is_table(v) for v in c.values)]
    ids = [c for c in places.columns if c.near == "run" and c.coverage >= 0.9 and c.length <= 80 and c.distinct > 1]
    found: list[Key] = []
    for table in tables[:4]:
        indexed: dict[int, dict[str, dict[str, str]]] = {}
        for value in table.values:
            if _is_table(value) and id(value) not in indexed:
                indexed[id(value)] = _index(value)
        names = sorted({name for one in indexed.values() for name in one})
        for column in ids[:40]:
            for name in names[:10]:
                key = tuple(
                    indexed.get(id(value), {}).get(name, {}).get(text) if text is not None else None
                    for value, text in zip(table.values, column.texts, strict=True)
                )
                if sum(1 for one in key if one is not None) >= 0.9 * len(views) and len(set(key)) > 1:
                    found.append(key)
    return found[:4]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(item, Mapping) for item in value[:20])


def _index(table: Sequence[Any]) -> dict[str, dict[str, str]]:
    """By name of an id among the rows, by id: the row's longest text, which is what the task says."""
    found: dict[str, dict[str, str]] = {}
    for row in table[:2000]:
        if not isinstance(row, Mapping):
            continue
        text = longest_text(row) or canonical(dict(row))
        for name, value in row.items():
            if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 80:
                found.setdefault(str(name), {})[str(value)] = text[:2000]
    return {name: rows for name, rows in found.items() if len(rows) >= 0.9 * len(table)}


def constant_within(texts: Sequence[str | None], documents: Sequence[str]) -> bool:
    """Has every document with several runs one value only?"""
    seen: dict[str, set[str | None]] = {}
    for text, document in zip(texts, documents, strict=True):
        seen.setdefault(document, set()).add(text)
    return len(seen) < len(texts) and all(len(values) == 1 for values in seen.values())
