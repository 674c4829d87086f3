"""Which states raise first alarms, by which behaviours, and whether it is an agent or the number of the step instead.

First alarms are counted on test runs, and with them the behaviours that hold there. What leads to a state, and whose
steps those are, is counted on training runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.alarms import group_names
from prefixguard.automata.summary.doubts import risks_in_doubt
from prefixguard.automata.summary.entries import Entry, nearest_first, step_line
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.first_alarms import (
    MOST_ALARMS,
    FirstAlarm,
    clock_raises,
    first_alarms,
    of_its,
    symbols_read,
)
from prefixguard.automata.summary.mixtures import mixed_states
from prefixguard.automata.summary.shared_names import Family, families, owner, short_names
from prefixguard.automata.summary.wording import RiskWords, both_ends, count_text, one_line, share_text
from prefixguard.behaviours import BY_NAME, CATALOGUE, PLACES
from prefixguard.bundle import Automaton, state_names
from prefixguard.runtime import plain

#: A value of a group dominates a state above this share of its steps, if it has less than that share of all steps.
ONE_VALUE = 0.8
OF_ALL = 0.5
#: Steps near the cap are those from this share of the 95th percentile of run lengths on; they dominate above a half.
NEAR_CAP = 0.9
LATE_SHARE = 0.5
#: A symbol is late that no training run had in the first of so large a part of that length.
LATE_SYMBOL = 0.5
#: A behaviour is advised on if it holds at this share of the first alarms or more.
ADVISED_SHARE = 1 / 3
_NAME, _VALUE = 120, 48
_QUOTED = 400
_LEADING = 2  # values and behaviours that are named
_FEW_ALARMS = 5  # of fewer it is not said whose runs they are
#: Risks stand on a threshold that differ from it by no more.
_SAME = 1e-6
#: Behaviours that developers can do something about.
_FAULTS = tuple(one.name for one in CATALOGUE if one.advice)


@dataclass(frozen=True, slots=True)
class StateAlarms:
    """A state, and the first alarms that it raised on test runs.

    failed, successful: first alarms on runs of this outcome. share: of all first alarms on failed runs; 0 without any.
    sentence: what leads there. symbols: what was read at its first alarms, in words, with how often, the most frequent
    first. mix: of each group, its values with their shares of the state's training steps, most
    frequent first. steps: numbers of the steps that end there: tenth, fiftieth and ninetieth percentile; None where no
    step does. earliest: the first at which a training or test run was there; 1 where none was. at: steps of the first
    alarms, from 1, ascending. flags: sentences; what dominates the state besides behaviour. doubt: where test runs did
    otherwise than its risks say, a sentence; else "". faults: behaviours of the catalogue, by name, that hold at first
    alarms on failed runs, each with at how many; faults first, the most frequent before the others. examples: for each
    of `advised` the most typical step of such an alarm, one line, text from a run; () where texts are left out. quoted:
    the runs that they are of, by their numbers. clocked: first alarms that came by the number of the step, or by a
    symbol that no training run had before a late step; by_late_symbol: by the latter alone; by_both: those that would
    not have come in the range of steps before, but came at a step at which a fault was read. on_threshold: where a risk
    of the state stands on the threshold, what an alarm there would have done, a sentence; else "".
    """

    state: int
    failed: int
    successful: int
    share: float
    sentence: str
    mix: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    steps: tuple[int, int, int] | None
    earliest: int
    at: tuple[int, ...]
    flags: tuple[str, ...]
    doubt: str
    faults: tuple[tuple[str, int], ...]
    examples: tuple[str, ...]
    quoted: tuple[int, ...] = ()
    clocked: int = 0
    on_threshold: str = ""
    by_late_symbol: int = 0
    by_both: int = 0
    symbols: tuple[tuple[str, int], ...] = ()

    @property
    def read_at_alarms(self) -> str:
        """The symbols that were read at most of its first alarms, in words; "" without any."""
        parts = [f'"{gloss}" ({n:,} of {len(self.at):,})' for gloss, n in self.symbols[:_LEADING]]
        top = " or ".join(parts if len(self.symbols) > 1 else [f'"{gloss}"' for gloss, _ in self.symbols])
        return f"First alarms come at {top}." if top else ""

    @property
    def advised(self) -> tuple[tuple[str, int], ...]:
        """The behaviours that are advised on, at most two: a single alarm that came by the clock gives no advice."""
        return () if self.one_by_clock else _advised(self.faults, self.failed)

    @property
    def one_by_clock(self) -> bool:
        """Whether its only first alarm on a failed run came by the clock."""
        return self.failed == 1 and self.clocked > self.successful


def rank_states(
    material: Material,
    automaton: Automaton,
    entries: Sequence[Entry],
    states: NDArray[np.int32],
    walks: Walks,
    thresholds: Thresholds,
    pool: Strings,
    *,
    horizon: int = 3,
    examples: bool = True,
) -> tuple[StateAlarms, ...]:
    """Every state, those that raise most first alarms on failed runs first; ties by successful runs, then by number.

    entries: the symbols in words. states: int32, after each step of the pool's runs. walks: of the test side.
    thresholds: without one of the alarm, WATCH counts as an alarm. pool: the runs that it was learned from, as strings.
    horizon: an alarm with more steps left is early. examples: False leaves out the texts of steps and the values of
    groups.
    """
    corpus, runs = material.corpus, material.pool.tolist()
    lengths = corpus.lengths[runs]
    index = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    longest = float(np.percentile(lengths, 95)) if len(lengths) else 0.0
    cap_near, late_from = NEAR_CAP * longest, LATE_SYMBOL * longest
    first = first_alarms(material, automaton, walks, thresholds)
    late_symbols = {entry.symbol for entry in entries if entry.earliest > late_from}
    failed, successful = (Counter(one.state for one in first if one.failed is wanted) for wanted in (True, False))
    values = {
        name: np.repeat(np.array([corpus.groups[r].get(name, "") for r in runs], dtype=object), lengths)
        for name in group_names(material)
    }
    short = {name: short_names(of.get(name, "") for of in corpus.groups) for name in values}
    learned = {name: families(Counter(of.tolist()), OF_ALL) for name, of in values.items()}
    tested = {
        name: families(Counter(corpus.groups[r].get(name, "") for r in material.test.tolist()), OF_ALL)
        for name in values
    }
    glosses = [entry.gloss for entry in entries]
    names = state_names(automaton, glosses)
    mixed, found = mixed_states(pool, states, automaton.n_states, glosses), []
    doubts = risks_in_doubt(walks, automaton.n_states)
    limit = thresholds.watch if thresholds.alarm is None else thresholds.alarm
    for state in range(automaton.n_states):
        mine = states == state
        mix, flags = [], []
        for name, of in values.items():
            here_of = of[mine].tolist()
            shares = _shares(here_of)
            if (found_owner := owner(here_of, learned[name], ONE_VALUE)) is not None:
                family, n = found_owner
                flags.append(
                    f"{share_text(n / len(here_of))} of its steps are of {_who(family, name, examples=examples)}, "
                    f"{share_text(family.share)} of all steps."
                )
            named = tuple(
                (one_line(both_ends(short[name][v], _VALUE), _VALUE) if examples else "one value", s)
                for v, s in shares[:_LEADING]
            )
            mix.append((one_line(name, _NAME), named))
        here = [one for one in first if one.state == state]
        flags += _owners(material, here, tested, examples=examples)
        steps = index[mine]
        if len(steps) and (part := float((steps >= cap_near).mean())) > LATE_SHARE:
            cap = f"step {int(np.ceil(cap_near))} or later, near the greatest lengths of runs"
            flags.append(f"{share_text(part)} of its steps are at {cap}.")
        by_symbol = [one for one in here if one.symbol in late_symbols]
        if len(by_symbol) > MOST_ALARMS * len(here):
            soonest = min(entries[one.symbol].earliest for one in by_symbol)
            flags.append(
                f"{of_its(len(by_symbol), len(here))} came by a symbol that no training run had before step "
                f"{soonest}: that tells how long the run is, and perhaps no behaviour."
            )
        flags += clock_raises(here, limit)
        flags += [mixed[state]] if state in mixed else []
        alarms = [one for one in here if one.failed]
        faults = _faults(material, alarms)
        typical = [_typical(material, alarms, name) for name, _ in _advised(faults, failed[state])]
        low, middle, high = np.percentile(steps, [10, 50, 90], method="nearest").tolist() if len(steps) else (0, 0, 0)
        found.append(
            StateAlarms(
                state=state,
                failed=failed[state],
                successful=successful[state],
                share=failed[state] / max(failed.total(), 1),
                sentence=names[state],
                mix=tuple(mix),
                steps=(low, middle, high) if len(steps) else None,
                earliest=min((*steps.tolist(), *walks.strings.index[walks.states == state].tolist()), default=1),
                at=tuple(sorted(one.at for one in here)),
                flags=tuple(flags),
                doubt=doubts.get(state, ""),
                faults=faults,
                examples=tuple(_example(material, one) for one in typical) if examples else (),
                quoted=tuple(one.run for one in typical),
                clocked=sum(one.by_clock or one.symbol in late_symbols for one in here),
                on_threshold=_on_threshold(automaton, walks, thresholds, limit, state, horizon),
                by_late_symbol=sum(not one.by_clock and one.symbol in late_symbols for one in here),
                by_both=sum(one.before is not None and one.fault and one.symbol not in late_symbols for one in here),
                symbols=symbols_read(here, glosses),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.failed, -one.successful, one.state)))


def _owners(
    material: Material, here: Sequence[FirstAlarm], tested: Mapping[str, Sequence[Family]], *, examples: bool
) -> Iterator[str]:
    """Of each group of which one value, or one family of them, has nearly all of a state's first alarms and not most
    test runs, a sentence. tested: of each group, those that do not have most test runs."""
    if len(here) < _FEW_ALARMS:
        return
    for name, among in tested.items():
        values = [material.corpus.groups[one.run].get(name, "") for one in here]
        if (found := owner(values, among, ONE_VALUE)) is not None:
            family, n = found
            yield (
                f"{of_its(n, len(here))} came on runs of {_who(family, name, examples=examples)}, as are "
                f"{share_text(family.share)} of all test runs."
            )


def _who(family: Family, group: str, *, examples: bool) -> str:
    """Without examples no name of a run's origin is said."""
    if not examples:
        return f"{'a few' if len(family.values) > 1 else 'one'} {group}{'s' * (len(family.values) > 1)}"
    return one_line(family.said(group), _NAME)


