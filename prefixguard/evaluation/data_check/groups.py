"""How much of the outcome is who made the run: failure shares by agent, model, file and whatever groups there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.data_check.finding import DataFinding
from prefixguard.learn import Corpus
from prefixguard.metrics import Ranking
from prefixguard.trace import task_hash

_FOLDS = 5
#: AUROC from which knowing the group alone is worth a warning.
_STRONG = 0.65
#: Runs from which a value that ended one way only is worth a word; values that a table shows.
_ONE_WAY, _SHOWN = 10, 8


@dataclass(frozen=True, slots=True)
class GroupValue:
    """One value of a group: its runs, and how many failed."""

    value: str
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """One group. n_values: all its values. values: those with most runs, most first.

    auroc: outcome AUROC of a score that knows the failure share of the run's value, from other tasks, and nothing else;
    NaN where it does not exist. one_way: values of ten runs and more that all ended alike.
    """

    name: str
    n_values: int
    values: tuple[GroupValue, ...]
    auroc: float
    one_way: int


def check_groups(corpus: Corpus, seed: int) -> tuple[GroupCheck, ...]:
    """Every group with at least two values, by name; one in which every run has its own value says nothing."""
    names = sorted({name for group in corpus.groups for name in group})
    found = []
    for name in names:
        values = [group.get(name, "") for group in corpus.groups]
        count, failed = Counter(values), Counter(v for v, f in zip(values, corpus.failed.tolist(), strict=True) if f)
        if not 1 < len(count) < len(values):
            continue
        rows = [GroupValue(value, n, failed[value]) for value, n in sorted(count.items(), key=lambda p: (-p[1], p[0]))]
        one_way = sum(row.runs >= _ONE_WAY and row.failed in (0, row.runs) for row in rows)
        found.append(GroupCheck(name, len(rows), tuple(rows[:_SHOWN]), _auroc(corpus, values, seed), one_way))
    return tuple(found)


def _auroc(corpus: Corpus, values: list[str], seed: int) -> float:
    """Each run scored by the failure share of its value on other folds of tasks; compared within its fold.

    Compared across folds, a fold's own failures would lower the shares that it is scored by, and turn the score round.
    """
    tasks = sorted(set(corpus.task_ids), key=lambda task: task_hash(f"{seed}:groups:{task}"))
    fold_of = {task: number % _FOLDS for number, task in enumerate(tasks)}
    fold = np.array([fold_of[task] for task in corpus.task_ids])
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    code = np.array([codes[value] for value in values])
    scores = np.zeros(len(values))
    for number in range(_FOLDS):
        others, here = fold != number, fold == number
        if not others.any() or not here.any():
            continue
        base = corpus.failed[others].mean()
        total = np.bincount(code[others], minlength=len(codes))
        failures = np.bincount(code[others], weights=corpus.failed[others], minlength=len(codes))
        scores[here] = ((failures + base) / (total + 1))[code[here]]
    return float(Ranking(corpus.failed.astype(np.uint8), scores, strata=fold).auroc())


def group_findings(checks: tuple[GroupCheck, ...]) -> Iterator[DataFinding]:
    """Groups that tell the outcome."""
    for check in checks:
        if not math.isnan(check.auroc) and check.auroc >= _STRONG:
            most = sorted(check.values, key=lambda row: (-row.failed / row.runs, row.value))
            yield DataFinding(
                "warning",
                f"Knowing the {check.name} alone has an AUROC of {check.auroc:.2f} against the outcome "
                f"({_said(most[0])}; {_said(most[-1])}): judge a monitor within {check.name} as well.",
                f"group {check.name}",
            )
        if check.one_way:
            yield DataFinding(
                "warning",
                f"{check.one_way} of {check.n_values} values of {check.name} with {_ONE_WAY} runs and more ended one "
                "way only: such runs teach which value it is, not what goes wrong.",
                f"group {check.name}",
            )


def _said(row: GroupValue) -> str:
    return f"{row.value or '(none)'} fails in {row.failed / row.runs:.0%} of {row.runs:,} runs"
