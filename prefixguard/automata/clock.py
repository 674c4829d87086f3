"""The clock beside an automaton: a coarse step index that the risk is read by, and that transitions never look at.

Without one, states are spent on counting steps. Columns begin where the imminent risk changes most with the step
index, so that they are narrow near a cap on steps and wide elsewhere.
"""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.strings import Strings

_COLUMNS = 12
_FEWEST = 50  # steps in a column


def fit_clock(strings: Strings, columns: int = _COLUMNS) -> tuple[int, ...]:
    """Steps, from 1 and rising, at which the next column begins; at most `columns` - 1 of them."""
    target = strings.labels.mean(axis=1) / 2 + strings.teacher.mean(axis=1) / 2
    tree = DecisionTreeRegressor(max_leaf_nodes=max(columns, 2), min_samples_leaf=_FEWEST, random_state=0)
    tree.fit(strings.index[:, None], target, sample_weight=strings.weights)
    cuts = tree.tree_.threshold[tree.tree_.feature >= 0]
    return tuple(sorted({int(np.floor(cut)) + 1 for cut in cuts}))
