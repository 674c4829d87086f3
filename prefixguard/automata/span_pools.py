"""Spans of the clock that a state's evidence does not tell apart are one: a risk is to change where runs say so.

Of each state neighbouring spans are merged, the two nearest first, until the rate of each lies outside the interval of
the next, either way. Rates and intervals are here those of all runs, training ones too: the middle and the 90 %
interval of Jeffreys; a span without a run is told apart from nothing. A merged span has the held-out runs of all its
parts, each run once, and the mean of their training estimates, by training steps. So no risk goes up and down again
with the step because of a few runs; what a span says for sure is left as it is.

Runs of one task fail alike, and a merged span has more runs of each task. So n runs count for n / d, their failures
too, where d = 1 + r (the mean over the runs of how many are of its task, itself left out) is Kish's design effect, and
r the correlation of two runs of one task in the same merged span, over all of these: Pearson's, from all pairs. To
tell neighbours apart all runs count: they are of the same tasks on both sides.

Sources: Brown, Cai, DasGupta 2001 (the interval); Efron, Morris 1972 (no estimate outside of it); Kish 1965; Rao and
Scott 1992; Ridout, Demetrio, Firth 1999.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from prefixguard.bundle import Automaton

_PRIOR = 20.0  # runs that the training estimate counts for in a risk; an interval is of the held-out runs alone

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class SpanRisk(NamedTuple):
    """A risk of all states: risk (S, C), low and high (S, C), the ends of its 90 % interval."""

    risk: Floats
    low: Floats
    high: Floats


class _Visits(NamedTuple):
    """Of each run in each pool: the pool, the task of the run, the share of its steps there that were failures."""

    pool: Places
    task: Places
    label: Floats


class _Rates(NamedTuple):
    """What runs did in a pool, at each of its spans: n runs, f failures, and the pool's training estimate."""

    n: Floats
    f: Floats
    p: Floats


class LabelledSteps(NamedTuple):
    """Of each step of some runs: its run, that one's task, its state, its span of the clock, int64; whether it is a
    failure, float64."""

    run: Places
    task: Places
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
        visits = _visits(both, first)
        merging = _nearest_alike(_rates_of(visits, estimate, weight, first), first)
        if not pool or not merging.any():
            tested = _visits(held_out, first)
            design = _design_effects(tested, _likeness(visits), estimate.size)
            return _risk_of(_rates_of(tested, estimate, weight, first, design))
        for state in np.flatnonzero(merging):
            first[state, first[state] == merging[state]] = first[state, merging[state] - 1]


def pools_of(automaton: Automaton) -> Places:
    """Of every span of every state the first one of its pool, (S, C): neighbours of one outcome risk and interval."""
    both = np.concatenate((automaton.risk[:, :, 1:], automaton.interval[:, :, 1]), axis=2)
    at = np.arange(both.shape[1])
    begins = (both != np.roll(both, 1, axis=1)).any(axis=2) | (at == 0)
    return np.maximum.accumulate(np.where(begins, at, 0), axis=1)


def design_effects(run: Places, task: Places, state: Places, failed: Floats, n_states: int) -> Floats:
    """Of each state how many runs count for one, float64 (n_states,), at least 1.

    run, task, state, failed: of each run in each state where it was; failed: 0 or 1.
    """
    steps = LabelledSteps(run, task, state, np.zeros_like(state), failed)
    visits = _visits(steps, np.zeros((n_states, 1), dtype=np.int64))
    return _design_effects(visits, _likeness(visits), n_states)


def _places(first: Places) -> Places:
    """The pool of each cell, (S, C): the number of its first cell."""
    return np.arange(0, first.size, first.shape[1])[:, None] + first


def _visits(steps: LabelledSteps, first: Places) -> _Visits:
    pairs = steps.run * first.size + _places(first)[steps.state, steps.span]
    pairs, at, where = np.unique(pairs, return_index=True, return_inverse=True)
    label = np.bincount(where, steps.label, len(pairs)) / np.bincount(where, minlength=len(pairs))
    return _Visits(pairs % first.size, steps.task[at], label)


def _likeness(visits: _Visits) -> float:
    """Correlation of two runs of one task in a pool, from 0 to 1; 0 where no two runs are of one task."""
    pool, _, label = visits
    rate = (np.bincount(pool, label) / np.maximum(np.bincount(pool), 1))[pool]
    pairs = [_of_pairs(visits, x) for x in (label - rate, np.sqrt(rate * (1 - rate)))]
    return float(np.clip(pairs[0] / pairs[1], 0, 1)) if pairs[1] > 0 else 0.0


def _of_pairs(visits: _Visits, x: Floats) -> float:
    """Sum of the products of all pairs of runs of one task in a pool."""
    _, task = np.unique(np.stack(visits[:2]), axis=1, return_inverse=True)
    return float(np.square(np.bincount(task.ravel(), x)).sum() - np.square(x).sum())


def _design_effects(visits: _Visits, likeness: float, size: int) -> Floats:
    """Of each pool, how many runs count for one, (size,); 1 where there is none."""
    (pool, _), runs = np.unique(np.stack(visits[:2]), axis=1, return_counts=True)
    n = np.maximum(np.bincount(pool, runs, size), 1)
    return 1 + likeness * np.maximum(np.bincount(pool, np.square(runs), size) / n - 1, 0)


def _rates_of(visits: _Visits, estimate: Floats, weight: Floats, first: Places, design: Floats | float = 1.0) -> _Rates:
    size, place = estimate.size, _places(first)
    mass = weight + 1e-9  # pools without a training step have the mean of their estimates
    total = np.bincount(place.ravel(), mass.ravel(), size)[place]
    p = np.bincount(place.ravel(), (mass * estimate).ravel(), size)[place] / total
    n, f = (np.bincount(visits.pool, of, size) / design for of in (None, visits.label))
    return _Rates(n[place], f[place], p)


def _risk_of(rates: _Rates) -> SpanRisk:
    n, f, p = rates
    low, high = _jeffreys(n, f)
    return SpanRisk(np.clip((f + _PRIOR * p) / (n + _PRIOR), low, high), low, high)


def _jeffreys(n: Floats, f: Floats) -> tuple[Floats, Floats]:
    """The 90 % interval of f failures of n runs; from 0 where none failed, to 1 where all did."""
    a, b = f + 0.5, n - f + 0.5
    return np.where(f > 0, beta.ppf(0.05, a, b), 0.0), np.where(f < n, beta.ppf(0.95, a, b), 1.0)


def _nearest_alike(rates: _Rates, first: Places) -> Places:
    """Of each state, the first span of the pool that is to be merged with the one before it; 0 where none is."""
    n, f, _ = rates
    if n.shape[1] < 2:
        return np.zeros(len(n), dtype=np.int64)
    rate, (low, high) = (f + 0.5) / (n + 1), _jeffreys(n, f)
    one, other = (slice(None), slice(None, -1)), (slice(None), slice(1, None))
    alike = (low[one] <= rate[other]) & (rate[other] <= high[one]) | (low[other] <= rate[one]) & (
        rate[one] <= high[other]
    )
    alike |= (n[one] == 0) | (n[other] == 0)
    distance = np.where(alike & (first[one] != first[other]), np.abs(rate[one] - rate[other]), np.inf)
    return np.where(np.isfinite(distance).any(axis=1), distance.argmin(axis=1) + 1, 0)
