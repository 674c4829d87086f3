"""Ladder: states are ordered intervals of the teacher's risk, and each (state, symbol) leads to the interval that the
teacher's risk has there on average.

Where a run stands is first taken from the teacher; since at run time the automaton follows its own state, not the
teacher's, transitions are then refined on the automaton's own roll-outs. The target of a pair that is seldom seen is
shrunk to what its state and its symbol say on their own, added up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.strings import Strings, Transitions, before, log_odds, walk
from prefixguard.bundle import UNSEEN

_ROUNDS = 6
_SHRINK = 20.0  # steps that the sum of state's and symbol's effects counts for
_EFFECT = 5.0  # steps that shrink a state's or symbol's effect to none
_BACKFITS = 8

Floats = NDArray[np.float64]


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states: the start, and one for each interval of the teacher's imminent risk.

    seed: not used, the learner draws nothing.
    """
    del seed
    risk = log_odds(strings.teacher)[:, 0]
    cuts = _quantiles(risk, strings.weights, max(max_states - 1, 1))  # state 0 is the start, then intervals
    states = 1 + np.searchsorted(cuts, risk, side="right").astype(np.int32)
    for _ in range(_ROUNDS):
        target = _targets(strings, before(strings, states, 0), risk, len(cuts) + 2)
        following = 1 + np.searchsorted(cuts, target, side="right").astype(np.int32)
        states, _ = walk(0, following, None, strings)
    taken = np.zeros(following.shape, dtype=np.bool_)
    taken[before(strings, states, 0), strings.symbols] = True
    return Transitions(0, np.where(taken, following, UNSEEN).astype(np.int32))


def _quantiles(values: Floats, weight: Floats, n: int) -> Floats:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    at = np.searchsorted(share, np.arange(1, n) / n)
    distinct = np.unique(values)
    above = np.searchsorted(distinct, np.unique(values[order][np.minimum(at, len(order) - 1)]))
    above = above[above > 0]
    # Half-way to the next lower value: targets are shrunk, and one just below a value that many steps share is meant.
    return np.asarray((distinct[above - 1] + distinct[above]) / 2)


def _targets(strings: Strings, states: NDArray[np.int32], risk: Floats, n_states: int) -> Floats:
    """Mean log-odds of the teacher for each (state before, symbol), shrunk; float64 (S, K)."""
    weight, symbols, shape = strings.weights, strings.symbols, (n_states, strings.n_symbols)

    def effect(key: NDArray[np.int32], rest: Floats, n: int) -> Floats:
        return np.asarray(np.bincount(key, weight * rest, n) / (np.bincount(key, weight, n) + _EFFECT))

    mean = np.average(risk, weights=weight)
    of_symbol, of_state = np.zeros(shape[1]), np.zeros(shape[0])
    for _ in range(_BACKFITS):
        of_symbol = effect(symbols, risk - mean - of_state[states], shape[1])
        of_state = effect(states, risk - mean - of_symbol[symbols], shape[0])
    cell = states.astype(np.int64) * shape[1] + symbols
    counts = np.bincount(cell, weight, n_states * shape[1]).reshape(shape)
    sums = np.bincount(cell, weight * risk, n_states * shape[1]).reshape(shape)
    prior = mean + of_symbol[None] + of_state[:, None]
    return np.asarray((sums + _SHRINK * prior) / (counts + _SHRINK))
