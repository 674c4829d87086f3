"""Every list of the documents that could be events, and how much text stands in each: lists, numbered objects, names
that count, parallel lists, JSON inside strings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile
from prefixguard.induce.search.columns import INSIDE, is_attributes, opened_json
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.places import Place

#: Names that count, and what stands for them at the end of a place.
_COUNTED = re.compile(r"([A-Za-z].*?)(\d{1,3})")
STEMS = "\x00stems"
_DEEPEST = 9


@dataclass(slots=True)
class ListPlace:
    """A list at one place over all documents. mass: characters of texts inside. lengths, files: of its instances.
    form: list, numbered (an object whose keys count), named (an object of alike objects), columns (parallel lists)."""

    mass: int = 0
    lengths: list[int] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    form: str = "list"
    columns: Counter[str] = field(default_factory=Counter)
    largest: int = 0


def _survey(documents: Sequence[tuple[SampleFile, Any]]) -> tuple[dict[Place, ListPlace], int]:
    places: dict[Place, ListPlace] = defaultdict(ListPlace)
    seen: set[int] = set()

    def walk(value: Any, place: Place, path: str) -> int:
        if isinstance(value, str):
            inner = opened_json(value) if len(value) > 40 and len(place) <= 5 and INSIDE not in place else None
            if inner is not None and not (place and place[-1] is None):
                walk(inner, (*place, INSIDE), path)
            if hash(value) in seen:
                return 0
            seen.add(hash(value))
            return min(len(value), 2000) if len(value) > 3 else 0
        if len(place) > _DEEPEST:
            return 0
        if isinstance(value, dict):
            form = _form(value)
            if form:
                mass = sum(walk(item, (*place, None), path) for item in value.values())
                _note(places[place], mass, len(value), path, form)
                return mass
            mass = sum(walk(item, (*place, str(key)), path) for key, item in value.items())
            if stems := _stems(value):
                one = places[(*place, STEMS)]
                _note(one, mass, max(stems.values()), path, "stems")
                one.columns.update({stem: n for stem, n in stems.items() if n == max(stems.values())})
            columns = {k: len(v) for k, v in value.items() if isinstance(v, list) and v and _plain(v)}
            if len(columns) >= 2 and max(columns.values()) - min(columns.values()) <= 1 and max(columns.values()) >= 2:
                one = places[(*place, "\x00columns")]
                _note(one, mass, max(columns.values()), path, "columns")
                one.columns.update(columns.keys())
            return mass
        if is_attributes(value):
            return sum(walk(item["value"], (*place, item["key"]), path) for item in value)
        if isinstance(value, list):
            mass = sum(walk(item, (*place, None), path) for item in value)
            if any(isinstance(item, dict | list) for item in value[:20]):
                _note(places[place], mass, len(value), path, "list")
            return mass
        return 0

    total = sum(walk(value, (), file.path) for file, value in documents)
    return places, total


def surveyed(
    kind: Kind, documents: Sequence[tuple[SampleFile, Any]], evidence: Evidence
) -> tuple[dict[Place, ListPlace], int]:
    if ("survey", kind) not in evidence.cache:
        evidence.cache["survey", kind] = _survey(documents)
    found: tuple[dict[Place, ListPlace], int] = evidence.cache["survey", kind]
    return found


def _note(one: ListPlace, mass: int, n: int, path: str, form: str) -> None:
    one.mass += mass
    one.lengths.append(n)
    one.files[path] = None
    one.form = form
    one.largest = max(one.largest, n)


def _plain(items: list[Any]) -> bool:
    return not any(isinstance(item, dict) for item in items[:20])


def _form(value: dict[str, Any]) -> str:
    """Is the object a list in disguise: its keys count, or are ids of things alike?"""
    if len(value) < 2 or not all(isinstance(item, dict | list) for item in value.values()):
        return ""
    keys = list(value)
    if all(key.isdecimal() for key in keys):
        return "numbered"
    shapes = [frozenset(item) if isinstance(item, dict) else frozenset() for item in list(value.values())[:50]]
    common, union = frozenset.intersection(*shapes), frozenset.union(*shapes)
    alike = len(common) >= 2 and len(common) >= 0.6 * len(union)
    return "named" if alike and (sum(any(c.isdigit() for c in key) for key in keys) >= 0.8 * len(keys)) else ""


def _stems(value: dict[str, Any]) -> dict[str, int]:
    """How far the names of an object count by their beginnings, as tool_0, text_0, tool_1, text_1 do; empty where less
    than nearly all of them do."""
    found: dict[str, set[int]] = defaultdict(set)
    for name in value:
        if match := _COUNTED.fullmatch(name):
            found[match[1]].add(int(match[2]))
    whole = {stem: at for stem, at in found.items() if min(at) < 2 and max(at) - min(at) == len(at) - 1}
    stems = {stem: len(at) for stem, at in whole.items()}
    most = max(stems.values(), default=0)
    stems = {stem: n for stem, n in stems.items() if n >= most - 1}
    return stems if len(stems) > 1 < most and sum(stems.values()) >= 0.9 * len(value) else {}


def documents_of(evidence: Evidence, kind: Kind) -> list[tuple[SampleFile, Any]]:
    if kind is Kind.ZIP:
        archives = [file for file in evidence.files if file.kind is kind]
        return [(file, value) for file in archives for _, value in sorted(file.value.items())]
    files = [file for file in evidence.files if file.kind is kind and file.path in evidence.values]
    if kind is Kind.JSONL:
        return [(file, line) for file in files for line in islice(evidence.values[file.path], 1200)]
    return [(file, evidence.values[file.path]) for file in files]
