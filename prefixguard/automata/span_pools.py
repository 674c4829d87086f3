"""Spans of the clock that a state's evidence does not tell apart are one: a risk is to change where runs say so.

Of each state neighbouring spans are merged, the two nearest first, until the rate of each lies outside the interval of
the next, either way. Rates and intervals are here those of all runs, training ones too: the middle and the 90 %
interval of Jeffreys; a span without a run is told apart from nothing. A merged span has the held-out runs of all its
parts, each run once, and the mean of their training estimates, by training steps. So no risk goes up and down again
with the step because of a few runs; what a span says for sure is left as it is.

Source of the interval: Brown, Cai, DasGupta 2001.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from prefixguard.bundle import Automaton

_PRIOR = 20.0  # runs that the training estimate counts for in a risk
_INTERVAL_PRIOR = 2.0  # and in an interval

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class SpanRisk(NamedTuple):
    """A risk of all states: risk (S, C), low and high (S, C), the ends of its 90 % interval."""

    risk: Floats
    low: Floats
    high: Floats


class _Rates(NamedTuple):
    """What runs did in a pool, at each of its spans: n runs, f failures, and the pool's training estimate."""

    n: Floats
    f: Floats
    p: Floats


class LabelledSteps(NamedTuple):
    """Of each step of some runs: its run, its state, its span of the clock, int64; whether it is a failure, float64."""

    run: Places
    state: Places
    span: Places
    label: Floats


def pooled_risk(
    held_out: LabelledSteps, train: LabelledSteps, estimate: Floats, weight: Floats, *, pool: bool = True
) -> SpanRisk:
    """Risks and intervals after merging; see the head of this file. pool: False leaves every span on its own.

    estimate: (S, C), what training says, mapped to held-out runs. weight: (S, C), training steps.
    """
    n_states, n_spans = estimate.shape
    first = np.tile(np.arange(n_spans), (n_states, 1))  # of each span, the first one of those that it is merged with
    later = held_out._replace(run=held_out.run + train.run.max(initial=-1) + 1)
    both = LabelledSteps(*(np.concatenate(pair) for pair in zip(train, later, strict=True)))
    while True:
        merging = _nearest_alike(_rates_of(both, estimate, weight, first), first)
        if not pool or not merging.any():
            return _risk_of(_rates_of(held_out, estimate, weight, first))
        for state in np.flatnonzero(merging):
            first[state, first[state] == merging[state]] = first[state, merging[state] - 1]


def pools_of(automaton: Automaton) -> Places:
    """Of every span of every state the first one of its pool, (S, C): neighbours of one outcome risk and interval."""
    both = np.concatenate((automaton.risk[:, :, 1:], automaton.interval[:, :, 1]), axis=2)
    at = np.arange(both.shape[1])
    begins = (both != np.roll(both, 1, axis=1)).any(axis=2) | (at == 0)
    return np.maximum.accumulate(np.where(begins, at, 0), axis=1)


def _rates_of(steps: LabelledSteps, estimate: Floats, weight: Floats, first: Places) -> _Rates:
    size, n_spans = estimate.size, estimate.shape[1]
    place = np.arange(0, size, n_spans)[:, None] + first  # the pool of each cell
    mass = weight + 1e-9  # pools without a training step have the mean of their estimates
    total = np.bincount(place.ravel(), mass.ravel(), size)[place]
    p = np.bincount(place.ravel(), (mass * estimate).ravel(), size)[place] / total
    pairs, where = np.unique(steps.run * size + place[steps.state, steps.span], return_inverse=True)
    mean = np.bincount(where, steps.label, len(pairs)) / np.bincount(where, minlength=len(pairs))
    n, f = np.bincount(pairs % size, minlength=size), np.bincount(pairs % size, mean, size)
    return _Rates(n[place].astype(np.float64), f[place], p)


def _risk_of(rates: _Rates) -> SpanRisk:
    n, f, p = rates
    risk = (f + _PRIOR * p) / (n + _PRIOR)
    a, b = f + _INTERVAL_PRIOR * p, n - f + _INTERVAL_PRIOR * (1 - p)
    return SpanRisk(risk, np.minimum(beta.ppf(0.05, a, b), risk), np.maximum(beta.ppf(0.95, a, b), risk))


def _nearest_alike(rates: _Rates, first: Places) -> Places:
    """Of each state, the first span of the pool that is to be merged with the one before it; 0 where none is."""
    n, f, _ = rates
    if n.shape[1] < 2:
        return np.zeros(len(n), dtype=np.int64)
    a, b = f + 0.5, n - f + 0.5
    rate, low, high = a / (n + 1), beta.ppf(0.05, a, b), beta.ppf(0.95, a, b)
    one, other = (slice(None), slice(None, -1)), (slice(None), slice(1, None))
    alike = (low[one] <= rate[other]) & (rate[other] <= high[one]) | (low[other] <= rate[one]) & (
        rate[one] <= high[other]
    )
    alike |= (n[one] == 0) | (n[other] == 0)
    distance = np.where(alike & (first[one] != first[other]), np.abs(rate[one] - rate[other]), np.inf)
    return np.where(np.isfinite(distance).any(axis=1), distance.argmin(axis=1) + 1, 0)
