"""Leaks that the spec shows by itself: places whose names say that only the end of the run, or the harness, knows them.

Names inside an event are judged more mildly than those of the run: a tool's own `success` or `exit_code` is what the
agent saw. What such a field tells in fact is for the statistics.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum

from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.evaluation.leaks.raw.runs import Leaf, RawRuns, covers, is_within, ngrams
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import DataPlace, PlaceReading, overlaps

#: What a name of the run tells, by what it means, and how much it must speak for that.
_TELLS = {
    Meaning.OUTCOME: ("tells the outcome of the run", 0.85),
    Meaning.AFTER_END: ("is known when the run is over", 1.0),
    Meaning.HARNESS: ("only those who set the task know", 0.95),
    Meaning.MISTAKE: ("tells where the run went wrong", 1.0),
}
#: Parts of the spec whose reading puts nothing into what a monitor sees.
_SILENT = re.compile(
    r"\.(call_id|agent|order_by|drop_repeats|comment)\b|^(turn|kind)\b|^events\.(path|zip|split|flatten)|^events$|\.each$"
)
#: Names inside events that no agent is shown.
_EVENT_NAMES = re.compile(
    r"(?i)^((final|max|total|episode|step|cumulative|mean|avg)?_?rewards?(_info)?|verdicts?|ground_?truths?|golds?|gold(en)?_\w+|"
    r"expected_(answer|output|result|response|state|actions?|tool\w*|calls?)|reference_(answer|solution|actions?)\w*|correct_answers?|final_score|(is|was)_correct|is_resolved|resolved|"
    r"mistake_\w+|is_injected|injection_\w+|malicious_\w+|outcome|run_outcome|user_scenario|task_success|run_success|eval(uation)?_(result|score|criteria)\w*|"
    r"final_status|termination_reason|ends?_in_failure|remaining_steps|steps?_(remaining|left)_in_run)$"
)
#: Of these, the name that steps have for how they went themselves: what varies from step to step is no end of a run.
_OF_STEPS = frozenset({"outcome"})
#: Share of the events that hold a value, and of the runs whose values differ, from which on it is the steps' own.
_AT_STEPS, _DIFFERING, _FEWEST_STEPS = 0.3, 0.5, 3
#: Runs in which a text from the run's own fields is looked up among its events.
_LOOKED_UP = 40
_NAMED = 8


class _Position(Enum):
    """Where a name stands: in an event; last on a path of the run, or before the last; inside what is read whole."""

    EVENT, LAST, OUTER, HELD = range(4)


def find_by_place(raw: RawRuns) -> Iterator[LeakFinding]:
    """Judge every place that a record reads by its name, and by what stands next to it."""
    reported: set[tuple[DataPlace, str]] = set()
    for reading in _readings(raw):
        for one in _by_name(raw, reading):
            if (reading.place, one.kind) not in reported:
                reported.add((reading.place, one.kind))
                yield one
    yield from _by_neighbours(raw)
    yield from _unnamed(raw)


def _readings(raw: RawRuns) -> list[PlaceReading]:
    """Those that put what they read into a record as it is."""
    read = raw.adapter.program.readings.record
    return [one for one in read if one.looks_inside and not one.is_cut and not _SILENT.search(one.where)]


def _names(steps: Sequence[tuple[object, ...]]) -> list[str]:
    return [str(step[1]) for step in steps if step[0] == "name"]


def _inner_names(raw: RawRuns, place: DataPlace) -> tuple[list[str], bool]:
    """The names from the event or the run to the place, and whether it is in an event."""
    events, run = raw.adapter.program.events.base, raw.run_place
    for base in (events.place, *events.also):
        if base is not None and covers(base, place) and base.steps != run.steps:
            return _names(place.steps[len(base.steps) :]), True
    for column in (events.columns or {}).values():
        if covers(column, place):
            return _names(column.steps[-2:] + place.steps[len(column.steps) :]), True
    return _names(place.steps[len(run.steps) if covers(run, place) else 0 :]), False


def _by_name(raw: RawRuns, reading: PlaceReading) -> Iterator[LeakFinding]:
    names, in_event = _inner_names(raw, reading.place)
    where = raw.spell(reading.place)
    judged = [(name, _Position.OUTER) for name in names[:-1]] + [(name, _Position.LAST) for name in names[-1:]]
    judged += [(name, _Position.HELD) for name in _held_names(raw, reading.place, in_event)]
    for name, place in judged:
        position = _Position.EVENT if in_event else place
        meaning = _told_by(name, position)
        if meaning is None:
            continue
        of_steps = in_event and name.lower() in _OF_STEPS and _varies(raw, reading.place)
        but = ", but other events of a run hold other values" if of_steps else ""
        text = f"{reading.where} reads {where}: {name!r} is a name for what {meaning}{but}."
        remedy = (
            f'Do not read it; put it under `hidden`. If harmless: "waived": [{{"path": "{where}", "reason": ...}}].'
        )
        yield raw.finding("name", reading.place, "warning" if of_steps else "error", text, remedy)
        return
    if in_event or not names or ".when" in reading.where:
        return
    for who in (Meaning.MODEL, Meaning.RUN_ID):  # harmless to the agent, and a shortcut for a monitor
        if affinity(names[-1], who) >= 1.0:
            text = f"{reading.where} reads {where}: the {who.value} tells how good runs are, not how this one goes."
            remedy = "Make it a group (`run.groups`); groups serve evaluation and are never read by a monitor."
            yield raw.finding("identity", reading.place, "error", text, remedy)


def _varies(raw: RawRuns, place: DataPlace) -> bool:
    """Does the place hold values at many events of the runs, and other ones at other events?"""
    long, differing, events, holding = 0, 0, 0, 0
    for seen in raw.seen[:_LOOKED_UP]:
        by_event: dict[int, list[str]] = defaultdict(list)
        for leaf in raw.leaves(seen):
            if leaf.event >= 0 and covers(place, leaf.place):
                by_event[leaf.event].append(str(leaf.value))
        events += len(seen.events)
        holding += len(by_event)
        if len(by_event) >= _FEWEST_STEPS:
            long += 1
            differing += len({tuple(values) for values in by_event.values()}) > 1
    return long > 0 and holding >= _AT_STEPS * events and differing >= _DIFFERING * long


def _held_names(raw: RawRuns, place: DataPlace, in_event: bool) -> list[str]:
    """Names inside a place that is read whole: all of them in the run's own fields, those of the event itself in events
    (what stands deeper there may be what a tool said)."""
    base = raw.adapter.program.events.base.place
    if in_event and (base is None or place.steps != base.steps):
        return []
    found: dict[str, None] = {}
    for seen in raw.seen[:_LOOKED_UP]:
        for leaf in raw.leaves(seen):
            if (leaf.event >= 0) == in_event and covers(place, leaf.place):
                inner = leaf.place.steps[len(place.steps) :]
                found.update(dict.fromkeys(_names(inner[:1] if in_event else inner)))
    return list(found)


def _told_by(name: str, position: _Position) -> str | None:
    """What a place of this name tells that a live run does not, as the end of a sentence."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")
    if _EVENT_NAMES.search(plain):
        return "only the end of the run, or its judge, knows"
    if position is _Position.EVENT or (position is _Position.HELD and "_" not in plain):
        return None
    for meaning, (tells, least) in _TELLS.items():
        if affinity(name, meaning) >= (least if position is _Position.LAST else 1.0):
            return tells
    return None


