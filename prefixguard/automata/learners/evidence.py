"""What merging compares prefixes by: risk now, risk to come, how runs end soon after, and how risk goes with the index.

Two prefixes may share a state only where what follows them is alike. So each step knows, beside the risk at the step
itself (labels and teacher, half and half), its discounted future, and which short words of symbols come next and
whether the run ends with them. The clock says how risk and future go by step index alone. It has no noise, and lets an
untimed automaton find out where it pays to count steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.strings import Strings

_OUTCOME = 0.5  # weight of the outcome risk; that of the imminent risk is 1
_FUTURE = 3.0  # weight of a discounted future
_DISCOUNTS = (0.8, 0.95)
_DEPTH = 2  # symbols in a word, at most
_WORDS = 128
_CLOCK_COLUMNS = 2
_CHANCE = 2.0  # times that what chance explains is taken away: steps of a run are not independent
_LEAN = 10.0  # steps that the index before counts for

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PrefixEvidence:
    """Of n runs with `steps` steps altogether; W words, numbered from 0, most frequent first.

    values: float64 (d, steps), each row with mean 0: risks, by the squared distance of whose means states are compared.
    noise: variance of a step's values, all rows together but the clock's.
    n_words: W. words: int32 (depth, steps), the word of the next 1, 2, ... symbols; -1 past the end and for rare words.
    opening: int32 (depth, n), the same before the first step of each run.
    ends: int8 (steps,), 0 where the run goes on, 1 where it ends well, 2 where it ends in failure.
    """

    values: Floats
    noise: float
    n_words: int
    words: NDArray[np.int32]
    opening: NDArray[np.int32]
    ends: NDArray[np.int8]


def gather(strings: Strings, *, risk: float, clock: float) -> PrefixEvidence:
    """The evidence of runs. risk: weight of risks, at least 0. clock: weight of the clock, times that; 0: none."""
    risks = risk * strings.target.T
    rows = [risks[0], _OUTCOME * risks[1], *(_FUTURE * _future(strings, risks[0], g) for g in _DISCOUNTS)]
    values = _centred(np.stack(rows))
    noise = float(np.square(values).mean(axis=1).sum())
    if clock > 0:
        values = np.concatenate((values, clock * _course(strings.index, values)))
    end = np.zeros(risks.shape[1], dtype=np.int8)
    end[strings.first[1:] - 1] = 1 + strings.failed
    words, opening, n_words = _words(strings)
    return PrefixEvidence(values, noise, n_words, words, opening, end)


def _centred(rows: Floats) -> Floats:
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _future(strings: Strings, risk: Floats, discount: float) -> Floats:
    """(1 - discount) times the sum of discount**j times the risk j steps on, to the end of the run; (steps,)."""
    out = np.empty(len(risk))
    lengths = strings.lengths
    later = np.zeros(len(lengths))
    for left in range(int(lengths.max(initial=0))):
        runs = np.flatnonzero(lengths > left)
        at = strings.first[1:][runs] - 1 - left
        later[runs] = risk[at] + discount * later[runs]
        out[at] = later[runs]
    return (1 - discount) * out


def _course(index: Positions, values: Floats) -> Floats:
    """How the values go with the step index, in the directions that vary most; float64 (2, steps).

    A row whose means differ between indices no more than chance makes them is left out, and others are shrunk by what
    chance does; an index that few runs reached leans on the one before.
    """
    n = np.bincount(index)[1:].astype(np.float64)
    sums = np.stack([np.bincount(index, weights=row)[1:] for row in values])
    between = (np.square(sums) / n).sum(axis=1)
    by_chance = _CHANCE * len(n) * np.square(values).mean(axis=1)
    sums *= np.maximum(1 - by_chance / np.maximum(between, 1e-12), 0)[:, None]
    course, last = np.empty_like(sums), np.zeros(len(sums))
    for t in range(len(n)):
        last = (sums[:, t] + _LEAN * last) / (n[t] + _LEAN)
        course[:, t] = last
    rows = _centred(np.asarray(course[:, index - 1], dtype=np.float64))
    _, directions = np.linalg.eigh(rows @ rows.T)
    return np.asarray(directions[:, -_CLOCK_COLUMNS:].T @ rows)


def _words(strings: Strings) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """The words that follow each step, those that runs open with, and how many words have numbers."""
    n = len(strings.symbols)
    # the places before first steps come after all others, as if each run had one more step in front
    place = np.concatenate((np.arange(n), strings.first[:-1] - 1))
    left = np.concatenate((np.repeat(strings.first[1:], strings.lengths) - 1 - np.arange(n), strings.lengths))
    codes, code = [], np.zeros(len(place), dtype=np.int64)
    for depth in range(1, _DEPTH + 1):
        there = np.flatnonzero(left >= depth)
        longer = np.full(len(place), -1, dtype=np.int64)
        longer[there] = code[there] * strings.n_symbols + strings.symbols[place[there] + depth]
        codes.append(longer)
        code = np.maximum(longer, 0)
    frequent = sorted(
        (-count, depth, word)
        for depth, at_depth in enumerate(codes)
        for word, count in zip(
            *(x.tolist() for x in np.unique(at_depth[at_depth >= 0], return_counts=True)), strict=True
        )
    )[:_WORDS]
    out = np.full((_DEPTH, len(place)), -1, dtype=np.int32)
    for depth, at_depth in enumerate(codes):
        mine = sorted((word, number) for number, (_, d, word) in enumerate(frequent) if d == depth)
        if mine:
            known, numbers = np.array(mine, dtype=np.int64).T
            at = np.minimum(np.searchsorted(known, at_depth), len(known) - 1)
            out[depth] = np.where(known[at] == at_depth, numbers[at], -1)
    return out[:, :n], out[:, n:], len(frequent)
