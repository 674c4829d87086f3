"""Which states raise first alarms, what leads there, and whether it is an agent or the step cap instead of a behaviour.

First alarms are counted on test runs. What leads to a state, and whose steps those are, is counted on training runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import group_names
from prefixguard.automata.summary.entries import Entry, step_line
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.wording import count_text, one_line, share_text
from prefixguard.bundle import Automaton, leading_symbols, state_names
from prefixguard.runtime import plain

#: A value of a group dominates a state above this share of its steps, if it has less than that share of all steps.
ONE_VALUE = 0.8
OF_ALL = 0.5
#: Steps near the cap are those from this share of the 95th percentile of run lengths on; they dominate above a half.
NEAR_CAP = 0.9
LATE_SHARE = 0.5
_NAME = 120
_LEADING = 2  # symbols and values that are named


@dataclass(frozen=True, slots=True)
class StateAlarms:
    """A state, and the first alarms that it raised on test runs.

    failed, successful: first alarms on runs of this outcome. share: of all first alarms on failed runs; 0 without any.
    sentence: what leads there. mix: of each group, its values with their shares of the state's training steps, most
    frequent first. steps: numbers of the steps that end there: tenth, fiftieth and ninetieth percentile; None where no
    step does. flags: sentences; what dominates the state besides behaviour. example: the step of a first alarm on a
    failed run, one line, text from a run; "" where there is none, or texts are left out. advice: what to do about the
    symbol that leads there most.
    """

    state: int
    failed: int
    successful: int
    share: float
    sentence: str
    mix: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    steps: tuple[int, int, int] | None
    flags: tuple[str, ...]
    example: str
    advice: str = ""


def rank_states(
    material: Material,
    automaton: Automaton,
    entries: Sequence[Entry],
    states: NDArray[np.int32],
    walks: Walks,
    sound: Level,
    *,
    examples: bool = True,
) -> tuple[StateAlarms, ...]:
    """Every state, those that raise most first alarms on failed runs first; ties by successful runs, then by number.

    entries: the symbols in words. states: int32, after each step of the pool's runs. walks: of the test side. sound:
    what counts as an alarm; WATCH for an automaton that has no alarm threshold. examples: False leaves out the texts of
    steps and the values of groups.
    """
    corpus, pool = material.corpus, material.pool
    lengths = corpus.lengths[pool]
    index = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    late = NEAR_CAP * float(np.percentile(lengths, 95)) if len(lengths) else 0.0
    first = _first_alarms(walks, sound)
    failed, successful = (Counter(s for _, _, s, f in first if f is wanted) for wanted in (True, False))
    values = {
        name: np.repeat(np.array([corpus.groups[r].get(name, "") for r in pool.tolist()], dtype=object), lengths)
        for name in group_names(material)
    }
    names = state_names(automaton, [entry.gloss for entry in entries])
    found = []
    for state in range(automaton.n_states):
        mine = states == state
        mix, flags = [], []
        for name, of in values.items():
            shares = _shares(of[mine].tolist())
            if shares and shares[0][1] > ONE_VALUE and (all_of := float((of == shares[0][0]).mean())) < OF_ALL:
                who = f"{name} {one_line(shares[0][0], _NAME)}" if examples else f"one {name}"
                flags.append(
                    f"{share_text(shares[0][1])} of its steps are of {who}, {share_text(all_of)} of all steps."
                )
            named = tuple((one_line(v, _NAME) if examples else "one value", s) for v, s in shares[:_LEADING])
            mix.append((one_line(name, _NAME), named))
        steps = index[mine]
        if len(steps) and (part := float((steps >= late).mean())) > LATE_SHARE:
            cap = f"step {int(np.ceil(late))} or later, near the greatest lengths of runs"
            flags.append(f"{share_text(part)} of its steps are at {cap}.")
        leading = leading_symbols(automaton, state)
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
                flags=tuple(flags),
                example=_example(material, [one for one in first if one[2:] == (state, True)]) if examples else "",
                advice=entries[leading[0]].advice if leading else "",
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.failed, -one.successful, one.state)))


def changes(ranked: Sequence[StateAlarms], most: int = 5) -> Iterator[str]:
    """What to change, a sentence or three each: the states that raise most first alarms on failed runs."""
    total = sum(one.failed for one in ranked)
    for one in ranked[:most]:
        if not one.failed:
            return
        said = f"State {one.state} raises {one.failed:,} of {count_text(total, 'first alarm')} on failed runs"
        said += f" and {one.successful:,} on successful ones. {one.sentence}"
        said += f" {one.advice}" if one.advice else ""
        for flag in one.flags:
            said += f" But {flag} This may be no behaviour to change."
        yield said + (f" As in {one.example}" if one.example else "")


def _first_alarms(walks: Walks, sound: Level) -> list[tuple[int, int, int, bool]]:
    """Of each run that sounds: its place on the test side, its step from 0, the state, whether the run failed."""
    found = []
    for i, (a, b) in enumerate(pairwise(walks.strings.first.tolist())):
        at = next((t for t in range(a, b) if walks.levels[t] is sound), None)
        if at is not None:
            found.append((i, at - a, int(walks.states[at]), bool(walks.strings.failed[i])))
    return found


def _example(material: Material, alarms: Sequence[tuple[int, int, int, bool]]) -> str:
    """The first of these alarms, by the name of its run."""
    corpus = material.corpus
    runs = sorted((corpus.run_ids[int(material.test[i])], int(material.test[i]), step) for i, step, *_ in alarms)
    if not runs:
        return ""
    name, r, step = runs[0]
    at = int(corpus.first[r]) + step
    return f"run {plain(name, _NAME)}, step {step + 1}: {step_line(corpus.documents.read(at, at + 1))}"


def _shares(values: Sequence[str]) -> list[tuple[str, float]]:
    """Values with their shares, most frequent first, ties by name."""
    counts = Counter(values)
    return [(value, n / len(values)) for value, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
