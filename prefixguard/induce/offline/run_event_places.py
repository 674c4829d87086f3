"""Fields that a run says once among its events: the task in a header line, an attribute of the root span, a verdict in
an evaluation that a span carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.places import spell
from prefixguard.induce.offline.run_events import as_text
from prefixguard.induce.offline.run_outcome import OutcomeCandidate
from prefixguard.induce.offline.run_places import Column, Places, RunView
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING

#: Runs in which fields are counted before those said once are read in all.
_LOOKED_AT = 80
_EVENTS = 400
_FIELDS = 2000
_DEEPEST = 8
_LONGEST = 200
_UNFIT = frozenset("[]'\"=\n")


@dataclass(slots=True)
class _Count:
    """In how many runs a field stands once, several times with one value, several times with more."""

    once: int = 0
    same: int = 0
    various: int = 0
    whole: int = 0  # runs of which every event has it

    @property
    def runs(self) -> int:
        return self.once + self.same + self.various


@dataclass(slots=True)
class _Said:
    values: list[Any] = field(default_factory=list)


def event_columns(views: Sequence[RunView], places: Places) -> list[Column]:
    """Columns of what events say once a run, or all alike; near is "event" for the one, "events" for the other."""
    base = next((place for place in places.events if place and None not in place), None)
    if base is None:
        return []
    runs = [_events(view.run, base) for view in views]
    step = max(1, len(runs) // _LOOKED_AT)
    counts: dict[str, _Count] = {}
    looked = 0
    for events in runs[::step]:
        if len(events) < 2:
            continue
        looked += 1
        for tail, said in _fields(events).items():
            count = counts.setdefault(tail, _Count()) if len(counts) < _FIELDS else counts.get(tail, _Count())
            one = len(said.values) == 1
            alike = all(value == said.values[0] for value in said.values)
            count.once += one
            count.same += not one and alike
            count.various += not alike
            count.whole += alike and len(said.values) == len(events)
    wanted = {
        tail: "event" if count.once >= 0.95 * count.runs else "events"
        for tail, count in counts.items()
        if count.runs >= 0.5 * looked
        and (count.once >= 0.95 * count.runs or (count.whole >= 0.95 * count.runs and not count.various))
    }
    if not wanted:
        return []
    table: dict[str, list[Any]] = {tail: [MISSING] * len(views) for tail in wanted}
    for i, events in enumerate(runs):
        for tail, said in _fields(events, wanted).items():
            if len(said.values) == 1 or wanted[tail] == "events":
                table[tail][i] = said.values[0]
    columns = []
    for order, (tail, values) in enumerate(table.items()):
        path = spell("$", base)
        once = wanted[tail] == "event"
        spec: Any = {"text": f"{path}[*]{tail}"} if once else f"{path}[0]{tail}"
        columns.append(Column(spec, _called(tail), tuple(values), 9000 + order, wanted[tail]))
    return columns


def _events(run: Any, base: Sequence[str | None]) -> list[Any]:
    value = run
    for name in base:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value[:_EVENTS] if isinstance(value, list) else []


def _fields(events: Sequence[Any], wanted: Mapping[str, str] | None = None) -> dict[str, _Said]:
    found: dict[str, _Said] = {}
    for event in events:
        for tail, value in _walk(event, "", 0):
            if wanted is None or tail in wanted:
                found.setdefault(tail, _Said()).values.append(value)
    return found


def _walk(value: Any, tail: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Short scalars and the paths to them; elements of lists of named things by their name."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(name, str) and name and not ("'" in name and '"' in name):
                yield from _walk(inner, tail + spell("", (name,)), depth + 1)
    elif isinstance(value, list):
        for item in value[:60]:
            if not isinstance(item, Mapping):
                return
            for mark in ("key", "name"):
                label = item.get(mark)
                if isinstance(label, str) and label and not set(label) & _UNFIT and len(item) > 1:
                    rest = {name: inner for name, inner in item.items() if name != mark}
                    yield from _walk(rest, f"{tail}[{mark}={label}]", depth + 1)
                    break
    elif isinstance(value, bool | int | float) or (isinstance(value, str) and 0 < len(value) <= _LONGEST):
        yield tail, value


def _called(tail: str) -> str:
    """The name that speaks: of the filter where the last names are those of a typed value."""
    at = tail.rfind("[key=")
    return tail[at + 5 :].partition("]")[0] if at >= 0 else tail


def event_field_candidates(columns: Sequence[Column], success: str | None = None) -> list[OutcomeCandidate]:
    """Outcomes among fields said once a run, inside named elements of lists, if their name says so."""
    found = []
    for column in columns:
        if column.near != "event" or "[" not in str(column.spec["text"]).partition("[*]")[2]:
            continue
        if affinity(column.name, Meaning.OUTCOME) < 0.5:
            continue
        for form in judge_values(column.values, column.name, success=success)[:1]:
            outcome = form.spec(column.spec) if form.type == "string" else as_text(column.spec, form, column.values)
            sides = tuple(form.side(value) for value in column.values)
            share = sum(1 for side in sides if side) / max(1, len(sides))
            why = f"{form.why}; said once a run"
            confidence = form.confidence * (0.4 + 0.6 * share) - 0.1
            found.append(
                OutcomeCandidate(
                    outcome,
                    sides,
                    confidence,
                    why,
                    column.spec["text"],
                    column.example(),
                    column.order,
                    assumed=form.assumed,
                )
            )
    return found
