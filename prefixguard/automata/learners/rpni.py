"""RPNI: the smallest machine it finds that tells failed runs' strings from successful ones'. The paper's learner.

AALpy does the merging. Its data are sorted here, by length and then symbols, since its result depends on their order.
Whether a state accepts is not used: states that no string ends in are made rejecting there, and risks come from counts.
A string that came with both outcomes keeps that of the majority.
Source: Oncina and Garcia 1992; PrefixGuard 4.5.

Distilled is the same on strings cut where the teacher's level is clear, in place of how runs ended. A run's outcome is
one noisy label at its end; the teacher rates every step. Where its imminent risk is clearly low, in the middle or high,
by shares of all steps, the string up to there is an example of that level. Steps between the levels are examples of
nothing. Each run gives, for each level, the string up to the last step that has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from aalpy.learning_algs import run_RPNI
from numpy.typing import NDArray

from prefixguard.automata.build import within_budget
from prefixguard.automata.strings import Strings, Transitions, walk
from prefixguard.bundle import N_RISKS, UNSEEN
from prefixguard.errors import DataError

_MOST_NODES = 20_000  # of the prefix tree; merging takes seconds at that size, and its time grows with the square

#: Levels, as quantiles of the teacher's imminent risk over steps: from, to.
LEVELS = ((0.0, 0.5), (0.85, 0.95), (0.97, 1.0))

Word = tuple[int, ...]


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states: of more, the most visited stay, the others merge into those of nearest risk.

    seed: which strings are left out where their prefix tree would be too large.
    Raises DataError where all runs have one outcome.
    """
    if strings.failed.all() or not strings.failed.any():
        raise DataError(
            f"all {len(strings)} runs {'failed' if strings.failed.any() else 'succeeded'}: RPNI tells failed runs from "
            "successful ones. Give it runs of both outcomes, or take another learner."
        )
    return _identify(zip(strings.words(), strings.failed.tolist(), strict=True), strings, max_states, seed, "outcome")


def learn_distilled(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states, as `rpni.learn`. Raises DataError where the teacher says the same of all steps."""
    return _identify(_examples(strings), strings, max_states, seed, "level")


def _examples(strings: Strings) -> list[tuple[Word, int]]:
    risk = strings.teacher[:, 0].astype(np.float64)
    bounds = np.quantile(risk, np.array(LEVELS), method="lower").tolist()
    if bounds[0][1] >= bounds[-1][0]:
        raise DataError(
            f"the teacher's imminent risk is {bounds[0][1]:.3g} at nearly every step: no step is clearly riskier than "
            "most. Train on runs that a teacher can tell apart, or take another learner."
        )
    run_of = np.repeat(np.arange(len(strings)), strings.lengths)
    words = strings.words()
    found = []
    for level, (low, high) in enumerate(bounds):
        last = np.full(len(strings), -1, dtype=np.int64)
        at = np.flatnonzero((risk >= low) & (risk <= high))
        last[run_of[at]] = at  # of several, the last one stays
        lengths = last - strings.first[:-1] + 1
        found += [(word[:n], level) for word, n in zip(words, lengths.tolist(), strict=True) if n > 0]
    return found


def _identify(
    examples: Iterable[tuple[Word, int]], strings: Strings, max_states: int, seed: int, what: str
) -> Transitions:
    """The smallest machine found that gives each example's word its level; the examples in any order.

    strings: the runs, by whose risks states are merged where there are too many. what: what a level is, for messages.
    """
    votes: dict[Word, Counter[int]] = {}
    for word, level in examples:
        votes.setdefault(word, Counter())[int(level)] += 1
    decided, outvoted, split = [], 0, 0
    for word in sorted(votes, key=lambda w: (len(w), w)):
        (level, most), *others = sorted(votes[word].items(), key=lambda item: (-item[1], item[0]))
        if others and others[0][1] == most:
            split += votes[word].total()
        else:
            outvoted += votes[word].total() - most
            decided.append((word, level))
    kept = _bounded(decided, votes, seed)
    left = len(decided) - len(kept)
    noted = {
        f"{outvoted} strings came more often with another {what}, which was kept": outvoted,
        f"{split} strings were left out: the same came as often with another {what}": split,
        f"{left} of {len(decided)} different strings were left out: their tree has over {_MOST_NODES} nodes": left,
    }
    found = Transitions(0, _rpni(kept, strings.n_symbols), tuple(note for note, count in noted.items() if count))
    return within_budget(found, *_met(found, strings), max_states)


def _bounded(decided: list[tuple[Word, int]], votes: dict[Word, Counter[int]], seed: int) -> list[tuple[Word, int]]:
    """As many words as the largest prefix tree holds: the most frequent, drawn by `seed` among equally frequent."""

    def rank(example: tuple[Word, int]) -> tuple[int, bytes, Word]:
        word = example[0]
        return -votes[word].total(), blake2b(repr((seed, word)).encode(), digest_size=8).digest(), word

    if sum(len(word) for word, _ in decided) <= _MOST_NODES:
        return decided
    nodes: set[Word] = set()
    kept: list[tuple[Word, int]] = []
    for word, level in sorted(decided, key=rank):
        nodes.update(word[: i + 1] for i in range(len(word)))
        if len(nodes) > _MOST_NODES and kept:
            break
        kept.append((word, level))
    return sorted(kept, key=lambda example: (len(example[0]), example[0]))


def _rpni(examples: list[tuple[Word, int]], n_symbols: int) -> NDArray[np.int32]:
    """Transitions of what AALpy finds; its first state is the start."""
    model = run_RPNI(list(examples), automaton_type="moore", algorithm="gsm", print_info=False)
    if model is None:
        raise DataError("a string has two levels at once: RPNI needs one level a string. Settle conflicts first.")
    number = {state.state_id: i for i, state in enumerate(model.states)}
    out = np.full((len(number), n_symbols), UNSEEN, dtype=np.int32)
    for state in model.states:
        for symbol, after in state.transitions.items():
            out[number[state.state_id], symbol] = number[after.state_id]
    return out


def _met(found: Transitions, strings: Strings) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How often runs were in each state, int64 (S,), and their mean risks there, float64 (S, 2)."""
    states, _ = walk(found.start, found.next, None, strings)
    n = found.n_states
    visits = np.bincount(states, minlength=n).astype(np.int64)
    sums = np.stack([np.bincount(states, strings.target[:, i], n) for i in range(N_RISKS)], axis=1)
    return visits, (sums + strings.target.mean(axis=0)) / (visits + 1)[:, None]
