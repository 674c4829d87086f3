"""Runs as strings of symbols, with what learners may know of every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import UNSEEN
from prefixguard.metrics import Prefixes, Ranking, Resamples, at_remaining, average_precision, interval

Integers = TypeVar("Integers", np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class Strings:
    """Symbol strings of n runs, one after the other.

    symbols: int32 (steps,), each in [0, n_symbols). first: int64 (n + 1,); run i has the steps first[i]:first[i + 1].
    failed: bool (n,). tasks: int64 (n,), the number of each run's task.
    labels: float32 (steps, 2), 0 or 1: imminent, outcome.
    teacher: float32 (steps, 2), both risks by a teacher that was not fitted on the run, probabilities.
    """

    symbols: NDArray[np.int32]
    n_symbols: int
    first: NDArray[np.int64]
    failed: NDArray[np.bool_]
    tasks: NDArray[np.int64]
    labels: NDArray[np.float32]
    teacher: NDArray[np.float32]

    def __len__(self) -> int:
        """Runs."""
        return len(self.failed)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each run, int64 (n,)."""
        return np.diff(self.first)

    @property
    def index(self) -> NDArray[np.int64]:
        """Step index within its run, from 1, int64 (steps,)."""
        return np.arange(len(self.symbols)) - np.repeat(self.first[:-1], self.lengths) + 1

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each step so that every run counts alike; mean 1, float64 (steps,)."""
        if len(self) == 0:
            return np.empty(0)
        return np.repeat(self.lengths.mean() / self.lengths, self.lengths)

    @property
    def target(self) -> NDArray[np.float64]:
        """The mean of labels and teacher, which risks are learned from, float64 (steps, 2)."""
        return (self.labels.astype(np.float64) + self.teacher) / 2

    @cached_property
    def layers(self) -> tuple[NDArray[np.int64], ...]:
        """Positions of the first steps of all runs, of the second ones, and so on, int64; longest runs first."""
        order = np.argsort(-self.lengths, kind="stable")
        begins, lengths = self.first[:-1][order], self.lengths[order]
        alive = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
        return tuple(begins[:n] + t for t, n in enumerate(alive.tolist()))

    def figures(self, risks: NDArray[np.float64]) -> tuple[float, float]:
        """Imminent AUPRC, and outcome AUROC at matched remaining steps, of these risks, (steps, 2); NaN where void."""
        return average_precision(self.labels[:, 0], risks[:, 0]), float(self._matched(risks[:, 1]).auroc())

    def matched_interval(self, risks: NDArray[np.float64]) -> tuple[float, float] | None:
        """95 %, over tasks, of the outcome AUROC at matched remaining steps. risks: of the outcome, (steps,). None for
        too few tasks."""
        resamples = Resamples.draw(len(np.unique(self.tasks)))
        return interval(resamples.figures(self._matched(risks).auroc, rows=len(risks)))

    def _matched(self, risks: NDArray[np.float64]) -> Ranking:
        tasks = [str(task) for task in self.tasks.tolist()]
        return at_remaining(Prefixes.of(self.lengths.tolist(), self.failed.tolist(), tasks), risks)

    def words(self) -> list[tuple[int, ...]]:
        """Each run's symbols as a tuple."""
        symbols = self.symbols.tolist()
        return [tuple(symbols[a:b]) for a, b in pairwise(self.first.tolist())]

    def of(self, runs: NDArray[np.int64]) -> Strings:
        """These runs alone, in this order."""
        parts = [np.arange(self.first[r], self.first[r + 1]) for r in runs.tolist()]
        steps = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return replace(
            self,
            symbols=self.symbols[steps],
            first=np.concatenate(([0], np.cumsum(self.lengths[runs]))).astype(np.int64),
            failed=self.failed[runs],
            tasks=self.tasks[runs],
            labels=self.labels[steps],
            teacher=self.teacher[steps],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """What a learner found: the structure, without risks.

    start: the state before a run. next: int32 (S, K), the state after each symbol; UNSEEN where the learner says
    nothing. notes: sentences on what was met and how it was handled (conflicting strings, a limit that was reached).
    """

    start: int
    next: NDArray[np.int32]
    notes: tuple[str, ...] = ()

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.next)


def counted(n: int, thing: str) -> str:
    """A number of things, as notes say it.

    >>> counted(1, "state"), counted(2000, "state")
    ('1 state', '2000 states')
    """
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def log_odds(risks: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of probabilities, which are clipped to [1e-4, 1 - 1e-4] first."""
    p = np.clip(risks.astype(np.float64), 1e-4, 1 - 1e-4)
    return np.asarray(np.log(p / (1 - p)))


def before(strings: Strings, states: NDArray[Integers], start: int) -> NDArray[Integers]:
    """The state before every step, (steps,), from the states after them."""
    out = np.roll(states, 1)
    out[strings.first[:-1]] = start
    return out


def fallback_of(edges: NDArray[np.int64], next_states: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where each symbol most often leads, int32 (K,); UNSEEN for a symbol that no run used; ties to the lower state.

    edges: int64 (S, K), how often each transition was taken. next_states: int32 (S, K).
    """
    n_states, n_symbols = next_states.shape
    out = np.full(n_symbols, UNSEEN, dtype=np.int32)
    for k in range(n_symbols):
        taken = next_states[:, k] != UNSEEN
        counts = np.bincount(next_states[taken, k], weights=edges[taken, k], minlength=n_states)
        if counts.sum() > 0:
            out[k] = int(counts.argmax())
    return out


def walk(
    start: int, next_states: NDArray[np.int32], fallback: NDArray[np.int32] | None, strings: Strings
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The state after every step, int32 (steps,), and which transitions were unseen, bool (steps,).

    The rule is that of `Automaton.follow`: an unseen transition leads where the fallback of its symbol says, and where
    that is UNSEEN too, or there is no fallback, the run stays. All runs are walked side by side, one step at a time.
    """
    if fallback is None:
        fallback = np.full(next_states.shape[1], UNSEEN, dtype=np.int32)
    states = np.empty(len(strings.symbols), dtype=np.int32)
    unseen = np.zeros(len(strings.symbols), dtype=np.bool_)
    now = np.full(len(strings), start, dtype=np.int32)
    for at in strings.layers:
        here, symbols = now[: len(at)], strings.symbols[at]
        now = next_states[here, symbols]
        missing = now == UNSEEN
        if missing.any():
            guess = fallback[symbols[missing]]
            now[missing] = np.where(guess == UNSEEN, here[missing], guess)
            unseen[at] = missing
        states[at] = now
    return states, unseen


def taken(found: Transitions, strings: Strings) -> Transitions:
    """The transitions that these runs take; all others become UNSEEN."""
    states, _ = walk(found.start, found.next, None, strings)
    met = np.zeros(found.next.shape, dtype=np.bool_)
    met[before(strings, states, found.start), strings.symbols] = True
    return replace(found, next=np.where(met, found.next, UNSEEN).astype(np.int32))
