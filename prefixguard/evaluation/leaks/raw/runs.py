"""Raw runs leaf by leaf: where each value stands, in which event, and of which kind that event is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.stepview import Adapter, DataPlace, PlaceReading, Scope, StepRecord, kind_of, overlaps
from prefixguard.trace import Outcome, Run

#: Leaves of one run that are read, and how deep they may lie.
MOST_LEAVES, _DEEPEST = 100_000, 48
#: Words at the head of one text that are compared.
MOST_WORDS = 2_000
_WORDS = re.compile(r"\w+")
#: The text of a run that is split into events, as the run itself holds it.
_LOGS = ((("name", "text"),), (("name", "body"),))

Steps = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text, number or boolean. place: positions in lists are [*]. event: its event, from 0; -1 for values of the run.
    kind: of the event, "run" for values of the run."""

    place: DataPlace
    event: int
    kind: str
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class SeenRun:
    """One run with its raw data.

    events: what `events` of the spec finds; for text, the pieces from head to head. wide: its records with the widest
    budgets; same number and order as run.records. seconds: time that each event took, with the spec's own budgets.
    """

    run: Run[StepRecord]
    scope: Scope
    events: tuple[Any, ...]
    wide: tuple[StepRecord, ...]
    seconds: tuple[float, ...]

    @property
    def won(self) -> bool | None:
        """True for success, False for failure, None where unknown."""
        return None if self.run.outcome is Outcome.UNKNOWN else self.run.outcome is Outcome.SUCCESS


@dataclass(frozen=True, slots=True)
class RawRuns:
    """Runs that an adapter read, with their raw data. spec: of the adapter. seen: in the order of the set."""

    adapter: Adapter
    spec: Mapping[str, Any]
    seen: tuple[SeenRun, ...]

    @property
    def run_place(self) -> DataPlace:
        """Where a run begins in its document."""
        return self.adapter.program.container.run.place or DataPlace("run", ())

    def leaves(self, seen: SeenRun) -> Iterator[Leaf]:
        """Leaves of a run in the order of the data. A text that is split comes as its pieces."""
        events, base = self.adapter.program.events, self.run_place
        if events.split is None:
            known = {id(event): i for i, event in enumerate(seen.events) if isinstance(event, dict | list)}
            columns: dict[Steps, str] = {}
            for name, place in (events.base.columns or {}).items():
                columns.setdefault(place.steps[:-1] if place.steps[-1:] == (("all",),) else place.steps, name)
            yield from _walk(seen.scope.run, base, known, columns)
            return
        log = events.base.place or base
        for i, piece in enumerate(seen.events):
            heads = [value for name, value in piece.items() if name != "body" and isinstance(value, str)]
            yield Leaf(log, i, heads[0][:40] if heads else "before the first head", piece.get("body", ""))
        if isinstance(seen.scope.run, dict):
            for leaf in _walk(seen.scope.run, base, {}, {}):
                if leaf.place != events.base.place and leaf.place.steps[len(base.steps) :] not in _LOGS:
                    yield leaf

    def spell(self, place: DataPlace) -> str:
        """The place as the spec would spell it: from @ inside an event, from $ inside a run."""
        program = self.adapter.program
        for root, base in (("@", program.events.base.place), ("$", program.container.run.place)):
            if base is not None and base.root == place.root and place.steps[: len(base.steps)] == base.steps:
                return root + str(DataPlace("run", place.steps[len(base.steps) :]))[1:]
        return str(place)

    def finding(
        self, kind: str, place: DataPlace, severity: Severity, text: str, remedy: str, **figures: float
    ) -> LeakFinding:
        """A finding about a raw place."""
        return LeakFinding(kind, self.spell(place), "", severity, figures, text, remedy=remedy, place=place)


def _walk(run: Any, base: DataPlace, known: Mapping[int, int], columns: Mapping[Steps, str]) -> Iterator[Leaf]:
    """All leaves. known: number of an event by its identity. columns: names of parallel lists by where they stand."""
    left = MOST_LEAVES

    def under(value: Any, steps: Steps, event: int, kind: str) -> Iterator[Leaf]:
        nonlocal left
        if len(steps) - len(base.steps) > _DEEPEST or left <= 0:
            return
        if event < 0 and isinstance(value, dict | list) and id(value) in known:
            event, kind = known[id(value)], kind_of(value)
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from under(inner, (*steps, ("name", name)), event, kind)
        elif isinstance(value, list):
            column = columns.get(steps) if event < 0 else None
            for i, inner in enumerate(value):
                at = (event, kind) if column is None else (i, column)
                yield from under(inner, (*steps, ("all",)), *at)
        elif value is not None:
            left -= 1
            yield Leaf(DataPlace(base.root, steps), event, kind, value)

    yield from under(run, base.steps, -1, "run")


def covers(outer: DataPlace, inner: DataPlace) -> bool:
    """Is the inner place the outer one, or inside it?"""
    return len(outer.steps) <= len(inner.steps) and overlaps(outer, inner)


def is_within(place: DataPlace, readings: Sequence[PlaceReading]) -> bool:
    """Does the place stand in one of these?"""
    return any(covers(one.place, place) for one in readings)


def words(text: str, most: int = MOST_WORDS) -> list[str]:
    """The first words of a text: runs of letters, digits and underscores."""
    return _WORDS.findall(text[: 12 * most])[:most]


def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """The runs of n words of a text, in lower case and in order.

    >>> ngrams("Book a flight now", 3)
    [('book', 'a', 'flight'), ('a', 'flight', 'now')]
    """
    found = words(text.lower())
    return [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]


class RecordWords:
    """Words, and pairs of neighbouring words, of the records of a run: what raw text is looked up in. Pairs survive
    what records do to text: sorted keys, cut-out markers, joined blocks."""

    def __init__(self, records: Sequence[StepRecord]) -> None:
        self.single: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        for record in records:
            for text in (record.tool, record.arguments, record.observation, record.action, record.result, record.agent):
                found = _WORDS.findall(text)
                self.single.update(found)
                self.pairs.update(pairwise(found))

    def share(self, text: str) -> float:
        """Share of the text's words that stand next to the same neighbour in a record, in [0, 1]."""
        found = words(text)
        if not found:
            return 1.0
        if len(found) == 1:
            return float(found[0] in self.single)
        hits = [pair in self.pairs for pair in pairwise(found)]
        return sum(map(max, [False, *hits], [*hits, False])) / len(found)
