"""Leaks that the spec shows by itself: places whose names say that only the end of the run, or the harness, knows them.

Names inside an event are judged more mildly than those of the run: a tool's own `success` or `exit_code` is what the
agent saw. What such a field tells in fact is for the statistics.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from prefixguard.induce.checks.coverage import words
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.raw_leaves import Leaf, is_within, leaves, spell
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.induce.names import Meaning, affinity
from prefixguard.stepview import DataPlace, PlaceReading, overlaps

#: How much a name must speak for a meaning, by what it would tell.
RUN_NAMES = {Meaning.OUTCOME: 0.85, Meaning.AFTER_END: 1.0, Meaning.HARNESS: 0.95, Meaning.MISTAKE: 1.0}
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
#: Who ran it: harmless to the agent, and a shortcut for a monitor.
_WHO = (Meaning.MODEL, Meaning.RUN_ID)
#: Runs in which a text from the run's own fields is looked up among its events.
_LOOKED_UP = 40
_NAMED = 8


def find_by_place(evidence: Evidence) -> Iterator[Suspicion]:
    """Judge every place that a record reads by its name, and by what stands beside it."""
    told = evidence.adapter.program.readings
    said: set[tuple[DataPlace, str]] = set()
    for reading in told.record:
        if not reading.looks_inside or reading.is_cut or _SILENT.search(reading.where):
            continue
        for suspicion in _by_name(evidence, reading):
            key = (reading.place, suspicion.finding.check)
            if key not in said:
                said.add(key)
                yield suspicion
    yield from _by_neighbours(evidence)
    yield from _unnamed(evidence)


def _inner_names(evidence: Evidence, place: DataPlace) -> tuple[list[str], bool]:
    """The names from the event or the run to the place, and whether it is in an event."""
    program = evidence.adapter.program
    events = program.events.base
    bases = [base for base in (events.place, *events.also) if base is not None]
    columns = list((events.columns or {}).values())
    for base in bases:
        if _starts(place, base) and base.steps != (program.container.run.place or DataPlace("run", ())).steps:
            return [str(step[1]) for step in place.steps[len(base.steps) :] if step[0] == "name"], True
    for column in columns:
        if _starts(place, column):
            steps = column.steps[-2:] + place.steps[len(column.steps) :]
            return [str(step[1]) for step in steps if step[0] == "name"], True
    run = program.container.run.place or DataPlace("run", ())
    steps = place.steps[len(run.steps) :] if _starts(place, run) else place.steps
    return [str(step[1]) for step in steps if step[0] == "name"], False


def _starts(place: DataPlace, base: DataPlace) -> bool:
    return len(base.steps) <= len(place.steps) and overlaps(base, place)


def _by_name(evidence: Evidence, reading: PlaceReading) -> Iterator[Suspicion]:
    names, in_event = _inner_names(evidence, reading.place)
    where = spell(reading.place, evidence)
    judged = [(name, _EVENT if in_event else _OUTER) for name in names[:-1]]
    judged += [(name, _EVENT if in_event else _LAST) for name in names[-1:]]
    judged += [(name, _EVENT if in_event else _HELD) for name in _held_names(evidence, reading.place, in_event)]
    for name, position in judged:
        meaning = _told_by(name, position)
        if meaning is None:
            continue
        of_steps = position == _EVENT and name.lower() in _OF_STEPS and _varies(evidence, reading.place)
        told = ", but other events of a run hold other values" if of_steps else ""
        finding = Finding(
            "leaks.name",
            "warning" if of_steps else "error",
            f"{reading.where} reads {where}: {name!r} is a name for what {meaning}{told}.",
            where,
            {},
            f'Do not read it; put it under `hidden`. If harmless: "waived": [{{"path": "{where}", "reason": ...}}].',
        )
        yield Suspicion(finding, reading.place)
        return
    if in_event or not names or ".when" in reading.where:
        return
    for who in _WHO:
        if affinity(names[-1], who) >= 1.0:
            finding = Finding(
                "leaks.identity",
                "error",
                f"{reading.where} reads {where}: the {who.value} tells how good runs are, not how this one goes.",
                where,
                {},
                "Make it a group (`run.groups`); groups serve evaluation and are never read by a monitor.",
            )
            yield Suspicion(finding, reading.place)


def _varies(evidence: Evidence, place: DataPlace) -> bool:
    """Does the place hold values at many events of the runs, and other ones at other events?"""
    long, differing, events, holding = 0, 0, 0, 0
    for seen in evidence.seen[:_LOOKED_UP]:
        by_event: dict[int, list[str]] = defaultdict(list)
        for leaf in leaves(evidence, seen):
            if leaf.event >= 0 and _starts(leaf.place, place):
                by_event[leaf.event].append(str(leaf.value))
        events += len(seen.events)
        holding += len(by_event)
        if len(by_event) >= _FEWEST_STEPS:
            long += 1
            differing += len({tuple(values) for values in by_event.values()}) > 1
    return long > 0 and holding >= _AT_STEPS * events and differing >= _DIFFERING * long


def _held_names(evidence: Evidence, place: DataPlace, in_event: bool) -> list[str]:
    """Names inside a place that is read whole: all of them in the run's own fields, those of the event itself in events
    (what stands deeper there may be what a tool said)."""
    base = evidence.adapter.program.events.base.place
    if in_event and (base is None or place.steps != base.steps):
        return []
    found: dict[str, None] = {}
    for seen in evidence.seen[:_LOOKED_UP]:
        for leaf in leaves(evidence, seen):
            if (leaf.event >= 0) != in_event or not _starts(leaf.place, place):
                continue
            inner = leaf.place.steps[len(place.steps) :]
            for step in inner[:1] if in_event else inner:
                if step[0] == "name":
                    found[str(step[1])] = None
    return list(found)


#: Where a name stands: in an event; last on a path of the run, or before the last; somewhere inside what is read.
_EVENT, _LAST, _OUTER, _HELD = range(4)

_TELLS = {
    Meaning.OUTCOME: "tells the outcome of the run",
    Meaning.AFTER_END: "is known when the run is over",
    Meaning.HARNESS: "only those who set the task know",
    Meaning.MISTAKE: "tells where the run went wrong",
}


def _told_by(name: str, position: int) -> str | None:
    """What a place of this name tells that a live run does not, as the end of a sentence."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")
    if _EVENT_NAMES.search(plain):
        return "only the end of the run, or its judge, knows"
    if position == _EVENT or (position == _HELD and "_" not in plain):
        return None
    for meaning, least in RUN_NAMES.items():
        if affinity(name, meaning) >= (least if position == _LAST else 1.0):
            return _TELLS[meaning]
    return None


