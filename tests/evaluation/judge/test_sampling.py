"""Every prefix has the same chance, and the sample looks like the whole."""

from __future__ import annotations

import numpy as np
import pytest

from prefixguard.errors import ConfigError
from prefixguard.evaluation.judge import draw_prefixes
from prefixguard.metrics import Prefixes

LENGTHS = [3, 20, 7, 1, 12, 5, 9, 40, 6, 2]
FAILED = [True, False, True, False, True, True, False, True, False, False]
TASKS = ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"]


@pytest.fixture
def prefixes() -> Prefixes:
    return Prefixes.of(LENGTHS, FAILED, TASKS)


def test_every_prefix_is_drawn_equally_often(prefixes: Prefixes) -> None:
    """Over many seeds each of 105 prefixes is drawn in n / N of them; five standard deviations are allowed."""
    eligible = np.ones(len(prefixes), dtype=np.bool_)
    eligible[[0, 50]] = False
    n, seeds = 11, 4000
    counts = np.zeros(len(prefixes))
    for seed in range(seeds):
        rows = draw_prefixes(prefixes, eligible, n, horizon=3, seed=seed)
        assert len(set(rows.tolist())) == n
        counts[rows] += 1
    share = n / eligible.sum()
    assert not counts[~eligible].any()
    assert np.abs(counts[eligible] - seeds * share).max() < 5 * np.sqrt(seeds * share * (1 - share))


def test_both_prevalences_are_those_of_all_prefixes_to_within_rounding(prefixes: Prefixes) -> None:
    eligible = np.ones(len(prefixes), dtype=np.bool_)
    for seed in range(200):
        rows = draw_prefixes(prefixes, eligible, 30, horizon=3, seed=seed)
        for labels in (prefixes.imminent_labels(3), prefixes.outcome_labels):
            assert abs(labels[rows].sum() - 30 * labels.mean()) < 2


def test_a_run_gets_no_more_than_its_share(prefixes: Prefixes) -> None:
    eligible = np.ones(len(prefixes), dtype=np.bool_)
    lengths = np.array(LENGTHS)
    for seed in range(200):
        rows = draw_prefixes(prefixes, eligible, 10, horizon=3, seed=seed)
        counts = np.bincount(prefixes.run[rows], minlength=len(lengths))
        # A run is one stretch of the ring, or two: imminent and earlier. A stretch of L prefixes meets L / 10.5 arcs
        # and at most two ends of others.
        assert (counts <= np.ceil(lengths / 10.5) + 2).all()


def test_a_small_set_is_taken_whole_and_a_seed_gives_one_sample(prefixes: Prefixes) -> None:
    eligible = np.zeros(len(prefixes), dtype=np.bool_)
    eligible[[3, 8, 9]] = True
    assert draw_prefixes(prefixes, eligible, 3, horizon=3, seed=1).tolist() == [3, 8, 9]
    whole = np.ones(len(prefixes), dtype=np.bool_)
    one, again, other = (draw_prefixes(prefixes, whole, 20, horizon=3, seed=seed).tolist() for seed in (1, 1, 2))
    assert one == again != other and one == sorted(one)
    with pytest.raises(ConfigError, match="draw 1 or more"):
        draw_prefixes(prefixes, whole, 0, horizon=3, seed=1)
