"""Average precision and AUROC, sorted once and weighed many times.

A bootstrap over tasks changes how much each prefix counts, never how prefixes rank. So scores are sorted once, and
every resample is a vector of weights; all resamples are one matrix. Ties count as ties: equal scores share one place
on the curve, so neither order of rows nor the way scores were rounded moves a figure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError
from prefixguard.metrics.ratio import ratio

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
