"""Which states raise first alarms, by which behaviours, and whether it is an agent or the number of the step instead.

First alarms are counted on test runs, and with them the behaviours that hold there. What leads to a state, and whose
steps those are, is counted on training runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from scipy.stats import false_discovery_control

from prefixguard.alarm import Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.span_pools import design_effects
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.summary.alarms import CELL_RUNS, group_names
from prefixguard.automata.summary.entries import Entry, nearest_first, step_line
from prefixguard.automata.summary.fidelity import Walks
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
#: The clock raises a state's alarms if above this share of them would not be, were the run in an earlier span.
CLOCK_SHARE = 0.5
#: A behaviour is advised on if it holds at this share of the first alarms or more.
ADVISED_SHARE = 1 / 3
#: Of the states whose risks are called in doubt, so many at most are expected to be so by chance.
_BY_CHANCE = 0.1
_NAME, _VALUE = 120, 48
_QUOTED = 400
_LEADING = 2  # values and behaviours that are named
_FEW_ALARMS = 5  # of fewer it is not said whose runs they are
_SHOWN = 5  # states of which it is said what to change
#: Behaviours that developers can do something about.
_FAULTS = tuple(one.name for one in CATALOGUE if one.advice)


@dataclass(frozen=True, slots=True)
class StateAlarms:
    """A state, and the first alarms that it raised on test runs.

    failed, successful: first alarms on runs of this outcome. share: of all first alarms on failed runs; 0 without any.
    sentence: what leads there. mix: of each group, its values with their shares of the state's training steps, most
    frequent first. steps: numbers of the steps that end there: tenth, fiftieth and ninetieth percentile; None where no
    step does. earliest: the first at which a training or test run was there; 1 where none was. at: steps of the first
    alarms, from 1, ascending. flags: sentences; what dominates the state besides behaviour. doubt: where test runs did
    otherwise than its risks say, a sentence; else "". faults: behaviours of the catalogue, by name, that hold at first
    alarms on failed runs, each with at how many; most frequent first. example: the most typical step of such an alarm,
    at which the first of these holds, one line, text from a run; "" where there is none, or texts are left out.
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
    example: str


def rank_states(
    material: Material,
    automaton: Automaton,
    entries: Sequence[Entry],
    states: NDArray[np.int32],
    walks: Walks,
    thresholds: Thresholds,
    *,
    examples: bool = True,
) -> tuple[StateAlarms, ...]:
    """Every state, those that raise most first alarms on failed runs first; ties by successful runs, then by number.

    entries: the symbols in words. states: int32, after each step of the pool's runs. walks: of the test side.
    thresholds: without one of the alarm, WATCH counts as an alarm. examples: False leaves out the texts of steps and
    the values of groups.
    """
    corpus, pool = material.corpus, material.pool
    lengths = corpus.lengths[pool]
    index = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    cap_near = NEAR_CAP * float(np.percentile(lengths, 95)) if len(lengths) else 0.0
    first = _first_alarms(material, automaton, walks, thresholds)
    failed, successful = (Counter(one.state for one in first if one.failed is wanted) for wanted in (True, False))
    values = {
        name: np.repeat(np.array([corpus.groups[r].get(name, "") for r in pool.tolist()], dtype=object), lengths)
        for name in group_names(material)
    }
    short = {name: short_names(of.get(name, "") for of in corpus.groups) for name in values}
    learned = {name: families(Counter(of.tolist()), OF_ALL) for name, of in values.items()}
    tested = {
        name: families(Counter(corpus.groups[r].get(name, "") for r in material.test.tolist()), OF_ALL)
        for name in values
    }
    names = state_names(automaton, [entry.gloss for entry in entries])
    found, doubts = [], _doubts(walks, automaton.n_states)
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
        late = [one.before for one in here if one.before is not None]
        if len(late) > CLOCK_SHARE * len(here):
            said = RiskWords.of((limit,), late).risk(max(late))
            stayed = sum(one.stayed for one in here if one.before is not None)
            flags.append(
                f"{_of_its(len(late), len(here))} came by the number of the step: some steps earlier this state's risk "
                f"is {said} at most, not above the threshold."
                + (f" {stayed:,} of these runs were in this state already." if stayed else "")
            )
        alarms = [one for one in here if one.failed]
        faults = _faults(material, alarms)
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
                example=_example(material, alarms, faults[0][0]) if examples and faults else "",
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.failed, -one.successful, one.state)))


def changes(ranked: Sequence[StateAlarms]) -> Iterator[str]:
    """What to change, a few sentences each: the states that raise most first alarms on failed runs, the behaviours that
    hold at them, and what the catalogue advises; last, how many states are left out."""
    total = sum(one.failed for one in ranked)
    raising = [one for one in ranked if one.failed]
    for one in raising[:_SHOWN]:
        of_all = f"{one.failed:,} of the {total:,} first alarms" if total > 1 else "the only first alarm"
        said = f"State {one.state} raises {of_all} on failed runs"
        said += f" and {one.successful:,} on successful ones. {one.sentence}"
        advised = [(name, n) for name, n in one.faults[:_LEADING] if n >= ADVISED_SHARE * one.failed]
        for name, n in advised:
            of = BY_NAME[name]
            part = (
                f"{n:,} of these {one.failed:,} alarms" if n < one.failed else "all of these" if n > 1 else "this one"
            )
            said += f" At {part}: {of.sentence} To change: {of.advice}"
        if not advised:
            few = f"a third of these {count_text(one.failed, 'alarm')}" if one.faults else "any of these alarms"
            said += f" No fault of the catalogue holds at {few}: the automaton has nothing to advise."
        if one.flags:
            said += f" But {' '.join(one.flags)}" + ("" if advised else " This may be no behaviour to change.")
        yield said + (f" As in {one.example}" if one.example and advised else "")
    if rest := raising[_SHOWN:]:
        alarms = count_text(sum(one.failed for one in rest), "first alarm")
        yield f"{alarms} on failed runs came in {count_text(len(rest), 'more state')}: see the table."


