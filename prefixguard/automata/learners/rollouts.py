"""What an automaton costs on its own roll-outs, and how to change it so that it costs less.

At run time an automaton follows its own state, whatever it was learned from. So what a transition is worth is what
follows from it: with the symbols to come known, as they are on training runs,

    V_t(s) = cost of being in s after step t + V_{t+1}(next(s, symbol_{t+1}))

says for every step and every state what the rest of the run would cost from there, in one pass backwards. Leading a
transition elsewhere changes the cost by the sum of V over the steps that take it: exactly, where a run takes it once,
and nearly, where it takes it again. `redirect` improves transitions by that, `eliminate` takes states away by it:
policy iteration, with an automaton as the policy. The cost is the cross-entropy of both risks with what the labels and
the teacher say; each risk counts by how uncertain it is without any automaton, so that the rare one is not drowned.
Where there is a clock, risks are those of state and column, so that states are not spent on what the clock tells. Where
runs are in several groups, a transition is redirected only if every group gains by it: what helps by chance seldom
helps twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.state_risk import columns_of, training_risk
from prefixguard.automata.strings import Strings, Transitions, before, walk
from prefixguard.bundle import N_RISKS

_PRIOR = 5.0  # steps that the base rate counts for in a state's risk
_GAIN = 1e-9  # what a group must gain by a change, at least
_SURE = 1e-4
_TRIES = 4  # smaller and smaller shares of the changes that seem good, until they are
_FAILURES = 3  # rounds without any, after which nothing more is expected
_BATCH = 0.1  # share of the states too many that are taken away at once
_SURPRISE = 1.2  # a batch may cost so many times what was expected of it, plus _SLACK a state
_SLACK = 2e-4

Floats = NDArray[np.float64]
States = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """Training runs, ready to be walked forwards and backwards. Machines are complete: nothing in them is UNSEEN.

    target: float64 (steps, 2), what risks should be, probabilities. importance: float64 (2,), what each risk's
    cross-entropy counts for. clock: as of `fit_clock`, () for none; column: int64 (steps,), the clock's column of each
    step, one of C. A cell is a state and a column: its number is state * C + column. group: int64 (steps,), from 0,
    none of them empty.
    """

    strings: Strings
    target: Floats
    importance: Floats
    clock: tuple[int, ...]
    column: States
    group: States

    @classmethod
    def of(cls, strings: Strings, target: Floats, clock: tuple[int, ...] = (), groups: int = 1) -> Rollouts:
        """Of these strings; each risk counts by its entropy without any automaton. groups: of tasks, as many."""
        p = np.clip(target.mean(axis=0), _SURE, 1 - _SURE)
        entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))
        _, group = np.unique(strings.tasks % groups, return_inverse=True)
        column = columns_of(clock, strings)
        importance = np.asarray(entropy.max() / entropy)
        return cls(strings, target, importance, clock, column, np.repeat(group.ravel(), strings.lengths))

    def walk(self, machine: Transitions) -> tuple[States, States]:
        """The state before and after every step, int64 (steps,) each."""
        states, _ = walk(machine.start, machine.next, None, self.strings)
        return before(self.strings, states, machine.start).astype(np.int64), states.astype(np.int64)

    def risks(self, states: States, n_states: int) -> Floats:
        """Mean target of the steps in each cell, shrunk to the base rate, float64 (S * C, 2); with a clock, what the
        automaton will say there before it is calibrated."""
        if self.clock:
            of_cell = training_risk(self.strings, states.astype(np.int32), n_states, self.clock)[1]
            return of_cell.reshape(-1, N_RISKS)
        base, mass = self.target.mean(axis=0), np.bincount(states, minlength=n_states)
        sums = [np.bincount(states, self.target[:, i], n_states) for i in range(N_RISKS)]
        found = [(sums[i] + _PRIOR * base[i]) / (mass + _PRIOR) for i in range(N_RISKS)]
        return np.asarray(np.clip(np.stack(found, axis=1), _SURE, 1 - _SURE))

    def loss(self, states: States, risks: Floats) -> float:
        """Mean cost of a step where the automaton is in these states. risks: of each cell, (S * C, 2)."""
        p = risks[states * self._n_columns + self.column]
        each = -(self.target * np.log(p) + (1 - self.target) * np.log1p(-p))
        return float((each @ self.importance).mean())

    def costs(self, machine: Transitions, risks: Floats) -> Floats:
        """V: what being in each state after each step costs until the run ends, float64 (steps, S)."""
        v = np.empty((len(self.target), machine.n_states))
        for column in range(self._n_columns):
            at, p = self.column == column, risks[column :: self._n_columns]
            v[at] = -(self.target[at] * self.importance) @ np.log(p / (1 - p)).T - np.log1p(-p) @ self.importance
        leads, layers = np.ascontiguousarray(machine.next.T).astype(np.int64), self.strings.layers  # leads: (K, S)
        for now, then in zip(layers[-2::-1], layers[:0:-1], strict=True):
            v[now[: len(then)]] += np.take_along_axis(v[then], leads[self.strings.symbols[then]], axis=1)
        return v

    def gains(self, keys: States, costs: Floats, leads: States) -> tuple[States, States, Floats, NDArray[np.bool_]]:
        """Keys that occur, rising; of each where the rest of the run costs least; what that gains over where it leads
        now, summed over its steps; and whether every group gains.

        keys: of each step the transition it takes. costs: as of `costs`. leads: of each key where it leads now.
        """
        found, sums = _sums(keys, costs)
        least = sums.argmin(axis=1)
        at, n = np.searchsorted(found, keys), int(self.group.max(initial=0)) + 1
        rows = np.arange(len(keys))
        each = costs[rows, leads[keys]] - costs[rows, least[at]]
        by_group = np.bincount(at * n + self.group, each, len(found) * n).reshape(-1, n)
        return found, least, by_group.sum(axis=1), by_group.min(axis=1) > _GAIN

    @property
    def _n_columns(self) -> int:
        return len(self.clock) + 1

    def complete(self, states: States, start: int, n_states: int) -> Transitions:
        """The machine of the majority of what runs did that were in these states after each step, int64 (steps,).

        A pair of state and symbol that no run met goes where the symbol goes most often.
        """
        k = self.strings.n_symbols
        cell = (before(self.strings, states, start) * k + self.strings.symbols) * n_states + states
        votes = np.bincount(cell, minlength=n_states * k * n_states).reshape(n_states, k, n_states)
        anywhere = votes.sum(axis=0).argmax(axis=1)
        most = np.where(votes.any(axis=2), votes.argmax(axis=2), anywhere[None, :])
        return Transitions(start, most.astype(np.int32))


def redirect(rollouts: Rollouts, machine: Transitions, rounds: int, rng: np.random.Generator) -> Transitions:
    """The machine with transitions led to where the rest of the run costs least, as long as the cost falls.

    All transitions that promise a gain are changed at once; where they get in each other's way, a share of them, drawn
    with those of great gain first. Transitions that no run takes stay as they are.
    """
    symbols, k = rollouts.strings.symbols, rollouts.strings.n_symbols
    n, share, failures = machine.n_states, 1.0, 0
    prior, states = rollouts.walk(machine)
    risks = rollouts.risks(states, n)
    best = rollouts.loss(states, risks)
    for _ in range(rounds):
        leads = machine.next.ravel().astype(np.int64)
        edges, then, gain, pays = rollouts.gains(prior * k + symbols, rollouts.costs(machine, risks), leads)
        good = np.flatnonzero(pays & (then != leads[edges]))
        changed = False
        for _ in range(_TRIES if len(good) else 0):
            first = np.argsort(-gain[good] * rng.random(len(good)), kind="stable")
            chosen = good[first[: max(int(len(good) * share), 1)]]
            following = machine.next.copy()
            following.ravel()[edges[chosen]] = then[chosen]
            tried = Transitions(machine.start, following)
            tried_prior, tried_states = rollouts.walk(tried)
            tried_risks = rollouts.risks(tried_states, n)
            loss = rollouts.loss(tried_states, tried_risks)
            if loss < best - 1e-7:
                machine, prior, risks, best = tried, tried_prior, tried_risks, loss
                share, changed = min(1.0, share * 1.5), True
                break
            share = max(share / 3, 1 / len(good))
        failures = 0 if changed else failures + 1
        if not len(good) or failures == _FAILURES:
            break
    return machine


def eliminate(rollouts: Rollouts, machine: Transitions, depth: States, max_states: int) -> Transitions:
    """The machine with states taken away until at most `max_states` are left.

    What led to a state that goes leads to the one from which the rest of the run costs least more. depth: int64 (S,),
    how far into a run a state is. Only states of the same depth stand in for each other as long as there are such: a
    machine that counts loses its count by shifts of one, each of which costs nearly nothing. Ties to lower numbers.
    """
    machine, depth = _used(rollouts, machine, depth)
    span, share = 0, _BATCH
    while machine.n_states > max_states:
        n = machine.n_states
        _, states = rollouts.walk(machine)
        risks = rollouts.risks(states, n)
        seen, sums = _sums(states, rollouts.costs(machine, risks))
        extra = np.full((n, n), np.inf)
        extra[seen] = sums - sums[np.arange(len(seen)), seen][:, None]
        if machine.start not in seen:
            extra[machine.start] = np.inf  # it is left at once; nothing stands for it
        np.fill_diagonal(extra, np.inf)
        extra[np.abs(depth[:, None] - depth[None, :]) > span] = np.inf
        if not np.isfinite(extra).any():
            span += 1
            continue
        now = rollouts.loss(states, risks)
        while True:
            goes, expected = _batch(extra, max(int((n - max_states) * share), 1))
            fewer = Transitions(int(goes[machine.start]), goes[machine.next].astype(np.int32))
            count = int((goes != np.arange(n)).sum())
            _, after = rollouts.walk(fewer)
            surprise = rollouts.loss(after, rollouts.risks(after, n)) - now
            bearable = max(expected / len(states), 0.0) * _SURPRISE + _SLACK * count / n
            if count == 1 or surprise <= bearable:
                break
            share /= 2
        machine, depth = _used(rollouts, fewer, depth)
        share = min(_BATCH, share * 1.5)
    return machine


def _batch(extra: Floats, size: int) -> tuple[States, float]:
    """Where every state goes, (S,), when the `size` cheapest go; and what that should cost. None goes to one that
    goes."""
    goes, to = np.arange(len(extra)), extra.argmin(axis=1)
    cost = extra.min(axis=1)
    gone: set[int] = set()
    kept: set[int] = set()
    expected = 0.0
    for s in np.argsort(cost, kind="stable").tolist():
        if len(gone) == size or not np.isfinite(cost[s]):
            break
        if s not in kept and int(to[s]) not in gone:
            goes[s] = to[s]
            gone.add(s)
            kept.add(int(to[s]))
            expected += float(cost[s])
    return goes, expected


def _used(rollouts: Rollouts, machine: Transitions, depth: States) -> tuple[Transitions, States]:
    """The machine without states that no run meets, and the depth of the others."""
    _, states = rollouts.walk(machine)
    kept = np.unique(np.append(states, machine.start))
    number = np.full(machine.n_states, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    whole = rollouts.complete(number[states], int(number[machine.start]), len(kept))
    # Transitions that no run takes keep their end where it is kept.
    ends = number[machine.next[kept]]
    return Transitions(whole.start, np.where(ends >= 0, ends, whole.next).astype(np.int32)), depth[kept]


def _sums(keys: States, values: Floats) -> tuple[States, Floats]:
    """Keys that occur, rising, and the sums of the rows of `values` under each."""
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    return found, np.add.reduceat(values[order], first, axis=0)
