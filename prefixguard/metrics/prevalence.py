"""Average precision as it would be at another prevalence, so that sets can be laid side by side.

AUPRC of a score that knows nothing is the prevalence, so .4 is poor on one set and brilliant on another. Negatives are
given a common weight such that positives make up the wanted share of all weight; how scores rank, and how they are
distributed in each class, stays as measured. At the set's own prevalence every weight is 1.

What it cannot mend: sets also differ in how hard they are and, for the imminent label, in how long runs are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.metrics.ranking import Ranking
from prefixguard.metrics.ratio import ratio

Float = npt.NDArray[np.float64]

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
