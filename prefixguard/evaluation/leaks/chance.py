"""Tests that are honest about chance: exact where there is one unit a task, permutations of tasks elsewhere."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

#: Corrected p-value below which something is said.
LEVEL = 0.01
#: Permutations; the smallest p-value is 1 over one more, which still passes after seven fields.
PERMUTATIONS = 999


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Two-sided chance that a of n and b of m differ so much: twice the smaller tail, at most 1.

    >>> round(fisher(3, 3, 0, 3), 3), fisher(1, 2, 1, 2)
    (0.1, 1.0)
    """
    have = a + b
    whole = _choose(n + m, have)

    def tail(ks: range) -> float:
        return math.fsum(math.exp(_choose(n, k) + _choose(m, have - k) - whole) for k in ks)

    low, high = max(0, have - m), min(n, have)
    return min(1.0, 2 * min(tail(range(a, high + 1)), tail(range(low, a + 1))))


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def rank_area(failed: Bool, scores: Float) -> float:
    """AUROC of scores for failure; NaN where one class is missing."""
    n, m = int(failed.sum()), int((~failed).sum())
    if not n or not m:
        return float("nan")
    return float((rankdata(scores)[failed].sum() - n * (n + 1) / 2) / (n * m))


def ranked_by_chance(failed: Bool, values: Float) -> float:
    """Two-sided chance that values rank the outcomes so well, after Mann and Whitney, ties counted; one unit a task."""
    n, m = int(failed.sum()), int((~failed).sum())
    ranks = rankdata(values)
    spread = math.sqrt(n * m / (n + m) * float(ranks.var(ddof=1)))
    return math.erfc(abs(float(ranks[failed].sum()) - n * (n + m + 1) / 2) / spread / math.sqrt(2)) if spread else 1.0


def area_by_chance(failed: Bool, scores: Float, seed: int, n: int = PERMUTATIONS) -> float:
    """Chance of an AUROC as far from one half, outcomes permuted; one unit a task. Two-sided, never 0."""
    ranks = rankdata(scores)
    lost = int(failed.sum())
    if lost in (0, len(failed)):
        return 1.0
    middle = lost * (len(failed) + 1) / 2
    found = abs(ranks[failed].sum() - middle) - 1e-9
    generator = np.random.default_rng(seed)
    as_far = sum(bool(abs(generator.permutation(ranks)[:lost].sum() - middle) >= found) for _ in range(n))
    return (1 + as_far) / (1 + n)


def difference_by_chance(
    failed: Bool, one: Float, other: Float, tasks: npt.NDArray[np.int64], seed: int, n: int = PERMUTATIONS
) -> float:
    """Chance that AUROC(one) - AUROC(other) is as large when the two scores of a task's runs are swapped at random.

    Scores are compared by their ranks. One-sided, never 0. Source: paired permutation test, units are tasks.
    """
    a, b = rankdata(one), rankdata(other)
    found = rank_area(failed, a) - rank_area(failed, b) - 1e-9
    codes = np.unique(tasks, return_inverse=True)[1]
    generator = np.random.default_rng(seed)
    as_far = 0
    for _ in range(n):
        swap = (generator.random(int(codes.max()) + 1) < 0.5)[codes]
        as_far += rank_area(failed, np.where(swap, b, a)) - rank_area(failed, np.where(swap, a, b)) >= found
    return (1 + as_far) / (1 + n)


def in_words(p: float) -> str:
    """A corrected p-value in words.

    >>> in_words(0.004), in_words(1e-30)
    ('p = 0.004', 'p < 1e-6')
    """
    return "p < 1e-6" if p < 1e-6 else f"p = {p:.2g}"
