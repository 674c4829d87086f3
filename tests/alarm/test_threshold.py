import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from prefixguard.alarm import (
    AlarmPolicy,
    Thresholds,
    alarm_table,
    alarm_threshold,
    allowed_exceedances,
    binomial_cdf,
    draw_one_per_task,
    first_alert,
    group_thresholds,
    run_maximum,
    runs_needed,
    smallest_budget,
    table_from_json,
    table_to_json,
    watch_threshold,
    watched,
)
from prefixguard.errors import BundleError, ConfigError, DataError


@pytest.mark.parametrize(
    ("budget", "confidence", "n", "needed"), [(0.1, 0.9, 21, 22), (0.05, 0.9, 44, 45), (0.01, 0.95, 298, 299)]
)
def test_refusal_names_the_number_needed(budget, confidence, n, needed):
    refused = alarm_threshold(np.linspace(0, 1, n), AlarmPolicy(budget=budget, confidence=confidence))
    assert refused.alarm is None
    assert refused.needed == needed
    assert f"that needs at least {needed}. Give 1 more task with a successful run, or accept" in refused.reason
    assert alarm_threshold(np.linspace(0, 1, n + 1), AlarmPolicy(budget=budget, confidence=confidence)).alarm == 1.0


def test_no_calibration_run_at_all():
    refused = alarm_threshold([], AlarmPolicy())
    assert refused.reason == (
        "0 successful calibration runs (one a task) cannot support a false-alarm budget of 10 % at 90 % confidence: "
        "that needs at least 22. Give 22 more tasks with a successful run."
    )


def test_the_budget_that_a_refusal_offers_is_granted():
    for n in range(1, 22):
        reason = alarm_threshold(np.zeros(n), AlarmPolicy()).reason
        offered = float(reason.split("accept a budget of ")[1].split(" %")[0]) / 100
        assert alarm_threshold(np.zeros(n), AlarmPolicy(budget=offered)).alarm is not None


@given(
    st.lists(st.integers(0, 20).map(lambda i: i / 20), min_size=22, max_size=120),
    st.sampled_from([0.1, 0.2, 0.3]),
)
def test_at_most_the_allowed_number_of_calibration_runs_exceed_it(maxima, budget):
    """And no lower value among the maxima would do, unless ties stand in the way."""
    result = alarm_threshold(maxima, AlarmPolicy(budget=budget))
    exceeding = sum(m > result.alarm for m in maxima)
    assert exceeding <= result.allowed
    lower = [m for m in maxima if m < result.alarm]
    if lower:
        assert sum(m > max(lower) for m in maxima) > result.allowed


def test_runs_too_short_to_alarm_count_and_the_threshold_stays_a_risk():
    result = alarm_threshold([-math.inf] * 30, AlarmPolicy(consecutive=3))
    assert (result.alarm, result.n_runs) == (0.0, 30)


def test_nan_is_refused():
    with pytest.raises(DataError, match="an alarm maximum is NaN"):
        alarm_threshold([0.1, math.nan], AlarmPolicy())
    with pytest.raises(DataError, match=r"shape \(2, 2\): give one number a run"):
        alarm_threshold(np.zeros((2, 2)), AlarmPolicy())


@pytest.mark.parametrize(("n", "budget"), [(22, 0.1), (60, 0.1), (100, 0.05), (250, 0.01)])
def test_the_bound_holds_in_the_promised_share_of_draws(n, budget):
    """Continuous maxima: exactly P(rate > budget) = BinomCDF(allowed; n, budget) <= 10 %, whatever the distribution.

    With uniform maxima the false-alarm rate of a threshold is 1 - threshold. 4,000 seeded draws; the share that
    breaks is compared with its exact value, four standard errors wide, so a threshold off by one rank fails.
    """
    rng = np.random.default_rng(8)
    policy = AlarmPolicy(budget=budget)
    rates = np.array([1 - alarm_threshold(rng.random(n), policy).alarm for _ in range(4000)])
    broken = float((rates > budget).mean())
    j = allowed_exceedances(n, budget, policy.delta)
    exact = sum(math.comb(n, k) * budget**k * (1 - budget) ** (n - k) for k in range(j + 1))
    assert exact <= 0.1
    assert abs(broken - exact) < 4 * math.sqrt(exact * (1 - exact) / 4000)


def test_the_bound_holds_for_whole_runs_under_hysteresis_with_ties():
    """Runs of autocorrelated, coarse risks; the rate is measured on 20,000 fresh runs through `first_alert`'s twin."""
    rng = np.random.default_rng(5)
    policy = AlarmPolicy(budget=0.1, consecutive=2)

    def maxima(n):
        walk = np.cumsum(rng.normal(size=(n, 12)), axis=1)
        risks = np.round(1 / (1 + np.exp(-walk / 3)), 2)
        return np.minimum(risks[:, 1:], risks[:, :-1]).max(axis=1), risks

    fresh, _ = maxima(20_000)
    drawn, risks = maxima(300 * 40)
    assert run_maximum(risks[0], policy) == drawn[0]
    held = 0
    for draw in drawn.reshape(300, 40):
        theta = alarm_threshold(draw, policy).alarm
        held += (fresh > theta).mean() <= 0.1
    assert held / 300 >= 0.9 - 2 * math.sqrt(0.09 / 300)