@dataclass(frozen=True, slots=True)
class _FirstAlarm:
    """Of a test run. step: its place among all steps of the corpus. at: from 1, in the run. before: the
    risk of the same state in the span of the clock before, if it would not sound there; else None. stayed: whether the
    run was in this state at the step before too."""

    run: int
    step: int
    at: int
    state: int
    failed: bool
    before: float | None
    stayed: bool


def _first_alarms(material: Material, automaton: Automaton, walks: Walks, thresholds: Thresholds) -> list[_FirstAlarm]:
    """Of each test run that sounds."""
    sound, threshold = (
        (Level.ALARM, thresholds.alarm) if thresholds.alarm is not None else (Level.WATCH, thresholds.watch)
    )
    columns, found = columns_of(automaton.clock, walks.strings).tolist(), []
    for i, (a, b) in enumerate(pairwise(walks.strings.first.tolist())):
        t = next((t for t in range(a, b) if walks.levels[t] is sound), None)
        if t is not None:
            run, state, column = int(material.test[i]), int(walks.states[t]), columns[t]
            earlier = float(automaton.risk[state, column - 1, 1]) if column else math.inf
            step, failed = int(material.corpus.first[run]) + t - a, bool(walks.strings.failed[i])
            stayed = t > a and int(walks.states[t - 1]) == state
            before = earlier if earlier <= threshold else None
            found.append(_FirstAlarm(run, step, t - a + 1, state, failed, before, stayed))
    return found


def _owners(
    material: Material, here: Sequence[_FirstAlarm], tested: Mapping[str, Sequence[Family]], *, examples: bool
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
                f"{_of_its(n, len(here))} came on runs of {_who(family, name, examples=examples)}, as are "
                f"{share_text(family.share)} of all test runs."
            )


def _who(family: Family, group: str, *, examples: bool) -> str:
    """Without examples no name of a run's origin is said."""
    if not examples:
        return f"{'a few' if len(family.values) > 1 else 'one'} {group}{'s' * (len(family.values) > 1)}"
    return one_line(family.said(group), _NAME)


def _of_its(count: int, total: int) -> str:
    if total == 1:
        return "Its only first alarm"
    return f"All {total:,} of its first alarms" if count == total else f"{count:,} of its {total:,} first alarms"


def _doubts(walks: Walks, n_states: int) -> dict[int, str]:
    """Of each state whose risks are not what test runs there did, a sentence: states with enough test runs are tested
    together, both ways, runs of one task counting as fewer than they are.

    Source: Benjamini, Hochberg 1995.
    """
    strings = walks.strings
    pairs = np.repeat(np.arange(len(strings)), strings.lengths) * n_states + walks.states
    pairs, at, steps = np.unique(pairs, return_inverse=True, return_counts=True)
    run, state = np.divmod(pairs, n_states)
    failed = strings.failed[run].astype(np.float64)
    runs, failures, risks = (
        np.bincount(state, of, n_states)
        for of in (None, failed, np.bincount(at, walks.risks[:, 1], len(pairs)) / steps)
    )
    there = np.flatnonzero(runs >= CELL_RUNS)
    if not len(there):
        return {}
    design = design_effects(run, strings.tasks[run], state, failed, n_states)[there]
    risk = risks[there] / runs[there]
    n, k = runs[there] / design, failures[there] / design
    few = np.where(k < n, betainc(np.maximum(n - k, 1e-9), k + 1, 1 - risk), 1.0)  # the binomial's, of any n
    many = np.where(k > 0, betainc(np.maximum(k, 1e-9), n - k + 1, risk), 1.0)
    chances = false_discovery_control(np.minimum(2 * np.minimum(few, many), 1.0))
    return {
        s: f"{share_text(failures[s] / runs[s])} of the {runs[s]:,} test runs that came here failed; by its risks "
        f"{share_text(risks[s] / runs[s])} would."
        for s, chance in zip(there.tolist(), chances.tolist(), strict=True)
        if chance <= _BY_CHANCE
    }


def _faults(material: Material, alarms: Sequence[_FirstAlarm]) -> tuple[tuple[str, int], ...]:
    """Behaviours that hold at the steps of these alarms, with at how many; faults first, ties in the catalogue's
    order."""
    held = material.corpus.held
    if held is None:
        return ()
    of = held[[one.step for one in alarms]] > 0
    counts = [(name, int(of[:, PLACES[name]].sum())) for name in _FAULTS]
    held_at = [(name, n) for name, n in counts if n]
    return tuple(sorted(held_at, key=lambda pair: (BY_NAME[pair[0]].kind == "neutral", -pair[1])))


def _example(material: Material, alarms: Sequence[_FirstAlarm], fault: str) -> str:
    """The alarm at whose step this behaviour holds whose words are most like those of the others."""
    corpus = material.corpus
    shown = [one for one in alarms if corpus.held is not None and corpus.held[one.step, PLACES[fault]]]
    shown.sort(key=lambda one: corpus.run_ids[one.run])
    one = shown[nearest_first(material.matrix[[one.step for one in shown]])[0]]
    line = step_line(corpus.documents.read(one.step, one.step + 1), _QUOTED)
    return f"run {plain(both_ends(corpus.run_ids[one.run], _NAME), _NAME)}, step {one.at}: {line}"


def _shares(values: Sequence[str]) -> list[tuple[str, float]]:
    """Values with their shares, most frequent first, ties by name."""
    counts = Counter(values)
    return [(value, n / len(values)) for value, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
