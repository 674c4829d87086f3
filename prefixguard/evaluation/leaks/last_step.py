"""How much better the last record tells the outcome than the record before, by field.

A small probe of one field says it: log-odds of its most telling features, cross-fitted over folds of tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.evaluation.leaks.chance import LEVEL, difference_by_chance, in_words, rank_area
from prefixguard.evaluation.leaks.features import incidence, seen_at
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, shown
from prefixguard.evaluation.leaks.judged import Judged
from prefixguard.evaluation.leaks.tokens import JUMP, TokenTables
from prefixguard.stepview import FIELDS

#: Features a probe uses, chosen anew in every fold, and runs that must have one.
_USED, _SUPPORT = 64, 4
FOLDS = 5
#: Area under the ROC curve that a probe of a last record must reach for a finding, and alone for an error.
_AREA, _AREA_ALONE = 0.75, 0.97


def find_last_step(
    judged: Judged, tables: TokenTables, tokens: Sequence[LeakFinding], seed: int
) -> Iterator[LeakFinding]:
    """Fields whose last record tells far more than the record before. tokens: what `find_tokens` found.

    An error where a token of the same last record is one, or where what the agent was given tells nearly every run
    although the record before tells little; otherwise a warning, since ends of runs differ naturally.
    """
    for field in FIELDS:
        last, before = (probe_scores(seen_at(judged.runs, field, position), judged, seed) for position in (-1, -2))
        area, was = rank_area(judged.failed, last), rank_area(judged.failed, before)
        if not (area >= _AREA and area - was >= JUMP):
            continue
        p = min(1.0, len(FIELDS) * difference_by_chance(judged.failed, last, before, judged.tasks, seed))
        if p >= LEVEL:
            continue
        named = [one for one in tokens if one.field == field and one.kind == "token" and "before" in one.figures]
        alone = field in judged.given and area >= _AREA_ALONE and was < 0.75 and not named
        severity: Severity = "error" if alone or any(one.severity == "error" for one in named) else "warning"
        top = [one.token for one in named] + [one.feature for one in tables.signs["last", field].found[:1]]
        token = top[0] if top else ""
        text = (
            f"A probe that reads {field} alone tells the outcome of runs of other tasks with an area of {area:.2f} at "
            f"the last record and {was:.2f} at the one before ({in_words(p)}, tasks permuted)"
        )
        text += f"; most by {shown(token)}." if token else "."
        figures = {"last": area, "before": was, "p": p, "runs": float(len(judged)), "folds": float(FOLDS)}
        yield LeakFinding("last_step", field, token, severity, figures, text)


def probe_scores(seen: Sequence[set[str]], judged: Judged, seed: int) -> npt.NDArray[np.float64]:
    """Scores for failure of every run by a probe that saw no run of its task; float (N,), natural log-odds.

    seen: the features of one record of each run. Naive Bayes over yes-or-no features.
    """
    count = Counter(feature for one in seen for feature in one)
    names = sorted(feature for feature, n in count.items() if n >= _SUPPORT)
    scores = np.zeros(len(seen))
    if not names:
        return scores
    table = incidence(seen, names)
    fold = np.random.default_rng(seed).permutation(int(judged.tasks.max()) + 1)[judged.tasks] % FOLDS
    for k in range(FOLDS):
        test = fold == k
        sides = np.stack([~test & judged.failed, ~test & ~judged.failed])  # (2, N)
        n = sides.sum(axis=1).astype(np.float64)
        if not n.all() or not test.any():
            continue
        share = (sides @ table + 0.5) / (n[:, None] + 1)  # (2, F)
        used = np.zeros(len(names), dtype=np.bool_)
        used[np.argsort(-np.abs(share[0] - share[1]), kind="stable")[:_USED]] = True
        present = np.where(used, np.log(share[0]) - np.log(share[1]), 0.0)
        absent = np.where(used, np.log1p(-share[0]) - np.log1p(-share[1]), 0.0)
        scores[test] = (table @ (present - absent))[test] + absent.sum()
    return scores
