"""What is seen of a field, and what single features tell of the outcome: shares over tasks, tested on one run a task.

Features are words, pairs of neighbouring words, the whole value if it is short, and emptiness. Only expressions fixed
here are run over the data, none of them backtracks, and every text is cut first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix

from prefixguard.evaluation.leaks.chance import fisher
from prefixguard.evaluation.leaks.judged import Judged
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Characters of a field that are read, half from each end.
MOST_CHARACTERS = 20_000
#: Characters up to which a value is a feature as a whole.
SHORT = 40
EMPTY = "(empty)"
#: Tasks (one run each) that must have a feature for it to be tried; a separation below which no test is made; features
#: of a field that are kept, the most telling first.
SUPPORT, _LEAST, _KEPT = 6, 0.65, 200

WORDS = re.compile(r"\d+\.\d+|\w+")
#: Signs that are no words and no usual punctuation: emoji, ticks, rows of # or *.
_SIGNS = re.compile(r"[^\w\s\x00-\x7f\u2010-\u2027\u2030-\u205e\u00a0-\u00bf\u3000-\u303f]|#{3,}|\*{3,}|={3,}")
#: Parts of words in which verdicts are written.
_VERDICT = frozenset(
    (
        "success", "successful", "successfully", "succeed", "succeeded", "failure", "failures", "fail", "failed",
        "pass", "passed", "correct", "incorrect", "correctly", "wrong", "resolved", "unresolved", "solved",
        "unsolved", "accomplished", "reward", "rewards", "score", "scores", "scored", "grade", "graded", "grading",
        "verdict", "outcome", "evaluation", "evaluator", "judge", "judged", "judgement", "win", "won", "lost",
        "lose", "verifier", "accepted", "rejected",
    )
)  # fmt: skip


def cut(text: str) -> str:
    """The text, or its two ends where it is long."""
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]} {text[-half:]}"


def words(text: str) -> list[str]:
    """Its words in order, lower case; decimal numbers stay whole.

    >>> words('{"reward": 1.0, "is_done": true}')
    ['reward', '1.0', 'is_done', 'true']
    """
    return WORDS.findall(cut(text).lower())


def features(text: str) -> set[str]:
    """Everything that is seen of a field.

    >>> sorted(features("Reward: 1.0"))
    ['1.0', '= Reward: 1.0', 'reward', 'reward 1.0']
    >>> sorted(features("### ok"))
    ['###', '= ### ok', 'ok']
    """
    if not text:
        return {EMPTY}
    found = words(text)
    seen = set(found)
    seen.update(f"{a} {b}" for a, b in pairwise(found))
    seen.update(_SIGNS.findall(cut(text)))
    if len(text) <= SHORT:
        seen.add(f"= {text}")
    return seen


def is_verdict_like(feature: str) -> bool:
    """Does it speak of how something ended?

    >>> is_verdict_like("reward 1.0"), is_verdict_like("= is_resolved"), is_verdict_like("traceback")
    (True, True, False)
    """
    return any(part in _VERDICT for word in WORDS.findall(feature.lower()) for part in word.split("_"))


@dataclass(frozen=True, slots=True)
class Sign:
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
        """Does it speak of how something ended?"""
        return is_verdict_like(self.feature)

    @property
    def is_near_certain(self) -> bool:
        """Does it tell nearly every run, or nearly surely for most runs that end its way?"""
        return self.separates >= 0.95 or (self.purity >= 0.97 and self.covers >= 0.5)


@dataclass(frozen=True, slots=True)
class Signs:
    """What the features of one place tell. found: the most telling first. tried: how many were tried."""

    found: tuple[Sign, ...]
    tried: int

    def separation(self, feature: str) -> float:
        """Of one feature, 0.5 where it is not among those kept."""
        return next((one.separates for one in self.found if one.feature == feature), 0.5)


def incidence(seen: Sequence[set[str]], names: Sequence[str]) -> csr_matrix:
    """Which run has which feature: 1.0 or nothing, (N, F). seen: the features of each run."""
    code = {name: i for i, name in enumerate(names)}
    ids = [sorted(code[f] for f in one if f in code) for one in seen]
    starts = np.cumsum([0, *map(len, ids)])
    flat = np.array([i for one in ids for i in one], dtype=np.int64)
    return csr_matrix((np.ones(len(flat)), flat, starts), shape=(len(seen), len(names)))


def signs(seen: Sequence[set[str]], judged: Judged) -> Signs:
    """What every frequent feature tells. seen: the features of each judged run."""
    count = Counter(f for one, single in zip(seen, judged.single.tolist(), strict=True) if single for f in one)
    names = sorted(f for f, n in count.items() if n >= SUPPORT)
    sides = judged.failed, ~judged.failed
    totals = [float(judged.weight[side].sum()) for side in sides]
    if not names or not all(totals):
        return Signs((), len(names))
    runs = incidence(seen, names).T.tocsr()
    has = [runs @ (judged.weight * side) for side in sides]
    lost, won = ((runs @ (judged.single & side).astype(float)).astype(int) for side in sides)
    n_lost, n_won = (int((judged.single & side).sum()) for side in sides)
    gap = has[1] / totals[1] - has[0] / totals[0]
    found = []
    for i in np.flatnonzero((1 + np.abs(gap)) / 2 >= _LEAST).tolist():
        side, p = int(gap[i] > 0), fisher(int(won[i]), n_won, int(lost[i]), n_lost)
        share = float(has[side][i] / (has[0][i] + has[1][i])), float(has[side][i] / totals[side])
        found.append(Sign(names[i], float(1 + abs(gap[i])) / 2, *share, p, side == 1, int(lost[i] + won[i])))
    found.sort(key=lambda one: (-round(one.separates, 3), not one.is_verdict_like, len(one.feature), one.feature))
    return Signs(tuple(found[:_KEPT]), len(names))


def seen_at(runs: Sequence[Run[StepRecord]], field: str, position: int | None) -> list[set[str]]:
    """Features of a field of each run: at one record (a position as in a list); for None words, and whole short values,
    of any record but the last."""
    if position is not None:
        return [features(getattr(run.records[position], field)) for run in runs]
    found = []
    for run in runs:
        texts = {getattr(record, field) for record in run.records[:-1]}
        whole = {f"= {text}" for text in texts if 0 < len(text) <= SHORT}
        found.append(whole.union(*map(words, texts)))
    return found
