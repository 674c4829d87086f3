"""Outcomes that follow from the number of steps, or by the group of a run (file, model, agent): shortcuts, not leaks.

A live monitor sees the clock, but not the end; records do not show groups, and must not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL, area_by_chance, fisher, in_words, rank_area
from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.evaluation.leaks.judged import FEWEST, Judged
from prefixguard.runtime import plain

#: How far from one half the area of the length must be.
_TELLS = 0.10
#: Share of runs at the largest length, and how many times those at the lengths just below it, to be a step cap.
_PILE = 0.03
_PILE_TIMES = 3.0
_FEWEST = 5
#: Tests of lengths, for the correction.
_TESTS = 2
#: Share of a value's runs that end alike, for the value to tell; share of all runs that such values must hold.
_ALIKE = 0.98
_HELD = 0.9


def find_lengths(judged: Judged, seed: int) -> Iterator[LeakFinding]:
    """Warnings of kind shortcut: the length tells, runs pile up at a step cap."""
    lengths = np.array([len(run.records) for run in judged.runs], dtype=np.float64)
    one, failed = judged.single, judged.failed
    area = rank_area(failed, lengths)
    p = min(1.0, _TESTS * area_by_chance(failed[one], lengths[one], seed))
    if abs(area - 0.5) >= _TELLS and p < LEVEL:
        longer = "longer" if area > 0.5 else "shorter"
        text = (
            f"Failed runs are {longer}: the number of steps alone ranks failed before successful runs with an area of "
            f"{area:.2f} (0.5 is nothing; {in_words(p)}). Compare runs at the same step and at the same remaining "
            "steps."
        )
        figures = {"area": area, "p": p, "runs": float(len(judged))}
        yield LeakFinding("shortcut", "length", "number of steps", "warning", figures, text)
    yield from _cap(judged, lengths)


def _cap(judged: Judged, lengths: np.ndarray) -> Iterator[LeakFinding]:
    count = Counter(lengths.astype(int).tolist())
    top = max(count)
    pile = count[top]
    below = max(count.get(top - k, 0) for k in (1, 2, 3))
    if pile < max(_FEWEST, _PILE * len(judged)) or pile < _PILE_TIMES * max(1, below):
        return
    capped, failed, one = lengths == top, judged.failed, judged.single
    if capped.all():  # a fixed length tells nothing
        return
    there, elsewhere = float(failed[capped].mean()), float(failed[~capped].mean())
    lost, won = one & failed, one & ~failed
    p = fisher(int((capped & lost).sum()), int(lost.sum()), int((capped & won).sum()), int(won.sum()))
    p = min(1.0, _TESTS * p)
    text = (
        f"{pile} of {len(judged)} runs have exactly {top} steps, the most there are: a step cap. {there:.0%} of them "
        f"failed, of the others {elsewhere:.0%} ({in_words(p)})."
    )
    if p < LEVEL:
        text += " Near the cap a clock tells what a monitor seems to."
    figures = {"steps": float(top), "runs": float(pile), "failed": there, "failed_elsewhere": elsewhere, "p": p}
    yield LeakFinding("shortcut", "length", f"{top} steps", "warning", figures, text)


def find_groups(judged: Judged) -> Iterator[LeakFinding]:
    """A warning of kind shortcut for each group whose values hold runs of one outcome only, some of either."""
    for key in sorted({key for run in judged.runs for key in run.groups}):
        values = np.array([run.groups.get(key, "") for run in judged.runs], dtype=np.str_)
        told: dict[str, bool] = {}
        held = 0
        for value in np.unique(values).tolist():
            rows = values == value
            share = float(judged.failed[rows].mean())
            if len(np.unique(judged.tasks[rows])) >= FEWEST and max(share, 1 - share) >= _ALIKE:
                told[value] = share > 0.5
                held += int(rows.sum())
        if len(set(told.values())) < 2 or held < _HELD * len(judged):
            continue
        lost = next(value for value, failed in told.items() if failed)
        won = next(value for value, failed in told.items() if not failed)
        text = (
            f"The {key} of a run tells how it ended: runs of {plain(lost, 60)!r} failed, runs of {plain(won, 60)!r} "
            "succeeded. Records do not show it, and must not: see that nothing of it is in their text, and whether "
            "runs were sorted by outcome into places that differ in other ways too."
        )
        figures = {"values": float(len(told)), "runs": float(held)}
        yield LeakFinding("shortcut", f"group {key}", plain(lost, 60), "warning", figures, text)
