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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.learners.evidence import Floats, Positions, gather
from prefixguard.automata.strings import Strings, Transitions, counted
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


def grow(strings: Strings, setting: Setting, max_states: int) -> Transitions:
    """At most `max_states` states; state 0 is the start. The same for the same runs in the same order."""
    growth = _Growth(strings, setting, max_states)
    growth.decide()
    notes = {
        f"{counted(growth.thin, 'transition')} that few runs took lead where most runs went on from there": growth.thin,
        f"{counted(growth.forced, 'transition')} would have led to new states without the limit of {max_states}": (
            growth.forced
        ),
    }
    return Transitions(0, growth.next[: growth.n_states].copy(), tuple(note for note, count in notes.items() if count))


class _Growth:
    """The automaton so far, what its states have met, and who waits where. A cell is state * K + symbol.

    next: int32 (S, K). thin: transitions too rare to be judged. forced: those that deserved a state beyond the limit.
    """

    def __init__(self, strings: Strings, setting: Setting, max_states: int) -> None:
        evidence = gather(strings, risk=setting.risk, clock=setting.clock)
        n_symbols, n_words = strings.n_symbols, evidence.n_words
        self.n_states, self.thin, self.forced = 1, 0, 0
        self.next = np.full((max_states, n_symbols), UNSEEN, dtype=np.int32)
        self._symbols, self._n_symbols, self._max_states = strings.symbols, n_symbols, max_states
        self._last = np.repeat(strings.first[1:], strings.lengths) - 1
        self._evidence, self._setting = evidence, setting
        self._met = _Met(max_states, evidence.values, evidence.ends)
        risks = evidence.values[:N_RISKS]
        self._word_noise = float(np.square(risks).mean(axis=1).sum())
        self._words = _Met(max_states * n_words, risks, evidence.ends)  # a place is state * W + word
        self._words.add_all(self._followed(evidence.opening, strings.first[:-1] - 1, np.zeros(len(strings), np.int64)))
        self._usual = np.full(max_states, UNSEEN)  # where each state's first transition leads, which most runs took
        self._leads = np.zeros((n_symbols, max_states))  # how many runs each symbol led to each state
        self._waiting: dict[int, Positions] = {}
        self._queue: list[tuple[int, int]] = []  # (-how many wait, cell); entries may be out of date
        self._walk(np.zeros(len(strings), dtype=np.int64), strings.first[:-1].copy())

    def decide(self) -> None:
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
        n, visits = len(at), self._met.n[: self.n_states] + _PRIOR
        mean = self._evidence.values[:, at].mean(axis=1)
        distance = np.square(self._met.sums[:, : self.n_states] / visits - mean[:, None]).sum(axis=0)
        words, spread = self._unlike_words(at)
        return visits * n / (visits + n) * distance, words, spread

    def _unlike_words(self, at: Positions) -> tuple[Floats, Floats]:
        """How unlike each state's words those after these steps are, less what chance makes, and its variance."""
        n_words, ends = self._evidence.n_words, self._setting.ends
        new = self._words.alike(n_words)
        new.add_all(self._followed(self._evidence.words[:, at], at, np.zeros_like(at)))
        met = np.flatnonzero(new.n)
        old_n, old_sums, old_ended = (
            part.reshape(*shape)[..., : self.n_states, met, :]
            for part, shape in (
                (self._words.n, (self._max_states, n_words, 1)),
                (self._words.sums, (N_RISKS, self._max_states, n_words, 1)),
                (self._words.ended, (self._max_states, n_words, 2)),
            )
        )
        n_new, n_old = new.n[met], old_n[..., 0]
        apart = old_sums[..., 0] / np.maximum(n_old, 1) - (new.sums[:, met] / n_new)[:, None]
        both = n_old > 0
        cost = n_old * n_new / (n_old + n_new) * np.square(apart).sum(axis=0) - self._word_noise * both
        chi, tests = _unlike(old_ended, new.ended[met])
        spread = self._word_noise**2 * both.sum(axis=1) + ends**2 * tests.sum(axis=1)
        return cost.sum(axis=1) + ends * chi.sum(axis=1), 2 * spread

    def _followed(self, words: NDArray[np.int32], at: Positions, states: Positions) -> Iterator[_Places]:
        """For each length of words: the place of each word that came after a step in its state, and its last step.

        words: int32 (depth, n), those after the steps `at`; -1 where a word has no number.
        """
        for depth, row in enumerate(words):
            known = np.flatnonzero(row >= 0)
            yield row[known] + states[known] * self._evidence.n_words, at[known] + depth + 1

    def _fold(self, cell: int, at: Positions, targets: Positions) -> tuple[Floats, Floats]:
        """Cost, less what chance costs, of a transition to each target, and its variance; float64 (targets,)."""
        scale = 1.0
        if len(at) > _SAMPLE:
            scale = len(at) / _SAMPLE
            at = at[np.linspace(0, len(at) - 1, _SAMPLE).astype(np.int64)]
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
        shape = (len(targets), self._max_states)
        new = self._met.alike(shape[0] * shape[1])
        new.add(np.concatenate(passed), np.concatenate(steps))
        n_new, n_old = new.n.reshape(shape), self._met.n + _PRIOR
        means = new.sums.reshape(-1, *shape) / np.maximum(n_new, 1)
        distance = np.square(means - (self._met.sums / n_old)[:, None]).sum(axis=0)
        touched = (n_new > 0).sum(axis=1)
        cost = (n_old * n_new / (n_old + n_new) * distance).sum(axis=1) - self._evidence.noise * touched
        chi, tests = _unlike(self._met.ended, new.ended.reshape(*shape, 2))
        weight = self._setting.ends
        spread = 2 * self._evidence.noise**2 * touched + 2 * weight**2 * tests.sum(axis=1)
        return scale * (cost + weight * chi.sum(axis=1)), scale**2 * spread

    def _walk(self, states: Positions, at: Positions) -> None:
        """Runs in these states, about to take these steps, walk to where nothing is decided; all are counted."""
        stopped: list[_Places] = []
        moved: list[_Places] = []
        while len(at):
            cells = states * self._n_symbols + self._symbols[at]
            after = self.next.reshape(-1)[cells]
            on = after != UNSEEN
            stopped.append((cells[~on], at[~on]))
            after, at = after[on].astype(np.int64), at[on]
            moved.append((after, at))
            on = at < self._last[at]
            states, at = after[on], at[on] + 1
        states, at = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        self._met.add(states, at)
        self._words.add_all(self._followed(self._evidence.words[:, at], at, states))
        self._wait(*(np.concatenate(parts) for parts in zip(*stopped, strict=True)))

    def _wait(self, cells: Positions, at: Positions) -> None:
        order = np.argsort(cells, kind="stable")
        distinct, first = np.unique(cells[order], return_index=True)
        for cell, arrived in zip(distinct.tolist(), np.split(at[order], first[1:]), strict=False):
            self._waiting[cell] = np.concatenate((self._waiting.get(cell, at[:0]), arrived))
            heappush(self._queue, (-len(self._waiting[cell]), cell))


