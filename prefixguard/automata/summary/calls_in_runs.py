"""Calls that fail often, and calls that look with which runs begin that fail less, on training runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import group_names
from prefixguard.behaviours import PLACES

#: Failing calls that are told of, each at this share of the training steps or more; and first calls that look, where
#: runs that begin so fail so much less often, and both these and the others are of so many tasks.
_FAILING, _FAILING_SHARE = 3, 0.01
_MUCH, _LOOK_TASKS = 0.1, 20
_LOOKING = ("reads", "searches", "tests")


@dataclass(frozen=True, slots=True)
class FailingCall:
    """A call that fails with one kind of error ("" where none is known) in so many training steps, a share of all.
    states: those of whose steps it is at least half."""

    what: str
    error: str
    steps: int
    share: float
    states: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LookInRuns:
    """A call that looks (reads, searches, tests): how many training runs begin with it, whatever came back, and how
    many of these failed; the same of the other runs. within: how much rarer failures are among these than among the
    others of the same groups."""

    what: str
    runs: int
    failed: int
    others: int
    others_failed: int
    within: float

    @property
    def gain(self) -> float:
        """How much rarer failures are in runs that begin with it: the less of both differences, of all runs, and of
        runs of the same groups."""
        return min(self.others_failed / self.others - self.failed / self.runs, self.within)


def failing_calls(done: NDArray[np.object_], states: NDArray[np.int32]) -> tuple[FailingCall, ...]:
    """The calls that fail most often, by their error, most frequent first. states: after each step."""
    counts = Counter(one for one in done.tolist() if one.failing)
    visits, found = Counter(states.tolist()), []
    for one, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].what, pair[0].error))[:_FAILING]:
        here = Counter(state for state, deed in zip(states.tolist(), done.tolist(), strict=True) if deed == one)
        at = tuple(sorted(state for state, k in here.items() if 2 * k >= visits[state]))
        if n >= _FAILING_SHARE * len(done):
            found.append(FailingCall(one.what, one.error, n, n / len(done), at))
    return tuple(found)


def helpful_looks(material: Material, done: NDArray[np.object_]) -> tuple[LookInRuns, ...]:
    """The calls that look where runs that begin with them fail much less often than the others, the greatest difference
    first."""
    corpus, pool, places = material.corpus, material.pool, [PLACES[name] for name in _LOOKING]
    if corpus.held is None or not len(pool):
        return ()
    having = defaultdict[str, set[int]](set)
    ends = np.cumsum(corpus.lengths[pool]).tolist()
    for r, first, end in zip(pool.tolist(), [0, *ends], ends, strict=False):
        at = next((at for at in range(first, end) if done[at].tool), None)
        if at is not None and corpus.held[int(corpus.first[r]) + at - first, places].any():
            having[done[at].what].add(r)
    every, found = set(pool.tolist()), []
    for what, there in having.items():
        rest = every - there
        if min(len({int(material.tasks[r]) for r in of}) for of in (there, rest)) >= _LOOK_TASKS:
            failed, others_failed = (sum(bool(corpus.failed[r]) for r in of) for of in (there, rest))
            within = _within_groups(material, there, rest)
            found.append(LookInRuns(what, len(there), failed, len(rest), others_failed, within))
    much = [one for one in found if one.gain >= _MUCH]
    return tuple(sorted(much, key=lambda one: (-one.gain, one.what))[:_FAILING])


def _within_groups(material: Material, there: set[int], rest: set[int]) -> float:
    """How much rarer failures are among these runs than among the rest, over runs of the same values of all groups (the
    same agent, the same domain); 0 where no two can be compared.

    Source: Mantel, Haenszel 1959 (the weights).
    """
    corpus, names = material.corpus, group_names(material)
    counts = defaultdict[tuple[str, ...], list[int]](lambda: [0, 0, 0, 0])
    for side, runs in enumerate((there, rest)):
        for r in runs:
            of = counts[tuple(corpus.groups[r].get(name, "") for name in names)]
            of[2 * side] += 1
            of[2 * side + 1] += bool(corpus.failed[r])
    both = [(n * m / (n + m), k / m - f / n) for n, f, m, k in counts.values() if n and m]
    whole = sum(weight for weight, _ in both)
    return sum(weight * difference for weight, difference in both) / whole if whole else 0.0
