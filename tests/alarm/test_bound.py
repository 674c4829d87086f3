import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from prefixguard.alarm import allowed_exceedances, binomial_cdf, runs_needed, smallest_budget
from prefixguard.errors import ConfigError


@given(st.integers(0, 3000), st.integers(-1, 400), st.floats(1e-4, 0.999))
def test_cdf_equals_scipy(trials, successes, probability):
    # Relative to 1e-8: logarithms of factorials of thousands carry that many digits in double precision.
    assert math.isclose(
        binomial_cdf(successes, trials, probability),
        binom.cdf(successes, trials, probability),
        rel_tol=1e-8,
        abs_tol=1e-290,
    )


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


def test_values_outside_their_range_are_refused():
    with pytest.raises(ConfigError, match="must both lie between 0 and 1"):
        runs_needed(0.0, 0.1)
    with pytest.raises(ConfigError, match="a binomial of -1 trials"):
        binomial_cdf(0, -1, 0.5)
