"""Learners that take a second: memoryless, whose state is the last symbol, ladder and grid.

Ladder orders states by risk: they are intervals of the teacher's imminent risk (those of grid: of both its risks), and
each (state, symbol) leads to the interval that the teacher's risk has there on average. Where a run is, is first read
from the teacher; since an automaton in use follows its own state, transitions are then refined on the automaton's own
roll-outs. The target of a pair that is seldom seen is shrunk to the sum of what its state and its symbol say on their
own. The transitions of a grid are redirected then, each to where the rest of the training runs costs least with the
clock beside it (`rollouts`), as long as both halves of the tasks gain by it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.learners.rollouts import Rollouts, redirect
from prefixguard.automata.state_risk import fit_clock
from prefixguard.automata.strings import Strings, Transitions, before, log_odds, taken, walk

_ROUNDS = 6
_REDIRECTED = 40  # rounds at most, of a grid
_SHRINK = 20.0  # steps that the sum of state's and symbol's effects counts for
_EFFECT = 5.0  # steps that shrink a state's or symbol's effect to none
_BACKFITS = 8

Floats = NDArray[np.float64]


def learn_memoryless(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """The start, and one state a symbol; where the limit is smaller, the rarest symbols share the last state.

    Every learner with a memory has to beat this one. seed: not used, the learner draws nothing.
    """
    del seed
    k = strings.n_symbols
    order = np.argsort(-np.bincount(strings.symbols, minlength=k), kind="stable")
    state = np.empty(k, dtype=np.int32)
    state[order] = np.minimum(np.arange(1, k + 1), max_states - 1)
    notes = (f"{k + 2 - max_states} symbols share a state",) if k > max_states - 1 else ()
    return taken(Transitions(0, np.tile(state, (min(k, max_states - 1) + 1, 1)), notes), strings)


def learn_ladder(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states: the start, and one for each interval of the teacher's imminent risk.

    seed: not used, the learner draws nothing.
    """
    del seed
    return taken(_climb(strings, log_odds(strings.teacher)[:, :1], (max(max_states - 1, 1),)), strings)


def learn_grid(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """A ladder of both risks: the start, and one state for each pair of intervals, as many of the one as of the other;
    redirected.

    States keep what a run has shown, and leave to a clock when it will end.
    """
    n = max(math.isqrt(max_states - 1), 1)
    machine = _climb(strings, log_odds(strings.teacher), ((max_states - 1) // n or 1, n))
    if len(strings):
        rollouts = Rollouts.of(strings, strings.target, fit_clock(strings), groups=2)
        machine = redirect(rollouts, machine, _REDIRECTED, np.random.default_rng(seed))
    return taken(machine, strings)


def _climb(strings: Strings, risks: Floats, shape: tuple[int, ...]) -> Transitions:
    """A ladder of these risks, log-odds (steps, d): the start, and one state a combination of their intervals. Nothing
    in it is UNSEEN."""
    cuts = [_quantiles(risks[:, i], strings.weights, n) for i, n in enumerate(shape)]
    sizes = [len(of) + 1 for of in cuts]

    def place(values: list[Floats]) -> NDArray[np.int32]:
        at = np.zeros(values[0].shape, dtype=np.int32)
        for of, size, value in zip(cuts, sizes, values, strict=True):
            at = at * size + np.searchsorted(of, value, side="right").astype(np.int32)
        return 1 + at  # state 0 is the start

    columns = [risks[:, i] for i in range(len(shape))]
    states = place(columns)
    for _ in range(_ROUNDS):
        earlier = before(strings, states, 0)
        following = place([_targets(strings, earlier, risk, 1 + int(np.prod(sizes))) for risk in columns])
        states, _ = walk(0, following, None, strings)
    return Transitions(0, following)


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
