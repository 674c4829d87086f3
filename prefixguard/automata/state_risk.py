"""The risk of every state, at every column of the clock: estimated on training runs, calibrated on held-out ones.

Training runs say how states compare: the mean of labels and teacher over the steps that ended there, a cell of state
and column being shrunk to what state and column say on their own. Held-out runs say how high risks are: a Platt map
for all cells together, and then each cell moves towards what held-out runs met in it, cells whose outcome runs do not
tell apart as one (`pooled_risk`):

    risk = (f + A p) / (n + A),   p the mapped training estimate, n held-out runs that were there, A = 20 runs,

f being the sum over those runs of the share of their steps there that were failures. Runs are counted, not steps, and
runs of one task as fewer than they are: neither are independent. The interval is the 90 % interval of Jeffreys of f out
of n: what training says has no part in it, so that it is wide where few runs were. Where the risk would lie outside of
it, held-out runs contradict training, and the risk is the nearest end of the interval. Source: PrefixGuard 4.5 shrinks
to the base rate with the weight of 5 prefixes.

A failure within the next steps is a failure. So the imminent risk of a cell is at most its outcome risk, and the ends
of its interval are at most those of the other; alarms go by the outcome risk, which stays as it is.

Thin evidence. A state that fewer than `FEW` runs ever reached, in training and held out together, reads the risks of
the nearest state with enough: the one whose training estimate is closest, in log-odds of both risks, ties to the lower
number.

The clock beside an automaton is a coarse step index that the risk is read by, and that transitions never look at:
without one, states are spent on counting steps. Its columns begin where the imminent risk changes most with the step
index, so that they are narrow near a cap on steps and wide elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.span_pools import LabelledSteps, pooled_risk
from prefixguard.automata.strings import Strings, log_odds
from prefixguard.bundle import N_RISKS, Platt, cap_imminent
from prefixguard.learn import fit_platt

FEW = 10
OUTCOME = 1  # the risk that alarms go by; the imminent one hangs on the step by its nature, and is not pooled
_CELL_PRIOR = 200.0  # steps that state and column on their own count for in a cell of both
_STATE_PRIOR = 5.0  # steps that the base rate counts for in a state
_SURE = 1e-4
_COLUMNS = 12
_COLUMN_STEPS = 50  # training steps in a column

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class StateRisk(NamedTuple):
    """risk (S, C, 2), interval (S, C, 2, 2), evidence and evidence_runs (S, C), stand_in (S,): as in `Automaton`."""

    risk: Floats
    interval: Floats
    evidence: Counts
    evidence_runs: Counts
    stand_in: NDArray[np.int32]


def fit_clock(strings: Strings) -> tuple[int, ...]:
    """Steps, from 1 and rising, at which the next column begins: at most eleven of them, none where the risk
    hangs on no step index or there are too few steps to tell.

    The risk is the mean of labels and teacher, of both risks alike; every run counts alike.
    """
    target = strings.labels.mean(axis=1) / 2 + strings.teacher.mean(axis=1) / 2
    tree = DecisionTreeRegressor(max_leaf_nodes=_COLUMNS, min_samples_leaf=_COLUMN_STEPS, random_state=0)
    tree.fit(strings.index[:, None], target, sample_weight=strings.weights)
    cuts = tree.tree_.threshold[tree.tree_.feature >= 0]
    return tuple(sorted({int(np.floor(cut)) + 1 for cut in cuts}))


def columns_of(clock: tuple[int, ...], strings: Strings) -> NDArray[np.int64]:
    """The clock's column of every step, int64 (steps,)."""
    return np.searchsorted(np.array(clock, dtype=np.int64), strings.index, side="right")


