"""From a learner's transitions to the finished automaton: what training runs took of them, counted and calibrated.

Whatever a learner leaves, the automaton's transitions are then exactly those that training runs took: those that none
took are unseen, and those that runs took though the learner says nothing of them follow the rule for unseen ones and
are transitions from then on. So edges, visits and training steps always add up.

States that say the same are merged: those whose risks in training differ by less than 0.02 in log-odds and that lead,
on every symbol, to states that say the same.

What makes transitions smaller are pure functions. They number states breadth first from the start, which becomes 0,
symbols in order: the same machine has the same bytes. Notes say what was changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.state_risk import calibrate, training_risk
from prefixguard.automata.strings import Strings, Transitions, before, counted, fallback_of, walk
from prefixguard.bundle import UNSEEN, Automaton
from prefixguard.errors import ConfigError, DataError

_RESOLUTION = 0.02  # of risks, in log-odds


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """Transitions, and what training runs did on them.

    edges: int64 (S, K), how often each was taken. fallback: int32 (K,), where a symbol leads on an unseen one.
    states: int32 (steps,), after each training step.
    """

    transitions: Transitions
    edges: NDArray[np.int64]
    fallback: NDArray[np.int32]
    states: NDArray[np.int32]

    @classmethod
    def of(cls, transitions: Transitions, train: Strings) -> Walked:
        """Training runs on these transitions; where one is unseen, the run stays."""
        states, _ = walk(transitions.start, transitions.next, None, train)
        shape = transitions.next.shape
        cell = before(train, states, transitions.start).astype(np.int64) * shape[1] + train.symbols
        edges = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)
        return cls(transitions, edges, fallback_of(edges, transitions.next), states)

    def walk(self, strings: Strings) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The state after every step of other runs, and which transitions were unseen."""
        return walk(self.transitions.start, self.transitions.next, self.fallback, strings)


def walk_training(transitions: Transitions, train: Strings) -> Walked:
    """The transitions that training runs take, and the states that they lead to; see the head of this file.

    Edges are 0 where a transition is UNSEEN, and only there.
    """
    walked, left_open, notes = Walked.of(transitions, train), transitions.next == UNSEEN, transitions.notes
    if walked.edges[left_open].any():
        stay = np.arange(transitions.n_states, dtype=np.int32)[:, None]
        rule = np.where(walked.fallback == UNSEEN, stay, walked.fallback)
        walked = Walked.of(replace(transitions, next=np.where(left_open, rule, transitions.next)), train)
        n = int(np.count_nonzero(walked.edges[left_open]))
        notes = (*notes, f"{counted(n, 'transition')} that the learner left open: filled by rule")
    taken = np.where(walked.edges > 0, walked.transitions.next, UNSEEN).astype(np.int32)
    walked = Walked.of(reachable(Transitions(transitions.start, taken, notes)), train)
    risk, _ = training_risk(train, walked.states, walked.transitions.n_states, ())
    classes, _ = _numbered(np.round(np.log(risk / (1 - risk)) / _RESOLUTION).astype(np.int64))
    return Walked.of(minimize(walked.transitions, classes), train)


def build(walked: Walked, train: Strings, held_out: Strings, clock: tuple[int, ...]) -> Automaton:
    """The automaton with risks calibrated on runs that learned nothing and set no threshold.

    train: the strings that `walked` was walked by. held_out: under the same alphabet. clock: see `fit_clock`.
    """
    n = walked.transitions.n_states
    found = calibrate(train, walked.states, held_out, walked.walk(held_out)[0], n, clock)
    return Automaton(
        start=walked.transitions.start,
        transitions=walked.transitions.next,
        fallback=walked.fallback,
        clock=clock,
        edges=walked.edges,
        visits=np.bincount(walked.states, minlength=n).astype(np.int64),
        **found._asdict(),
    )


def reachable(transitions: Transitions) -> Transitions:
    """Without the states that no transition leads to, numbered breadth first from the start, which becomes 0; a note
    says how many were dropped."""
    number, queue = {transitions.start: 0}, [transitions.start]
    for state in queue:
        for after in transitions.next[state].tolist():
            if after != UNSEEN and after not in number:
                number[after] = len(number)
                queue.append(after)
    renumber = np.full(transitions.n_states + 1, UNSEEN, dtype=np.int32)  # the last place is for UNSEEN, -1
    renumber[queue] = np.arange(len(queue))
    lost = transitions.n_states - len(number)
    notes = (f"{counted(lost, 'state')} that no training run reaches: dropped",) if lost else ()
    return Transitions(0, renumber[transitions.next[queue]], (*transitions.notes, *notes))


def minimize(transitions: Transitions, classes: NDArray[np.int64]) -> Transitions:
    """The smallest machine that gives every string the same class, and finds the same transitions unseen.

    classes: int64 (S,), the class of each state, such as its interval of risk.
    Raises DataError unless there is one class a state.
    Source: Moore 1956, partition refinement.

    >>> twins = Transitions(0, np.array([[1, 2], [0, 1], [0, 2]], dtype=np.int32))
    >>> minimize(twins, np.array([0, 1, 1])).next.tolist()
    [[1, 1], [0, 1]]
    """
    if classes.shape != (transitions.n_states,):
        raise DataError(f"{classes.shape} classes for {transitions.n_states} states: give one class a state.")
    block, n = _numbered(classes[:, None])
    while True:
        after = np.where(transitions.next == UNSEEN, UNSEEN, block[transitions.next])
        finer, m = _numbered(np.concatenate((block[:, None], after), axis=1))
        if m == n:
            break
        block, n = finer, m
    merged = transitions.n_states - n
    notes = (f"{counted(merged, 'state')} merged into equivalent ones",) if merged else ()
    return _quotient(transitions, block, np.unique(block, return_index=True)[1], notes)


def within_budget(
    transitions: Transitions, visits: NDArray[np.int64], risks: NDArray[np.float64], max_states: int
) -> Transitions:
    """At most `max_states` states: the most visited stay, and whoever would go to another goes to the nearest of them.

    visits: int64 (S,), how often runs were in each state; the start stays in any case. risks: float64 (S, d), by which
    near is measured, as distance. Ties to the lower number, both times.
    Raises ConfigError if `max_states` is below 1.
    """
    if max_states < 1:
        raise ConfigError(f"max_states is {max_states}: an automaton has at least one state.")
    n = transitions.n_states
    if n <= max_states:
        return reachable(transitions)
    first = np.where(np.arange(n) == transitions.start, 0, 1)
    kept = np.sort(np.lexsort((np.arange(n), -visits, first))[:max_states])
    distance = np.square(risks[:, None] - risks[None, kept]).sum(axis=-1)  # (S, max_states)
    block = distance.argmin(axis=1)
    block[kept] = np.arange(len(kept))
    notes = (
        f"{counted(n - max_states, 'state')} beyond the limit of {max_states} merged into the nearest that stayed",
    )
    return _quotient(transitions, block, kept, notes)


def _quotient(
    transitions: Transitions, block: NDArray[np.int64], members: NDArray[np.int64], notes: tuple[str, ...]
) -> Transitions:
    """Blocks as states, each with the transitions of its one member that is named; tidied."""
    after = transitions.next[members]
    following = np.where(after == UNSEEN, UNSEEN, block[after]).astype(np.int32)
    return reachable(Transitions(int(block[transitions.start]), following, (*transitions.notes, *notes)))


def _numbered(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Equal rows get equal numbers, from 0; and how many there are."""
    distinct, number = np.unique(rows, axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int64), len(distinct)
