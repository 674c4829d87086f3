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
from prefixguard.bundle import N_RISKS, UNSEEN

_ROUNDS = 6
_SHRINK = 20.0  # steps that the sum of state's and symbol's effects counts for
_EFFECT = 5.0  # steps that shrink a state's or symbol's effect to none
_BACKFITS = 8

Floats = NDArray[np.float64]


def learn(strings: Strings, *, max_states: int, seed: int, outcome_levels: int = 1) -> Transitions:
    """At most `max_states` states: the start, and one for each interval of the teacher's imminent risk.

    outcome_levels: intervals of the outcome risk that each of them is divided into; 1 orders states by imminent risk
    alone. seed: not used, the learner draws nothing.
    """
    del seed
    risk = log_odds(strings.teacher)
    levels = _Levels(risk, strings.weights, max((max_states - 1) // outcome_levels, 1), outcome_levels)
    states = levels.of(risk)
    for _ in range(_ROUNDS):
        target = _targets(strings, before(strings, states, 0), risk, levels.n_states)
        following = levels.of(target)
        states, _ = walk(0, following, None, strings)
    taken = np.zeros(following.shape, dtype=np.bool_)
    taken[before(strings, states, 0), strings.symbols] = True
    return Transitions(0, np.where(taken, following, UNSEEN).astype(np.int32))


class _Levels:
    """Intervals that share the steps alike. State 0 is the start; then imminent interval by outcome interval."""

    def __init__(self, risk: Floats, weight: Floats, imminent: int, outcome: int) -> None:
        self._cuts = [_quantiles(risk[:, i], weight, n) for i, n in enumerate((imminent, outcome))]

    @property
    def n_states(self) -> int:
        return 1 + (len(self._cuts[0]) + 1) * (len(self._cuts[1]) + 1)

    def of(self, risk: Floats) -> NDArray[np.int32]:
        """The state of each risk: (..., 2) -> (...,)."""
        imminent, outcome = (np.searchsorted(c, risk[..., i], side="right") for i, c in enumerate(self._cuts))
        return (1 + imminent * (len(self._cuts[1]) + 1) + outcome).astype(np.int32)


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
    """Mean log-odds of the teacher for each (state before, symbol), shrunk; float64 (S, K, 2)."""
    weight, symbols, n_symbols = strings.weights, strings.symbols, strings.n_symbols

    def total(key: NDArray[np.int64] | NDArray[np.int32], values: Floats, n: int) -> Floats:
        return np.stack([np.bincount(key, weight * values[:, i], n) for i in range(N_RISKS)], axis=-1)

    def effect(key: NDArray[np.int32], rest: Floats, n: int) -> Floats:
        return np.asarray(total(key, rest, n) / (np.bincount(key, weight, n)[:, None] + _EFFECT))

    mean = (weight[:, None] * risk).sum(axis=0) / weight.sum()
    of_symbol, of_state = np.zeros((n_symbols, N_RISKS)), np.zeros((n_states, N_RISKS))
    for _ in range(_BACKFITS):
        of_symbol = effect(symbols, risk - mean - of_state[states], n_symbols)
        of_state = effect(states, risk - mean - of_symbol[symbols], n_states)
    cell = states.astype(np.int64) * n_symbols + symbols
    counts = np.bincount(cell, weight, n_states * n_symbols).reshape(n_states, n_symbols, 1)
    sums = total(cell, risk, n_states * n_symbols).reshape(n_states, n_symbols, N_RISKS)
    prior = mean + of_symbol[None] + of_state[:, None]
    return np.asarray((sums + _SHRINK * prior) / (counts + _SHRINK))
