"""The bound over random splits: against the exact share, against enumeration, and where it must break."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy, alarm_threshold, allowed_exceedances, binomial_cdf
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.analyses.alarm_resampling import expected_held, resample_alarms
from prefixguard.metrics import first_alerts


def one_step_runs(maxima):
    return [np.array([m]) for m in maxima]


def clustered(seed, tasks=90, runs=6, spread=0.15):
    """Successful runs whose maxima hang together within a task, and some failed runs."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0, 1, tasks)
    scores, failed, names = [], [], []
    for t in range(tasks):
        for _ in range(runs):
            fails = bool(rng.random() < 0.25)
            value = centre[t] + rng.normal(0, spread) + 1.5 * fails
            scores.append(np.array([0.1, 1 / (1 + math.exp(-value)), 0.2, 0.2, 0.2, 0.2]))
            failed.append(fails)
            names.append(f"t{t}")
    return scores, failed, names


def test_the_share_is_the_published_one():
    assert expected_held(80, 80, 0.1, 0.1) == pytest.approx(0.877, abs=5e-4)


@pytest.mark.parametrize(("n", "m", "budget", "delta"), [(8, 5, 0.3, 0.1), (6, 6, 0.35, 0.15), (10, 3, 0.4, 0.1)])
def test_the_share_is_that_of_all_splits_of_a_fixed_set(n, m, budget, delta):
    """Every way to choose n of n + m different numbers, counted out."""
    j = allowed_exceedances(n, budget, delta)
    held = []
    for chosen in itertools.combinations(range(n + m), n):
        theta = sorted(chosen)[n - 1 - j]
        others = set(range(n + m)) - set(chosen)
        held.append(sum(v > theta for v in others) <= budget * m + 1e-9)
    assert expected_held(n, m, budget, delta) == pytest.approx(np.mean(held), abs=1e-12)


def test_with_endless_test_runs_the_share_is_the_confidence():
    exact = 1 - binomial_cdf(allowed_exceedances(80, 0.1, 0.1), 80, 0.1)
    assert expected_held(80, 200_000, 0.1, 0.1) == pytest.approx(exact, abs=1e-3)
    assert exact >= 0.9


def test_a_refused_budget_has_no_share():
    assert math.isnan(expected_held(21, 30, 0.1, 0.1))
    with pytest.raises(ConfigError, match="a test half of 0 runs"):
        expected_held(30, 0, 0.1, 0.1)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2])
