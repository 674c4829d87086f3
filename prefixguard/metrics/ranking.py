"""Average precision and AUROC, sorted once and weighed many times; at matched places, and at another prevalence.

A bootstrap over tasks changes how much each prefix counts, never how prefixes rank. So scores are sorted once, and
every resample is a vector of weights; all resamples are one matrix. Ties count as ties: equal scores share one place
on the curve, so neither order of rows nor the way scores were rounded moves a figure.

Matched places. AUPRC of the imminent label rewards knowing that a run is about to end. The matched-remaining and the
matched-index AUROC of the outcome take that away: scores of failed and successful runs are compared only where equally
many steps remain (or have passed), and the mean over those places is weighted by the runs that reach them. Within
groups, runs are moreover compared only with runs of the same agent or file, which takes away knowing who is acting.

Another prevalence. AUPRC of a score that knows nothing is the prevalence, so .4 is poor on one set and brilliant on
another. Negatives are given a common weight such that positives make up the wanted share of all weight; how scores
rank, and how they are distributed in each class, stays as measured. At the set's own prevalence every weight is 1. What
it cannot mend: sets also differ in how hard they are and, for the imminent label, in how long runs are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics.prefixes import Prefixes
from prefixguard.metrics.resampling import ratio

Float = npt.NDArray[np.float64]


class Ranking:
    """Labels sorted by score, within strata if there are any. One more pass for each set of weights.

    labels: (N,), 0 or 1. scores: float (N,), higher means more likely 1; no NaN.
    strata: int64 (N,); AUROC then compares only within a stratum. None: one stratum.
    units: int64 (N,); weights are then given by unit (task), not by row. None: every row is its own unit.
    """

    def __init__(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        strata: npt.ArrayLike | None = None,
        units: npt.ArrayLike | None = None,
    ) -> None:
        y = np.asarray(labels)
        s = np.asarray(scores, dtype=np.float64)
        group = np.zeros(len(s), dtype=np.int64) if strata is None else np.asarray(strata, dtype=np.int64)
        unit = np.arange(len(s), dtype=np.int64) if units is None else np.asarray(units, dtype=np.int64)
        if not y.shape == s.shape == group.shape == unit.shape or s.ndim != 1:
            raise DataError(f"{y.shape} labels for {s.shape} scores: give one label a score, in one dimension.")
        if np.isnan(s).any():
            raise DataError("a score is NaN: leave prefixes that were not judged out of the ranking.")
        order = np.lexsort((-s, group))
        s, group = s[order], group[order]
        starts = np.ones(len(s), dtype=np.bool_)  # a new tie of equal scores begins here
        starts[1:] = (s[1:] != s[:-1]) | (group[1:] != group[:-1])
        self._unit = unit[order]
        self._positive = (y[order] != 0).astype(np.float64)
        self._ties = np.flatnonzero(starts)  # (G,)
        tie_group = group[self._ties]
        new_stratum = np.ones(len(tie_group), dtype=np.bool_)
        new_stratum[1:] = tie_group[1:] != tie_group[:-1]
        self._stratum_of_tie = np.cumsum(new_stratum) - 1  # (G,)
        self._first_tie = np.flatnonzero(new_stratum)  # (S,)
        #: Codes of the strata, ascending, (S,).
        self.strata = tie_group[self._first_tie]

    def average_precision(self, weights: npt.ArrayLike | None = None) -> Float:
        """Area under the precision-recall curve by steps, as scikit-learn's `average_precision_score`.

        weights: float (..., units), 0 or more. Returns float (...,); NaN where a class has no weight.
        Strata do not matter here; build the ranking without them.
        """
        if len(self.strata) > 1:
            raise DataError("average precision over strata is not defined: rank without strata.")
        positive, negative = self._tie_sums(weights)
        true, false = np.cumsum(positive, axis=-1), np.cumsum(negative, axis=-1)
        flagged = true + false
        precision = np.divide(true, flagged, out=np.zeros_like(true), where=flagged > 0)
        hits = (positive * precision).sum(axis=-1)
        total, other = positive.sum(axis=-1), negative.sum(axis=-1)
        return ratio(hits, total, where=(total > 0) & (other > 0))

    def auroc(self, weights: npt.ArrayLike | None = None) -> Float:
        """P(a positive scores above a negative), ties half; over strata, their mean weighted by the rows they hold.

        weights: float (..., units), 0 or more. Returns float (...,); a stratum without one of the classes is left out,
        NaN where that leaves none.
        """
        value, rows = self.auroc_by_stratum(weights)
        usable = ~np.isnan(value)
        weight = np.where(usable, rows, 0.0)
        total = weight.sum(axis=-1)
        pooled = (np.where(usable, value, 0.0) * weight).sum(axis=-1)
        return ratio(pooled, total)

    def auroc_by_stratum(self, weights: npt.ArrayLike | None = None) -> tuple[Float, Float]:
        """AUROC and total weight of each stratum, both float (..., S), in the order of `strata`."""
        positive, negative = self._tie_sums(weights)
        if not len(self._ties):
            return positive, negative
        n_positive = np.add.reduceat(positive, self._first_tie, axis=-1)  # (..., S)
        n_negative = np.add.reduceat(negative, self._first_tie, axis=-1)  # (..., S)
        above = np.cumsum(negative, axis=-1)  # negatives down to this tie, all strata so far
        before = np.cumsum(n_negative, axis=-1) - n_negative  # those of earlier strata, (..., S)
        below = (before + n_negative)[..., self._stratum_of_tie] - above  # negatives that score lower
        wins = np.add.reduceat(positive * (below + 0.5 * negative), self._first_tie, axis=-1)
        return ratio(wins, n_positive * n_negative), n_positive + n_negative

    def _tie_sums(self, weights: npt.ArrayLike | None) -> tuple[Float, Float]:
        """Weight of positives and of negatives in each tie, both float (..., G)."""
        if weights is None:
            w = np.ones(len(self._unit))
        else:
            w = np.asarray(weights, dtype=np.float64)[..., self._unit]
        if not len(self._ties):
            return w, w
        positive = w * self._positive
        if len(self._ties) == len(self._unit):  # no two scores are equal: nothing to add up
            return positive, w - positive
        return (
            np.add.reduceat(positive, self._ties, axis=-1),
            np.add.reduceat(w - positive, self._ties, axis=-1),
        )


def average_precision(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """AUPRC of scores; NaN where only one class is there.

    >>> round(average_precision([0, 1, 0, 1], [0.1, 0.9, 0.8, 0.7]), 4)
    0.8333
    """
    return float(Ranking(labels, scores).average_precision())


def auroc(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """AUROC of scores; NaN where only one class is there.

    >>> auroc([0, 1, 0, 1], [0.1, 0.9, 0.8, 0.7])
    0.75
    """
    return float(Ranking(labels, scores).auroc())


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
    """Outcome ranking at T - t = 0..up_to; strata are the remaining steps. Its `auroc`: the matched-remaining AUROC.

    scores: float (N,), one a prefix.
    groups: name of each run's group (agent, file), one a run; runs are then compared within their group only.
    """
    return _matched(prefixes, scores, prefixes.remaining, prefixes.remaining <= up_to, groups)


def at_index(
    prefixes: Prefixes, scores: npt.ArrayLike, *, up_to: int = MAX_INDEX, groups: Sequence[str] | None = None
) -> Ranking:
    """Outcome ranking at t = 1..up_to; strata are the steps. Its `auroc`: the matched-index AUROC."""
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


#: The prevalences at which figures of different sets are compared.
REFERENCE_PREVALENCES = (0.05, 0.10, 0.25, 0.50)


class ReferenceRanking:
    """Labels sorted by score once; average precision at any prevalence, for any weights.

    labels: (N,), 0 or 1. scores: float (N,), no NaN. units: int64 (N,), as in `Ranking`; None: each row its own.
    """

    def __init__(self, labels: npt.ArrayLike, scores: npt.ArrayLike, *, units: npt.ArrayLike | None = None) -> None:
        y = np.asarray(labels) != 0
        unit = np.arange(y.size, dtype=np.int64) if units is None else np.asarray(units, dtype=np.int64)
        # A unit's positives and its negatives are two units of the ranking, so that either can be weighed alone.
        self._ranking = Ranking(y, scores, units=2 * unit + y)
        n_units = int(unit.max(initial=-1)) + 1
        self._positives = np.bincount(unit[y], minlength=n_units).astype(np.float64)  # (U,)
        self._negatives = np.bincount(unit[~y], minlength=n_units).astype(np.float64)  # (U,)

    def average_precision(self, reference: float, weights: npt.ArrayLike | None = None) -> Float:
        """Average precision where positives make up `reference` of all weight, in each row of `weights` anew.

        reference: in (0, 1). weights: float (..., units), 0 or more. Returns float (...,); NaN where a class has none.
        Raises ConfigError for a reference outside its range.
        """
        if not 0.0 < reference < 1.0:
            raise ConfigError(f"reference prevalence {reference:g} is no share: use a number between 0 and 1.")
        n_units = len(self._positives)
        w = np.ones(n_units) if weights is None else np.asarray(weights, dtype=np.float64)[..., :n_units]
        positive, negative = w @ self._positives, w @ self._negatives
        factor = ratio(positive * (1 - reference), negative * reference)  # what each negative weighs; NaN without any
        both = np.empty((*w.shape[:-1], 2 * n_units))
        both[..., 1::2] = w
        both[..., 0::2] = w * np.nan_to_num(factor)[..., np.newaxis]
        return self._ranking.average_precision(both)

    def prevalence(self, weights: npt.ArrayLike | None = None) -> Float:
        """The share of positives as it is, float (...,); NaN without rows."""
        n_units = len(self._positives)
        w = np.ones(n_units) if weights is None else np.asarray(weights, dtype=np.float64)[..., :n_units]
        return ratio(w @ self._positives, w @ (self._positives + self._negatives))


def average_precision_at(labels: npt.ArrayLike, scores: npt.ArrayLike, reference: float) -> float:
    """AUPRC as it would be at a reference prevalence; NaN where only one class is there.

    >>> average_precision_at([0, 1, 0, 1], [0.1, 0.9, 0.8, 0.7], 0.5)  # their own prevalence
    0.8333333333333333
    >>> round(average_precision_at([0, 1, 0, 1], [0.1, 0.9, 0.8, 0.7], 0.2), 4)
    0.6667
    """
    return float(ReferenceRanking(labels, scores).average_precision(reference))
