"""What the number of steps gives away: whether longer runs fail, and whether a cap ends them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.data_check.finding import DataFinding
from prefixguard.learn import Corpus
from prefixguard.metrics import auroc

#: Distance of an AUROC from .5 that is worth a warning.
_STRONG = 0.20
#: Runs at the greatest length make a pile when they are this share of all, so many, and so many times what ends at
#: each of the lengths below it.
_PILE_SHARE, _PILE_RUNS, _PILE_TIMES, _BELOW = 0.05, 5, 3.0, 5
#: Failure share at the cap from which getting there is nearly the label.
_NEARLY = 0.90


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
    below = [int((lengths == longest - k).sum()) for k in range(1, _BELOW + 1) if longest - k >= 1]
    usual = float(np.mean(below)) if below else 0.0
    count = int(top.sum())
    piled = (
        bool(below)
        and count < len(lengths)
        and count >= max(_PILE_RUNS, _PILE_SHARE * len(lengths))
        and count >= _PILE_TIMES * usual
    )
    return LengthCheck(
        auroc=auroc(failed, lengths),
        median=int(np.median(lengths)),
        longest=longest,
        at_longest=count,
        failed_at_longest=float(failed[top].mean()),
        failed_below=float(failed[~top].mean()) if count < len(lengths) else math.nan,
        piled=piled,
        short_failures=float((lengths[failed] <= horizon + 1).mean()) if failed.any() else math.nan,
    )


def length_findings(check: LengthCheck, n_runs: int, horizon: int) -> Iterator[DataFinding]:
    """A clock that looks like a monitor."""
    if abs(check.auroc - 0.5) >= _STRONG:
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