def test_exchangeable_maxima_hold_as_often_as_they_should(seed, budget):
    """No ties, one run a task: whatever the distribution, within four standard errors of 1,000 splits."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 170))
    maxima = rng.beta(0.4, 2.0, n) if seed % 2 else rng.pareto(1.0, n) / 1e6
    found = resample_alarms(
        one_step_runs(maxima), [False] * n, [f"t{i}" for i in range(n)], AlarmPolicy(budget=budget), seed=seed
    )
    expected = expected_held(n // 2, n - n // 2, budget, 0.1)
    assert found.drawn.expected == pytest.approx(expected)
    assert abs(found.drawn.held - expected) < 4 * math.sqrt(expected * (1 - expected) / 1000)
    assert found.weighted.held == found.drawn.held  # tasks of one run: the same count
    assert found.drawn.error == pytest.approx(math.sqrt(found.drawn.held * (1 - found.drawn.held) / 1000))


def test_one_run_a_task_holds_where_runs_share_tasks_and_the_bound_over_runs_breaks():
    drawn, weighted, shared = [], [], []
    for seed in range(8):
        found = resample_alarms(*clustered(seed), AlarmPolicy(), rounds=300, seed=seed)
        assert abs(found.drawn.held - found.drawn.expected) < 4 * math.sqrt(0.25 / 300)
        drawn.append(found.drawn)
        weighted.append(found.weighted)
        shared.append(found.shared)
    mean = [np.mean([one.held for one in each]) for each in (drawn, weighted, shared)]
    expected = np.mean([one.expected for one in drawn])
    assert mean[0] == pytest.approx(expected, abs=0.04)
    assert mean[1] > expected - 0.04
    assert mean[2] < np.mean([one.expected for one in shared]) - 0.1
    assert shared[0].calibration > 4 * drawn[0].calibration


def test_ties_only_make_it_safer():
    maxima = np.round(np.random.default_rng(0).random(120), 1)
    found = resample_alarms(one_step_runs(maxima), [False] * 120, [f"t{i}" for i in range(120)], AlarmPolicy())
    assert found.drawn.held > found.drawn.expected


def test_the_price_is_that_of_first_alerts():
    """A run counts as alerted, and as alerted early, exactly when the first-alert table counts it so."""
    rng = np.random.default_rng(5)
    scores = [rng.random(int(rng.integers(1, 12))) for _ in range(200)]
    scores[0][:] = np.nan
    policy = AlarmPolicy(budget=0.2, consecutive=2)
    for score in scores:
        # The run fails in its own task; 60 flat runs set a threshold of .5 in whatever half they fall.
        pool = [np.array([0.5, 0.5])] * 60
        found = resample_alarms(
            [*pool, score], [False] * 60 + [True], [f"t{i}" for i in range(61)], policy, horizon=2, rounds=1, seed=1
        )
        one = first_alerts([score], [True], np.zeros(1, np.int64), 0.5, policy, horizon=2)
        assert (found.drawn.alerted, found.drawn.early) == (one.alerted, one.early)


def test_a_budget_that_is_too_small_is_refused_but_shows_the_broken_way():
    scores, failed, tasks = clustered(0, tasks=40)
    found = resample_alarms(scores, failed, tasks, AlarmPolicy(budget=0.05), rounds=20)
    assert found.drawn is found.weighted is None
    assert found.shared is not None
    assert "needs at least 45" in found.reason
    assert found.needed == 45
    assert "refused" in found.to_text()
    few = resample_alarms(scores, failed, tasks, AlarmPolicy(budget=0.01), rounds=5)
    assert few.shared is None
    assert "refused. 20 successful calibration runs" in few.to_text()


def test_another_agent_breaks_it():
    """Runs that alarm more easily, counted on thresholds of the others; their own tasks never calibrate."""
    scores, failed, tasks = clustered(3, tasks=120, runs=4)
    new = [i % 4 == 0 for i in range(len(scores))]
    moved = [s + 0.4 * n for s, n in zip(scores, new, strict=True)]
    old = [not n for n in new]
    shifted = resample_alarms(moved, failed, tasks, AlarmPolicy(), rounds=100, calibrates=old, tested=new)
    same = resample_alarms(moved, failed, tasks, AlarmPolicy(), rounds=100, calibrates=old, tested=old)
    assert same.drawn.held > 0.75
    assert shifted.drawn.held < 0.1
    assert shifted.drawn.false_alarms > 2 * same.drawn.false_alarms


def test_same_seed_same_json():
    scores, failed, tasks = clustered(1)
    one, other = (resample_alarms(scores, failed, tasks, AlarmPolicy(), rounds=30, seed=9) for _ in range(2))
    assert json.dumps(one.as_json(), allow_nan=False) == json.dumps(other.as_json(), allow_nan=False)
    assert one != resample_alarms(scores, failed, tasks, AlarmPolicy(), rounds=30, seed=10)
    assert max(map(len, one.to_text().splitlines())) <= 118


def test_no_failed_run_gives_no_price():
    n = 60
    found = resample_alarms(one_step_runs(np.linspace(0, 1, n)), [False] * n, [str(i) for i in range(n)], AlarmPolicy())
    assert found.as_json()["drawn"]["alerted"] is None


def test_the_threshold_is_the_shipped_one():
    """Above the threshold lie exactly the allowed calibration runs."""
    maxima = np.random.default_rng(2).random(50)
    mark = alarm_threshold(maxima, AlarmPolicy())
    assert (maxima > mark.alarm).sum() == mark.allowed == allowed_exceedances(50, 0.1, 0.1)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"tasks": ["a"]}, DataError, "give one each"),
        ({"rounds": 0}, ConfigError, "at least 1 round"),
        ({"horizon": -1}, ConfigError, "horizon is -1"),
        ({"tested": [True]}, DataError, "a choice of 1 runs for 4"),
        ({"calibrates": [False] * 4}, DataError, "0 tasks have a successful run"),
    ],
)
def test_what_it_refuses(change, error, says):
    given = {"scores": one_step_runs([0.1, 0.2, 0.3, 0.4]), "failed": [False] * 4, "tasks": list("abcd")}
    options = {"policy": AlarmPolicy(), "rounds": 2, **change}
    for name in ("scores", "failed", "tasks"):
        options[name] = change.get(name, given[name])
    with pytest.raises(error, match=says):
        resample_alarms(**options)
