"""Runs that say word for word what another says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prefixguard.evaluation.data_check.finding import DataFinding
from prefixguard.learn import Corpus
from prefixguard.trace import repeat_groups

#: Share of repeats from which the number of runs says too much.
_MANY = 0.10


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
