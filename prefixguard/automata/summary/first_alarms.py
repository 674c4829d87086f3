"""The first alarm of each test run that sounds: what was read there, and whether it is the clock that raised it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.alarm import Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.span_pools import pools_of
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.wording import RiskWords, count_text
from prefixguard.behaviours import CATALOGUE, PLACES
from prefixguard.bundle import Automaton

#: What is said of a state's first alarms holds for more than this share of them.
MOST_ALARMS = 0.5
_FAULTS = [PLACES[one.name] for one in CATALOGUE if one.kind == "fault"]


@dataclass(frozen=True, slots=True)
class FirstAlarm:
    """The first alarm of a test run. step: its place among all steps of the corpus. at: from 1, in the run. before: the
    risk of the same state in the spans of the clock before those of this risk, if it would not sound there; else None.
    stayed: whether the run was in this state at the step before too. fault: whether a fault of the catalogue was read
    there."""

    run: int
    step: int
    at: int
    symbol: int
    state: int
    failed: bool
    before: float | None
    stayed: bool
    fault: bool

    @property
    def by_clock(self) -> bool:
        """Whether it came by the number of the step alone: a fault that goes on is no mere passing of time."""
        return self.before is not None and not self.fault


def first_alarms(material: Material, automaton: Automaton, walks: Walks, thresholds: Thresholds) -> list[FirstAlarm]:
    """Of each test run that sounds."""
    sound, threshold = (
        (Level.ALARM, thresholds.alarm) if thresholds.alarm is not None else (Level.WATCH, thresholds.watch)
    )
    columns, found = columns_of(automaton.clock, walks.strings).tolist(), []
    begins, held = pools_of(automaton), material.corpus.held
    for i, (a, b) in enumerate(pairwise(walks.strings.first.tolist())):
        t = next((t for t in range(a, b) if walks.levels[t] is sound), None)
        if t is not None:
            run, state = int(material.test[i]), int(walks.states[t])
            begin = int(begins[state, columns[t]])
            earlier = float(automaton.risk[state, begin - 1, 1]) if begin else math.inf
            step, failed = int(material.corpus.first[run]) + t - a, bool(walks.strings.failed[i])
            stayed = t > a and int(walks.states[t - 1]) == state
            before = earlier if earlier <= threshold else None
            symbol = int(walks.strings.symbols[t])
            fault = held is not None and bool(held[step, _FAULTS].any())
            found.append(FirstAlarm(run, step, t - a + 1, symbol, state, failed, before, stayed, fault))
    return found


def symbols_read(here: Sequence[FirstAlarm], glosses: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """What was read at these alarms, with how often, the most frequent first."""
    counts = Counter(one.symbol for one in here)
    return tuple((glosses[k], n) for k, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def clock_raises(here: Sequence[FirstAlarm], limit: float) -> Iterator[str]:
    """Where most of a state's first alarms would not have come at earlier steps, a sentence. limit: the threshold."""
    late = [one.before for one in here if one.before is not None]
    if len(late) <= MOST_ALARMS * len(here):
        return
    said = RiskWords.of((limit,), late).risk(max(late))
    before = f"in the range of steps before, the risk of this state is {said} at most, not above the threshold."
    if faults := sum(one.before is not None and one.fault for one in here):
        n = "at each" if faults == len(late) else f"at {faults:,} of them"
        with_it = f" As a fault was read {n}, it is the fault that goes on, or comes late, and not the clock alone."
        yield f"{of_its(len(late), len(here))} would not have come earlier: {before}{with_it}"
        return
    stayed = sum(one.stayed for one in here if one.before is not None)
    yield (
        f"{of_its(len(late), len(here))} came because of the number of the step: {before}"
        + (f" {count_text(stayed, 'run')} had been in this state at the step before." if stayed else "")
    )


def of_its(count: int, total: int) -> str:
    """So many of a state's first alarms, in words."""
    if total == 1:
        return "Its only first alarm"
    both = "Both" if total == 2 else f"All {total:,}"
    return f"{both} of its first alarms" if count == total else f"{count:,} of its {total:,} first alarms"
