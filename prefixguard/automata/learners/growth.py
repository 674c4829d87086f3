"""An automaton that grows state by state while all runs walk on it: red-blue merging without a prefix tree.

Runs stand where the automaton ends: each waits before a transition that is not decided yet. The transition at which
most wait is decided first: it leads to the state that its runs fit best, or to a new one if they fit none. They then
walk on, through all that is decided, to where they wait again. So every run passes every step once, whatever its
length, and what a prefix tree would hold is never written down.

Fit. If the waiting runs B enter state R, they fold into what is known: each state s that they then pass, B's steps
there having mean b_s and those there before m_s, loses n_s |B_s| / (n_s + |B_s|) |m_s - b_s|^2 of what it explains
(Ward), less the noise that chance alone would cost. The cost is the sum of that, and of the same for each short word
that followed in both: by the risks after it, and by a chi-square of how runs ended with it. Words tell states apart by
what comes next, before the transitions in between are decided. A loop is judged by all that then falls into it.

Source: the order and the two kinds of states are those of Lang, Pearlmutter and Price 1998 (blue-fringe); what is
compared, and walking in place of a tree, are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.learners.evidence import Floats, Positions, PrefixEvidence
from prefixguard.automata.strings import Strings
from prefixguard.bundle import N_RISKS, UNSEEN

_FEWEST = 5  # runs that wait, below which a transition leads where its state usually does
_NEAR = 16  # states of which the whole fold is computed; all others are too far on the face of it
_SAMPLE = 2000  # runs that fold; of more, that many evenly spaced ones
_AHEAD = 40  # steps that a fold is followed
_PRIOR = 5.0  # steps with mean values that every state has on top
_EVENTS = 2  # runs that must have ended alike on both sides for a comparison


@dataclass(frozen=True, slots=True)
class Setting:
    """What merging leans towards.

    risk: weight of risks in the evidence. clock: weight of the clock there; high: states tell step indices apart.
    ends: weight of how runs end.
    gain: the least cost for which a state is worth having. Also what is added where a transition is to lead elsewhere
        than its state and its symbol usually do. Costs are squared risks summed over steps.
    doubt: by how many standard deviations a cost must pass that, moreover.
    """

    risk: float
    clock: float
    ends: float
    gain: float
    doubt: float


def grow(strings: Strings, evidence: PrefixEvidence, setting: Setting, max_states: int) -> Growth:
    """At most `max_states` states; state 0 is the start. The same for the same runs in the same order."""
    growth = Growth(strings, evidence, setting, max_states)
    growth.run()
    return growth


class Growth:
    """The automaton so far, what its states have met, and who waits where. A cell is state * K + symbol.

    next: int32 (S, K). thin: transitions too rare to be judged. forced: those that deserved a state beyond the budget.
    """

    def __init__(self, strings: Strings, evidence: PrefixEvidence, setting: Setting, max_states: int) -> None:
        n_symbols = strings.n_symbols
        self.n_states, self.thin, self.forced = 1, 0, 0
        self.next = np.full((max_states, n_symbols), UNSEEN, dtype=np.int32)
        self._symbols, self._n_symbols, self._max_states = strings.symbols, n_symbols, max_states
        self._last = np.repeat(strings.first[1:], strings.lengths) - 1
        self._evidence, self._setting = evidence, setting
        self._visits = np.zeros(max_states)
        self._sums = np.zeros((len(evidence.values), max_states))
        self._ended = np.zeros((max_states, 2))  # runs that ended there: well, in failure
        self._words = _Words(evidence, max_states)
        self._words.add(evidence.opening, np.arange(len(strings)), strings.first[:-1] - 1)
        self._usual = np.full(max_states, UNSEEN)  # where each state's first transition leads, which most runs took
        self._leads = np.zeros((n_symbols, max_states))  # how many runs each symbol led to each state
        self._waiting: dict[int, Positions] = {}
        self._queue: list[tuple[int, int]] = []  # (-how many wait, cell); entries may be out of date
        self._walk(np.zeros(len(strings), dtype=np.int64), strings.first[:-1].copy())

    def run(self) -> None:
        """Decide transitions, most awaited first, until no run waits."""
        while self._queue:
            size, cell = heappop(self._queue)
            if len(self._waiting.get(cell, ())) != -size:
                continue
            at = self._waiting.pop(cell)
            state, symbol = divmod(cell, self._n_symbols)
            target = self._target(cell, at)
            if self._usual[state] == UNSEEN:
                self._usual[state] = target
            self._leads[symbol, target] += len(at)
            self.next[state, symbol] = target
            self._walk(np.full(len(at), state, dtype=np.int64), at)
        self.next = self.next[: self.n_states].copy()

    def _target(self, cell: int, at: Positions) -> int:
        """Where a transition is to lead that the runs at these steps wait for."""
        state, symbol = divmod(cell, self._n_symbols)
        usual = [int(self._usual[state])] if self._usual[state] != UNSEEN else []
        if usual and len(at) < _FEWEST:
            self.thin += 1
            return usual[0]
        if self._leads[symbol].any():
            usual.append(int(self._leads[symbol].argmax()))
        face, after, spread = self._on_the_face(at)
        near = np.argsort(face + after, kind="stable")[:_NEAR]
        targets = np.array(sorted({*near.tolist(), *usual}), dtype=np.int64)
        cost, fold_spread = self._fold(cell, at, targets)
        gain = self._setting.gain
        straying = gain if usual else 0.0
        cost = cost + after[targets] + np.where(np.isin(targets, usual), 0.0, straying)
        best = int(cost.argmin())
        sure = self._setting.doubt * float(np.sqrt(fold_spread[best] + spread[targets[best]]))
        if cost[best] <= gain + straying + sure:
            return int(targets[best])
        if self.n_states == self._max_states:
            self.forced += 1
            return int(targets[best])
        self.n_states += 1
        return self.n_states - 1

    def _on_the_face(self, at: Positions) -> tuple[Floats, Floats, Floats]:
        """For every state: cost of the steps themselves, cost of the words after them, variance of the latter."""
        n, visits = len(at), self._visits[: self.n_states] + _PRIOR
        mean = self._evidence.values[:, at].mean(axis=1)
        distance = np.square(self._sums[:, : self.n_states] / visits - mean[:, None]).sum(axis=0)
        words, spread = self._words.cost(at, self.n_states, self._setting.ends)
        return visits * n / (visits + n) * distance, words, spread

    def _fold(self, cell: int, at: Positions, targets: Positions) -> tuple[Floats, Floats]:
        """Cost, less what chance costs, of a transition to each target, and its variance; float64 (targets,)."""
        scale = 1.0
        if len(at) > _SAMPLE:
            scale = len(at) / _SAMPLE
            at = at[np.linspace(0, len(at) - 1, _SAMPLE).astype(np.int64)]
        shape = (len(targets), self._max_states)
        option = np.repeat(np.arange(len(targets)), len(at))
        states, at = np.repeat(targets, len(at)), np.tile(at, len(targets))
        passed, steps = [], []
        for _ in range(_AHEAD):
            passed.append(option * self._max_states + states)
            steps.append(at)
            on = at < self._last[at]
            option, states, at = option[on], states[on], at[on] + 1
            symbols = self._symbols[at]
            after = self.next[states, symbols]
            after = np.where(states * self._n_symbols + symbols == cell, targets[option], after)
            on = after != UNSEEN
            option, states, at = option[on], after[on].astype(np.int64), at[on]
            if not len(at):
                break
        place, step = np.concatenate(passed), np.concatenate(steps)
        size = shape[0] * shape[1]
        n_new = np.bincount(place, minlength=size).reshape(shape)
        n_old = self._visits + _PRIOR
        distance = np.zeros(shape)
        for row, known in zip(self._evidence.values, self._sums, strict=True):
            new = np.bincount(place, weights=row[step], minlength=size).reshape(shape)
            distance += np.square(new / np.maximum(n_new, 1) - known / n_old)
        touched = (n_new > 0).sum(axis=1)
        cost = (n_old * n_new / (n_old + n_new) * distance).sum(axis=1) - self._evidence.noise * touched
        kind = self._evidence.ends[step]
        ended = np.bincount(place[kind > 0] * 2 + kind[kind > 0] - 1, minlength=2 * size).astype(np.float64)
        chi, tests = _unlike(self._ended, ended.reshape(*shape, 2))
        weight = self._setting.ends
        spread = 2 * self._evidence.noise**2 * touched + 2 * weight**2 * tests.sum(axis=1)
        return scale * (cost + weight * chi.sum(axis=1)), scale**2 * spread

    def _walk(self, states: Positions, at: Positions) -> None:
        """Runs in these states, about to take these steps, walk to where nothing is decided; all are counted."""
        stopped: list[tuple[Positions, Positions]] = []
        moved: list[tuple[Positions, Positions]] = []
        while len(at):
            cells = states * self._n_symbols + self._symbols[at]
            after = self.next.reshape(-1)[cells]
            on = after != UNSEEN
            stopped.append((cells[~on], at[~on]))
            after, at = after[on].astype(np.int64), at[on]
            moved.append((after, at))
            on = at < self._last[at]
            states, at = after[on], at[on] + 1
        self._count(np.concatenate([s for s, _ in moved]), np.concatenate([a for _, a in moved]))
        self._wait(np.concatenate([c for c, _ in stopped]), np.concatenate([a for _, a in stopped]))

    def _count(self, states: Positions, at: Positions) -> None:
        size = self._max_states
        self._visits += np.bincount(states, minlength=size)
        for row, sums in zip(self._evidence.values, self._sums, strict=True):
            sums += np.bincount(states, weights=row[at], minlength=size)
        kind = self._evidence.ends[at]
        over = kind > 0
        self._ended += np.bincount(states[over] * 2 + kind[over] - 1, minlength=2 * size).reshape(size, 2)
        self._words.add(self._evidence.words, at, at, states)

    def _wait(self, cells: Positions, at: Positions) -> None:
        order = np.argsort(cells, kind="stable")
        cells, at = cells[order], at[order]
        bounds = [0, *(np.flatnonzero(np.diff(cells)) + 1).tolist(), len(cells)]
        for begin, end in pairwise(bounds):
            if begin == end:
                continue
            cell, arrived = int(cells[begin]), at[begin:end]
            if cell in self._waiting:
                arrived = np.concatenate((self._waiting[cell], arrived))
            self._waiting[cell] = arrived
            heappush(self._queue, (-len(arrived), cell))


class _Words:
    """What followed each state within a few steps: for each word, the risks after it, and how runs ended with it."""

    def __init__(self, evidence: PrefixEvidence, max_states: int) -> None:
        self._evidence = evidence
        self._risks = evidence.values[:N_RISKS]
        self._noise = float(np.square(self._risks).mean(axis=1).sum())
        self._met = np.zeros((max_states, evidence.n_words, N_RISKS + 1))  # how often, and risks added up
        self._ended = np.zeros((max_states, evidence.n_words, 2))  # runs that ended: well, in failure

    def add(self, words: NDArray[np.int32], of: Positions, at: Positions, states: Positions | None = None) -> None:
        """Count words, columns `of` of `words`, that came after the steps `at` in these states; None: the start."""
        met, ended = self._count(words, of, at, np.zeros_like(at) if states is None else states, len(self._met))
        self._met += met
        self._ended += ended

    def cost(self, at: Positions, n_states: int, ends: float) -> tuple[Floats, Floats]:
        """How unlike each state's words those after these steps are, less what chance makes, and its variance."""
        new, new_ended = (part[0] for part in self._count(self._evidence.words, at, at, np.zeros_like(at), 1))
        met = np.flatnonzero(new[:, 0])
        new, old = new[met], self._met[:n_states, met]
        n_new, n_old = new[:, 0], old[..., 0]
        apart = old[..., 1:] / np.maximum(n_old, 1)[..., None] - new[:, 1:] / n_new[:, None]
        both = n_old > 0
        cost = n_old * n_new / (n_old + n_new) * np.square(apart).sum(axis=-1) - self._noise * both
        chi, tests = _unlike(self._ended[:n_states, met], new_ended[met])
        spread = self._noise**2 * both.sum(axis=1) + ends**2 * tests.sum(axis=1)
        return cost.sum(axis=1) + ends * chi.sum(axis=1), 2 * spread

    def _count(
        self, words: NDArray[np.int32], of: Positions, at: Positions, states: Positions, n_states: int
    ) -> tuple[Floats, Floats]:
        n_words, size = self._evidence.n_words, n_states * self._evidence.n_words
        met, ended = np.zeros((N_RISKS + 1, size)), np.zeros(2 * size)
        for depth, row in enumerate(words):
            word = row[of].astype(np.int64)
            known = np.flatnonzero(word >= 0)
            place, step = word[known] + states[known] * n_words, at[known] + depth + 1
            met[0] += np.bincount(place, minlength=size)
            for sums, risk in zip(met[1:], self._risks, strict=True):
                sums += np.bincount(place, weights=risk[step], minlength=size)
            kind = self._evidence.ends[step]
            ended += np.bincount(place[kind > 0] * 2 + kind[kind > 0] - 1, minlength=2 * size)
        return met.T.reshape(n_states, n_words, -1), ended.reshape(n_states, n_words, 2)


def _unlike(old: Floats, new: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Chi-square, less its mean of 1, of the shares of failures in pairs of counts; and which pairs tell anything.

    old, new: float64 (..., 2), runs that ended well and in failure; broadcast. Returns float64 and bool (...).
    """
    n_old, n_new = old.sum(axis=-1), new.sum(axis=-1)
    share = (old[..., 1] + new[..., 1] + 0.5) / (n_old + n_new + 1)
    tells = np.minimum(n_old, n_new) >= _EVENTS
    apart = old[..., 1] / np.maximum(n_old, 1) - new[..., 1] / np.maximum(n_new, 1)
    chi = n_old * n_new / np.maximum(n_old + n_new, 1) * apart**2 / (share * (1 - share))
    return np.where(tells, chi - 1, 0.0), tells
