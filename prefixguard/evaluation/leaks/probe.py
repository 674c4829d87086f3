"""A small probe of one field: log-odds of its most telling features, cross-fitted over folds of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.evaluation.leaks.material import Judged

#: Features a probe uses, chosen anew in every fold, and runs that must have one.
_USED = 64
_SUPPORT = 4
FOLDS = 5


def probe_scores(seen: Sequence[set[str]], judged: Judged, seed: int) -> npt.NDArray[np.float64]:
    """Scores for failure of every run by a probe that saw no run of its task; float (N,), natural log-odds.

    seen: the features of one record of each run. Naive Bayes over yes-or-no features.
    """
    count = Counter(feature for one in seen for feature in one)
    code = {feature: i for i, feature in enumerate(sorted(f for f, n in count.items() if n >= _SUPPORT))}
    rows = np.repeat(np.arange(len(seen)), [sum(f in code for f in one) for one in seen])
    ids = np.array([i for one in seen for i in sorted(code[f] for f in one if f in code)], dtype=np.int64)
    scores = np.zeros(len(seen))
    if not code:
        return scores
    n_tasks = int(judged.tasks.max()) + 1
    fold = np.random.default_rng(seed).permutation(n_tasks)[judged.tasks] % FOLDS
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        lost, won = train & judged.failed, train & ~judged.failed
        n = np.array([lost.sum(), won.sum()], dtype=np.float64)
        if not n.all() or not test.any():
            continue
        has = np.stack([np.bincount(ids[which[rows]], minlength=len(code)) for which in (lost, won)])  # (2, F)
        share = (has + 0.5) / (n[:, None] + 1)
        gap = np.abs(share[0] - share[1])
        used = np.zeros(len(code), dtype=np.bool_)
        used[np.argsort(-gap, kind="stable")[:_USED]] = True
        present = np.where(used, np.log(share[0]) - np.log(share[1]), 0.0)
        absent = np.where(used, np.log1p(-share[0]) - np.log1p(-share[1]), 0.0)
        found = np.bincount(rows, weights=(present - absent)[ids], minlength=len(seen))
        scores[test] = found[test] + absent.sum()
    return scores
