"""Known machines, strings of them, and the shortest word on which what was learned differs."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from words import strings_of

from prefixguard.automata.strings import Strings, Transitions, walk
from prefixguard.bundle import UNSEEN

#: Small machines by name: transitions (S, K), and which states are failures.
MACHINES: dict[str, tuple[list[list[int]], list[bool]]] = {
    "an even number of 1": ([[0, 1], [1, 0]], [False, True]),
    "three 1 in a row": ([[0, 1], [0, 2], [0, 3], [3, 3]], [False, False, False, True]),
    "length modulo 3": ([[1, 1], [2, 2], [0, 0]], [True, False, False]),
    "a 0 comes after a 1": ([[0, 1], [2, 1], [2, 2]], [False, False, True]),
    "ends as it began": (
        [[1, 2], [1, 3], [4, 2], [1, 3], [4, 2]],
        [False, True, True, False, False],
    ),
}


def end_of(machine: tuple[list[list[int]], list[bool]], word: tuple[int, ...]) -> bool:
    """Whether the machine fails on a word."""
    state = 0
    for symbol in word:
        state = machine[0][state][symbol]
    return machine[1][state]


def all_words(machine: tuple[list[list[int]], list[bool]], longest: int, copies: int = 1) -> Strings:
    """All words up to a length, each as often, labelled by the machine; the teacher says the base rate."""
    n_symbols = len(machine[0][0])
    words = [w for n in range(1, longest + 1) for w in product(range(n_symbols), repeat=n)] * copies
    return flat(strings_of(words, n_symbols, [end_of(machine, w) for w in words]))


def flat(strings: Strings) -> Strings:
    """With the label at the last step of a failed run alone imminent, and a teacher that knows nothing."""
    labels = strings.labels.copy()
    labels[:, 0] = 0
    labels[strings.first[1:] - 1, 0] = strings.failed
    teacher = np.tile(labels.mean(axis=0), (len(labels), 1)).astype(np.float32)
    return replace(strings, labels=labels, teacher=teacher)


def marks(found: Transitions, strings: Strings) -> NDArray[np.bool_]:
    """Whether most strings that end in each state failed, bool (S,)."""
    states, _ = walk(found.start, found.next, np.full(strings.n_symbols, UNSEEN, dtype=np.int32), strings)
    ends = states[strings.first[1:] - 1]
    failed = np.bincount(ends, weights=strings.failed, minlength=found.n_states)
    return np.asarray(2 * failed > np.bincount(ends, minlength=found.n_states))


def difference(
    machine: tuple[list[list[int]], list[bool]], found: Transitions, marked: NDArray[np.bool_]
) -> tuple[int, ...] | None:
    """The shortest word, not empty, that they do not agree on, an unseen transition being a difference; else None."""
    queue, seen = deque([(0, found.start, ())]), {(0, found.start)}
    while queue:
        true, learned, word = queue.popleft()
        for symbol in range(len(machine[0][0])):
            after = (machine[0][true][symbol], int(found.next[learned, symbol]))
            longer = (*word, symbol)
            if after[1] == UNSEEN or machine[1][after[0]] != marked[after[1]]:
                return longer
            if after not in seen:
                seen.add(after)
                queue.append((*after, longer))
    return None


def shuffled(strings: Strings, seed: int) -> Strings:
    """The same runs in another order."""
    return strings.of(np.random.default_rng(seed).permutation(len(strings)))


def copied(strings: Strings) -> list[NDArray[np.generic]]:
    """Copies of all arrays, to see whether anything was changed."""
    return [
        a.copy()
        for a in (strings.symbols, strings.first, strings.failed, strings.tasks, strings.labels, strings.teacher)
    ]
