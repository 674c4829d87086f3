"""What the best possible score reaches when only a share of the positives can be told from negatives.

Positives make up a share pi of all rows, and a share q of them is observable: separable from every negative. The rest
is distributed like negatives, so the best score puts the observable ones first and has nothing to order the rest by.

Premise: hidden positives really are distributed like negatives. For the imminent label over all prefixes they are
not: positives sit at the ends of runs, and a clock finds some of them. There this is no bound of anything.

Source: PrefixGuard 3.1 and its appendix G, derived again.
"""

from __future__ import annotations

import math

from prefixguard.errors import ConfigError


def phi(prevalence: float, observable: float) -> float:
    """Expected average precision of the best score, as the number of rows grows.

    prevalence: pi, in (0, 1]. observable: q, in [0, 1]. Returns a number from pi (q = 0) to 1 (q = 1), strictly
    increasing in q while pi < 1.
    Raises ConfigError for a number outside its range.

    >>> phi(0.2, 0.0), round(phi(0.2, 0.5), 4), phi(0.2, 1.0)
    (0.2, 0.6693, 1.0)
    """
    if not 0.0 < prevalence <= 1.0:
        raise ConfigError(f"prevalence {prevalence:g} is out of range: use a share above 0, at most 1.")
    if not 0.0 <= observable <= 1.0:
        raise ConfigError(f"observable share {observable:g} is out of range: use a number from 0 to 1.")
    pi, q = prevalence, observable
    if q == 0.0:
        return pi
    if q == 1.0 or pi == 1.0:
        return 1.0
    hidden, negative = 1.0 - q, 1.0 - pi
    left = hidden + negative - hidden * negative  # 1 - pi q, without the cancellation where both are near 1
    # Precision along the random mix is a + b / u, where u is the share of the mix that was passed.
    mixed = pi * hidden**2 / left + pi * q * hidden * negative / left**2 * -(math.log(pi) + math.log(q))
    return min(1.0, q + mixed)


def phi_inverse(prevalence: float, auprc: float) -> float:
    """The q at which `phi` equals an AUPRC, by bisection: a place on a scale, not an estimate of any q.

    auprc: in [0, 1]; at or below the prevalence: 0. NaN in either gives NaN, and so does a prevalence of 0 or 1.
    Raises ConfigError for a number outside its range.

    >>> round(phi_inverse(0.2, phi(0.2, 0.5)), 9)
    0.5
    """
    if math.isnan(prevalence) or math.isnan(auprc):
        return math.nan
    if not (0.0 <= prevalence <= 1.0 and 0.0 <= auprc <= 1.0):
        raise ConfigError(f"AUPRC {auprc:g} at prevalence {prevalence:g}: both are shares, so use numbers from 0 to 1.")
    if prevalence in (0.0, 1.0):
        return math.nan
    if auprc <= prevalence:
        return 0.0
    if auprc == 1.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):  # 2 ** -60 is below what a float near 1 can show
        middle = (low + high) / 2
        low, high = (middle, high) if phi(prevalence, middle) < auprc else (low, middle)
    return high
