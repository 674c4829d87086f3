"""Outcome AUROC at matched remaining steps, at matched step index, and within groups.

AUPRC of the imminent label rewards knowing that a run is about to end. These figures take that away: scores of failed
and successful runs are compared only where equally many steps remain (or where equally many have passed), and the mean
over those places is weighted by the runs that reach them. Within groups, runs are moreover compared only with runs of
the same agent or file, which takes away knowing who is acting.

Each function returns a `Ranking` whose `auroc` is the figure and whose units are tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError
from prefixguard.metrics.prefixes import Prefixes
from prefixguard.metrics.ranking import Ranking

#: Places that count: the last ten steps before the end, and the end; the first thirty steps.
MAX_REMAINING = 10
MAX_INDEX = 30


def at_remaining(
    prefixes: Prefixes,
    scores: npt.ArrayLike,
    *,
    up_to: int = MAX_REMAINING,
    groups: Sequence[str] | None = None,
) -> Ranking:
    """Outcome ranking at T - t = 0..up_to; strata are the remaining steps.

    scores: float (N,), one a prefix.
    groups: name of each run's group (agent, file), one a run; runs are then compared within their group only.
    """
    return _matched(prefixes, scores, prefixes.remaining, prefixes.remaining <= up_to, groups)


def at_index(
    prefixes: Prefixes, scores: npt.ArrayLike, *, up_to: int = MAX_INDEX, groups: Sequence[str] | None = None
) -> Ranking:
    """Outcome ranking at t = 1..up_to; strata are the steps."""
    return _matched(prefixes, scores, prefixes.step, prefixes.step <= up_to, groups)


def _matched(
    prefixes: Prefixes,
    scores: npt.ArrayLike,
    place: npt.NDArray[np.int64],
    rows: npt.NDArray[np.bool_],
    groups: Sequence[str] | None,
) -> Ranking:
    strata = place
    if groups is not None:
        if len(groups) != len(prefixes.failed):
            raise DataError(f"{len(groups)} groups for {len(prefixes.failed)} runs: give one a run.")
        codes = {name: code for code, name in enumerate(dict.fromkeys(groups))}
        group = np.array([codes[name] for name in groups], dtype=np.int64)
        width = int(place.max(initial=0)) + 1
        strata = group[prefixes.run] * width + place
    values = np.asarray(scores, dtype=np.float64)
    return Ranking(prefixes.outcome_labels[rows], values[rows], strata=strata[rows], units=prefixes.units[rows])
