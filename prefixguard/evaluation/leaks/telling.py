"""What single features tell: shares over tasks, and a test on one run a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.leaks.chance import fisher
from prefixguard.evaluation.leaks.features import features, is_verdict_like, words
from prefixguard.evaluation.leaks.material import Judged
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Tasks (one run each) that must have a feature for it to be tried.
SUPPORT = 6
#: A separation below which no test is made.
_LEAST = 0.65
#: Names of a field's features that are kept, the most telling first.
_KEPT = 200

#: What a probe sees of a run.
Look = Callable[[Run[StepRecord]], set[str]]


@dataclass(frozen=True, slots=True)
class Told:
    """A feature and what it tells.

    separates: (1 + |a - b|) / 2 for the shares a, b of successes and failures that have it: the area under the ROC
        curve of a yes-or-no feature. purity: share of those that have it which end its way. covers: share of the runs
        ending that way which have it. Shares count tasks alike.
    p: two-sided, Fisher's exact test on one run a task, not corrected. won: is it a sign of success?
    tasks: tasks, one run each, that have it.
    """

    feature: str
    separates: float
    purity: float
    covers: float
    p: float
    won: bool
    tasks: int

    @property
    def is_verdict_like(self) -> bool:
        return is_verdict_like(self.feature)

    @property
    def is_near_certain(self) -> bool:
        """Does it tell nearly every run, or nearly surely for most runs that end its way?"""
        return self.separates >= 0.95 or (self.purity >= 0.97 and self.covers >= 0.5)

    @property
    def side(self) -> str:
        return "success" if self.won else "failure"


@dataclass(frozen=True, slots=True)
class Telling:
    """What the features of one place tell. told: the most telling first. tried: how many were tried."""

    told: tuple[Told, ...]
    tried: int

    def separation(self, feature: str) -> float:
        """Of one feature, 0.5 where it is not among those kept."""
        return next((one.separates for one in self.told if one.feature == feature), 0.5)


def tell(seen: Sequence[set[str]], judged: Judged) -> Telling:
    """What every frequent feature tells. seen: of each judged run."""
    count = Counter(f for one, single in zip(seen, judged.single.tolist(), strict=True) if single for f in one)
    names = sorted(f for f, n in count.items() if n >= SUPPORT)
    code = {f: i for i, f in enumerate(names)}
    ids = [sorted(code[f] for f in one if f in code) for one in seen]
    rows = np.repeat(np.arange(len(ids)), [len(one) for one in ids])
    flat = np.array([i for one in ids for i in one], dtype=np.int64)
    lost = judged.failed
    weight = judged.weight
    totals = float(weight[lost].sum()), float(weight[~lost].sum())
    if not names or not all(totals):
        return Telling((), len(names))
    has = [np.bincount(flat, weights=(weight * side)[rows], minlength=len(names)) for side in (lost, ~lost)]
    singles = [
        np.bincount(flat, weights=(judged.single & side)[rows].astype(float), minlength=len(names))
        for side in (lost, ~lost)
    ]
    n_lost, n_won = int((judged.single & lost).sum()), int((judged.single & ~lost).sum())
    gap = has[1] / totals[1] - has[0] / totals[0]
    told = []
    for i in np.flatnonzero((1 + np.abs(gap)) / 2 >= _LEAST).tolist():
        won = bool(gap[i] > 0)
        on_side = has[won][i]
        p = fisher(int(singles[1][i]), n_won, int(singles[0][i]), n_lost)
        told.append(
            Told(
                names[i],
                float(1 + abs(gap[i])) / 2,
                float(on_side / (has[0][i] + has[1][i])),
                float(on_side / totals[won]),
                p,
                won,
                int(singles[0][i] + singles[1][i]),
            )
        )
    told.sort(key=lambda one: (-round(one.separates, 3), not one.is_verdict_like, len(one.feature), one.feature))
    return Telling(tuple(told[:_KEPT]), len(names))


def at(field: str, position: int) -> Look:
    """Features of one record's field. position: as in a list."""
    return lambda run: features(getattr(run.records[position], field))


def before_the_end(field: str) -> Look:
    """Words of a field in any record but the last, and whole short values."""

    def look(run: Run[StepRecord]) -> set[str]:
        seen: set[str] = set()
        for text in {getattr(record, field) for record in run.records[:-1]}:
            seen.update(words(text))
            if 0 < len(text) <= 40:
                seen.add(f"= {text}")
        return seen

    return look