def test_alarms_of_calibration_runs_at_the_threshold_are_those_allowed():
    rng = np.random.default_rng(1)
    runs = [rng.random(rng.integers(1, 30)) for _ in range(80)]
    policy = AlarmPolicy(consecutive=2)
    result = alarm_threshold([run_maximum(run, policy) for run in runs], policy)
    alarms = sum(first_alert(run, result.alarm, policy) is not None for run in runs)
    assert alarms == result.allowed == allowed_exceedances(80, 0.1, 0.1)


@given(st.lists(st.integers(0, 30).map(lambda i: i / 30), min_size=1, max_size=80), st.integers(0, 20))
def test_watch_threshold_is_passed_by_at_most_its_share(risks, twentieths):
    share = twentieths / 20
    mark = watch_threshold(risks, share)
    assert sum(risk > mark for risk in risks) <= share * len(risks) + 1e-9


def test_watch_threshold_without_ties_is_passed_by_exactly_its_share():
    risks = np.random.default_rng(0).permutation(np.linspace(0.01, 0.99, 200))
    assert sum(risk > watch_threshold(risks, 0.07) for risk in risks) == 14


def test_watch_threshold_of_nothing_is_never_passed():
    assert watch_threshold([]) == 1.0
    assert watch_threshold([math.nan]) == 1.0
    with pytest.raises(ConfigError, match=r"watch share is 1.5"):
        watch_threshold([0.1], 1.5)


def test_one_run_a_task_whatever_the_order():
    tasks = [f"t{i % 7}" for i in range(40)]
    run_ids = [f"r{i}" for i in range(40)]
    drawn = draw_one_per_task(tasks, run_ids, seed=13)
    assert sorted(tasks[i] for i in drawn) == sorted(set(tasks))
    order = np.random.default_rng(0).permutation(40)
    again = draw_one_per_task([tasks[i] for i in order], [run_ids[i] for i in order], seed=13)
    assert sorted(run_ids[order[i]] for i in again) == sorted(run_ids[i] for i in drawn)


def test_every_run_of_a_task_is_drawn_by_some_seed_about_equally_often():
    counts = np.zeros(4)
    for seed in range(2000):
        counts[draw_one_per_task(["t"] * 4, list("abcd"), seed=seed)] += 1
    assert counts.sum() == 2000
    assert (np.abs(counts - 500) < 80).all()  # four standard deviations of 19


def test_tasks_and_runs_must_match():
    with pytest.raises(DataError, match="1 tasks for 2 runs"):
        draw_one_per_task(["t"], ["a", "b"], seed=0)


def cdf_of_fifty_digits(successes: int, trials: int, probability: float) -> Decimal:
    """The sum itself, term by term from (1 - p)^n, with fifty digits and exponents without end."""
    with localcontext(prec=50):
        p = Decimal(probability)
        term, total = (1 - p) ** trials, Decimal(0)
        for k in range(min(successes, trials) + 1):
            total += term
            term = term * (trials - k) / (k + 1) * p / (1 - p)
        return total


@given(st.integers(0, 3000), st.integers(-1, 400), st.floats(1e-4, 0.999))
@example(1891, 26, 0.3125)  # 8e-259: scipy 1.17 is off by 2.3e-8 of it there
def test_cdf_is_the_sum(trials, successes, probability):
    # Relative to 1e-10: logarithms of factorials of thousands carry that many digits in double precision.
    found, true = binomial_cdf(successes, trials, probability), cdf_of_fifty_digits(successes, trials, probability)
    assert math.isclose(found, float(true), rel_tol=1e-10, abs_tol=1e-290)


@given(st.lists(st.integers(-50, 50), min_size=22, max_size=60))
def test_scores_below_zero_have_a_threshold_among_them(maxima):
    """The same runs alarm wherever the scale begins: risks from 0, scores of which more is safer below it."""
    found, moved = alarm_threshold(maxima, AlarmPolicy()), alarm_threshold([m - 1000 for m in maxima], AlarmPolicy())
    assert found.alarm in maxima and moved.alarm == found.alarm - 1000
    short = alarm_threshold([-math.inf] * 30, AlarmPolicy())
    assert short.alarm == 0.0


@given(st.integers(0, 800), st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5]), st.sampled_from([0.01, 0.05, 0.1, 0.3]))
def test_allowed_is_the_largest_j(n, budget, delta):
    j = allowed_exceedances(n, budget, delta)
    if j is None:
        assert n == 0 or binom.cdf(0, n, budget) > delta
    else:
        assert binom.cdf(j, n, budget) <= delta < binom.cdf(j + 1, n, budget)


