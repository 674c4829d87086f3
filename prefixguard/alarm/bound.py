"""The finite-sample bound behind an alarm threshold.

n successful runs are scored; M_i is the largest threshold at which run i would alarm. Let theta be the (j+1)-th
largest M. If the false-alarm rate of theta on new runs were above the budget, at most j of n independent runs would
exceed it with probability at most BinomCDF(j; n, budget). So with the largest j for which that is at most delta, the
budget holds with confidence 1 - delta, for every n and every distribution of risks.

Exact in double precision; no scipy, because monitors that run next to an agent import this room.
"""

from __future__ import annotations

import math

from prefixguard.errors import ConfigError


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """P(X <= successes) for X binomial. In [0, 1]; 0 where `successes` is negative.

    Terms are summed smallest first from their logarithms, so that no factorial overflows.

    >>> round(binomial_cdf(0, 22, 0.1), 4), binomial_cdf(5, 5, 0.3)
    (0.0985, 1.0)
    """
    if trials < 0 or not 0.0 < probability < 1.0:
        raise ConfigError(f"a binomial of {trials} trials at probability {probability:g} does not exist.")
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    log_p, log_q = math.log(probability), math.log1p(-probability)
    log_n = math.lgamma(trials + 1)
    terms = (
        math.exp(log_n - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_p + (trials - k) * log_q)
        for k in range(successes + 1)
    )
    return min(1.0, math.fsum(terms))


def allowed_exceedances(n_runs: int, budget: float, delta: float) -> int | None:
    """The largest j with BinomCDF(j; n_runs, budget) <= delta; None where even j = 0 is too many.

    >>> allowed_exceedances(100, budget=0.1, delta=0.1), allowed_exceedances(21, budget=0.1, delta=0.1)
    (5, None)
    """
    _check(budget, delta)
    if n_runs < 1 or binomial_cdf(0, n_runs, budget) > delta:
        return None
    # The CDF grows with j and passes 1/2 at n * budget: a bisection needs a dozen evaluations.
    low, high = 0, n_runs
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_cdf(middle, n_runs, budget) <= delta:
            low = middle
        else:
            high = middle
    return low


def runs_needed(budget: float, delta: float) -> int:
    """The fewest calibration runs that support a budget: the smallest n with (1 - budget)^n <= delta.

    >>> [runs_needed(budget, 0.05) for budget in (0.05, 0.10, 0.01)]
    [59, 29, 299]
    >>> [runs_needed(budget, 0.10) for budget in (0.05, 0.10, 0.01)]
    [45, 22, 230]
    """
    _check(budget, delta)
    n = max(1, math.ceil(math.log(delta) / math.log1p(-budget)))
    # The quotient can be off by a rounding; the test that decides is the one that `allowed_exceedances` makes.
    while n > 1 and binomial_cdf(0, n - 1, budget) <= delta:
        n -= 1
    while binomial_cdf(0, n, budget) > delta:
        n += 1
    return n


def smallest_budget(n_runs: int, delta: float) -> float:
    """The smallest budget that `n_runs` support: 1 - delta^(1/n); 1 where there is no run.

    >>> round(smallest_budget(22, 0.1), 3)
    0.099
    """
    _check(0.5, delta)
    return -math.expm1(math.log(delta) / n_runs) if n_runs > 0 else 1.0


def _check(budget: float, delta: float) -> None:
    if not 0.0 < budget < 1.0 or not 0.0 < delta < 1.0:
        raise ConfigError(f"budget {budget:g} and delta {delta:g} must both lie between 0 and 1.")
