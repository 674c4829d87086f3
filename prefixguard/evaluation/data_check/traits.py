"""Traits of runs that tell outcomes without anything being fitted: repeats, the number of steps, and who acted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.analyses.shortcuts import FOLDS, share_elsewhere
from prefixguard.evaluation.leaks import Severity
from prefixguard.learn import Corpus
from prefixguard.metrics import Ranking, auroc
from prefixguard.trace import repeat_groups, task_hash

#: Share of repeats from which the number of runs says too much.
_MANY = 0.10
#: Distance of an AUROC from .5 that is worth a warning.
_LENGTH_TELLS = 0.20
#: Runs at the greatest length make a pile when they are this share of all, so many, and so many times what ends at
#: each of the lengths below it.
_PILE_SHARE, _PILE_RUNS, _PILE_TIMES, _BELOW = 0.05, 5, 3.0, 5
#: Failure share at the cap from which getting there is nearly the label.
_NEARLY = 0.90
#: AUROC from which knowing the group alone is worth a warning.
_GROUP_TELLS = 0.65
#: Runs from which a value that ended one way only is worth a word; values that a table shows.
_ONE_WAY, _SHOWN = 10, 8


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One thing to know before training.

    severity: an error makes training pointless or the alarm's budget impossible; a warning is worth a look.
    text: a sentence or two, with its numbers and, where there is one, the remedy.
    about: "length", "step cap" or "group" and its name, where a leak audit may say the same; "loss: " and a field; else
        empty.
    """

    severity: Severity
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class RepeatCheck:
    """repeats: runs beyond the first of their words. across_tasks: sets of equal runs that stand under several tasks.

    contradictory: sets of equal runs that ended both ways: nothing in the runs tells their outcome.
    """

    repeats: int
    across_tasks: int
    contradictory: int


def check_repeats(corpus: Corpus) -> RepeatCheck:
    """Count them."""
    groups = repeat_groups(corpus.digests)
    return RepeatCheck(
        repeats=sum(len(group) - 1 for group in groups),
        across_tasks=sum(len({corpus.task_ids[r] for r in group}) > 1 for group in groups),
        contradictory=sum(len({bool(corpus.failed[r]) for r in group}) > 1 for group in groups),
    )


def repeat_findings(check: RepeatCheck, n_runs: int) -> Iterator[DataFinding]:
    """Training copes with repeats (they share a side); what is said is what they do to the numbers."""
    if not check.repeats:
        return
    across = f"; sets of such runs that stand under several tasks: {check.across_tasks:,}" if check.across_tasks else ""
    yield DataFinding(
        "warning" if check.repeats >= _MANY * n_runs else "note",
        f"{check.repeats:,} of {n_runs:,} runs repeat another word for word{across}. Such runs share a side of the "
        "split, and those beyond the first add nothing to learn.",
    )
    if check.contradictory:
        yield DataFinding(
            "warning",
            ("1 set" if check.contradictory == 1 else f"{check.contradictory:,} sets")
            + " of runs that are word for word the same ended both ways: what decided is not in the records, or an "
            "outcome is wrong.",
        )


@dataclass(frozen=True, slots=True)
class LengthCheck:
    """auroc: of the number of steps of the whole run against failure; NaN with one outcome.

    median, longest: steps. at_longest: runs of exactly the greatest length; failed_at_longest, failed_below: share of
    failures among them and among all others, NaN where there are none. piled: whether they pile up there as under a
    step cap. short_failures: share of failed runs of at most horizon + 1 steps: every step of theirs is imminent.
    """

    auroc: float
    median: int
    longest: int
    at_longest: int
    failed_at_longest: float
    failed_below: float
    piled: bool
    short_failures: float