_Places = tuple[Positions, Positions]  # numbers of places, and the step that was in each


class _Met:
    """What each of `size` places has met.

    n: how many steps, (size,). sums: of d rows of values over these, (d, size). ended: runs that ended there, well and
    in failure, (size, 2). All float64.
    """

    def __init__(self, size: int, rows: Floats, ends: NDArray[np.int8]) -> None:
        self.n, self.sums, self.ended = np.zeros(size), np.zeros((len(rows), size)), np.zeros((size, 2))
        self._rows, self._ends = rows, ends

    def alike(self, size: int) -> _Met:
        """An empty one of the same rows."""
        return _Met(size, self._rows, self._ends)

    def add(self, place: Positions, step: Positions) -> None:
        """Count steps, each in its place."""
        size = len(self.n)
        self.n += np.bincount(place, minlength=size)
        for row, sums in zip(self._rows, self.sums, strict=True):
            sums += np.bincount(place, weights=row[step], minlength=size)
        kind = self._ends[step]
        over = kind > 0
        self.ended += np.bincount(place[over] * 2 + kind[over] - 1, minlength=2 * size).reshape(size, 2)

    def add_all(self, parts: Iterable[_Places]) -> None:
        """Count several at once: their sums are added up first, then to what is there."""
        new = self.alike(len(self.n))
        for part in parts:
            new.add(*part)
        self.n += new.n
        self.sums += new.sums
        self.ended += new.ended


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
