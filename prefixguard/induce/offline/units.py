"""Units: what can be one thing said or done. An event of a kind is one; so is an element of a list inside it (a content
block, a tool call), or of a list that a string inside it holds as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from prefixguard.induce.offline.arrays import parse_inside
from prefixguard.induce.offline.kinds import ABSENT, PRESENT, Kind, divide
from prefixguard.induce.offline.places import Place, find, own_leaves, spell
from prefixguard.induce.offline.speakers import Part, part_of
from prefixguard.lexicon import Meaning, affinity, words
from prefixguard.stepview import to_text

#: Events that inference looks at, and lists inside an event that it opens, one inside another.
MOST_EVENTS = 12_000
_NESTED = 2
#: Values of one element that are looked at, of an object with very many names the first.
MOST_LEAVES = 2000
_ID = re.compile(r"[^\s]{1,120}\Z")


@dataclass
class Column:
    """One place in the elements of a unit. values: None where absent. json: strings that hold an object or a list.
    value: how the spec reads it. whole: objects or lists, not scalars."""

    place: Place
    value: Any
    values: list[Any]
    json: bool = False
    whole: bool = False

    @cached_property
    def present(self) -> float:
        """Share of the elements that have something there, in [0, 1]."""
        return sum(value is not None and value not in ("", [], {}) for value in self.values) / max(1, len(self.values))

    @cached_property
    def texts(self) -> list[str]:
        """Text of every value."""
        return [to_text(value) if value is not None else "" for value in self.values]

    @cached_property
    def size(self) -> int:
        """Characters of all texts."""
        return sum(map(len, self.texts))

    @cached_property
    def distinct(self) -> int:
        """Different texts that are not empty."""
        return len({text for text in self.texts if text})

    @cached_property
    def name(self) -> str:
        """The path, from the element."""
        return spell("@", self.place)

    @cached_property
    def is_name(self) -> bool:
        """Short texts, as names of tools are?"""
        texts = [text for text in self.texts if text]
        return bool(texts) and sum(bool(_NAME.match(text)) for text in texts) >= 0.9 * len(texts)

    @cached_property
    def is_id(self) -> bool:
        """Texts without blanks?"""
        texts = [text for text in self.texts if text]
        return bool(texts) and sum(bool(_ID.match(text)) for text in texts) >= 0.95 * len(texts)


_LITERAL = re.compile(r"\s*[{\[].*[}\]]\s*\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.:/ -]{0,63}\Z")


@dataclass(slots=True)
class Unit:
    """Elements of one kind. when: condition on the event. each: value of the spec that gives the elements, None where
    the event itself is the element. events: position of the event of each element. runs: of each element."""

    kind: Kind
    when: dict[str, Any]
    each: Any
    inner: tuple[tuple[Place, Any], ...]
    elements: list[Any]
    events: list[int]
    runs: list[int]
    columns: dict[Place, Column] = field(default_factory=dict)
    depth: int = 0
    holder: Place = ()
    words: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        inner = ", ".join(f"{spell('@', place)} = {value}" for place, value in self.inner)
        shown = f" each {self.each}" if self.each is not None else ""
        return f"{self.kind.label}{shown}{' where ' + inner if inner else ''}"


@dataclass(slots=True)
class Table:
    """All events that inference looks at. runs: of each event. positions: in its run."""

    events: list[Any]
    runs: list[int]
    positions: list[int]
    n_runs: int


def table_of(listings: Sequence[Sequence[Any]]) -> Table:
    """Events of runs, whole runs at a time, up to MOST_EVENTS."""
    table = Table([], [], [], 0)
    for run, events in enumerate(listings):
        if len(table.events) + len(events) > MOST_EVENTS and table.n_runs >= 2:
            continue
        table.n_runs += 1
        for position, event in enumerate(events[:MOST_EVENTS]):
            table.events.append(event)
            table.runs.append(run)
            table.positions.append(position)
    return table


def condition(tests: Sequence[tuple[Place, Any]]) -> dict[str, Any]:
    """Tests as a `when` of the spec."""
    out: dict[str, Any] = {}
    for place, value in tests:
        path = spell("@", place)
        out[path] = {"present": value is PRESENT} if value in (PRESENT, ABSENT) else value
    return out


def units_of(table: Table, kinds: Sequence[Kind]) -> list[Unit]:
    """Units of the kinds, the events' own first."""
    out: list[Unit] = []
    for kind in kinds:
        members = list(kind.members)
        unit = Unit(
            kind,
            condition(kind.when),
            None,
            (),
            [table.events[i] for i in members],
            members,
            [table.runs[i] for i in members],
            words=tuple(str(value) for _, value in kind.when if isinstance(value, str)),
        )
        unit.columns = columns_of(unit.elements)
        out.append(unit)
        out += _nested(unit, table, 1)
    return out


