"""Memoryless: the state is the last symbol. What every learner with a memory has to beat."""

from __future__ import annotations

import numpy as np

from prefixguard.automata.strings import Strings, Transitions, before
from prefixguard.bundle import UNSEEN


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """The start, and one state a symbol; where the budget is smaller, the rarest symbols share the last state.

    seed: not used, the learner draws nothing.
    """
    del seed
    k = strings.n_symbols
    order = np.argsort(-np.bincount(strings.symbols, minlength=k), kind="stable")
    state = np.empty(k, dtype=np.int32)
    state[order] = np.minimum(np.arange(1, k + 1), max_states - 1)
    following = np.tile(state, (min(k, max_states - 1) + 1, 1))
    taken = np.zeros(following.shape, dtype=np.bool_)
    taken[before(strings, state[strings.symbols], 0), strings.symbols] = True
    notes = (f"{k + 2 - max_states} symbols share a state",) if k > max_states - 1 else ()
    return Transitions(0, np.where(taken, following, UNSEEN).astype(np.int32), notes)
