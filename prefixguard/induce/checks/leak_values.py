"""Values that reach a record and should not: what the outcome is read from, hidden texts, run lengths, who ran it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from prefixguard.induce.checks.coverage import words
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.raw_leaves import is_within, leaves, spell
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.induce.names import Meaning, affinity
from prefixguard.stepview import Pattern, Place, Reading, StepRecord, overlaps

_SEEN_FIELDS = ("observation", "result", "action", "arguments")
#: A hidden text this long (words), most of which stands in the first observation, was given away.
TELLING_WORDS = 8
#: Runs that must agree before a number is called the length of the run, and how many lengths there must be.
FEWEST_RUNS = 5
FEWEST_LENGTHS = 3
AGREEING = 0.95
#: Share of the runs that must have the number: who writes lengths writes them everywhere.
MOST = 0.5
#: Numbers of one field that are looked at.
_MOST_NUMBERS = 64
_TOKENS = re.compile(r"[A-Za-z_]{2,30}|/|\d+")


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


def _is_shared(outcome: Place, reading: Reading, is_log: bool) -> bool:
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
    found: dict[Place, int] = defaultdict(int)
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


def _is_harness(place: Place) -> bool:
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


def find_lengths(evidence: Evidence) -> Iterator[Suspicion]:
    """Numbers in records that are the length of the run from its first step on, or count down to its end."""
    totals: dict[tuple[str, str], list[bool]] = defaultdict(list)
    downs: dict[tuple[str, str], list[bool]] = defaultdict(list)
    lengths: dict[tuple[str, str], set[int]] = defaultdict(set)
    long = sum(len(seen.run.records) >= 3 for seen in evidence.seen)
    for seen in evidence.seen:
        if len(seen.run.records) < 3:
            continue
        for key, series in _numbers(seen.run.records).items():
            if len(series) < max(2, 0.6 * len(seen.run.records)) and series[0][0] != 1:
                continue
            lengths[key].add(len(seen.run.records))
            n = len(seen.run.records)
            ends = {n - 1, n, n + 1, len(seen.events)}
            totals[key].append(len({value for _, value in series}) == 1 and series[0][1] in ends)
            left = {value + at for at, value in series}
            downs[key].append(len(series) > 2 and len(left) == 1 and bool(left & {n - 1, n, n + 1}))
    for kind, table in (("the length of the run", totals), ("the steps that remain", downs)):
        for (field, label), agree in sorted(table.items()):
            if len(agree) < max(FEWEST_RUNS, MOST * long) or len(lengths[field, label]) < FEWEST_LENGTHS:
                continue
            if sum(agree) >= AGREEING * len(agree):
                which = f"number after {label!r}" if label else "first number"
                what = f"the {which} in {field} is {kind} in {sum(agree)} of {len(agree)} runs."
                numbers = {"runs": float(len(agree)), "share": sum(agree) / len(agree)}
                remedy = "Only the end of the run knows it: read another place, or cut the number."
                yield Suspicion(Finding("leaks.length", "error", what, field, numbers, remedy))


def _numbers(records: tuple[StepRecord, ...]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Numbers by field and the word before them, as (record, value); the first of each in a record."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        for field in _SEEN_FIELDS:
            text = getattr(record, field)
            if not text:
                continue
            label = ""
            met: set[str] = set()
            for token in _TOKENS.findall(text[:4000])[: 8 * _MOST_NUMBERS]:
                if not token[0].isdigit():
                    label = token.lower()
                elif len(token) <= 5 and label not in met and len(met) < _MOST_NUMBERS:
                    met.add(label)
                    found[field, label].append((record.index, int(token)))
    return found


def find_identities(evidence: Evidence) -> Iterator[Suspicion]:
    """File names, run ids and names of agents or models in the text of records."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    tried: dict[str, set[str]] = defaultdict(set)
    runs: dict[str, int] = defaultdict(int)
    for seen in evidence.seen:
        for what, name in _identities(seen):
            runs[what] += 1
            tried[what].add(name)
            for field in ("observation", "result", "action"):
                if any(name in getattr(record, field) for record in seen.wide[:3]):
                    found[what, field] += 1
    for (what, field), n in sorted(found.items()):
        if n < 0.5 * runs[what] or len(tried[what]) < 2:
            continue
        numbers = {"runs": float(n), "share": n / runs[what], "names": float(len(tried[what]))}
        say = f"the {field} of the first records holds the {what} in {n} of {runs[what]} runs."
        remedy = "Names say how good an agent is, not how this run goes: cut them, unless the agent sees them too."
        yield Suspicion(Finding("leaks.identity", "warning", say, field, numbers, remedy))


def _identities(seen: SeenRun) -> Iterator[tuple[str, str]]:
    """Names of the run that look like names, not like words."""
    run = seen.run
    names = {"run id": run.run_id}
    if seen.scope.file:
        names["file name"] = PurePosixPath(seen.scope.file).name.split(".")[0]
    for key, value in run.groups.items():
        names[f"group {key!r}"] = value
    if isinstance(seen.scope.run, dict):
        for key, value in seen.scope.run.items():
            if (
                isinstance(value, str)
                and isinstance(key, str)
                and max(affinity(key, Meaning.MODEL), affinity(key, Meaning.RUN_ID)) >= 1.0
            ):
                names[f"value of $.{key}"] = value
    for what, name in names.items():
        if len(name) >= 6 and name != run.task_id and re.search(r"[\d_/.:-]", name) and not name.isdigit():
            yield what, name