def _by_neighbours(evidence: Evidence) -> Iterator[Suspicion]:
    """Texts of the run from an object that also holds what is known at the end, and that no event says.

    `info.task.instruction` beside `info.reward_info`: what the simulated user was told, not what it said.
    """
    told = evidence.adapter.program.readings
    run = evidence.adapter.program.container.run.place or DataPlace("run", ())
    wanted: dict[DataPlace, PlaceReading] = {}
    for reading in told.record:
        names, in_event = _inner_names(evidence, reading.place)
        if not reading.looks_inside or reading.is_cut or in_event or len(names) < 2:
            continue
        if ".when" not in reading.where and not _SILENT.search(reading.where):
            wanted[reading.place] = reading
    if not wanted:
        return
    beside: dict[DataPlace, str] = {}
    unsaid: dict[DataPlace, int] = defaultdict(int)
    looked: dict[DataPlace, int] = defaultdict(int)
    for seen in evidence.seen[:_LOOKED_UP]:
        found = list(leaves(evidence, seen))
        for place in wanted:
            outer = place.steps[len(run.steps)] if len(place.steps) > len(run.steps) else None
            for leaf in found:
                inner = leaf.place.steps[len(run.steps) :]
                if leaf.event < 0 and inner[:1] == (outer,) and not overlaps(leaf.place, place):
                    telling = [str(step[1]) for step in inner[1:] if step[0] == "name" and _tells_end(str(step[1]))]
                    if telling:
                        beside.setdefault(place, telling[0])
            texts = [leaf for leaf in found if isinstance(leaf.value, str) and overlaps(leaf.place, place)]
            if texts:
                looked[place] += 1
                unsaid[place] += not _is_said(texts, found, seen)
    for place, reading in wanted.items():
        if place not in beside or not looked[place] or unsaid[place] < 0.5 * looked[place]:
            continue
        where = spell(place, evidence)
        finding = Finding(
            "leaks.neighbours",
            "error",
            f"{reading.where} reads {where}, which stands beside {beside[place]!r}, written when the run was over, and "
            f"no event says the same ({unsaid[place]} of {looked[place]} runs).",
            where,
            {"runs": looked[place], "unsaid": unsaid[place] / looked[place]},
            "Read the task from what the agent is shown; put the harness's own fields under `hidden`.",
        )
        yield Suspicion(finding, place)


def _unnamed(evidence: Evidence) -> Iterator[Suspicion]:
    """A note on places of the run that tell its end by their names, are not read, and are not called hidden."""
    told = evidence.adapter.program.readings
    named = [*told.hidden, *told.outcome, *told.record]
    found: dict[str, None] = {}
    for seen in evidence.seen[:_LOOKED_UP]:
        for leaf in leaves(evidence, seen):
            if leaf.event >= 0 or is_within(leaf.place, named):
                continue
            names, _ = _inner_names(evidence, leaf.place)
            if names and (_told_by(names[-1], _HELD) or any(_told_by(name, _OUTER) for name in names[:-1])):
                found[spell(leaf.place, evidence)] = None
    if found:
        places = ", ".join(sorted(found)[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        what = f"{len(found)} place(s) are not read, and by their names are not for a live run: {places}."
        remedy = "Name them under `hidden`, so that no later version of the spec reads them."
        yield Suspicion(Finding("leaks.unnamed", "note", what, "hidden", {"places": len(found)}, remedy))


def _tells_end(name: str) -> bool:
    return affinity(name, Meaning.OUTCOME) >= 0.85 or any(
        affinity(name, meaning) >= 1.0 for meaning in (Meaning.AFTER_END, Meaning.HARNESS)
    )


def _is_said(texts: list[Leaf], found: list[Leaf], seen: SeenRun) -> bool:
    """Do the events say most of these texts? Compared in runs of three words, so that line breaks do not matter."""
    said: set[tuple[str, ...]] = set()
    for leaf in found:
        if leaf.event >= 0 and isinstance(leaf.value, str):
            said.update(_triples(leaf.value))
    wanted = _triples(" ".join(leaf.value for leaf in texts if isinstance(leaf.value, str)))
    if not wanted:  # a name or two in one place may be anything; a list of them is what the harness wants done
        return len(texts) == 1
    return sum(triple in said for triple in wanted) >= 0.5 * len(wanted)


def _triples(text: str) -> list[tuple[str, ...]]:
    found = words(text.lower())
    return [(a, b, c) for (a, b), (_, c) in pairwise(pairwise(found))]