def check_lengths(corpus: Corpus, horizon: int) -> LengthCheck:
    """Over all runs."""
    lengths, failed = corpus.lengths, corpus.failed
    longest = int(lengths.max())
    top = lengths == longest
    count, below = int(top.sum()), [int((lengths == longest - k).sum()) for k in range(1, min(_BELOW, longest - 1) + 1)]
    is_pile = count >= max(_PILE_RUNS, _PILE_SHARE * len(lengths), _PILE_TIMES * float(np.mean(below or [0])))
    return LengthCheck(
        auroc=auroc(failed, lengths),
        median=int(np.median(lengths)),
        longest=longest,
        at_longest=count,
        failed_at_longest=float(failed[top].mean()),
        failed_below=float(failed[~top].mean()) if count < len(lengths) else math.nan,
        piled=is_pile and bool(below) and count < len(lengths),
        short_failures=float((lengths[failed] <= horizon + 1).mean()) if failed.any() else math.nan,
    )


def length_findings(check: LengthCheck, n_runs: int, horizon: int) -> Iterator[DataFinding]:
    """A clock that looks like a monitor."""
    if abs(check.auroc - 0.5) >= _LENGTH_TELLS:
        longer = "Longer" if check.auroc > 0.5 else "Shorter"
        yield DataFinding(
            "warning",
            f"{longer} runs fail: the number of steps alone has an AUROC of {check.auroc:.2f} against the outcome. "
            "Judge a monitor by figures at matched remaining steps, and beside the step-index row.",
            "length",
        )
    if check.piled:
        share = check.at_longest / n_runs
        nearly = (
            " Who gets there has failed: near the cap a count of steps tells as much as any monitor."
            if check.failed_at_longest >= _NEARLY
            else ""
        )
        yield DataFinding(
            "warning",
            f"{check.at_longest:,} runs ({share:.0%}) end at exactly {check.longest} steps, as under a step cap; "
            f"{check.failed_at_longest:.0%} of them failed, {check.failed_below:.0%} of the others.{nearly}",
            "step cap",
        )
    if check.short_failures >= 0.5:
        yield DataFinding(
            "warning",
            f"{check.short_failures:.0%} of the failed runs have at most {horizon + 1} steps, all of them within the "
            "horizon: there is little time to warn in.",
        )


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
    found = []
    for name in sorted({name for group in corpus.groups for name in group}):
        values = [group.get(name, "") for group in corpus.groups]
        count, failed = Counter(values), Counter(v for v, f in zip(values, corpus.failed.tolist(), strict=True) if f)
        if not 1 < len(count) < len(values):
            continue
        rows = [GroupValue(value, n, failed[value]) for value, n in sorted(count.items(), key=lambda p: (-p[1], p[0]))]
        one_way = sum(row.runs >= _ONE_WAY and row.failed in (0, row.runs) for row in rows)
        found.append(GroupCheck(name, len(rows), tuple(rows[:_SHOWN]), _auroc(corpus, values, seed), one_way))
    return tuple(found)


def _auroc(corpus: Corpus, values: Sequence[str], seed: int) -> float:
    """Each run scored by the failure share of its value on other folds of tasks; compared within its fold.

    Compared across folds, a fold's own failures would lower the shares that it is scored by, and turn the score round.
    """
    tasks = sorted(set(corpus.task_ids), key=lambda task: task_hash(f"{seed}:groups:{task}"))
    fold_of = {task: number % FOLDS for number, task in enumerate(tasks)}
    fold = np.array([fold_of[task] for task in corpus.task_ids])
    code = np.unique(values, return_inverse=True)[1]
    scores = np.nan_to_num(share_elsewhere(code, corpus.failed, fold, prior=1.0))
    return float(Ranking(corpus.failed.astype(np.uint8), scores, strata=fold).auroc())


def group_findings(checks: tuple[GroupCheck, ...]) -> Iterator[DataFinding]:
    """Groups that tell the outcome."""
    for check in checks:
        if not math.isnan(check.auroc) and check.auroc >= _GROUP_TELLS:
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
