"""Distilled: RPNI on strings cut where the teacher's level is clear, in place of how runs ended.

A run's outcome is one noisy label at its end. The teacher rates every step: where its imminent risk is clearly low, in
the middle or high, by shares of all steps, the string up to there is an example of that level. Steps between the levels
are examples of nothing. Each run gives, for each level, the string up to the last step that has it.
"""

from __future__ import annotations

import numpy as np

from prefixguard.automata.learners.rpni import Word, identify
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.errors import DataError

#: Levels, as quantiles of the teacher's imminent risk over steps: from, to.
LEVELS = ((0.0, 0.5), (0.85, 0.95), (0.97, 1.0))


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states, as `rpni.learn`. Raises DataError where the teacher says the same of all steps."""
    return identify(_examples(strings), strings, max_states, seed, "level")


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
