"""What a state's risks come to over the spans of the clock in which runs were there, and whether they rest on much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import Automaton

#: A state whose risk was calibrated on fewer runs than this has thin evidence.
THIN_RUNS = 10


@dataclass(frozen=True, slots=True)
class StateFigures:
    """A state in numbers. All risks are over the same spans of the clock: those in which a run was seen there.

    imminent, outcome: mean risks over the steps there. by_clock: outcome risk in each span; one value without a clock.
    met: of each span, whether a run was seen there in it. least, peak: lowest and highest outcome risk over the spans
    that were met; without a clock both are the outcome risk. low, high: interval of the highest, 90 %. steps, runs:
    held-out evidence of its own. most_runs: what runs can be at most, for a run that was there in several spans was
    counted in each. stand_in: the state whose evidence its risk rests on; None: its own. visits, share: training steps
    that ended there, and of all. entered: whether a step can end there; only of the start it may be False, and then no
    reading comes from it, and its outcome risk is the failure rate of the training runs.
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


def state_figures(
    automaton: Automaton, cells: NDArray[np.int64] | None = None, base: float | None = None
) -> tuple[StateFigures, ...]:
    """Figures of each state, in order.

    cells: int64 (S, C), how many steps of all runs that were read ended in each state in each span of the clock; None:
    the held-out evidence. Of a state of which nothing is known all spans count alike. base: failure rate of the
    training runs; None: that of a start which no step ends in is what the automaton says of it.
    """
    start, evidence = automaton.start, automaton.evidence
    known = evidence if cells is None else cells
    seen = np.where(known.any(axis=1, keepdims=True), known, 1)
    weight = seen / seen.sum(axis=1, keepdims=True)  # (S, C), rows sum to 1
    leads_to_start = (automaton.transitions == start).any() or (automaton.fallback == start).any()
    entered = np.ones(automaton.n_states, dtype=np.bool_)
    entered[start] = leads_to_start or automaton.visits[start] > 0 or automaton.n_states == 1
    total = max(int(automaton.visits.sum()), 1)
    return tuple(
        _figures(automaton, state, weight[state], None if entered[state] else base, bool(entered[state]), total)
        for state in range(automaton.n_states)
    )


def _figures(
    automaton: Automaton, state: int, weight: NDArray[np.float64], own: float | None, entered: bool, total: int
) -> StateFigures:
    """own: the outcome risk in place of the automaton's; None: the automaton's. total: training steps of all states."""
    by_clock, met = automaton.risk[state, :, 1], weight > 0
    highest = int(np.where(met, by_clock, -1).argmax())
    low, high = automaton.interval[state, highest, 1].tolist()
    stand_in, visits = int(automaton.stand_in[state]), int(automaton.visits[state])
    least, peak = float(by_clock[met].min()), float(by_clock[highest])
    if own is not None:
        by_clock, least, peak, low, high = np.full_like(by_clock, own), own, own, own, own
    return StateFigures(
        state=state,
        imminent=float(weight @ automaton.risk[state, :, 0]),
        outcome=float(np.clip(weight @ by_clock, least, peak)),  # a mean may round beyond what it is a mean of
        by_clock=tuple(by_clock.tolist()),
        met=tuple(met.tolist()),
        least=least,
        peak=peak,
        low=low,
        high=high,
        runs=int(automaton.evidence_runs[state].max()),
        most_runs=int(automaton.evidence_runs[state].sum()),
        steps=int(automaton.evidence[state].sum()),
        stand_in=stand_in if stand_in != state else None,
        visits=visits,
        share=visits / total,
        entered=entered,
    )
