"""One risk and one interval for every state, over all columns of the clock; and whether it rests on much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prefixguard.bundle import Automaton

#: A state whose risk was calibrated on fewer runs than this has thin evidence.
THIN_RUNS = 10


@dataclass(frozen=True, slots=True)
class StateFigures:
    """A state in numbers.

    imminent, outcome: risks. low, high: interval of the outcome risk, 90 %. by_clock: outcome risk in each column; one
    value without a clock. steps, runs: held-out evidence of its own. most_runs: what runs can be at most, for a run
    that was there in several columns of the clock was counted in each. stand_in: the state whose evidence its risk
    rests on; None: its own. visits, share: training steps that ended there, and of all.
    """

    state: int
    imminent: float
    outcome: float
    low: float
    high: float
    by_clock: tuple[float, ...]
    runs: int
    most_runs: int
    steps: int
    stand_in: int | None
    visits: int
    share: float

    @property
    def thin(self) -> bool:
        """Whether its risk rests on another state's evidence, or on few runs."""
        return self.stand_in is not None or self.most_runs < THIN_RUNS


def state_figures(automaton: Automaton) -> tuple[StateFigures, ...]:
    """Figures of each state, in order.

    Columns are weighted by the state's own evidence, alike where it has none. The interval is the mean of the columns'
    intervals, which is wider than one of all evidence taken together.
    """
    evidence = automaton.evidence.astype(np.float64)  # (S, C)
    total = evidence.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, evidence / np.maximum(total, 1), 1 / evidence.shape[1])  # (S, C), rows sum to 1
    risk = (automaton.risk * weight[:, :, None]).sum(axis=1)  # (S, 2)
    ends = (automaton.interval[:, :, 1] * weight[:, :, None]).sum(axis=1)  # (S, 2): low, high
    steps = max(int(automaton.visits.sum()), 1)
    return tuple(
        StateFigures(
            state=state,
            imminent=float(risk[state, 0]),
            outcome=float(risk[state, 1]),
            low=float(ends[state, 0]),
            high=float(ends[state, 1]),
            by_clock=tuple(automaton.risk[state, :, 1].tolist()),
            runs=int(automaton.evidence_runs[state].max()),
            most_runs=int(automaton.evidence_runs[state].sum()),
            steps=int(automaton.evidence[state].sum()),
            stand_in=stand_in if stand_in != state else None,
            visits=int(automaton.visits[state]),
            share=int(automaton.visits[state]) / steps,
        )
        for state, stand_in in enumerate(automaton.stand_in.tolist())
    )
