"""States that one symbol only swaps, and that say the same, are one state.

Such a pair remembers whether that symbol came an even or an odd number of times, and nothing hangs on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prefixguard.automata.build import Walked, walk_training
from prefixguard.automata.state_risk import StateRisk, calibrate
from prefixguard.automata.strings import Strings, counted
from prefixguard.bundle import UNSEEN


def without_parity(walked: Walked, train: Strings, held_out: Strings, clock: tuple[int, ...]) -> Walked:
    """The transitions without pairs of states that differ in nothing but that one symbol leads from each to the other.

    Both risks of such a pair lie in the 90 % intervals of each other, in every column of the clock. A transition that
    only one of them has is kept. train: the strings that `walked` was walked by. held_out: under the same alphabet. A
    note says how many pairs there were.
    """
    merged = 0
    while True:
        n = walked.transitions.n_states
        risks = calibrate(train, walked.states, held_out, walked.walk(held_out)[0], n, clock)
        pair = _swapped(walked, risks)
        if pair is None:
            break
        walked, merged = _merge(walked, *pair, train), merged + 1
    if not merged:
        return walked
    pairs = f"{counted(merged, 'pair')} of states that one symbol only swaps, with equal risks: merged"
    return replace(walked, transitions=replace(walked.transitions, notes=(*walked.transitions.notes, pairs)))


def _swapped(walked: Walked, risks: StateRisk) -> tuple[int, int] | None:
    """The first such pair, lower numbers first."""
    following = walked.transitions.next
    for a in range(len(following)):
        for b in sorted({int(s) for s in following[a] if s > a}):
            crossing = (following[a] == b) & (following[b] == a)
            same = (following[a] == following[b]) | (following[a] == UNSEEN) | (following[b] == UNSEEN)
            within = np.isin(following[a], (a, b)) & np.isin(following[b], (a, b))
            if np.count_nonzero(crossing) == 1 and (same | within).all() and _equal(risks, a, b):
                return a, b
    return None


def _equal(risks: StateRisk, a: int, b: int) -> bool:
    """Whether the risks of either state lie in the intervals of the other."""

    def inside(one: int, other: int) -> bool:
        risk, interval = risks.risk[one], risks.interval[other]
        return bool(((interval[..., 0] <= risk) & (risk <= interval[..., 1])).all())

    return inside(a, b) and inside(b, a)


def _merge(walked: Walked, a: int, b: int, train: Strings) -> Walked:
    """State b becomes state a."""
    found = walked.transitions
    following = found.next.copy()
    following[a] = np.where(following[a] == UNSEEN, following[b], following[a])
    following[following == b] = a  # b is reached no more, and dropped
    start = a if found.start == b else found.start
    kept = walk_training(replace(found, start=start, next=following), train)
    notes = found.notes
    return replace(kept, transitions=replace(kept.transitions, notes=notes))