@pytest.mark.parametrize(
    ("budget", "delta", "needed"),
    [(0.05, 0.05, 59), (0.10, 0.05, 29), (0.01, 0.05, 299), (0.05, 0.10, 45), (0.10, 0.10, 22), (0.01, 0.10, 230)],
)
def test_numbers_needed(budget, delta, needed):
    assert runs_needed(budget, delta) == needed
    assert allowed_exceedances(needed, budget, delta) == 0
    assert allowed_exceedances(needed - 1, budget, delta) is None


@given(st.integers(1, 5000), st.sampled_from([0.01, 0.05, 0.1, 0.3]))
def test_smallest_budget_is_supported_and_no_smaller_one(n, delta):
    budget = smallest_budget(n, delta)
    assert allowed_exceedances(n, min(budget * 1.0001, 1 - 1e-9), delta) is not None
    assert allowed_exceedances(n, budget * 0.9999, delta) is None


def test_half_of_one_run():
    """A bound that is met with equality counts as met."""
    assert allowed_exceedances(1, 0.5, 0.5) == 0
    assert runs_needed(0.5, 0.5) == 1


def test_a_budget_or_delta_outside_its_range_is_refused():
    with pytest.raises(ConfigError, match="must both lie between 0 and 1"):
        runs_needed(0.0, 0.1)
    with pytest.raises(ConfigError, match="a binomial of -1 trials"):
        binomial_cdf(0, -1, 0.5)


def test_every_value_has_the_threshold_of_its_own_runs():
    policy = AlarmPolicy()
    calm, wild = np.linspace(0.0, 0.4, 30), np.linspace(0.3, 0.9, 40)
    groups = group_thresholds("tier", {"wild": wild, "calm": calm}, policy, watch=0.5)
    assert groups.by == "tier" and list(groups.of) == ["calm", "wild"]
    assert groups.of["calm"].alarm == alarm_threshold(calm, policy).alarm
    assert groups.of["wild"].alarm == alarm_threshold(wild, policy).alarm
    assert groups.of["calm"].watch == groups.of["calm"].alarm, "the watch threshold never lies above the alarm"
    assert groups.of["wild"].watch == 0.5


def test_a_value_with_too_few_runs_says_so_and_goes_by_the_common_threshold():
    groups = group_thresholds("tier", {"new": np.full(21, 0.5), "old": np.full(22, 0.5)}, AlarmPolicy())
    common = Thresholds(0.7, 0.3, 43, 1, 22, None)
    assert groups.of["new"].alarm is None and groups.of["new"].needed == 22
    assert "21 successful calibration runs" in groups.of["new"].reason
    assert groups.pick("new", common) is common
    assert groups.pick("old", common) is groups.of["old"]
    assert groups.pick("never seen", common) is common and groups.pick(None, common) is common


@pytest.mark.parametrize(("alarm", "watch", "expected"), [(None, 0.9, 0.9), (0.5, 0.9, 0.5), (0.5, 0.2, 0.2)])
def test_the_watch_threshold_is_never_above_the_alarm(alarm, watch, expected):
    assert watched(Thresholds(alarm, 1.0, 5, 0, 22, None), watch).watch == expected


def test_table_has_a_row_a_budget_and_refuses_row_by_row():
    table = alarm_table(np.linspace(0, 1, 50), AlarmPolicy(), watch=0.4)
    assert list(table) == [0.01, 0.05, 0.10]
    assert table[0.01].alarm is None
    assert table[0.05].alarm > table[0.10].alarm
    assert {row.watch for row in table.values()} == {0.4}


def test_table_comes_back_equal_through_json():
    table = alarm_table(np.linspace(0, 1, 50), AlarmPolicy())
    assert table_from_json(json.loads(json.dumps(table_to_json(table)))) == table


@pytest.mark.parametrize("rows", [[{"budget": 0.1}], [3], [{"alarm": 0.1}], 7])
def test_a_damaged_table_is_refused_with_its_place(rows):
    with pytest.raises(BundleError, match=r"b/manifest.json: its alarm table cannot be read .* Calibrate the monitor"):
        table_from_json(rows, "b/manifest.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "alarm budget 0 is not a share of runs"),
        ({"budget": 10.0}, "alarm budget 10 is not a share of runs"),
        ({"budget": float("nan")}, "alarm budget nan is not a share"),
        ({"confidence": 1.0}, "alarm confidence 1 is out of range"),
        ({"consecutive": 0}, "an alarm needs at least 1 step"),
        ({"release": 1.5}, "release is 1.5: it is a risk"),
        ({"release": float("nan")}, "release is nan: it is a risk"),
        ({"cooldown": -1}, "cooldown is -1: it counts steps"),
    ],
)
def test_policies_outside_their_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        AlarmPolicy(**options)


def test_delta_is_free_of_rounding():
    assert AlarmPolicy(confidence=0.9).delta == 0.1
    assert AlarmPolicy(confidence=0.95).delta == 0.05
