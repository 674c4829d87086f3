"""Values that reach a record and should not: what the outcome is read from, and hidden texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from prefixguard.induce.checks.coverage import words
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.raw_leaves import is_within, leaves, spell
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.induce.names import Meaning, affinity
from prefixguard.stepview import DataPlace, Pattern, PlaceReading, overlaps

_SEEN_FIELDS = ("observation", "result", "action", "arguments")
#: A hidden text this long (words), most of which stands in the first observation, was given away.
TELLING_WORDS = 8


def find_outcome_left(evidence: Evidence) -> Iterator[Suspicion]:
    """What the outcome's own regular expressions find is still in a record: the cut left something.

    Only where records and outcome read the same text; an expression that matches all along the run tells nothing.
    """
    told = evidence.adapter.program.readings
    is_log = evidence.adapter.program.events.split is not None
    if not any(_is_shared(one.place, other, is_log) for one in told.outcome for other in told.record):
        return
    for expression in _expressions(evidence.spec.get("run", {}).get("outcome")):
        pattern = Pattern(expression, "run.outcome")
        hits: dict[str, int] = defaultdict(int)
        before: dict[str, int] = defaultdict(int)
        earlier = 0
        for seen in evidence.seen:
            earlier += len(seen.wide[:-2])
            for field in _SEEN_FIELDS:
                hits[field] += any(pattern.found(getattr(record, field)) for record in seen.wide[-2:])
                before[field] += sum(pattern.found(getattr(record, field)) for record in seen.wide[:-2])
        for field, n in sorted(hits.items()):
            if n and n / len(evidence.seen) >= 5 * before[field] / max(1, earlier):
                what = f"the outcome is read with {expression!r}, and that still matches the {field} of {n} run(s)."
                remedy = f'Cut it where it is read: {{"cut": {expression!r}, "of": ...}}.'
                yield Suspicion(Finding("leaks.outcome", "error", what, field, {"runs": n}, remedy))


def _is_shared(outcome: DataPlace, reading: PlaceReading, is_log: bool) -> bool:
    """Does a record read text that the outcome is read from? Logs have their text under two names."""
    names = {steps[-1] for steps in (outcome.steps, reading.place.steps) if steps}
    same_log = is_log and names <= {("name", "text"), ("name", "body")}
    return same_log or (outcome.root == reading.place.root and overlaps(outcome, reading.place))


def _expressions(value: Any, depth: int = 0) -> Iterator[str]:
    """Regular expressions that a value of the spec reads the data with; not those over file names."""
    if depth > 8:
        return
    if isinstance(value, dict):
        if isinstance(value.get("re"), str) and "file" not in value:
            yield value["re"]
        for inner in value.values():
            yield from _expressions(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _expressions(inner, depth + 1)


def find_hidden_texts(evidence: Evidence) -> Iterator[Suspicion]:
    """Texts of hidden places in the first observation, although no event says them: before the agent acts, nobody can
    have repeated them."""
    told = evidence.adapter.program.readings
    gone = [*told.hidden, *told.outcome]
    found: dict[DataPlace, int] = defaultdict(int)
    runs = 0
    for seen in evidence.seen:
        first = seen.wide[0].observation
        if not first:
            continue
        runs += 1
        grams = set(_grams(first))
        if not grams:
            continue
        said: set[tuple[str, ...]] | None = None
        for leaf in leaves(evidence, seen):
            if not isinstance(leaf.value, str) or len(leaf.value) < 5 * TELLING_WORDS:
                continue
            if leaf.event >= 0 or not (is_within(leaf.place, gone) or _is_harness(leaf.place)):
                continue
            wanted = _grams(leaf.value)
            if len(wanted) < TELLING_WORDS - 3 or sum(gram in grams for gram in wanted) < 0.8 * len(wanted):
                continue
            said = _said(evidence, seen) if said is None else said
            if sum(gram in said for gram in wanted) < 0.5 * len(wanted):
                found[leaf.place] += 1
    for place, n in sorted(found.items(), key=lambda one: str(one[0])):
        if n >= 0.05 * runs:
            where = spell(place, evidence)
            what = f"the first observation of {n} of {runs} run(s) holds the text of {where}, which no event says."
            remedy = "Read the task from what the agent is shown, not from what the harness keeps."
            yield Suspicion(Finding("leaks.hidden", "error", what, "observation", {"runs": n}, remedy), None)


def _is_harness(place: DataPlace) -> bool:
    return any(step[0] == "name" and affinity(str(step[1]), Meaning.HARNESS) >= 1.0 for step in place.steps)


def _grams(text: str) -> list[tuple[str, ...]]:
    found = words(text.lower())
    pairs = list(pairwise(found))
    return [(*a, *b) for a, b in zip(pairs, pairs[2:], strict=False)]


def _said(evidence: Evidence, seen: SeenRun) -> set[tuple[str, ...]]:
    told = evidence.adapter.program.readings
    said: set[tuple[str, ...]] = set()
    for leaf in leaves(evidence, seen):
        if leaf.event >= 0 and isinstance(leaf.value, str) and not is_within(leaf.place, told.hidden):
            said.update(_grams(leaf.value))
    return said
