"""The raw data of a run leaf by leaf: where each value stands, in which event, of which kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.stepview import DataPlace, PlaceReading, kind_of, overlaps

#: Leaves of one run that are looked at.
MOST_LEAVES = 100_000
_DEEPEST = 48

Steps = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text, number or boolean. place: positions in lists are [*]. event: its event, from 0; -1 for values of the run.
    kind: of the event, "run" for values of the run."""

    place: DataPlace
    event: int
    kind: str
    value: str | int | float | bool


def leaves(evidence: Evidence, seen: SeenRun) -> Iterator[Leaf]:
    """Leaves of `$` in the order of the data. A text that is split comes as its pieces."""
    program = evidence.adapter.program
    base = program.container.run.place or DataPlace("run", ())
    events = program.events
    if events.split is not None:
        yield from _pieces(seen, events.base.place or base)
        if isinstance(seen.scope.run, dict):
            walker = _Walk(base.root, {}, {})
            for leaf in walker.under(seen.scope.run, base.steps, -1, "run", 0):
                if not _is_log(leaf, base, events.base.place):
                    yield leaf
        return
    known = {id(event): i for i, event in enumerate(seen.events) if isinstance(event, dict | list)}
    columns = {} if events.base.columns is None else {place: name for name, place in events.base.columns.items()}
    yield from _Walk(base.root, known, columns).under(seen.scope.run, base.steps, -1, "run", 0)


def spell(place: DataPlace, evidence: Evidence) -> str:
    """The place as the spec would spell it: from @ inside an event, from $ inside a run."""
    program = evidence.adapter.program
    for root, base in (("@", program.events.base.place), ("$", program.container.run.place)):
        if base is not None and base.root == place.root and place.steps[: len(base.steps)] == base.steps:
            return root + str(DataPlace("run", place.steps[len(base.steps) :]))[1:]
    return str(place)


def is_within(place: DataPlace, readings: list[PlaceReading]) -> bool:
    """Does the place stand in one of these?"""
    return any(len(one.place.steps) <= len(place.steps) and overlaps(one.place, place) for one in readings)


def is_read(place: DataPlace, readings: list[PlaceReading]) -> bool:
    """Is the place, or what it stands in, read for its value?"""
    return any(
        one.looks_inside and len(one.place.steps) <= len(place.steps) and overlaps(one.place, place) for one in readings
    )


def _is_log(leaf: Leaf, base: DataPlace, log: DataPlace | None) -> bool:
    """Is this leaf the text that is split, or the same text with its head?"""
    tail = leaf.place.steps[len(base.steps) :]
    return (log is not None and leaf.place == log) or tail in ((("name", "text"),), (("name", "body"),))


def _pieces(seen: SeenRun, place: DataPlace) -> Iterator[Leaf]:
    for i, piece in enumerate(seen.events):
        heads = [value for name, value in piece.items() if name != "body" and isinstance(value, str)]
        yield Leaf(place, i, heads[0][:40] if heads else "before the first head", piece.get("body", ""))


class _Walk:
    """A walk that knows which objects are events, and which columns of parallel lists."""

    def __init__(self, root: str, events: dict[int, int], columns: dict[DataPlace, str]) -> None:
        self.root = root
        self.events = events
        self.columns = columns
        self.left = MOST_LEAVES

    def under(self, value: Any, steps: Steps, event: int, kind: str, depth: int) -> Iterator[Leaf]:
        if depth > _DEEPEST or self.left <= 0:
            return
        if isinstance(value, dict):
            if id(value) in self.events and event < 0:
                event, kind = self.events[id(value)], kind_of(value)
            for name, inner in value.items():
                yield from self.under(inner, (*steps, ("name", name)), event, kind, depth + 1)
        elif isinstance(value, list):
            if id(value) in self.events and event < 0:
                event, kind = self.events[id(value)], kind_of(value)
            column = self._column(steps) if event < 0 and self.columns else None
            for i, inner in enumerate(value):
                where = (i, column) if column is not None else (event, kind)
                yield from self.under(inner, (*steps, ("all",)), where[0], where[1], depth + 1)
        elif value is not None:
            self.left -= 1
            yield Leaf(DataPlace(self.root, steps), event, kind, value)

    def _column(self, steps: Steps) -> str | None:
        for place, name in self.columns.items():
            named = place.steps[:-1] if place.steps and place.steps[-1][0] == "all" else place.steps
            if named == steps:
                return name
        return None
