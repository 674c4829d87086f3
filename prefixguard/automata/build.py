"""From a learner's transitions to the finished automaton: what training runs took of them, counted and calibrated.

Whatever a learner leaves, the automaton's transitions are then exactly those that training runs took: those that none
took are unseen, and those that runs took though the learner says nothing of them follow the rule for unseen ones and
are transitions from then on. So edges, visits and training steps always add up.

States that say the same are merged: those whose risks in training differ by less than 0.02 in log-odds and that lead,
on every symbol, to states that say the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.minimization import minimize, reachable
from prefixguard.automata.state_risk import calibrate, training_risk
from prefixguard.automata.strings import Strings, Transitions, before, fallback_of, walk
from prefixguard.bundle import UNSEEN, Automaton

_RESOLUTION = 0.02  # of risks, in log-odds


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """Transitions that training runs took, and what they did on them.

    edges: int64 (S, K), how often each was taken: 0 where it is UNSEEN, and only there. fallback: int32 (K,), where a
    symbol leads on an unseen one. states: int32 (steps,), after each training step.
    """

    transitions: Transitions
    edges: NDArray[np.int64]
    fallback: NDArray[np.int32]
    states: NDArray[np.int32]

    def walk(self, strings: Strings) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The state after every step of other runs, and which transitions were unseen."""
        return walk(self.transitions.start, self.transitions.next, self.fallback, strings)


def walk_training(transitions: Transitions, train: Strings) -> Walked:
    """The transitions that training runs take, and the states that they lead to; see the head of this file."""
    states, unseen = walk(transitions.start, transitions.next, None, train)
    edges = _edges(train, states, transitions)
    following, notes = transitions.next, transitions.notes
    if unseen.any():
        fallback = fallback_of(np.where(following == UNSEEN, 0, edges), following)
        states, unseen = walk(transitions.start, following, fallback, train)
        edges = _edges(train, states, transitions)
        filled = (edges > 0) & (following == UNSEEN)
        stay = np.arange(len(following), dtype=np.int32)[:, None]
        following = np.where(filled, np.where(fallback == UNSEEN, stay, fallback), following)
        n = int(np.count_nonzero(filled))
        notes = (*notes, f"{n} {'transition' if n == 1 else 'transitions'} that the learner left open: filled by rule")
    taken = np.where(edges > 0, following, UNSEEN).astype(np.int32)
    tidied = reachable(Transitions(transitions.start, taken, notes))
    states, _ = walk(tidied.start, tidied.next, None, train)
    smallest = minimize(tidied, _classes(train, states, tidied.n_states))
    if smallest.n_states < tidied.n_states:
        tidied = smallest
        states, _ = walk(tidied.start, tidied.next, None, train)
    edges = _edges(train, states, tidied)
    return Walked(tidied, edges, fallback_of(edges, tidied.next), states)


def _classes(train: Strings, states: NDArray[np.int32], n_states: int) -> NDArray[np.int64]:
    """Equal for states whose risks in training are the same within the resolution, int64 (S,)."""
    risk, _ = training_risk(train, states, n_states, ())
    cells = np.round(np.log(risk / (1 - risk)) / _RESOLUTION).astype(np.int64)
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _edges(train: Strings, states: NDArray[np.int32], transitions: Transitions) -> NDArray[np.int64]:
    shape = transitions.next.shape
    cell = before(train, states, transitions.start).astype(np.int64) * shape[1] + train.symbols
    return np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)


def build(walked: Walked, train: Strings, held_out: Strings, clock: tuple[int, ...]) -> Automaton:
    """The automaton with risks calibrated on runs that learned nothing and set no threshold.

    train: the strings that `walked` was walked by. held_out: under the same alphabet. clock: see `fit_clock`.
    """
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
