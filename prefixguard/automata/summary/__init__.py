"""All that a picture of an automaton shows, computed and never written by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.automata.summary.calls_in_runs import FailingCall, LookInRuns
from prefixguard.automata.summary.entries import Entry
from prefixguard.automata.summary.fidelity import Fidelity
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.origin import Origin
from prefixguard.automata.summary.parts import PartAlarms
from prefixguard.automata.summary.replays import Replay
from prefixguard.automata.summary.state_alarms import StateAlarms
from prefixguard.automata.summary.wording import RiskWords
from prefixguard.bundle import AlarmPerformance, Automaton


@dataclass(frozen=True, slots=True)
class AutomatonSummary:
    """An automaton with all that explains it.

    name: of the monitor. origin: of what it is. learner, alphabet: how it was learned. entries: one a symbol, in order.
    state_examples: for each state up to three steps that ended in it, one line each. replays: runs, those asked for
    first, then of the test side, failed first. chosen: how those were chosen. performance: of the alarms, on the test
    runs. ranked: all states, those that raise most first alarms first. cells: int64 (S, C), steps of all runs that were
    read, by state and span of the clock. said: of every test step what the monitor said, and the outcome risk. watch,
    alarm: thresholds of the outcome risk; None without an alarm. release: below which an alarm ends; None:
    it stays on to the end of the run. base: failure rate of the training runs. expressions:
    what the expressions in definitions mean, a sentence each, with the words behind those that rest on words. does: of
    states and of symbols, what the agent does there, a sentence; "" where no training step is. failing: the calls that
    fail most often. looks: calls that look whose runs fail less. verdict: what it is good
    for and what not. effect: what the alarms do in effect, a few sentences;
    "" without test runs. missed: failed test runs that raise no alarm. parts: first alarms by kind of task and by each
    group; () where values of groups are left out.
    """

    name: str
    origin: Origin
    learner: str
    alphabet: str
    automaton: Automaton
    entries: tuple[Entry, ...]
    state_examples: tuple[tuple[str, ...], ...]
    replays: tuple[Replay, ...]
    chosen: str
    fidelity: Fidelity
    performance: AlarmPerformance
    ranked: tuple[StateAlarms, ...]
    cells: NDArray[np.int64]
    said: tuple[tuple[Level, float], ...]
    watch: float
    alarm: float | None
    release: float | None
    base: float
    expressions: tuple[str, ...]
    does: tuple[tuple[str, ...], tuple[str, ...]]
    failing: tuple[FailingCall, ...]
    looks: tuple[LookInRuns, ...]
    verdict: str
    effect: str
    missed: MissedFailures
    parts: tuple[PartAlarms, ...]

    @property
    def sounds_above(self) -> float:
        """The threshold of the alarm; without one that of WATCH."""
        return self.watch if self.alarm is None else self.alarm

    @property
    def risks(self) -> RiskWords:
        """How outcome risks are said."""
        said = (*self.automaton.risk[..., 1].ravel().tolist(), *(risk for _, risk in self.said))
        return RiskWords.of((self.watch, self.alarm), said)


__all__ = ["AutomatonSummary", "Entry", "Fidelity", "MissedFailures", "Origin", "PartAlarms", "Replay", "StateAlarms"]
