"""A finite automaton over symbols, with a calibrated risk in every state: what `automaton.json` holds and a run walks.

A run begins in `start`. A step with symbol k moves it along `transitions[state, k]`; a transition that no training run
took is *unseen*, and then the run goes where symbol k most often led from any state (`fallback`), or stays. After the
step, both risks are read from the state's row, at the clock's column where the automaton has a clock beside it: the
clock is a coarse step index, and transitions never look at it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_RISKS = 2  # imminent, outcome
UNSEEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """The automaton; S states, K symbols, C columns of the clock (1 without a clock).

    start: the state before the first step.
    transitions: int32 (S, K); UNSEEN where no training run took it.
    fallback: int32 (K,), where a symbol leads on an unseen transition; UNSEEN: the run stays in its state.
    clock: steps, from 1 and rising, at which the next column begins; () without a clock.
    risk: float64 (S, C, 2), probabilities: imminent, outcome. interval: float64 (S, C, 2, 2), low and high, 90 %.
    edges: int64 (S, K), how often training runs took each transition.
    visits: int64 (S,), training steps that ended in each state.
    evidence: int64 (S, C), held-out steps from which the risk was calibrated. evidence_runs: int64 (S, C), their runs.
    stand_in: int32 (S,), whose evidence a state's risk rests on: its own number, or that of the nearest state with
        enough where its own is thin.
    """

    start: int
    transitions: NDArray[np.int32]
    fallback: NDArray[np.int32]
    clock: tuple[int, ...]
    risk: NDArray[np.float64]
    interval: NDArray[np.float64]
    edges: NDArray[np.int64]
    visits: NDArray[np.int64]
    evidence: NDArray[np.int64]
    evidence_runs: NDArray[np.int64]
    stand_in: NDArray[np.int32]

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.transitions)

    @property
    def n_symbols(self) -> int:
        """K."""
        return int(self.transitions.shape[1])

    def column(self, step: int) -> int:
        """The clock's column of a step (from 1)."""
        return bisect_right(self.clock, step)

    def follow(self, state: int, symbol: int) -> tuple[int, bool]:
        """The state after a symbol, and whether the transition was unseen."""
        after = int(self.transitions[state, symbol])
        if after != UNSEEN:
            return after, False
        after = int(self.fallback[symbol])
        return (after if after != UNSEEN else state), True
