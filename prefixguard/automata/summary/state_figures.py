"""What a state's risks come to over all columns of the clock, and whether they rest on much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from prefixguard.bundle import Automaton

#: A state whose risk was calibrated on fewer runs than this has thin evidence.
THIN_RUNS = 10


@dataclass(frozen=True, slots=True)
class StateFigures:
    """A state in numbers.

    imminent, outcome: mean risks over the columns of the clock. by_clock: outcome risk in each column; one value
    without a clock. met: of each column, whether a run is known to have been there in it. least, peak: lowest and
    highest outcome risk over these columns; without a clock both are the outcome risk. low, high: interval of the
    highest, 90 %. steps, runs: held-out evidence of its own. most_runs: what runs can be at most, for a run that was
    there in several columns of the clock was counted in each. stand_in: the state whose evidence its risk rests on;
    None: its own. visits, share: training steps that ended there, and of all. entered: whether a step can end there;
    only of the start it may be False.
    """

    state: int
    imminent: float
    outcome: float
    by_clock: tuple[float, ...]
    met: tuple[bool, ...]
    least: float
    peak: float
    low: float
    high: float
    runs: int
    most_runs: int
    steps: int
    stand_in: int | None
    visits: int
    share: float
    entered: bool

    @property
    def thin(self) -> bool:
        """Whether readings there rest on another state's evidence, or on few runs."""
        return self.entered and (self.stand_in is not None or self.most_runs < THIN_RUNS)


def state_figures(automaton: Automaton, walked: Iterable[tuple[int, int]] = ()) -> tuple[StateFigures, ...]:
    """Figures of each state, in order.

    walked: states and columns of the clock that runs are known to have been in, besides those with evidence; where
    nothing is known of a state, all columns count. Means are weighted by the state's own evidence, alike where it has
    none.
    """
    start, evidence = automaton.start, automaton.evidence.astype(np.float64)  # (S, C)
    total = evidence.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, evidence / np.maximum(total, 1), 1 / evidence.shape[1])  # (S, C), rows sum to 1
    risk = (automaton.risk * weight[:, :, None]).sum(axis=1)  # (S, 2)
    entered, met = np.ones(automaton.n_states, dtype=np.bool_), evidence > 0  # (S,), (S, C)
    leads_to_start = (automaton.transitions == start).any() or (automaton.fallback == start).any()
    entered[start] = leads_to_start or automaton.visits[start] > 0 or automaton.n_states == 1
    for state, column in walked:
        met[state, column] = True
    met[~entered, 0] = True  # of a start that no step ends in, the risk before the first step
    met[~met.any(axis=1)] = True
    by_clock = automaton.risk[:, :, 1]
    highest = np.where(met, by_clock, -1).argmax(axis=1)  # (S,)
    steps = max(int(automaton.visits.sum()), 1)
    return tuple(
        StateFigures(
            state=state,
            imminent=float(risk[state, 0]),
            outcome=float(risk[state, 1]),
            by_clock=tuple(by_clock[state].tolist()),
            met=tuple(met[state].tolist()),
            least=float(by_clock[state, met[state]].min()),
            peak=float(by_clock[state, highest[state]]),
            low=float(automaton.interval[state, highest[state], 1, 0]),
            high=float(automaton.interval[state, highest[state], 1, 1]),
            runs=int(automaton.evidence_runs[state].max()),
            most_runs=int(automaton.evidence_runs[state].sum()),
            steps=int(automaton.evidence[state].sum()),
            stand_in=stand_in if stand_in != state else None,
            visits=int(automaton.visits[state]),
            share=int(automaton.visits[state]) / steps,
            entered=bool(entered[state]),
        )
        for state, stand_in in enumerate(automaton.stand_in.tolist())
    )
