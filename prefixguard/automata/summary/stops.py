"""Runs that stop as soon as they succeed: there a failure is a run that is not solved yet, and its length tells it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import CELL_RUNS, group_names
from prefixguard.automata.summary.wording import one_line

#: Nearly all: so large a share of the failures has the greatest length, and of the successes less.
_NEARLY_ALL = 0.95
#: Runs of such values that a group needs, as a share of all.
_MOST = 0.5
_NAME = 60


def stops_when_solved(material: Material) -> str:
    """Where in most training runs, taken all together or by the values of a group, nearly all failures have exactly the
    greatest number of steps and nearly all successes fewer, a sentence; else ""."""
    corpus, pool = material.corpus, material.pool.tolist()
    best: tuple[int, str, list[int]] = (0, "", [])
    for name in ("", *group_names(material)):
        runs = defaultdict[str, list[int]](list)
        for r in pool:
            runs[corpus.groups[r].get(name, "")].append(r)
        stop = [r for these in runs.values() if _stops(material, these) for r in these]
        if len(stop) > best[0]:
            best = (len(stop), name, stop)
    n, name, stop = best
    if n < _MOST * len(pool) or not n:
        return ""
    at_cap, failures, shorter, successes = (sum(part) for part in zip(*_counts(material, name, stop), strict=True))
    some = f", those of some values of {one_line(name, _NAME)}" if name else ""
    of = f"In {n:,} of {len(pool):,} training runs{some}"
    return (
        f"{of}, {at_cap:,} of {failures:,} failures have exactly the greatest number of steps, and {shorter:,} of "
        f"{successes:,} successes fewer: runs end once they succeed, so that to fail here is not to have succeeded "
        "yet, and the number of the step carries much of every risk."
    )


def _count(material: Material, runs: list[int]) -> tuple[int, int, int, int]:
    """Failures of the greatest length, failures, successes that are shorter, successes."""
    lengths, failed = material.corpus.lengths[runs], material.corpus.failed[runs]
    at = lengths == lengths.max()
    return tuple(int(np.count_nonzero(of)) for of in (at & failed, failed, ~at & ~failed, ~failed))  # type: ignore[return-value]


def _counts(material: Material, name: str, runs: list[int]) -> list[tuple[int, int, int, int]]:
    """The same of each value of a group."""
    of = defaultdict[str, list[int]](list)
    for r in runs:
        of[material.corpus.groups[r].get(name, "")].append(r)
    return [_count(material, these) for these in of.values()]


def _stops(material: Material, runs: list[int]) -> bool:
    at_cap, failures, shorter, successes = _count(material, runs)
    enough = min(failures, successes) >= CELL_RUNS
    return enough and at_cap >= _NEARLY_ALL * failures and shorter >= _NEARLY_ALL * successes
