"""Events that a judge wrote, and values that only the last event of a run has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from prefixguard.induce.checks.coverage import RecordWords
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding, Severity
from prefixguard.induce.checks.raw_leaves import leaves, spell
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.induce.names import polarity
from prefixguard.stepview import DataPlace, PlaceReading, overlaps

#: Fields that say what an event is.
_KINDS = ("type", "name", "kind", "event", "role", "event_type")
_JUDGED = re.compile(
    r"(?i)(^|[._ -])(evaluations?([._ -]?(results?|scores?|reports?))?|verdict|final[._ -]?(score|reward|verdict)"
    r"|reward|grade[rd]?|grading|run[._ -]?outcome|scores?|verifier([._ -]?results?)?)$"
)
#: Names of those who check; an agent may be called so. What they say in mid-run, or as the agent, is what a run shows.
_CHECKER = re.compile(r"(?i)(^|[._ -])(verifier|grader)$")
_WHO_SPEAKS = ("name", "role")
_AS_AGENT = ("assistant", "agent", "ai", "model")
#: Runs in which the last value of a status stands alone before it is an error.
FEWEST_RUNS = 3
#: Different last values past which they are no verdict.
MOST_VALUES = 6


def find_judged_events(evidence: Evidence) -> Iterator[Suspicion]:
    """Events that call themselves an evaluation, whose text reaches a record. A warning for a speaker who is called
    so and speaks as an agent, or in mid-run."""
    met: Counter[str] = Counter()
    live: Counter[str] = Counter()  # runs in which it is a speaker of the run
    places: dict[str, DataPlace] = {}  # where the name stands: a team may have an agent that is called Verifier
    for seen in evidence.seen:
        kinds: dict[int, str] = {}
        for i, event in enumerate(seen.events):
            if isinstance(event, dict):
                named = [event[key] for key in _KINDS if isinstance(event.get(key), str)]
                kinds.update((i, kind) for kind in named if len(kind) < 60 and _JUDGED.search(kind))
        if not kinds:
            continue
        inside = RecordWords(seen.wide)
        texts: dict[int, list[float]] = defaultdict(list)
        for leaf in leaves(evidence, seen):
            if leaf.event not in kinds or not isinstance(leaf.value, str):
                continue
            if leaf.value == kinds[leaf.event]:
                places.setdefault(leaf.value, leaf.place)
            else:
                texts[leaf.event].append(inside.share(leaf.value))
        reached = {i for i, shares in texts.items() if max(shares) > 0.5}
        met.update({kinds[i] for i in reached})
        live.update({kinds[i] for i in reached if _is_speaker(seen.events[i], kinds[i], i < len(seen.events) - 1)})
    for kind, n in sorted(met.items()):
        what = f"events that call themselves {kind!r} reach a record in {n} run(s)."
        where = spell(places[kind], evidence) if kind in places else kind
        remedy = (
            f"Skip them with a rule of their own, and let `run.outcome` read them ({kind!r}). "
            f'If an agent is called so: "waived": [{{"path": "{where}", "reason": ...}}].'
        )
        severity: Severity = "warning" if 2 * live[kind] > n else "error"
        yield Suspicion(Finding("leaks.judged_event", severity, what, kind, {"runs": n}, remedy), places.get(kind))


def _is_speaker(event: dict[str, object], kind: str, in_course: bool) -> bool:
    """Does an event of this kind say who speaks in the run, not what is thought of it? in_course: others follow."""
    if not _CHECKER.search(kind) or not any(event.get(key) == kind for key in _WHO_SPEAKS):
        return False
    return in_course or event.get("role") in _AS_AGENT


def find_last_status(evidence: Evidence) -> Iterator[Suspicion]:
    """What a status is read from ends runs with a value that stands nowhere else: it is of the run, not the step."""
    program = evidence.adapter.program
    read = [one for one in program.readings.record if "status" in one.where and one.looks_inside]
    if not read:
        return
    ends: dict[DataPlace, Counter[str]] = defaultdict(Counter)
    others: dict[DataPlace, set[str]] = defaultdict(set)
    for seen in evidence.seen:
        values: dict[DataPlace, list[str]] = defaultdict(list)
        for leaf in leaves(evidence, seen):
            if leaf.event >= 0 and len(str(leaf.value)) <= 40 and _is_itself(leaf.place, read):
                values[leaf.place].append(str(leaf.value))
        for place, found in values.items():
            if len(found) > 1:
                ends[place][found[-1]] += 1
                others[place].update(found[:-1])
    for place, last in sorted(ends.items(), key=lambda one: str(one[0])):
        runs = sum(last.values())
        if runs < FEWEST_RUNS or len(last) > MOST_VALUES or others[place] & last.keys():
            continue
        severity: Severity = "error" if any(map(polarity, last)) else "warning"
        where = spell(place, evidence)
        named = ", ".join(sorted(last))
        what = f"{where}, which a status is read from, ends every run with a value that stands nowhere else ({named})."
        remedy = "A verifier wrote it: take the status from what came back for the step, and the outcome from here."
        yield Suspicion(Finding("leaks.last_status", severity, what, where, {"runs": runs}, remedy), place)


def _is_itself(place: DataPlace, readings: list[PlaceReading]) -> bool:
    """Is the place one of these itself, not something inside it?"""
    return any(len(one.place.steps) == len(place.steps) and overlaps(one.place, place) for one in readings)
