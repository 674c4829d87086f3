"""From a learner's transitions to the finished automaton: tidied, counted, calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.state_risk import calibrate
from prefixguard.automata.strings import Strings, Transitions, before, fallback_of, walk
from prefixguard.bundle import UNSEEN, Automaton


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """Tidied transitions with what training runs did on them.

    edges: int64 (S, K), how often each was taken. states: int32 (steps,), after each training step.
    """

    transitions: Transitions
    edges: NDArray[np.int64]
    fallback: NDArray[np.int32]
    states: NDArray[np.int32]

    def walk(self, strings: Strings) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The state after every step of other runs, and which transitions were unseen."""
        return walk(self.transitions.start, self.transitions.next, self.fallback, strings)


def reachable(transitions: Transitions) -> Transitions:
    """Without the states that no string leads to, numbered breadth first from the start, which becomes 0."""
    number, queue = {transitions.start: 0}, [transitions.start]
    for state in queue:
        for after in transitions.next[state].tolist():
            if after != UNSEEN and after not in number:
                number[after] = len(number)
                queue.append(after)
    renumber = np.full(transitions.n_states + 1, UNSEEN, dtype=np.int32)  # the last place is for UNSEEN, -1
    renumber[list(number)] = list(number.values())
    lost = transitions.n_states - len(number)
    notes = (f"{lost} states that no string reaches were dropped",) if lost else ()
    return Transitions(0, renumber[transitions.next[queue]], (*transitions.notes, *notes))


def walk_training(transitions: Transitions, train: Strings) -> Walked:
    """Drop what training runs do not reach, number states in order of their first visit, count transitions."""
    tidied = reachable(transitions)
    nowhere = np.full(train.n_symbols, UNSEEN, dtype=np.int32)
    states, _ = walk(tidied.start, tidied.next, nowhere, train)
    shape = tidied.next.shape
    cell = before(train, states, tidied.start).astype(np.int64) * shape[1] + train.symbols
    edges = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)
    return Walked(tidied, edges, fallback_of(edges, tidied.next), states)


def build(walked: Walked, train: Strings, held_out: Strings, clock: tuple[int, ...]) -> Automaton:
    """The automaton with risks calibrated on runs that learned nothing and set no threshold."""
    held_out_states, _ = walked.walk(held_out)
    n = walked.transitions.n_states
    found = calibrate(train, walked.states, held_out, held_out_states, n, clock)
    return Automaton(
        start=walked.transitions.start,
        transitions=walked.transitions.next,
        fallback=walked.fallback,
        clock=clock,
        risk=found.risk,
        interval=found.interval,
        edges=walked.edges,
        visits=np.bincount(walked.states, minlength=n).astype(np.int64),
        evidence=found.evidence,
        evidence_runs=found.evidence_runs,
        stand_in=found.stand_in,
    )
