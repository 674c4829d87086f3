"""Repeated task-grouped cross-validation: how good is what this training makes of these runs?

`evaluate` looks at one finished monitor on the runs that its split left over, a sixth of them. Here every run is
tested on once a repetition, by a monitor that has seen no run of its task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prefixguard.alarm import AlarmPolicy
from prefixguard.evaluation.retraining.fitting import (
    RESAMPLES,
    FoldScores,
    OnStage,
    Retraining,
    Source,
    averaged,
    nan_mean,
)
from prefixguard.evaluation.tables.figures import (
    FIGURES,
    RISKS,
    Measured,
    RiskFigures,
    compared,
    reading_help,
    risk_table,
)
from prefixguard.evaluation.tables.rows import ScoreRow, clock_rows, reference_rows
from prefixguard.learn import TrainConfig
from prefixguard.results import Block, Result, Text, number
from prefixguard.stepview import Adapter
from prefixguard.store import OnProgress


@dataclass(frozen=True, slots=True)
class FoldedRow:
    """Figures of what the training has to beat; `differences` are the training's lead. oracle: see `BaselineRow`."""

    imminent: RiskFigures
    outcome: RiskFigures
    oracle: bool
    note: str


@dataclass(frozen=True, slots=True)
class FoldedEvaluation(Result):
    """Figures of a training over task-grouped folds: each the mean over all folds, repetitions and seeds.

    by_seed: risk -> seed -> figure, its mean over the folds of that seed; what differs is initialisation, batches and
        the choice of validation and calibration tasks, never the runs tested on.
    by_fold: name of the fold -> risk -> figure.
    trained_on: runs that a fit learned from, least and most.
    """

    runs: int
    failed_runs: int
    tasks: int
    prefixes: int
    horizon: int
    backend: str
    folds: int
    repeats: int
    seeds: tuple[int, ...]
    trained_on: tuple[int, int]
    grouped_by: str | None
    imminent: RiskFigures
    outcome: RiskFigures
    baselines: Mapping[str, FoldedRow]
    by_seed: Mapping[str, Mapping[int, Mapping[str, float]]]
    by_fold: Mapping[str, Mapping[str, Mapping[str, float]]]
    notes: tuple[str, ...] = ()

    def spread_over_seeds(self, risk: str, figure: str) -> tuple[float, float] | None:
        """Least and greatest mean of a seed; None for one seed, or where the figure does not exist."""
        values = np.array([figures[figure] for figures in self.by_seed[risk].values()])
        if len(values) < 2 or np.isnan(values).any():
            return None
        return float(values.min()), float(values.max())

    def blocks(self) -> tuple[Block, ...]:
        """What was trained on what, the figures of both risks beside the clocks', and notes."""
        share = 100 * self.failed_runs / self.runs
        least, most = self.trained_on
        learned = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {', '.join(map(str, self.seeds))}"
        return (
            Text(
                f"{self.backend}, {self.repeats} x {self.folds} task-grouped folds, {seeds}: {self.runs:,} runs of "
                f"{self.tasks:,} tasks, {self.failed_runs:,} failed ({share:.1f} %), {self.prefixes:,} prefixes; each "
                f"fit learned from {learned} runs and is tested on runs of other tasks."
            ),
            *self._risk("Imminent risk", f"fails, and ends within {self.horizon} more steps", "imminent"),
            *self._risk("Outcome risk", "fails", "outcome"),
            reading_help(self.grouped_by, oracles=True, more="All figures are means over folds."),
            *map(Text, self.notes),
        )

    def _risk(self, title: str, meaning: str, which: str) -> Iterator[Block]:
        own: RiskFigures = getattr(self, which)
        rows = [("trained", own, False)]
        rows += [(name, getattr(row, which), row.oracle) for name, row in self.baselines.items()]
        caption = f"{title}: {meaning} (prevalence {number(own.prevalence)})"
        by, ahead = self.grouped_by, "trained ahead by"
        yield risk_table(caption, rows, ahead=ahead, grouped_by=by, leave_out=("auroc",))
        seeds = [
            f"{short} {number(ends[0])} to {number(ends[1])}"
            for short, name in (("AUPRC", "auprc"), ("rem", "outcome_auroc_at_remaining"))
            if (ends := self.spread_over_seeds(which, name)) is not None
        ]
        if seeds:
            yield Text(f"from seed to seed: {', '.join(seeds)}")


