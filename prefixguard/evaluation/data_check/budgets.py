"""Whether the default split leaves enough on every side, and enough successful tasks for the alarm's budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.alarm import AlarmPolicy, runs_needed, smallest_budget
from prefixguard.evaluation.data_check.traits import DataFinding
from prefixguard.learn import Corpus, split_for_training
from prefixguard.trace import Side

#: Fewest runs, and tasks, that training takes; and runs below which its figures say little.
FEWEST_RUNS, FEW_RUNS = 20, 200
FEWEST_TASKS = len(Side)
#: Failed, or successful, test runs below which figures have wide intervals.
_FEW_TEST = 20


@dataclass(frozen=True, slots=True)
class SideCount:
    """Tasks, runs and failed runs on a side of the split that training would make."""

    side: str
    tasks: int
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """Whether the runs support an alarm budget at a confidence.

    needed: tasks with a successful run that the bound asks for. by_split: those that the default split sets aside.
    available: those when training moves up to half of its own tasks, which it does where they are enough. more_tasks:
    about so many further tasks, of the kind that is here, until the budget is supported; 0 where it is, None where
    nothing can be said.
    """

    budget: float
    confidence: float
    needed: int
    by_split: int
    available: int
    more_tasks: int | None

    @property
    def supported(self) -> bool:
        """Whether training would give an alarm of this budget."""
        return self.available >= self.needed


@dataclass(frozen=True, slots=True)
class Plan:
    """The split of a training, after tasks have moved for the budget asked for, which stands first among budgets."""

    sides: Mapping[str, Side]
    counts: tuple[SideCount, ...]
    budgets: tuple[BudgetCheck, ...]


def plan_split(corpus: Corpus, budgets: Sequence[float], confidence: float, seed: int) -> Plan:
    """Split as `train` does with the first of these budgets; check all of them."""
    n_tasks, by_split = len(set(corpus.task_ids)), split_for_training(corpus, 0, seed).reached
    checks = []
    for budget in budgets:
        needed = runs_needed(budget, AlarmPolicy(budget=budget, confidence=confidence).delta)
        available = split_for_training(corpus, needed, seed).reached
        # further tasks until so many can be set aside, if each is worth what those here are
        short = math.ceil(needed * n_tasks / available) - n_tasks if available else None
        more = 0 if available >= needed else short
        checks.append(BudgetCheck(budget, confidence, needed, by_split, available, more))
    planned = split_for_training(corpus, checks[0].needed, seed).sides
    of_run = np.array([planned[task].value for task in corpus.task_ids])
    counts = []
    for side in Side:
        failed = corpus.failed[of_run == side.value]
        tasks = sum(one is side for one in planned.values())
        counts.append(SideCount(side.value, tasks, len(failed), int(failed.sum())))
    return Plan(planned, tuple(counts), tuple(checks))


def size_findings(corpus: Corpus, plan: Plan) -> Iterator[DataFinding]:
    """What training would refuse, and what would make its figures worth little."""
    tasks, failed = len(plan.sides), int(corpus.failed.sum())
    if failed in (0, len(corpus)):
        which = "failed" if failed else "succeeded"
        yield DataFinding(
            "error",
            f"All {len(corpus):,} runs {which}: both outcomes are needed to learn from. Check the adapter's outcome "
            "rule, or give outcomes with --labels.",
        )
    if len(corpus) < FEWEST_RUNS or tasks < FEWEST_TASKS:
        short = ((FEWEST_RUNS - len(corpus), "run"), (FEWEST_TASKS - tasks, "task"))
        more = [f"{n} more {what if n == 1 else f'{what}s'}" for n, what in short if n > 0]
        yield DataFinding(
            "error",
            f"{len(corpus)} runs of {tasks} tasks are too few to train, calibrate and test on: at least {FEWEST_RUNS} "
            f"runs of {FEWEST_TASKS} tasks are needed ({' and '.join(more)}), and hundreds to be of use.",
        )
        return
    if failed in (0, len(corpus)):
        return
    for count in plan.counts:
        alike = count.failed in (0, count.runs)
        if count.side in (Side.TRAIN.value, Side.CALIBRATION.value) and alike:
            yield DataFinding(
                "error",
                f"The {count.side} side of the split would hold {count.runs} runs that all ended alike, and training "
                "would stop there. Give more tasks with both outcomes, or try another --seed.",
            )
        rarer = min(count.failed, count.runs - count.failed)
        if count.side == Side.TEST.value and rarer < _FEW_TEST:
            which = "failed" if count.failed == rarer else "successful"
            which += " run" if rarer == 1 else " runs"
            yield DataFinding(
                "warning",
                f"Only {rarer} {which} would be kept for testing: what is measured on them has wide intervals.",
            )
    if len(corpus) < FEW_RUNS:
        yield DataFinding("warning", f"{len(corpus)} runs are few: monitors get useful with hundreds.")


def budget_findings(plan: Plan) -> Iterator[DataFinding]:
    """An error where the budget asked for, the first, cannot be kept; a note on the others."""
    for number, check in enumerate(plan.budgets):
        if check.supported:
            continue
        delta = AlarmPolicy(budget=check.budget, confidence=check.confidence).delta
        possible = math.ceil(1000 * smallest_budget(check.available, delta)) / 10
        more = "" if check.more_tasks is None else f"; about {check.more_tasks:,} more tasks like these would do"
        instead = f", or accept a budget of {possible:g} % or more" if number == 0 and 0 < possible < 100 else ""
        yield DataFinding(
            "note" if number else "error",
            f"An alarm budget of {100 * check.budget:g} % at {100 * check.confidence:g} % confidence needs "
            f"{check.needed} tasks with a successful run set aside; these runs can give {check.available}"
            f"{more}{instead}.",
        )
