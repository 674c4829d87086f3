"""Events that the harness writes at the end of a run: a result line, an evaluation, a score; and what they tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.run_outcome import OutcomeCandidate
from prefixguard.induce.offline.run_places import Node, Places, RunView, inner_places
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING, to_text

#: Events looked at, at the end of each run.
_LAST = 3
_LONGEST_VALUE = 40


@dataclass(frozen=True)
class Closing:
    """A kind of event that only ends runs. name, value: what marks it. events: of each run, None where none."""

    name: str
    value: str
    events: tuple[Mapping[str, Any] | None, ...]

    @property
    def condition(self) -> dict[str, Any]:
        """The `when` that such an event meets."""
        return {spell("@", (self.name,)): self.value}


def event_candidates(views: Sequence[RunView], places: Places, success: str | None = None) -> list[OutcomeCandidate]:
    """Outcomes told by events at the end. Their kind must occur at the ends of runs only, once a run."""
    base = next((place for place in places.events if None not in place), None)
    if base is None:
        return []
    found: list[OutcomeCandidate] = []
    for closing in _closings(views):
        table: dict[Place, list[Any]] = {}
        for i, event in enumerate(closing.events):
            if event is None:
                continue
            for place, value in inner_places(event, Node()):
                if not isinstance(value, list) and (place in table or len(table) < 60):
                    table.setdefault(place, [MISSING] * len(views))[i] = value
        for order, (place, values) in enumerate(table.items()):
            if place == (closing.name,) or (isinstance(values, list) and _wordy(values)):
                continue
            for form in judge_values(values, spell("$", place), success=success)[:1]:
                found.append(_candidate(base, closing, place, values, form, order))
    return found


def closing_events(views: Sequence[RunView], places: Places, path: str) -> list[dict[str, Any]]:
    """Conditions of the events at the end that the path reads from: `$.events[event=finished].verdict`."""
    base = next((place for place in places.events if None not in place), None)
    if base is None:
        return []
    return [
        closing.condition
        for closing in _closings(views)
        if path.startswith(f"{spell('$', base)}[{closing.name}={closing.value}]")
    ]


def _wordy(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) and len(value) > 80 for value in values)


def _candidate(
    base: Place, closing: Closing, place: Place, values: Sequence[Any], form: OutcomeForm, order: int
) -> OutcomeCandidate:
    listed = f"{spell('$', base)}[{closing.name}={closing.value}]{spell('', place)}"
    of: Any = {"text": listed}
    if form.type == "string":
        outcome = form.spec(of)
    else:
        outcome = as_text(of, form, values)
    sides = tuple(form.side(value) for value in values)
    share = sum(1 for side in sides if side) / max(1, len(sides))
    # a kind of event that is called after a result speaks for what it holds; one without a telling name does not
    speaks = max(affinity(closing.value, Meaning.OUTCOME), affinity(closing.value, Meaning.AFTER_END))
    confidence = form.confidence * (0.4 + 0.6 * share) + 0.15 * speaks - 0.1
    why = f"{form.why}; in the {closing.name}={closing.value} event that ends a run"
    example = next((repr(value) for value in values if value is not MISSING and value is not None), "")
    skip = (closing.condition,)
    return OutcomeCandidate(
        outcome, sides, confidence, why, listed, example, 8000 + order, skip=skip, assumed=form.assumed
    )


def as_text(of: Any, form: OutcomeForm, values: Sequence[Any]) -> dict[str, Any]:
    """The form over the text of the values: a path with a filter finds a list."""
    texts: dict[int, set[str]] = {1: set(), -1: set()}
    for value in values:
        side = form.side(value)
        if side:
            texts[side].add(to_text(value))
    if form.type == "boolean":
        texts[1 if form.success is True else -1].add("true")
        texts[1 if form.success is False else -1].add("false")
    else:
        for value in (0, 1):
            if side := form.side(value):
                texts[side].update((str(value), f"{value}.0"))
    success: Any = {"in": sorted(texts[1])}
    if form.type == "number" and len(texts[-1]) > 6:
        return {"of": of, "type": "string", "success": success, "failure": {"re": "^[0-9.]+$", "not": success}}
    return {"of": of, "type": "string", "success": success, "failure": {"in": sorted(texts[-1])}}


def _closings(views: Sequence[RunView]) -> list[Closing]:
    """Kinds of events, by a short value of one of their fields, that stand at the ends of runs and nowhere else."""
    runs: Counter[tuple[str, str]] = Counter()
    early: set[tuple[str, str]] = set()
    doubled: Counter[tuple[str, str]] = Counter()
    for view in views:
        n = len(view.events)
        here: Counter[tuple[str, str]] = Counter()
        for at, event in enumerate(view.events):
            for mark in _marks(event):
                here[mark] += 1
                if at < n - _LAST or n < 2:
                    early.add(mark)
        runs.update(here.keys())
        doubled.update(mark for mark, times in here.items() if times > 1)
    wanted = [
        mark
        for mark, times in runs.items()
        if mark not in early and times >= max(2, 0.3 * len(views)) and doubled[mark] <= 0.1 * times
    ]
    found = []
    for name, value in sorted(wanted, key=lambda mark: (-runs[mark], mark))[:12]:
        if not _kind_like(name, value, views):
            continue
        events = tuple(_last_with(view.events, name, value) for view in views)
        found.append(Closing(name, value, events))
    return found


def _marks(event: Any) -> list[tuple[str, str]]:
    if not isinstance(event, Mapping):
        return []
    return [
        (str(name), value)
        for name, value in event.items()
        if isinstance(value, str)
        and 0 < len(value) <= _LONGEST_VALUE
        and not set(value) & set("[]'\"\n")
        and not set(str(name)) & set("[]=.'\"")
    ]


def _kind_like(name: str, value: str, views: Sequence[RunView]) -> bool:
    """Do most events of the runs have a value under this name, few different ones?"""
    there = n = 0
    seen: set[str] = set()
    for view in views[:200]:
        for event in view.events[:50]:
            n += 1
            if isinstance(event, Mapping) and isinstance(event.get(name), str):
                there += 1
                seen.add(event[name][:_LONGEST_VALUE])
    return n > 0 and there >= 0.8 * n and len(seen) <= 30 and " " not in value.strip()


def _last_with(events: Sequence[Any], name: str, value: str) -> Mapping[str, Any] | None:
    for event in reversed(events[-_LAST:]):
        if isinstance(event, Mapping) and event.get(name) == value:
            return event
    return None


def events_after_end(views: Sequence[RunView]) -> list[dict[str, Any]]:
    """Conditions of events that sum a run up: a kind that only ends runs, whose fields are mostly totals."""
    found = []
    for closing in _closings(views):
        event = next((one for one in closing.events if one is not None), None)
        if event is None:
            continue
        late = [name for name in event if affinity(str(name), Meaning.AFTER_END) >= 0.6]
        named = max(affinity(closing.value, Meaning.OUTCOME), affinity(closing.value, Meaning.AFTER_END))
        if len(late) >= 3 and len(late) >= 0.3 * len(event) and named >= 0.4:
            found.append(closing.condition)
    return found


__all__ = ["Closing", "closing_events", "event_candidates", "events_after_end"]