def cross_validate(
    runs: Source,
    config: TrainConfig | None = None,
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | Path | None = None,
    strict: bool = False,
    folds: int = 5,
    repeats: int = 1,
    seeds: Sequence[int] = (13,),
    group_by: str | None = None,
    out: str | Path | None = None,
    resamples: int = RESAMPLES,
    on_stage: OnStage | None = None,
    on_progress: OnProgress | None = None,
) -> FoldedEvaluation:
    """Train and test on task-grouped folds.

    runs: file, folder, glob or tar that `adapter` reads, with outcomes from the file `labels`; or parsed runs;
        or a corpus.
    config: of the training; its seed is not used, `seeds` are: every fold is fitted once a seed.
    folds : parts that tasks are dealt to, 2 or more; each is held out once.
    repeats : deal tasks to other folds so often, 1 or more.
    seeds : every fold is fitted once a seed, such as 13,14,15; folds * repeats * seeds fits are made.
    group_by: the group within which runs are compared; None: the first of agent, model and file with two values.
    out: a folder that keeps every fold as it is done (`prefixguard.store`); called again, only what is missing is
        fitted, and more repeats or seeds may be asked for. Folds of other runs or options may lie in the same folder.
    resamples: of the bootstrap over tasks.
    Raises DataError for runs that cannot be split so, OutputError for a folder that cannot be written, TraceError as
    `read_runs` does.
    """
    retraining = Retraining(
        runs,
        config or TrainConfig(),
        adapter=adapter,
        labels=labels,
        strict=strict,
        folds=folds,
        repeats=repeats,
        seeds=seeds,
        group_by=group_by,
        out=out,
        resamples=resamples,
        on_stage=on_stage,
        on_progress=on_progress,
    )
    return folded(retraining, retraining.score_all(retraining.config.backend, 1))[0]


def folded(retraining: Retraining, scored: Sequence[FoldScores]) -> tuple[FoldedEvaluation, dict[str, Measured]]:
    """From the scores of all folds to the result, and the means behind it, by risk."""
    corpus, plan, config = retraining.corpus, retraining.plan, retraining.config
    each = retraining.measure_all(scored)
    whole, trained_on = averaged(each), [one.trained_on for one in scored]
    seeds = tuple(dict.fromkeys(fold.seed for fold in plan))
    found = FoldedEvaluation(
        runs=len(corpus),
        failed_runs=int(corpus.failed.sum()),
        tasks=len(set(corpus.task_ids)),
        prefixes=int(corpus.first[-1]),
        horizon=config.horizon,
        backend=config.backend,
        folds=len({fold.number for fold in plan}),
        repeats=len({fold.repeat for fold in plan}),
        seeds=seeds,
        trained_on=(min(trained_on), max(trained_on)),
        grouped_by=retraining.grouped_by,
        imminent=whole["imminent"].figures,
        outcome=whole["outcome"].figures,
        baselines=_clocks(retraining, whole),
        by_seed={
            risk: {
                seed: _means([one[risk] for fold, one in zip(plan, each, strict=True) if fold.seed == seed])
                for seed in seeds
            }
            for risk in RISKS
        },
        by_fold={
            fold.name: {risk: {name: getattr(one[risk].figures, name) for name in FIGURES} for risk in RISKS}
            for fold, one in zip(plan, each, strict=True)
        },
        notes=retraining.notes,
    )
    return found, whole


def _means(folds: Sequence[Measured]) -> dict[str, float]:
    return {name: nan_mean([getattr(one.figures, name) for one in folds]) for name in FIGURES}


def _clocks(retraining: Retraining, trained: Mapping[str, Measured]) -> dict[str, FoldedRow]:
    """The rows that read nothing, on the same folds. They have no seed."""
    rows: dict[str, ScoreRow] = {}
    measured: dict[tuple[int, int], dict[str, dict[str, Measured]]] = {}
    for fold in {(fold.repeat, fold.number): fold for fold in retraining.plan}.values():
        corpus = retraining.corpus
        prefixes, lengths = corpus.prefixes(fold.test), corpus.lengths[fold.test].tolist()
        sizes = [size.astype(np.float64) for size in corpus.sizes(fold.test)]
        of_fold = measured[fold.repeat, fold.number] = {}
        for row in (
            *clock_rows(prefixes, lengths, retraining.config.horizon, AlarmPolicy(), (), None),
            *reference_rows(retraining.reference(fold), prefixes, lengths, sizes),
        ):
            scores = np.stack(row.flat(lengths), axis=1)
            of_fold[row.name] = retraining.measure(fold, scores, probability=row.probability)
            rows[row.name] = row
    found = {}
    for name, row in rows.items():
        mean = averaged([measured[fold.repeat, fold.number][name] for fold in retraining.plan])
        imminent, outcome = (compared(trained[risk], mean[risk]) for risk in RISKS)
        found[name] = FoldedRow(imminent, outcome, row.oracle, row.note)
    return found
