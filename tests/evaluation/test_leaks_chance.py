"""The tests behind the audit say what they claim about chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prefixguard.evaluation.leaks.chance import area_by_chance, difference_by_chance, fisher, rank_area
from prefixguard.metrics import auroc


@pytest.mark.parametrize(("a", "n", "b", "m"), [(3, 10, 9, 12), (0, 40, 25, 60), (100, 100, 0, 60), (5, 5, 5, 5)])
def test_fisher_is_twice_the_smaller_tail(a, n, b, m):
    table = [[a, n - a], [b, m - b]]
    tails = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
    assert fisher(a, n, b, m) == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-9)


def test_ranks_and_areas_with_ties():
    generator = np.random.default_rng(1)
    scores = generator.integers(0, 6, 200).astype(float)
    failed = generator.random(200) < 0.3
    assert rank_area(failed, scores) == pytest.approx(auroc(failed, scores), abs=1e-12)
    assert np.isnan(rank_area(np.zeros(3, dtype=bool), np.arange(3.0)))


def test_permutations_hold_their_level():
    """Of 60 pairs of equally good scores, at 5 per cent at most 8 are called different (binomial, 1 in 200)."""
    small = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        failed = np.repeat(generator.random(30) < 0.5, 4)
        signal = failed + generator.normal(0, 2, 120)
        one, other = signal + generator.normal(0, 1, 120), signal + generator.normal(0, 1, 120)
        small += difference_by_chance(failed, one, other, np.repeat(np.arange(30), 4), seed, n=199) <= 0.05
    assert small <= 8


def test_a_true_difference_is_seen_and_the_wrong_way_round_is_not():
    generator = np.random.default_rng(5)
    failed = generator.random(120) < 0.5
    sure, blind, tasks = failed + generator.normal(0, 0.2, 120), generator.normal(0, 1, 120), np.arange(120)
    assert difference_by_chance(failed, sure, blind, tasks, 0) == 0.001
    assert difference_by_chance(failed, blind, sure, tasks, 0) > 0.9
    assert area_by_chance(failed, sure, 0) == area_by_chance(failed, -sure, 0) == 0.001
    assert area_by_chance(failed, blind, 0) > 0.05
