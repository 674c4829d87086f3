import numpy as np
import pytest

from prefixguard.errors import ConfigError
from prefixguard.metrics import Ranking, Resamples, average_precision, interval, paired_difference


def test_each_resample_draws_as_many_tasks_as_there_are():
    weights = Resamples.draw(30, n=50, seed=1).weights
    assert weights.shape == (50, 30)
    assert (weights.sum(axis=1) == 30).all()
    np.testing.assert_array_equal(weights, Resamples.draw(30, n=50, seed=1).weights)
    assert (weights != Resamples.draw(30, n=50, seed=2).weights).any()


def test_weighing_equals_copying():
    """The vectorised bootstrap against the one that copies rows."""
    rng = np.random.default_rng(4)
    labels, scores, units = rng.integers(0, 2, 300), rng.integers(0, 30, 300) / 30, rng.integers(0, 25, 300)
    resamples = Resamples.draw(25, n=40, seed=0)
    fast = resamples.figures(Ranking(labels, scores, units=units).average_precision, 300)
    for weights, value in zip(resamples.weights, fast, strict=True):
        copies = np.repeat(np.arange(300), weights[units].astype(int))
        assert value == pytest.approx(average_precision(labels[copies], scores[copies]), abs=1e-12)


def test_chunks_do_not_change_figures():
    resamples = Resamples.draw(10, n=33, seed=0)
    whole = resamples.figures(lambda w: w[:, 0])
    np.testing.assert_array_equal(resamples.figures(lambda w: w[:, 0], rows=2_000_000), whole)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Mean of 60 tasks, 1,000 seeded draws. Percentile intervals of 60 are a little short: 93.3 % was measured on
    8,000 other draws; four standard errors either way are allowed."""
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(1000):
        values = rng.normal(size=60)
        means = Resamples.draw(60, n=300, seed=seed).figures(lambda w, v=values: w @ v / 60)
        low, high = interval(means)
        covered += low <= 0.0 <= high
    assert 0.90 <= covered / 1000 <= 0.965


def test_paired_differences_cancel_what_is_shared():
    rng = np.random.default_rng(1)
    hard = rng.normal(size=40)  # a task's difficulty moves both figures alike
    resamples = Resamples.draw(40, n=500, seed=0)
    one = resamples.figures(lambda w: w @ (hard + 0.1) / 40)
    other = resamples.figures(lambda w: w @ hard / 40)
    assert paired_difference(one, other) == pytest.approx((0.1, 0.1))
    low, high = interval(one)
    assert high - low > 0.2


def test_figures_that_do_not_exist_are_left_out():
    assert interval([np.nan, 1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert interval([np.nan, np.nan, np.nan, 1.0]) is None
    assert interval([]) is None


def test_odd_arguments():
    assert Resamples.draw(0, n=3).weights.shape == (3, 0)
    assert Resamples.draw(3, n=0).figures(lambda w: w.sum(axis=1)).shape == (0,)
    with pytest.raises(ConfigError, match="-1 resamples of 3 tasks"):
        Resamples.draw(3, n=-1)
    with pytest.raises(ConfigError, match="seed of the resamples is -1"):
        Resamples.draw(3, seed=-1)
    with pytest.raises(ConfigError, match="interval level 95 is out of range"):
        interval([1.0], level=95)
