"""Raw numbers and flags that a record reads, and that tell the outcome, whatever they are called.

Judged by the area under the ROC curve of a place's last value in a run (of its only one, for values of the run itself),
with Mann and Whitney's test, ties counted, corrected after Bonferroni for the places tried; with FEWEST runs
of each outcome. In events the area must rise by JUMP over the value before the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median_low

import numpy as np

from prefixguard.evaluation.leaks import LEVEL, rank_area, ranked_by_chance
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding, Severity
from prefixguard.induce.checks.raw_leaves import is_read, is_within, leaves, spell
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.stepview import DataPlace

#: Runs of each outcome, the area from which something is said, and how much it must rise at the last value.
FEWEST = 12
SEPARATES = 0.80
JUMP = 0.15
#: Parts of a rule that read what the agent itself wrote.
_OWN = (".arguments", ".action", ".tool")


@dataclass(slots=True)
class _Values:
    """Values of a place. last, before: by number of the run. earlier: all but the last, counted."""

    last: dict[int, float] = field(default_factory=dict)
    before: dict[int, float] = field(default_factory=dict)
    earlier: Counter[float] = field(default_factory=Counter)
    of_run: bool = False


def find_by_numbers(evidence: Evidence) -> Iterator[Suspicion]:
    """Findings over sampled runs with a known outcome; none below FEWEST of each."""
    runs = [seen for seen in evidence.seen if seen.won is not None and seen.run.records]
    outcomes = [bool(seen.won) for seen in runs]
    table = _values(evidence, runs)
    for place in sorted(table, key=str):
        values = table[place]
        told = _area(values.last, outcomes)
        if told is None or told[0] < SEPARATES or told[1] * len(table) >= LEVEL:
            continue
        told_before = _area(values.before, outcomes)
        was = told_before[0] if told_before is not None else 0.5
        if not values.of_run and told[0] - was < JUMP:
            continue
        where = spell(place, evidence)
        at = "tells" if values.of_run else "at its last tells"
        what = f"{where}, which a record reads, {at} the outcome ({told[0]:.2f}; before, {was:.2f}; 0.5 is nothing)."
        severity: Severity = "error"
        if not values.of_run and (_is_ordinary(values, outcomes) or _is_own(evidence, place)):
            severity = "warning"
            what += " Earlier values are like it, or the agent wrote it."
        numbers = {"separates": told[0], "before": was, "p": told[1] * len(table), "runs": len(values.last)}
        remedy = "Do not read it; put it under `hidden` if it is written when the run is over."
        yield Suspicion(Finding("leaks.raw_value", severity, what, where, numbers, remedy), place)


def _values(evidence: Evidence, runs: list[SeenRun]) -> dict[DataPlace, _Values]:
    told = evidence.adapter.program.readings
    table: dict[DataPlace, _Values] = defaultdict(_Values)
    read: dict[DataPlace, bool] = {}
    for number, seen in enumerate(runs):
        for leaf in leaves(evidence, seen):
            if isinstance(leaf.value, str) or leaf.value != leaf.value:
                continue
            if leaf.place not in read:
                read[leaf.place] = is_read(leaf.place, told.record)
            if not read[leaf.place]:
                continue
            values = table[leaf.place]
            values.of_run |= leaf.event < 0
            if number in values.last:
                values.before[number] = values.last[number]
                values.earlier[values.last[number]] += 1
            values.last[number] = float(min(max(leaf.value, -1e15), 1e15))
    return table


def _is_ordinary(values: _Values, outcomes: list[bool]) -> bool:
    """Do values before the last include what is typical of either outcome? An error flag does; a reward does not."""
    total = sum(values.earlier.values())
    for side in (False, True):
        typical = median_low(value for i, value in values.last.items() if outcomes[i] is side)
        if values.earlier[typical] < max(1, 0.02 * total):
            return False
    return True


def _is_own(evidence: Evidence, place: DataPlace) -> bool:
    readers = [one for one in evidence.adapter.program.readings.record if one.looks_inside and is_within(place, [one])]
    return all(any(f"{part}." in f"{one.where}." for part in _OWN) for one in readers)


def _area(values: dict[int, float], outcomes: list[bool]) -> tuple[float, float] | None:
    """Area under the ROC curve, turned to 0.5 or more, and the chance of it; None for too few runs."""
    failed = np.array([not outcomes[i] for i in values], dtype=np.bool_)
    if min(int(failed.sum()), int((~failed).sum())) < FEWEST:
        return None
    ranked = np.array(list(values.values()))
    area = rank_area(failed, ranked)
    return max(area, 1 - area), ranked_by_chance(failed, ranked)