def columns_of(elements: Sequence[Any]) -> dict[Place, Column]:
    """Places of the elements: scalars, lists left whole, objects (also as wholes), JSON inside strings."""
    n = len(elements)
    values: dict[Place, list[Any]] = {}

    def put(place: Place, i: int, value: Any) -> None:
        if place not in values:
            if len(values) > 400:
                return
            values[place] = [None] * n
        values[place][i] = value

    for i, element in enumerate(elements):
        if isinstance(element, str):
            put((), i, element)
            continue
        seen: set[Place] = set()
        for place, value in islice(own_leaves(element), MOST_LEAVES):
            if None in place:
                place = place[: place.index(None)]
                if place in seen:
                    continue
                value = next(iter(find(element, place)), None)
            seen.add(place)
            put(place, i, value)
            for cut in range(1, len(place)):
                if place[:cut] not in seen:
                    seen.add(place[:cut])
                    put(place[:cut], i, next(iter(find(element, place[:cut])), None))
        if isinstance(element, dict):
            for place, value in _objects(element, ()):
                if place not in seen:
                    put(place, i, value)
    out: dict[Place, Column] = {}
    for place, found in values.items():
        whole = any(isinstance(value, dict | list) for value in found)
        column = Column(place, spell("@", place), found, whole=whole)
        there = [value for value in found if isinstance(value, str) and value]
        if there and not whole:
            some = there[:: max(1, len(there) // 200)]
            inside = sum(value.lstrip()[:1] in ("{", "[") and parse_inside(value) is not None for value in some)
            column.json = inside >= 0.7 * len(some)
            alike = sum(_LITERAL.match(value) is not None for value in some)
            column.json = column.json or (inside > 0 and alike >= 0.5 * len(some))
        out[place] = column
    return out


def _objects(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Objects inside that are empty: they have no leaves and are there all the same."""
    if isinstance(value, dict) and len(place) < 6:
        if place and not value:
            yield place, value
        for key, inner in value.items():
            yield from _objects(inner, (*place, str(key)))


def _nested(unit: Unit, table: Table, depth: int) -> list[Unit]:
    """Units in the lists of objects that the unit's elements hold."""
    out: list[Unit] = []
    for place, column in sorted(unit.columns.items(), key=lambda kv: str(kv[0])):
        lists: list[tuple[int, list[Any]]] = []
        from_json = False
        for i, value in enumerate(column.values):
            if isinstance(value, str) and column.json:
                value = parse_inside(value)
                from_json = True
            if isinstance(value, list) and any(isinstance(item, dict) and set(item) != _TYPED for item in value):
                lists.append((i, [item for item in value if isinstance(item, dict)]))
        if not lists or (from_json and isinstance(unit.each, dict)):
            continue  # JSON in a string inside JSON in a string
        elements = [item for _, items in lists for item in items]
        if len(elements) > 3 * MOST_EVENTS:
            continue
        holders = [i for i, items in lists for _ in items]
        for kind in _named(divide(elements, None, depth=1, reach=1), elements):
            base: Any = spell("@", place)
            each = _each(unit.each, base, from_json, kind)
            members = list(kind.members)
            made = Unit(
                unit.kind,
                unit.when,
                each,
                kind.when,
                [elements[i] for i in members],
                [unit.events[holders[i]] for i in members],
                [unit.runs[holders[i]] for i in members],
                depth=depth,
                holder=place if unit.each is None else (*unit.holder, *place),
                words=tuple(str(value) for _, value in kind.when if isinstance(value, str))
                or (base.rpartition(".")[2],),
            )
            made.columns = columns_of(made.elements)
            out.append(made)
            if depth < _NESTED:
                out += _nested(made, table, depth + 1)
    return out


_WHAT = frozenset({"tool", "function", "result", "results", "observation", "call"})


def _named(kinds: list[Kind], elements: Sequence[Any]) -> list[Kind]:
    """Where all elements are of one kind: by the field that says of all in the same word that they are calls, or
    results."""
    if len(kinds) != 1 or kinds[0].when:
        return kinds
    for key in sorted({key for element in elements[:200] for key in element if isinstance(key, str)}):
        values = {element.get(key) if isinstance(element.get(key), str) else None for element in elements}
        word = next(iter(values))
        if len(values) > 1 or word is None or affinity(key, Meaning.ROLE) < 0.5:
            continue
        found = part_of(word)
        if found is not None and found[0] in (Part.CALL, Part.RESULT) and _WHAT & set(words(word)):
            return [Kind((((key,), word),), kinds[0].members)]
    return kinds


def _each(outer: Any, base: str, from_json: bool, kind: Kind) -> Any:
    """How the spec gets at the elements of a kind: by a filter where one field with a text tells them."""
    only = kind.when[0] if len(kind.when) == 1 and len(kind.when[0][0]) == 1 else None
    told = only is not None and isinstance(only[1], str) and _FILTER.match(only[1])
    test = f"[{only[0][0]}={only[1]}]" if only is not None and told else "[*]"
    if isinstance(outer, dict):
        return {**outer, "path": outer["path"] + base[1:] + test}
    path = base if outer is None else outer + base[1:]
    return {"json": path, "path": "$" + test} if from_json else path + test


_TYPED = {"key", "value"}  # of an attribute, not of something said
_FILTER = re.compile(r"[\w.:/ -]+\Z")


def part_of_unit(unit: Unit) -> tuple[Part, float] | None:
    """What the words that pick the unit say; of an event the first that is sure, of what is inside it the innermost."""
    told = unit.words if unit.each is None else tuple(reversed(unit.words))
    last = set(words(unit.words[-1])) if unit.words else set()
    if unit.each is not None and not unit.inner and {"output", "outputs"} & last:
        return None  # of a model or of a tool: the name of the list does not say
    said = [one for one in map(part_of, told) if one is not None]
    if unit.each is None:
        inner = said[-1][0] if len(said) > 1 else None
        if inner in (Part.SYSTEM, Part.THOUGHT) or (inner is Part.NOISE and said[0][0] is Part.RESULT):
            return said[-1]
        return next((one for one in said if one[1] >= 0.7), said[-1] if said else None)
    if said or unit.inner:
        return said[0] if said else None
    outer = [one for one in map(part_of, (str(value) for _, value in unit.kind.when)) if one is not None]
    return next((one for one in outer if one[0] in (Part.CALL, Part.RESULT) and one[1] >= 0.9), None)