def _by_neighbours(raw: RawRuns) -> Iterator[LeakFinding]:
    """Texts of the run from an object that also holds what is known at the end, and that no event says.

    `info.task.instruction` next to `info.reward_info`: what the simulated user was told, not what it said.
    """
    wanted: dict[DataPlace, PlaceReading] = {}
    for reading in _readings(raw):
        names, in_event = _inner_names(raw, reading.place)
        if not in_event and len(names) > 1 and ".when" not in reading.where:
            wanted[reading.place] = reading
    if not wanted:
        return
    start = len(raw.run_place.steps)
    neighbours: dict[DataPlace, str] = {}
    unsaid: Counter[DataPlace] = Counter()
    looked: Counter[DataPlace] = Counter()
    for seen in raw.seen[:_LOOKED_UP]:
        found = list(raw.leaves(seen))
        for place in wanted:
            outer = place.steps[start] if len(place.steps) > start else None
            for leaf in found:
                inner = leaf.place.steps[start:]
                if leaf.event < 0 and inner[:1] == (outer,) and not overlaps(leaf.place, place):
                    for name in filter(_tells_end, _names(inner[1:])):
                        neighbours.setdefault(place, name)
                        break
            texts = [leaf.value for leaf in found if isinstance(leaf.value, str) and overlaps(leaf.place, place)]
            if texts:
                looked[place] += 1
                unsaid[place] += not _is_said(texts, found)
    for place, reading in wanted.items():
        if place not in neighbours or not looked[place] or unsaid[place] < 0.5 * looked[place]:
            continue
        text = (
            f"{reading.where} reads {raw.spell(place)}, which stands beside {neighbours[place]!r}, written when the "
            f"run was over, and no event says the same ({unsaid[place]} of {looked[place]} runs)."
        )
        remedy = "Read the task from what the agent is shown; put the harness's own fields under `hidden`."
        share = unsaid[place] / looked[place]
        yield raw.finding("neighbours", place, "error", text, remedy, runs=looked[place], unsaid=share)


def _tells_end(name: str) -> bool:
    return affinity(name, Meaning.OUTCOME) >= 0.85 or any(
        affinity(name, meaning) >= 1.0 for meaning in (Meaning.AFTER_END, Meaning.HARNESS)
    )


def _is_said(texts: Sequence[str], found: Sequence[Leaf]) -> bool:
    """Do the events say most of these texts? Compared in runs of three words, so that line breaks do not matter."""
    wanted = ngrams(" ".join(texts), 3)
    if not wanted:  # a name or two in one place may be anything; a list of them is what the harness wants done
        return len(texts) == 1
    said: set[tuple[str, ...]] = set()
    for leaf in found:
        if leaf.event >= 0 and isinstance(leaf.value, str):
            said.update(ngrams(leaf.value, 3))
    return sum(triple in said for triple in wanted) >= 0.5 * len(wanted)


def _unnamed(raw: RawRuns) -> Iterator[LeakFinding]:
    """A note on places of the run that tell its end by their names, are not read, and are not called hidden."""
    read = raw.adapter.program.readings
    named = [*read.hidden, *read.outcome, *read.record]
    found: set[str] = set()
    for seen in raw.seen[:_LOOKED_UP]:
        for leaf in raw.leaves(seen):
            if leaf.event < 0 and not is_within(leaf.place, named):
                *outer, last = _inner_names(raw, leaf.place)[0] or [""]
                if _told_by(last, _Position.HELD) or any(_told_by(name, _Position.OUTER) for name in outer):
                    found.add(raw.spell(leaf.place))
    if found:
        places = ", ".join(sorted(found)[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        text = f"{len(found)} place(s) are not read, and by their names are not for a live run: {places}."
        remedy = "Name them under `hidden`, so that no later version of the spec reads them."
        yield LeakFinding("unnamed", "hidden", "", "note", {"places": len(found)}, text, remedy=remedy)
