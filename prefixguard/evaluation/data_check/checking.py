"""Check runs before training on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from prefixguard.alarm import BUDGETS
from prefixguard.errors import DataError
from prefixguard.evaluation.data_check.budgets import FEWEST_RUNS, budget_findings, plan_split, size_findings
from prefixguard.evaluation.data_check.curve import curve_findings, learning_curve
from prefixguard.evaluation.data_check.result import SEVERITIES, DataCheck, SaidFinding
from prefixguard.evaluation.data_check.traits import (
    DataFinding,
    check_groups,
    check_lengths,
    check_repeats,
    group_findings,
    length_findings,
    repeat_findings,
)
from prefixguard.learn import Corpus, LearnListener, TrainConfig, featurise
from prefixguard.stepview import Adapter, Loss, ReadReport, StepRecord, adapter_for, losses, read_runs
from prefixguard.trace import Run

#: Looks at the runs, such as for leaks, and says what it found.
Audit = Callable[[Sequence[Run[StepRecord]]], Sequence[SaidFinding]]


def check_data(
    runs: str | Path,
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | Path | None = None,
    budget: float = 0.10,
    confidence: float = 0.90,
    horizon: int = 3,
    seed: int = 13,
    curve: bool = True,
    strict: bool = False,
    listener: LearnListener | None = None,
    report: ReadReport | None = None,
    audit: Audit | None = None,
) -> DataCheck:
    """Check whether runs are fit to train a monitor on.

    The check counts what the split of a training would leave on every side, and the successful tasks that the alarm
    budgets need. It finds runs that repeat each other word for word, and fields that are empty nearly everywhere
    although the adapter reads them. It measures what the number of steps, a step cap or the name of the agent tells of
    the outcome, and it fits a quick monitor to parts of the training tasks.

    runs, adapter, labels, strict : as for `train`.
    budget : alarm budget that the training is to keep.
    confidence : how sure the budget is to hold.
    horizon : H: a step is imminent when its run fails within so many steps.
    seed : of the split and of the learning curve.
    curve : fit a quick monitor to parts of the runs; without it the check takes no longer than reading.
    listener : its hooks are called for each stage.
    report : filled while the runs are read.
    audit : called with the runs, which are then kept in memory; its findings are added to the check.
    Raises DataError where no run has an outcome, and TraceError, AdapterError, ConfigError as `train` does.
    """
    listener, report = listener or LearnListener(), report if report is not None else ReadReport()
    config = TrainConfig(backend="gbdt", budget=budget, confidence=confidence, horizon=horizon, seed=seed)
    opened = adapter_for(adapter, str(runs))
    listener.on_stage("reading", str(runs))
    read: Iterable[Run[StepRecord]] = read_runs(
        str(runs), opened, labels=Path(labels) if labels else None, strict=strict, report=report
    )
    kept: list[Run[StepRecord]] = []
    if audit is not None:
        read = _keeping(read, kept)
    corpus = featurise(read, on_run=listener.on_runs)
    if len(corpus) == 0:
        named = adapter if isinstance(adapter, str | Path) else opened.name
        raise DataError(
            f"no run with records and an outcome was read through adapter {opened.name}"
            + (f"; {corpus.unknown} have no outcome: add one with --labels" if corpus.unknown else "")
            + f". See what it reads with: prefixguard parse {runs} --adapter {named}"
        )
    lost = () if corpus.fills is None else losses(corpus.fills, opened, str(runs))
    check = check_corpus(corpus, config, curve=curve, empty=sum(report.empty.values()), listener=listener, lost=lost)
    return check if audit is None else check.with_leaks(audit(kept))


def _keeping(runs: Iterable[Run[StepRecord]], kept: list[Run[StepRecord]]) -> Iterator[Run[StepRecord]]:
    for run in runs:
        kept.append(run)
        yield run


def check_corpus(
    corpus: Corpus,
    config: TrainConfig,
    *,
    curve: bool = True,
    empty: int = 0,
    listener: LearnListener | None = None,
    lost: Sequence[Loss] = (),
) -> DataCheck:
    """`check_data` of runs already featurised, at least one. empty: runs without a step, which are counted only.
    lost: fields that are empty nearly everywhere."""
    listener = listener or LearnListener()
    budgets = list(dict.fromkeys((config.budget, *BUDGETS)))
    plan = plan_split(corpus, budgets, config.confidence, config.seed)
    repeats, lengths = check_repeats(corpus), check_lengths(corpus, config.horizon)
    groups = check_groups(corpus, config.seed)
    findings = [
        *size_findings(corpus, plan),
        *budget_findings(plan),
        *(DataFinding(one.severity, one.text, f"loss: {one.field}") for one in lost),
        *_left_out(corpus),
        *repeat_findings(repeats, len(corpus)),
    ]
    if len(corpus) >= FEWEST_RUNS:  # of fewer, shares and areas say nothing
        findings += [*length_findings(lengths, len(corpus), config.horizon), *group_findings(groups)]
    drawn = None
    both = 0 < int(corpus.failed.sum()) < len(corpus)
    nothing = any(one.severity == "error" for one in lost)
    if curve and both and len(plan.sides) > 1 and not nothing:
        drawn = learning_curve(corpus, plan.sides, horizon=config.horizon, seed=config.seed, listener=listener)
        findings += curve_findings(drawn)
    return DataCheck(
        runs=len(corpus),
        failed=int(corpus.failed.sum()),
        tasks=len(plan.sides),
        steps=int(corpus.first[-1]),
        without_task=corpus.without_task,
        without_outcome=corpus.unknown,
        empty=empty,
        sides=plan.counts,
        budgets=plan.budgets,
        repeats=repeats,
        lengths=lengths,
        groups=groups,
        curve=drawn,
        findings=tuple(sorted(findings, key=lambda one: list(SEVERITIES).index(one.severity))),
    )


def _left_out(corpus: Corpus) -> Iterator[DataFinding]:
    if corpus.without_task:
        yield DataFinding(
            "warning",
            f"{corpus.without_task:,} of {len(corpus):,} runs name no task: each would be split as a task of its own. "
            "If several are of one task, tests would look better than they are; give task_id with --labels.",
        )
    if corpus.unknown:
        yield DataFinding(
            "warning" if corpus.unknown > len(corpus) else "note",
            f"{corpus.unknown:,} runs have no outcome and would be left out of training.",
        )
