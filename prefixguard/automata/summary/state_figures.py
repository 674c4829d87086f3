"""What a state's risks come to over the spans of the clock in which runs were there, and whether they rest on much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.span_pools import pools_of
from prefixguard.bundle import Automaton

#: A state none of whose spans of the clock was calibrated on so many runs has thin evidence; so has a span with fewer.
THIN_RUNS = 10


@dataclass(frozen=True, slots=True)
class StateFigures:
    """A state in numbers. All risks are over the same spans of the clock: those that are known, or, where these
    hold less than half of the steps there, those that were met: what is said at most steps counts.

    imminent, outcome: mean risks over the steps there. by_clock: outcome risk in each span; one value without a clock.
    met: of each span, whether a run was seen there in it. pools: the first span of its pool, neighbouring
    spans of one outcome risk, which rests on the runs of all of them. known: whether held-out runs were in its pool, so
    that its risk was calibrated; where that is so of no span, those that were met. usual: the risk that half of the
    steps there read, or less: the median over steps; without a clock the outcome risk. least, peak: lowest and highest.
    low, high: 90 % interval of the usual one. steps, runs: held-out evidence of its own; runs are those of the span
    with most, for how many there are in all spans is not kept. stand_in: the state whose evidence its risk rests on;
    None: its own. visits, share: training steps that ended there, and of all. entered: whether a step can end there;
    only of the start it may be False, and then no reading comes from it, and its outcome risk is the failure rate of
    the training runs.
    """

    state: int
    imminent: float
    outcome: float
    by_clock: tuple[float, ...]
    met: tuple[bool, ...]
    pools: tuple[int, ...]
    known: tuple[bool, ...]
    usual: float
    least: float
    peak: float
    low: float
    high: float
    runs: int
    steps: int
    stand_in: int | None
    visits: int
    share: float
    entered: bool

    @property
    def thin(self) -> bool:
        """Whether readings there rest on another state's evidence, or on few runs at every step."""
        return self.entered and (self.stand_in is not None or self.runs < THIN_RUNS)

    @property
    def usually(self) -> str:
        """What stands before the range from `least` to `peak`: "usually " where spans that do not count say a risk
        outside of it, as one in which no held-out run was; else ""."""
        return "usually " if min(self.by_clock) < self.least or max(self.by_clock) > self.peak else ""


def state_figures(
    automaton: Automaton, cells: NDArray[np.int64] | None = None, base: float | None = None
) -> tuple[StateFigures, ...]:
    """Figures of each state, in order.

    cells: int64 (S, C), how many steps of all runs that were read ended in each state in each span of the clock; None:
    the held-out evidence. Of a state of which nothing is known all spans count alike. base: failure rate of the
    training runs; None: that of a start which no step ends in is what the automaton says of it.
    """
    start, evidence = automaton.start, automaton.evidence
    read = evidence if cells is None else cells
    seen = np.where(read.any(axis=1, keepdims=True), read, 1)
    pools = pools_of(automaton)
    there = np.array(
        [np.bincount(of, row, len(row))[of] for of, row in zip(pools, evidence[automaton.stand_in], strict=True)]
    )
    calibrated = np.where(there > 0, seen, 0)
    known = np.where(calibrated.any(axis=1, keepdims=True), calibrated, seen)
    counted = np.where(2 * known.sum(axis=1, keepdims=True) >= seen.sum(axis=1, keepdims=True), known, seen)
    weight = counted / counted.sum(axis=1, keepdims=True)  # (S, C), rows sum to 1; 0 where it does not count
    leads_to_start = (automaton.transitions == start).any() or (automaton.fallback == start).any()
    entered = np.ones(automaton.n_states, dtype=np.bool_)
    entered[start] = leads_to_start or automaton.visits[start] > 0 or automaton.n_states == 1
    total = max(int(automaton.visits.sum()), 1)
    return tuple(
        _figures(
            automaton,
            state,
            seen[state] > 0,
            pools[state],
            known[state] > 0,
            weight[state],
            None if entered[state] else base,
            bool(entered[state]),
            total,
        )
        for state in range(automaton.n_states)
    )


def _figures(
    automaton: Automaton,
    state: int,
    met: NDArray[np.bool_],
    pools: NDArray[np.int64],
    known: NDArray[np.bool_],
    weight: NDArray[np.float64],
    own: float | None,
    entered: bool,
    total: int,
) -> StateFigures:
    """weight: share of its steps in each span. own: the outcome risk in place of the automaton's, if any. total:
    training steps of all states."""
    by_clock, counts = automaton.risk[state, :, 1], weight > 0
    by_risk = np.argsort(by_clock, kind="stable")
    middle = int(by_risk[np.searchsorted(np.cumsum(weight[by_risk]), 0.5 - 1e-12)])
    low, high = automaton.interval[state, middle, 1].tolist()
    stand_in, visits = int(automaton.stand_in[state]), int(automaton.visits[state])
    usual, least, peak = float(by_clock[middle]), float(by_clock[counts].min()), float(by_clock[counts].max())
    if own is not None:
        by_clock, usual, least, peak, low, high = np.full_like(by_clock, own), own, own, own, own, own
    return StateFigures(
        state=state,
        imminent=float(weight @ automaton.risk[state, :, 0]),
        outcome=float(np.clip(weight @ by_clock, least, peak)),  # a mean may round beyond what it is a mean of
        by_clock=tuple(by_clock.tolist()),
        met=tuple(met.tolist()),
        pools=tuple(pools.tolist()),
        known=tuple(known.tolist()),
        usual=usual,
        least=least,
        peak=peak,
        low=low,
        high=high,
        runs=int(automaton.evidence_runs[state].max()),
        steps=int(automaton.evidence[state].sum()),
        stand_in=stand_in if stand_in != state else None,
        visits=visits,
        share=visits / total,
        entered=entered,
    )