def training_risk(
    strings: Strings, states: NDArray[np.int32], n_states: int, clock: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """Estimates from training steps: of each state, float64 (S, 2), and of each cell, float64 (S, C, 2).

    states: int32 (steps,), the state after each step.
    """
    target = strings.target
    weight, columns, n_columns = strings.weights, columns_of(clock, strings), len(clock) + 1
    cell = states.astype(np.int64) * n_columns + columns
    mass = np.bincount(cell, weight, n_states * n_columns).reshape(n_states, n_columns)
    of_state, of_cell = np.empty((n_states, N_RISKS)), np.empty((n_states, n_columns, N_RISKS))
    for i in range(N_RISKS):
        total = np.bincount(cell, weight * target[:, i], n_states * n_columns).reshape(n_states, n_columns)
        base = (total.sum() + _SURE) / (mass.sum() + 2 * _SURE)
        of_state[:, i] = (total.sum(1) + _STATE_PRIOR * base) / (mass.sum(1) + _STATE_PRIOR)
        of_column = (total.sum(0) + _STATE_PRIOR * base) / (mass.sum(0) + _STATE_PRIOR)
        prior = log_odds(of_state[:, i])[:, None] + log_odds(of_column)[None] - log_odds(base)
        prior = _probability(prior) if n_columns > 1 else of_state[:, i : i + 1]
        of_cell[:, :, i] = (total + _CELL_PRIOR * prior) / (mass + _CELL_PRIOR)
    return of_state, of_cell


def calibrate(
    train: Strings,
    train_states: NDArray[np.int32],
    held_out: Strings,
    held_out_states: NDArray[np.int32],
    n_states: int,
    clock: tuple[int, ...],
) -> StateRisk:
    """Risks, intervals and evidence of every state; see the head of this file.

    held_out: runs that learned nothing and set no alarm threshold. train_states, held_out_states: after each step.
    """
    of_state, estimate = training_risk(train, train_states, n_states, clock)
    stand_in = _stand_ins(train, train_states, held_out, held_out_states, of_state)
    estimate = estimate[stand_in]
    n_columns = len(clock) + 1
    cell = held_out_states.astype(np.int64) * n_columns + columns_of(clock, held_out)
    evidence = np.bincount(cell, minlength=n_states * n_columns).astype(np.int64).reshape(n_states, n_columns)
    n = _runs_in(held_out, cell, n_states * n_columns).reshape(n_states, n_columns)
    training = train_states.astype(np.int64) * n_columns + columns_of(clock, train)
    weight = np.bincount(training, train.weights, n.size).reshape(n.shape).astype(np.float64)
    risk, interval = np.empty_like(estimate), np.empty((*estimate.shape, 2))
    for i in range(N_RISKS):
        logit = log_odds(estimate[:, :, i])
        platt = fit_platt(logit.ravel()[cell], held_out.labels[:, i].astype(np.float64)) if len(cell) else Platt(1, 0)
        held, learned = (_labelled(runs, at, n_columns, i) for runs, at in ((held_out, cell), (train, training)))
        p = _probability(platt.a * logit + platt.b)
        found = pooled_risk(held, learned, p, weight, pool=i == OUTCOME)
        risk[:, :, i], interval[:, :, i, 0], interval[:, :, i, 1] = found
    risk, interval = cap_imminent(risk), cap_imminent(interval)
    thin = stand_in != np.arange(n_states)
    risk[thin], interval[thin] = risk[stand_in[thin]], interval[stand_in[thin]]
    return StateRisk(risk, interval, evidence, n, stand_in)


def _labelled(runs: Strings, cell: Counts, n_columns: int, risk: int) -> LabelledSteps:
    run = np.repeat(np.arange(len(runs)), runs.lengths)
    return LabelledSteps(run, runs.tasks[run], *np.divmod(cell, n_columns), runs.labels[:, risk].astype(np.float64))


def _runs_in(strings: Strings, cell: Counts, n_cells: int) -> Counts:
    """Runs that were in each cell, int64 (cells,)."""
    run = np.repeat(np.arange(len(strings)), strings.lengths)
    return np.bincount(np.unique(run * n_cells + cell) % n_cells, minlength=n_cells).astype(np.int64)


def _stand_ins(
    train: Strings,
    train_states: NDArray[np.int32],
    held_out: Strings,
    held_out_states: NDArray[np.int32],
    of_state: Floats,
) -> NDArray[np.int32]:
    n = len(of_state)
    reached = np.zeros(n)
    for strings, states in ((train, train_states), (held_out, held_out_states)):
        reached += _runs_in(strings, states.astype(np.int64), n)
    own = np.arange(n, dtype=np.int32)
    enough = np.flatnonzero(reached >= FEW)
    if len(enough) == 0:
        return own
    odds = log_odds(of_state)
    distance = np.square(odds[:, None] - odds[None, enough]).sum(axis=-1)
    return np.where(reached >= FEW, own, enough[distance.argmin(axis=1)]).astype(np.int32)


def _probability(odds: Floats) -> Floats:
    return np.asarray(np.clip(expit(odds), _SURE, 1 - _SURE))  # a risk of 0 or 1 would have no interval
