"""The clock beside an automaton: a coarse step index that the risk is read by, and that transitions never look at.

Without one, states are spent on counting steps. Columns begin where the imminent risk changes most with the step
index, so that they are narrow near a cap on steps and wide elsewhere.
"""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.strings import Strings

_COLUMNS = 12
_FEWEST = 50  # training steps in a column


def fit_clock(strings: Strings) -> tuple[int, ...]:
    """Steps, from 1 and rising, at which the next column begins: at most eleven of them, none where the risk
    hangs on no step index or there are too few steps to tell.

    The risk is the mean of labels and teacher, of both risks alike; every run counts alike.
    """
    target = strings.labels.mean(axis=1) / 2 + strings.teacher.mean(axis=1) / 2
    tree = DecisionTreeRegressor(max_leaf_nodes=_COLUMNS, min_samples_leaf=_FEWEST, random_state=0)
    tree.fit(strings.index[:, None], target, sample_weight=strings.weights)
    cuts = tree.tree_.threshold[tree.tree_.feature >= 0]
    return tuple(sorted({int(np.floor(cut)) + 1 for cut in cuts}))
