"""Raw values that reach a record and should not: numbers that tell the outcome, events of a judge, hidden texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL, rank_area, ranked_by_chance
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.evaluation.leaks.raw.runs import RawRuns, RecordWords, SeenRun, covers, is_within, ngrams
from prefixguard.lexicon import Meaning, affinity, polarity
from prefixguard.stepview import DataPlace, Pattern, PlaceReading, overlaps

#: Runs of each outcome, the area from which something is said, and how much it must rise at the last value.
FEWEST, SEPARATES, JUMP = 12, 0.80, 0.15
#: Parts of a rule that read what the agent itself wrote.
_OWN = (".arguments", ".action", ".tool")


@dataclass(slots=True)
class _PlaceValues:
    """Values of a place. last, before: by number of the run. earlier: all but the last, counted."""

    last: dict[int, float] = field(default_factory=dict)
    before: dict[int, float] = field(default_factory=dict)
    earlier: Counter[float] = field(default_factory=Counter)
    of_run: bool = False


def find_by_numbers(raw: RawRuns) -> Iterator[LeakFinding]:
    """Raw numbers and flags that a record reads, and that tell the outcome, whatever they are called.

    Judged by the area under the ROC curve of a place's last value in a run (of its only one, for values of the run),
    with Mann and Whitney's test, ties counted, corrected after Bonferroni for the places tried; with FEWEST runs of
    each outcome. In events the area must rise by JUMP over the value before the last.
    """
    runs = [seen for seen in raw.seen if seen.won is not None and seen.run.records]
    outcomes = [bool(seen.won) for seen in runs]
    table = _values(raw, runs)
    for place, values in sorted(table.items(), key=lambda one: str(one[0])):
        area, p = _area(values.last, outcomes)
        if area < SEPARATES or p * len(table) >= LEVEL:
            continue
        was, _ = _area(values.before, outcomes)
        if not values.of_run and area - was < JUMP:
            continue
        where = raw.spell(place)
        at = "tells" if values.of_run else "at its last tells"
        text = f"{where}, which a record reads, {at} the outcome ({area:.2f}; before, {was:.2f}; 0.5 is nothing)."
        severity: Severity = "error"
        if not values.of_run and (_is_ordinary(values, outcomes) or _is_own(raw, place)):
            severity = "warning"
            text += " Earlier values are like it, or the agent wrote it."
        remedy = "Do not read it; put it under `hidden` if it is written when the run is over."
        figures = {"separates": area, "before": was, "p": p * len(table), "runs": len(values.last)}
        yield raw.finding("raw_value", place, severity, text, remedy, **figures)


def _values(raw: RawRuns, runs: Sequence[SeenRun]) -> dict[DataPlace, _PlaceValues]:
    readings = [one for one in raw.adapter.program.readings.record if one.looks_inside]
    table: dict[DataPlace, _PlaceValues] = defaultdict(_PlaceValues)
    read: dict[DataPlace, bool] = {}
    for number, seen in enumerate(runs):
        for leaf in raw.leaves(seen):
            if isinstance(leaf.value, str) or leaf.value != leaf.value:
                continue
            if leaf.place not in read:
                read[leaf.place] = is_within(leaf.place, readings)
            if not read[leaf.place]:
                continue
            values = table[leaf.place]
            values.of_run |= leaf.event < 0
            if number in values.last:
                values.before[number] = values.last[number]
                values.earlier[values.last[number]] += 1
            values.last[number] = float(min(max(leaf.value, -1e15), 1e15))
    return table


def _is_ordinary(values: _PlaceValues, outcomes: Sequence[bool]) -> bool:
    """Do values before the last include what is typical of either outcome? An error flag does; a reward does not."""
    least = max(1, 0.02 * values.earlier.total())
    typical = (median_low(value for i, value in values.last.items() if outcomes[i] is won) for won in (False, True))
    return all(values.earlier[one] >= least for one in typical)


def _is_own(raw: RawRuns, place: DataPlace) -> bool:
    readers = [one for one in raw.adapter.program.readings.record if one.looks_inside and covers(one.place, place)]
    return all(any(f"{part}." in f"{one.where}." for part in _OWN) for one in readers)


def _area(values: dict[int, float], outcomes: Sequence[bool]) -> tuple[float, float]:
    """Area under the ROC curve, turned to 0.5 or more, and the chance of it; 0.5 and 1 for too few runs."""
    failed = np.array([not outcomes[i] for i in values], dtype=np.bool_)
    if min(int(failed.sum()), int((~failed).sum())) < FEWEST:
        return 0.5, 1.0
    ranked = np.array(list(values.values()))
    area = rank_area(failed, ranked)
    return max(area, 1 - area), ranked_by_chance(failed, ranked)


#: Fields that say what an event is, and those that say who speaks.
_KINDS = ("type", "name", "kind", "event", "role", "event_type")
_WHO_SPEAKS = ("name", "role")
_JUDGED = re.compile(
    r"(?i)(^|[._ -])(evaluations?([._ -]?(results?|scores?|reports?))?|verdict|final[._ -]?(score|reward|verdict)"
    r"|reward|grade[rd]?|grading|run[._ -]?outcome|scores?|verifier([._ -]?results?)?)$"
)
#: Names of those who check; an agent may be called so. What they say in mid-run, or as the agent, is what a run shows.
_CHECKER = re.compile(r"(?i)(^|[._ -])(verifier|grader)$")
_AS_AGENT = ("assistant", "agent", "ai", "model")


def find_judged_events(raw: RawRuns) -> Iterator[LeakFinding]:
    """Events that call themselves an evaluation, whose text reaches a record. A warning for a speaker who is called
    so and speaks as an agent, or in mid-run."""
    met: Counter[str] = Counter()
    live: Counter[str] = Counter()  # runs in which it is a speaker of the run
    places: dict[str, DataPlace] = {}  # where the name stands: a team may have an agent that is called Verifier
    for seen in raw.seen:
        kinds: dict[int, str] = {}
        for i, event in enumerate(seen.events):
            if isinstance(event, dict):
                named = [event[key] for key in _KINDS if isinstance(event.get(key), str)]
                kinds.update((i, kind) for kind in named if len(kind) < 60 and _JUDGED.search(kind))
        if not kinds:
            continue
        inside = RecordWords(seen.wide)
        reached: set[int] = set()
        for leaf in raw.leaves(seen):
            if leaf.event not in kinds or not isinstance(leaf.value, str):
                continue
            if leaf.value == kinds[leaf.event]:
                places.setdefault(leaf.value, leaf.place)
            elif inside.share(leaf.value) > 0.5:
                reached.add(leaf.event)
        met.update({kinds[i] for i in reached})
        live.update({kinds[i] for i in reached if _is_speaker(seen.events[i], kinds[i], i < len(seen.events) - 1)})
    for kind, n in sorted(met.items()):
        text = f"events that call themselves {kind!r} reach a record in {n} run(s)."
        where = raw.spell(places[kind]) if kind in places else kind
        remedy = (
            f"Skip them with a rule of their own, and let `run.outcome` read them ({kind!r}). "
            f'If an agent is called so: "waived": [{{"path": "{where}", "reason": ...}}].'
        )
        severity: Severity = "warning" if 2 * live[kind] > n else "error"
        place = places.get(kind)
        yield LeakFinding("judged_event", kind, "", severity, {"runs": n}, text, remedy=remedy, place=place)


def _is_speaker(event: dict[str, object], kind: str, in_course: bool) -> bool:
    """Does an event of this kind say who speaks in the run, not what is thought of it? in_course: others follow."""
    if not _CHECKER.search(kind) or not any(event.get(key) == kind for key in _WHO_SPEAKS):
        return False
    return in_course or event.get("role") in _AS_AGENT


#: Runs in which the last value of a status stands alone before it is an error; more last values are no verdict.
_FEWEST_RUNS, _MOST_VALUES = 3, 6


def find_last_status(raw: RawRuns) -> Iterator[LeakFinding]:
    """What a status is read from ends runs with a value that stands nowhere else: it is of the run, not the step."""
    readings = raw.adapter.program.readings.record
    read = [one.place for one in readings if "status" in one.where and one.looks_inside]
    if not read:
        return
    ends: dict[DataPlace, Counter[str]] = defaultdict(Counter)
    others: dict[DataPlace, set[str]] = defaultdict(set)
    for seen in raw.seen:
        values: dict[DataPlace, list[str]] = defaultdict(list)
        for leaf in raw.leaves(seen):
            if leaf.event < 0 or len(str(leaf.value)) > 40:
                continue
            if any(len(one.steps) == len(leaf.place.steps) and overlaps(one, leaf.place) for one in read):
                values[leaf.place].append(str(leaf.value))  # of the place itself, not of something inside it
        for place, found in values.items():
            if len(found) > 1:
                ends[place][found[-1]] += 1
                others[place].update(found[:-1])
    for place, last in sorted(ends.items(), key=lambda one: str(one[0])):
        if last.total() < _FEWEST_RUNS or len(last) > _MOST_VALUES or others[place] & last.keys():
            continue
        severity: Severity = "error" if any(map(polarity, last)) else "warning"
        where, named = raw.spell(place), ", ".join(sorted(last))
        text = f"{where}, which a status is read from, ends every run with a value that stands nowhere else ({named})."
        remedy = "A verifier wrote it: take the status from what came back for the step, and the outcome from here."
        yield raw.finding("last_status", place, severity, text, remedy, runs=last.total())


_SEEN_FIELDS = ("action", "arguments", "observation", "result")


def find_outcome_left(raw: RawRuns) -> Iterator[LeakFinding]:
    """What the outcome's own regular expressions find is still in a record: the cut left something.

    Only where records and outcome read the same text; an expression that matches all along the run tells nothing.
    """
    readings = raw.adapter.program.readings
    is_log = raw.adapter.program.events.split is not None
    if not any(_is_shared(one.place, other, is_log) for one in readings.outcome for other in readings.record):
        return
    earlier = sum(len(seen.wide[:-2]) for seen in raw.seen)
    for expression in _expressions(raw.spec.get("run", {}).get("outcome")):
        pattern = Pattern(expression, "run.outcome")
        for name in _SEEN_FIELDS:
            found = [[bool(pattern.found(getattr(record, name))) for record in seen.wide] for seen in raw.seen]
            n, before = sum(any(one[-2:]) for one in found), sum(sum(one[:-2]) for one in found)
            if n and n / len(raw.seen) >= 5 * before / max(1, earlier):
                text = f"the outcome is read with {expression!r}, and that still matches the {name} of {n} run(s)."
                remedy = f'Cut it where it is read: {{"cut": {expression!r}, "of": ...}}.'
                yield LeakFinding("outcome", name, "", "error", {"runs": n}, text, remedy=remedy)


def _is_shared(outcome: DataPlace, reading: PlaceReading, is_log: bool) -> bool:
    """Does a record read text that the outcome is read from? Logs have their text under two names."""
    names = {steps[-1] for steps in (outcome.steps, reading.place.steps) if steps}
    same_log = is_log and names <= {("name", "text"), ("name", "body")}
    return same_log or (outcome.root == reading.place.root and overlaps(outcome, reading.place))


def _expressions(value: Any, depth: int = 0) -> Iterator[str]:
    """Regular expressions that a value of the spec reads the data with; not those over file names."""
    if depth > 8 or not isinstance(value, dict | list):
        return
    if isinstance(value, dict) and isinstance(value.get("re"), str) and "file" not in value:
        yield value["re"]
    for inner in value.values() if isinstance(value, dict) else value:
        yield from _expressions(inner, depth + 1)


#: A hidden text this long (words), most of which stands in the first observation, was given away.
_TELLING_WORDS = 8


def find_hidden_texts(raw: RawRuns) -> Iterator[LeakFinding]:
    """Texts of hidden places in the first observation, although no event says them: before the agent acts, nobody can
    have repeated them."""
    readings = raw.adapter.program.readings
    gone = [*readings.hidden, *readings.outcome]
    found: Counter[DataPlace] = Counter()
    runs = 0
    for seen in raw.seen:
        first = seen.wide[0].observation
        runs += bool(first)
        grams = set(ngrams(first, 4))
        if not grams:
            continue
        said: set[tuple[str, ...]] = set()
        for leaf in raw.leaves(seen):
            if not isinstance(leaf.value, str) or len(leaf.value) < 5 * _TELLING_WORDS:
                continue
            if leaf.event >= 0 or not (is_within(leaf.place, gone) or _is_harness(leaf.place)):
                continue
            wanted = ngrams(leaf.value, 4)
            if len(wanted) < _TELLING_WORDS - 3 or sum(gram in grams for gram in wanted) < 0.8 * len(wanted):
                continue
            said = said or _said(raw, seen)
            found[leaf.place] += sum(gram in said for gram in wanted) < 0.5 * len(wanted)
    for place, n in sorted(found.items(), key=lambda one: str(one[0])):
        if n and n >= 0.05 * runs:
            where = raw.spell(place)
            text = f"the first observation of {n} of {runs} run(s) holds the text of {where}, which no event says."
            remedy = "Read the task from what the agent is shown, not from what the harness keeps."
            yield LeakFinding("hidden", "observation", "", "error", {"runs": n}, text, remedy=remedy)


def _is_harness(place: DataPlace) -> bool:
    return any(step[0] == "name" and affinity(str(step[1]), Meaning.HARNESS) >= 1.0 for step in place.steps)


def _said(raw: RawRuns, seen: SeenRun) -> set[tuple[str, ...]]:
    hidden = raw.adapter.program.readings.hidden
    said: set[tuple[str, ...]] = set()
    for leaf in raw.leaves(seen):
        if leaf.event >= 0 and isinstance(leaf.value, str) and not is_within(leaf.place, hidden):
            said.update(ngrams(leaf.value, 4))
    return said
