"""Numbers after a word: graded rewards at the end, the length of the run at its start, steps that remain."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL, in_words, rank_area, ranked_by_chance
from prefixguard.evaluation.leaks.confirmation import says_harness
from prefixguard.evaluation.leaks.features import cut, is_verdict_like
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, shown
from prefixguard.evaluation.leaks.judged import FEWEST, Judged
from prefixguard.evaluation.leaks.tokens import JUMP
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

_FIELDS = ("observation", "result", "action", "arguments")
_GIVEN = ("observation", "result")
_LABEL = re.compile(r"([A-Za-z_]{2,30})|(-?\d{1,12}(?:\.\d{1,12})?)")
#: How surely a number must rank the outcomes; share of runs that must have it.
_TELLS = 0.85
_HAVE = 0.6
#: Runs and lengths that are needed to call a number the length of the run, and the share of runs that must agree.
_FEWEST_RUNS = 8
_FEWEST_LENGTHS = 4
_AGREE = 0.95
_MOST = 0.5  # share of the runs that must have the number: who writes lengths writes them everywhere
#: Records of a run that are looked at for a count-down.
_LOOKED_AT = 12


def find_numbers(judged: Judged) -> Iterator[LeakFinding]:
    """Numbers of the last record that rank the outcomes far better than those of the record before."""
    found = []
    tried = 0
    nowhere = np.full(len(judged), np.nan)
    for field in _FIELDS:
        last, before = (_by_label(judged, field, position) for position in (-1, -2))
        for label, values in sorted(last.items()):
            if (~np.isnan(values))[judged.single].mean() >= _HAVE:
                tried += 1
                area, was = _area(judged, values), _area(judged, before.get(label, nowhere))
                if max(area, 1 - area) >= _TELLS and max(area, 1 - area) - max(was, 1 - was) >= JUMP:
                    found.append((field, label, area, max(was, 1 - was), values))
    for field, label, area, earlier, values in found:
        p, n = min(1.0, _by_ranks(judged, values) * tried), int((~np.isnan(values)).sum())
        if p >= LEVEL:
            continue
        verdict = says_harness(label) if field == "result" else is_verdict_like(label)  # a tool counts what failed, too
        severity: Severity = "error" if field in _GIVEN and verdict else "warning"
        side, area = "failure" if area > 0.5 else "success", max(area, 1 - area)
        text = (
            f"The number after {shown(label)} in the {field} of the last record tells the outcome: larger means "
            f"{side}, area {area:.2f}; in the record before, {earlier:.2f} ({in_words(p)}, {n} runs)."
        )
        figures = {"area": area, "before": earlier, "p": p, "runs": float(n), "tried": float(tried)}
        yield LeakFinding("number", field, label, severity, figures, text)


def _area(judged: Judged, values: np.ndarray) -> float:
    """The area under the ROC curve of the runs that have a number; 0.5 where one outcome is missing."""
    have = ~np.isnan(values)
    area = rank_area(judged.failed[have], values[have])
    return 0.5 if math.isnan(area) else area


def find_run_lengths(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """Numbers that are the length of the run from its first record on, or that count down to its end."""
    totals: dict[tuple[str, str], list[bool]] = defaultdict(list)
    downs: dict[tuple[str, str], list[bool]] = defaultdict(list)
    lengths: dict[tuple[str, str], set[int]] = defaultdict(set)
    long = sum(len(run.records) >= 3 for run in runs)
    for run in (run for run in runs if len(run.records) >= 3):
        n = len(run.records)
        for field in _FIELDS:
            series: dict[str, list[tuple[int, float]]] = defaultdict(list)
            for i, record in enumerate(run.records[:_LOOKED_AT]):
                for label, value in _numbers(getattr(record, field)).items():
                    series[label].append((i, value))
            for label, found in series.items():
                first_at, first = found[0]
                lengths[field, label].add(n)
                values = {value for _, value in found}
                totals[field, label].append(first_at == 0 and values == {first} and abs(first - n) <= 1)
                left = {value + at for at, value in found}
                downs[field, label].append(len(found) > 2 and len(left) == 1 and abs(left.pop() - n) <= 1)
    for says, table in (("the length of the run", totals), ("the number of steps that remain", downs)):
        for (field, label), agree in sorted(table.items()):
            share, least = sum(agree) / len(agree), max(_FEWEST_RUNS, _MOST * long)
            if len(agree) < least or len(lengths[field, label]) < _FEWEST_LENGTHS or share < _AGREE:
                continue
            after = f"after {shown(label)}" if label else "at its start"
            text = f"The number {after} in {field} is {says} in {sum(agree)} of {len(agree)} runs: only its end knows."
            figures = {"runs": float(len(agree)), "share": share}
            yield LeakFinding("run_length", field, label, "error", figures, text)


def _by_label(judged: Judged, field: str, position: int) -> dict[str, np.ndarray]:
    """The number after each word in one record of every run; float (N,), NaN where it has none."""
    table: dict[str, np.ndarray] = {}
    for i, run in enumerate(judged.runs):
        for label, value in _numbers(getattr(run.records[position], field)).items():
            if label not in table:
                table[label] = np.full(len(judged), np.nan)
            table[label][i] = value
    return table


def _numbers(text: str) -> dict[str, float]:
    """The first number after each word.

    >>> _numbers('{"reward": 0.25, "steps": 7}')
    {'reward': 0.25, 'steps': 7.0}
    """
    found: dict[str, float] = {}
    label = ""
    for match in _LABEL.finditer(cut(text)):
        if match[1]:
            label = match[1].lower()
        elif label not in found:
            found[label] = float(match[2])
    return found


def _by_ranks(judged: Judged, values: np.ndarray) -> float:
    """The chance of their ranks, on one run a task; 1 where too few tasks of an outcome have a number."""
    have = judged.single & ~np.isnan(values)
    lost = int(judged.failed[have].sum())
    if min(lost, int(have.sum()) - lost) < FEWEST:
        return 1.0
    return ranked_by_chance(judged.failed[have], values[have])
