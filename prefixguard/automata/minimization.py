"""Making transitions smaller without changing, or changing least, what they say. Pure functions.

All of them number states breadth first from the start, which becomes 0, symbols in order: the same machine has the same
bytes. What was changed is said in the notes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.strings import Transitions
from prefixguard.bundle import UNSEEN
from prefixguard.errors import ConfigError, DataError


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
    notes = (f"{_states(lost)} that no training run reaches: dropped",) if lost else ()
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
    notes = (f"{_states(merged)} merged into equivalent ones",) if merged else ()
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
    notes = (f"{_states(n - max_states)} beyond the limit of {max_states} merged into the nearest that stayed",)
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


def _states(n: int) -> str:
    return f"{n} state" if n == 1 else f"{n} states"
