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
from prefixguard.evaluation.figures import (
    FIGURES,
    RISKS,
    Measured,
    RiskFigures,
    compared,
    lead_cell,
    reading_help,
    risk_cells,
    risk_columns,
)
from prefixguard.evaluation.retraining.fitting import Fitting, FoldScores, OnStage, Source, corpus_of
from prefixguard.evaluation.retraining.partition import Fold, partition
from prefixguard.evaluation.retraining.pooled import Pool, average, nan_mean
from prefixguard.evaluation.rows import clock_rows
from prefixguard.evaluation.scored_runs import choose_groups
from prefixguard.learn import TrainConfig
from prefixguard.results import Block, Cell, Column, Result, Table, Text, number
from prefixguard.stepview import Adapter
from prefixguard.store import OnProgress

#: Resamples behind each interval.
RESAMPLES = 500
#: Figures that the text leaves out.
_NOT_SHOWN = ("auroc",)


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
        first, *others = risk_columns(self.grouped_by, _NOT_SHOWN)
        cells: list[list[str | Cell]] = []
        for name, row in (("trained", self), *self.baselines.items()):
            figures: RiskFigures = getattr(row, which)
            auprc, *rest = risk_cells(figures, _NOT_SHOWN)
            marked = f"{name} *" if isinstance(row, FoldedRow) and row.oracle else name
            cells.append([marked, auprc, lead_cell(figures.differences.get("auprc")), *rest])
        head: list[str | Column] = ["", first, Column("trained ahead by", "number", "ahead"), *others]
        yield Table.of(f"{title}: {meaning} (prevalence {number(own.prevalence)})", head, cells, marked={0})
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

    runs: file, folder, glob or tar that `adapter` reads, with `labels` beside it; or parsed runs; or a corpus.
    config: of the training; its seed is not used, `seeds` are: every fold is fitted once a seed.
    folds, repeats, seeds: see `partition`. folds * repeats * seeds fits are made.
    group_by: the group within which runs are compared; None: the first of agent, model and file with two values.
    out: a folder that keeps every fold as it is done (`prefixguard.store`); called again, only what is missing is
        fitted, and more repeats or seeds may be asked for. Folds of other runs or options may lie in the same folder.
    resamples: of the bootstrap over tasks.
    Raises DataError for runs that cannot be split so, OutputError for a folder that cannot be written, TraceError as
    `read_runs` does.
    """
    config = config or TrainConfig()
    corpus, notes = corpus_of(runs, adapter=adapter, labels=labels, strict=strict, on_stage=on_stage)
    plan = partition(corpus, folds=folds, repeats=repeats, seeds=seeds)
    fitting = Fitting(corpus, config, folds=folds, total=len(plan), out=out, on_stage=on_stage, on_progress=on_progress)
    scored = [fitting.score(config.backend, fold) for fold in plan]
    name, groups = choose_groups(corpus.groups, group_by)
    pool = Pool(corpus, horizon=config.horizon, groups=groups, resamples=resamples, seed=13)
    return summarise(pool, config, plan, scored, grouped_by=name, notes=notes)


def measured_folds(pool: Pool, plan: Sequence[Fold], scored: Sequence[FoldScores]) -> list[dict[str, Measured]]:
    """Figures of each fold, by risk."""
    return [pool.measure(fold.test, one.risks, probability=True) for fold, one in zip(plan, scored, strict=True)]


def summarise(
    pool: Pool,
    config: TrainConfig,
    plan: Sequence[Fold],
    scored: Sequence[FoldScores],
    *,
    grouped_by: str | None,
    notes: Sequence[str],
) -> FoldedEvaluation:
    """From the scores of all folds to the result."""
    each = measured_folds(pool, plan, scored)
    whole = {risk: average([one[risk] for one in each]) for risk in RISKS}
    corpus = pool.corpus
    return FoldedEvaluation(
        runs=len(corpus),
        failed_runs=int(corpus.failed.sum()),
        tasks=len(set(corpus.task_ids)),
        prefixes=int(corpus.first[-1]),
        horizon=config.horizon,
        backend=config.backend,
        folds=len({fold.number for fold in plan}),
        repeats=len({fold.repeat for fold in plan}),
        seeds=tuple(dict.fromkeys(fold.seed for fold in plan)),
        trained_on=(min(one.trained_on for one in scored), max(one.trained_on for one in scored)),
        grouped_by=grouped_by,
        imminent=whole["imminent"].figures,
        outcome=whole["outcome"].figures,
        baselines=clocks(pool, plan, whole),
        by_seed={risk: _by_seed(plan, [one[risk] for one in each]) for risk in RISKS},
        by_fold={
            fold.name: {risk: {name: getattr(one[risk].figures, name) for name in FIGURES} for risk in RISKS}
            for fold, one in zip(plan, each, strict=True)
        },
        notes=tuple(notes),
    )


def clocks(pool: Pool, plan: Sequence[Fold], trained: Mapping[str, Measured]) -> dict[str, FoldedRow]:
    """The rows that read nothing, on the same folds: constant, step index, end oracle."""
    found: dict[str, list[dict[str, Measured]]] = {}
    kinds: dict[str, tuple[bool, str]] = {}
    seen: dict[tuple[int, int], dict[str, dict[str, Measured]]] = {}
    for fold in plan:
        place = (fold.repeat, fold.number)
        if place not in seen:  # these rows have no seed
            prefixes, lengths = pool.prefixes(fold.test), pool.corpus.lengths[fold.test].tolist()
            seen[place] = {}
            for row in clock_rows(prefixes, lengths, pool.horizon, AlarmPolicy(), (), None):
                scores = np.stack(row.flat(lengths), axis=1)
                seen[place][row.name] = pool.measure(fold.test, scores, probability=row.probability)
                kinds[row.name] = (row.oracle, row.note)
        for name, measured in seen[place].items():
            found.setdefault(name, []).append(measured)
    rows = {}
    for name, each in found.items():
        imminent, outcome = (compared(trained[risk], average([one[risk] for one in each])) for risk in RISKS)
        rows[name] = FoldedRow(imminent, outcome, *kinds[name])
    return rows


def _by_seed(plan: Sequence[Fold], measured: Sequence[Measured]) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for seed in dict.fromkeys(fold.seed for fold in plan):
        own = [one.figures for fold, one in zip(plan, measured, strict=True) if fold.seed == seed]
        found[seed] = {name: nan_mean(np.array([getattr(one, name) for one in own])) for name in FIGURES}
    return found