def _faults(material: Material, alarms: Sequence[FirstAlarm]) -> tuple[tuple[str, int], ...]:
    """Behaviours that hold at the steps of these alarms, with at how many; faults first, ties in the catalogue's
    order."""
    held = material.corpus.held
    if held is None:
        return ()
    of = held[[one.step for one in alarms]] > 0
    counts = [(name, int(of[:, PLACES[name]].sum())) for name in _FAULTS]
    held_at = [(name, n) for name, n in counts if n]
    return tuple(sorted(held_at, key=lambda pair: (BY_NAME[pair[0]].kind == "neutral", -pair[1])))


def _advised(faults: Sequence[tuple[str, int]], failed: int) -> tuple[tuple[str, int], ...]:
    """Of the behaviours at so many alarms those that hold at enough of them, at most two, faults before others."""
    return tuple((name, n) for name, n in faults if n >= ADVISED_SHARE * failed)[:_LEADING]


def _on_threshold(
    automaton: Automaton, walks: Walks, thresholds: Thresholds, limit: float, state: int, horizon: int
) -> str:
    """What an alarm would have done in the spans of a state whose risk is the threshold itself; "" where none is, or
    no test run came there. Runs that had sounded before count too, as those that the alarm finds."""
    spans = np.flatnonzero(np.abs(automaton.risk[state, :, 1] - limit) <= _SAME)
    there = (walks.states == state) & np.isin(columns_of(automaton.clock, walks.strings), spans)
    sound = Level.WATCH if thresholds.alarm is None else Level.ALARM
    left: dict[bool, list[int]] = {True: [], False: []}
    missed = 0
    for failed, (a, b) in zip(walks.strings.failed.tolist(), pairwise(walks.strings.first.tolist()), strict=True):
        at = np.flatnonzero(there[a:b])
        if len(at):
            left[failed].append(b - a - 1 - int(at[0]))
            missed += failed and sound not in walks.levels[a:b]
    if not left[True] and not left[False]:
        return ""
    caught, early = len(left[True]), sum(n > horizon for n in left[True])
    said = RiskWords((limit,)).risk(limit)
    return (
        f"The risk of state {state} is the threshold itself, {said}, and an alarm needs more. One there would have "
        f"caught {count_text(caught, 'failed test run')}, {early:,} with more than {count_text(horizon, 'step')} left "
        f"and {missed:,} that raise no alarm now, at {count_text(len(left[False]), 'false alarm')}; but a successful "
        "run of those that set the threshold reads so."
    )


def _typical(material: Material, alarms: Sequence[FirstAlarm], fault: str) -> FirstAlarm:
    """The alarm at whose step this behaviour holds whose words are most like those of the others."""
    corpus = material.corpus
    shown = [one for one in alarms if corpus.held is not None and corpus.held[one.step, PLACES[fault]]]
    shown.sort(key=lambda one: corpus.run_ids[one.run])
    return shown[int(nearest_first(material.matrix[[one.step for one in shown]])[0])]


def _example(material: Material, one: FirstAlarm) -> str:
    corpus = material.corpus
    line = step_line(corpus.documents.read(one.step, one.step + 1), _QUOTED)
    return f"run {plain(both_ends(corpus.run_ids[one.run], _NAME), _NAME)}, step {one.at}: {line}"


def _shares(values: Sequence[str]) -> list[tuple[str, float]]:
    """Values with their shares, most frequent first, ties by name."""
    counts = Counter(values)
    return [(value, n / len(values)) for value, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
