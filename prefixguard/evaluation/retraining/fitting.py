"""The engine of every evaluation that trains: fits on folds, what they say of the runs held out, and its figures.

A fit that is done is kept, and taken up again. Each figure is computed on every fold alone, where all scores come from
one fit, and averaged; scores of different fits are never ranked against each other. A resample draws tasks of the whole
corpus and weighs every fold's tasks by it, so that the average is resampled as one. Intervals speak of other tasks, not
of other seeds: those have their own column.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.distribution import VERSION
from prefixguard.encoder import fit_vocabulary
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.retraining.partition import Fold, Runs, partition
from prefixguard.evaluation.scored_runs import choose_groups
from prefixguard.evaluation.tables.figures import FIGURES, RISKS, Basis, Measured
from prefixguard.learn import Corpus, LearnListener, TrainConfig, featurise, fit_monitor, fit_platt, labels, steps_of
from prefixguard.metrics import Estimates, ReferenceRisks, Resamples
from prefixguard.runtime import Monitor
from prefixguard.stepview import Adapter, ReadReport, SpooledRuns, StepRecord, adapter_for, read_runs
from prefixguard.store import Kept, OnProgress, Store
from prefixguard.trace import Run

Float = NDArray[np.float64]
#: Where runs come from: a source that an adapter reads, parsed runs, or a corpus that is featurised already.
Source = str | Path | Iterable[Run[StepRecord]] | Corpus
#: Called with what is being done, and a detail.
OnStage = Callable[[str, str], None]
#: Resamples behind each interval.
RESAMPLES = 500
#: Options that do not change the scores of a fold, or are part of its name.
_FREE = ("seed", "threads", "device", "budget", "confidence")


@dataclasses.dataclass(frozen=True, slots=True)
class FoldScores:
    """What one fit says of the runs held out.

    logits: float64 (steps of the test runs, 2), imminent and outcome, before calibration.
    maps: float64 (2, 2), slope and intercept of the Platt map of either risk.
    trained_on: runs that the heads were fitted on.
    """

    logits: NDArray[np.float64]
    maps: NDArray[np.float64]
    trained_on: int

    @property
    def risks(self) -> NDArray[np.float64]:
        """Calibrated risks, float64 (steps, 2)."""
        return 1 / (1 + np.exp(-np.clip(self.logits * self.maps[:, 0] + self.maps[:, 1], -500, 500)))


def training_of(monitor: Monitor) -> TrainConfig:
    """The options that a monitor was trained with, as its bundle says.

    Raises ConfigError where it does not, as an automaton's.
    """
    bundle = monitor.bundle
    config = bundle.manifest.get("config")
    if bundle.automaton is not None or not isinstance(config, dict):
        raise ConfigError(
            f"{bundle.path}: this bundle does not say how it was trained, so nothing can be trained like it. Name the "
            "monitor that `train` wrote; of an automaton, the one it was learned from."
        )
    return TrainConfig.from_mapping(config, str(bundle.path / "manifest.json"))


class Retraining:
    """The fits of one evaluation on the folds of a corpus, and the figures of what they say of the runs held out.

    runs, adapter, labels, strict: what is learned from. config: of all fits. folds, repeats, seeds: see `partition`.
    group_by: see `choose_groups`. out: folder where fits are kept; None: nowhere. A fit is found again by release,
    runs, options and fold, so that evaluations that make the same fit share it. resamples: of the bootstrap over the
    corpus's tasks. within_groups: whether figures compare runs within their groups too.
    Raises DataError where a source is given without an adapter, or where there is nothing to learn from.
    """

    def __init__(
        self,
        runs: Source,
        config: TrainConfig,
        *,
        adapter: str | Path | Adapter | None,
        labels: str | Path | None,
        strict: bool,
        folds: int,
        repeats: int,
        seeds: Sequence[int],
        group_by: str | None,
        out: str | Path | None,
        resamples: int,
        on_stage: OnStage | None,
        on_progress: OnProgress | None,
        within_groups: bool = True,
    ) -> None:
        self.corpus, self.notes = _corpus_of(runs, adapter, labels, strict, on_stage)
        self.corpus = self.corpus if config.signals and not config.only_healthy else self.corpus.without_signals()
        self.config, self.total, self._done = config, 0, 0
        self.grouped_by, self.groups = choose_groups(self.corpus.groups, group_by)
        self._within = self.groups if within_groups else None
        self._folds, self._repeats, self._seeds = folds, repeats, seeds
        self._on_stage, self._on_progress = on_stage, on_progress
        options = {name: value for name, value in dataclasses.asdict(config).items() if name not in _FREE}
        data = _data_hash(self.corpus) if out is not None else ""
        self._store = Store(out, {"release": VERSION, "config": options, "folds": folds, "data": data})
        self._code = {task: code for code, task in enumerate(sorted(set(self.corpus.task_ids)))}
        self._references: dict[str, ReferenceRisks] = {}
        self._weights = Resamples.draw(len(self._code), n=resamples, seed=13).weights

    @cached_property
    def plan(self) -> list[Fold]:
        """All folds. Raises DataError for runs that cannot be split so."""
        return partition(self.corpus, folds=self._folds, repeats=self._repeats, seeds=self._seeds)

    def score_all(self, what: str, fits: int) -> list[FoldScores]:
        """Scores of every fold. what: for messages. fits: what is going to be fitted on each fold, in all."""
        self.total = fits * len(self.plan)
        return [self.score(what, fold) for fold in self.plan]

    def kept(self, fold: Fold, **more: Any) -> FoldScores | None:
        """The scores of a fold, where they are kept. more: what is particular to this fit, plain values."""
        found = self._store.get("fold", fold=fold.name, **more)
        if found is None:
            return None
        scores = FoldScores(found.arrays["logits"], found.arrays["maps"], int(found.facts["trained_on"]))
        return scores if len(scores.logits) == int(self.corpus.lengths[fold.test].sum()) else None

    def score(self, what: str, fold: Fold, corpus: Corpus | None = None, **more: Any) -> FoldScores:
        """The scores of a fold, kept or made. what: for messages. corpus: what the fit reads, where that is not all of
        the runs as they are. more: as at `kept`."""
        scores = self.kept(fold, **more)
        if scores is None:
            listener = LearnListener() if self._on_stage is None else _Stages(self._on_stage, f"{what}, {fold.name}")
            config = dataclasses.replace(self.config, seed=fold.seed)
            scores = _fit_and_score(corpus or self.corpus, fold, config, listener)
            kept = Kept({"trained_on": scores.trained_on}, {"logits": scores.logits, "maps": scores.maps})
            self._store.put(kept, "fold", fold=fold.name, **more)
        self.skip()
        return scores

    def skip(self, fits: int = 1) -> None:
        """So many fits are done, or are not needed."""
        self._done += fits
        if self._on_progress is not None:
            self._on_progress(self._done, self.total)

    def reference(self, fold: Fold) -> ReferenceRisks:
        """The risks that read nothing, fitted on the fold's training runs."""
        if fold.name not in self._references:
            prefixes, sizes = self.corpus.prefixes(fold.train), self.corpus.sizes(fold.train)
            self._references[fold.name] = ReferenceRisks.fit(prefixes, sizes, self.config.horizon)
        return self._references[fold.name]

    def measure(
        self, fold: Fold, scores: Float, *, runs: Runs | None = None, probability: bool = True
    ) -> dict[str, Measured]:
        """The figures of one fold, by risk; skill is over a clock fitted on its training runs.

        runs: int64 (n,), one or more; None: the fold's test runs. scores: float64 (steps of the runs, 2), imminent and
        outcome.
        """
        runs = fold.test if runs is None else runs
        local = [self._code[task] for task in dict.fromkeys(self.corpus.task_ids[r] for r in runs.tolist())]
        groups = None if self._within is None else [self._within[r] for r in runs.tolist()]
        prefixes, drawn = self.corpus.prefixes(runs), Resamples(self._weights[:, local])
        basis = Basis(prefixes, self.config.horizon, drawn, groups, self.reference(fold).by_step(prefixes.step))
        return basis.measure([*scores.T], probability=probability)

    def measure_all(self, scored: Sequence[FoldScores]) -> list[dict[str, Measured]]:
        """Figures of each fold, by risk. scored: one a fold of the plan."""
        return [self.measure(fold, one.risks) for fold, one in zip(self.plan, scored, strict=True)]


class _Stages(LearnListener):
    """Passes the stages of a fit on."""

    def __init__(self, on_stage: OnStage, where: str) -> None:
        self._on_stage, self._where = on_stage, where

    def on_stage(self, name: str, detail: str = "") -> None:
        self._on_stage(name, f"{self._where}: {detail}" if detail else self._where)


def averaged(each: Sequence[dict[str, Measured]]) -> dict[str, Measured]:
    """By risk, the mean of each figure over folds, and of each resample; a fold without the figure is left out.

    each: one or more folds, all of one score. Their prefixes differ, so `judged` says only that all folds were judged.
    """
    found = {}
    for risk in RISKS:
        folds = [one[risk] for one in each]
        samples = {name: [one.samples[name] for one in folds if name in one.samples] for name in FIGURES}
        means = Estimates(
            {name: nan_mean([getattr(one.figures, name) for one in folds]) for name, rows in samples.items() if rows},
            {name: _nan_means(np.stack(rows)) for name, rows in samples.items() if rows},
        )
        judged = np.ones(len(folds), dtype=np.bool_)
        found[risk] = Measured.of(means.values, means.intervals, means.samples, judged)
    return found


def nan_mean(values: Sequence[float]) -> float:
    """Mean of the numbers among these; NaN where there is none."""
    known = np.array([value for value in values if not math.isnan(value)])
    return float(known.mean()) if len(known) else math.nan


def _nan_means(rows: Float) -> Float:
    """`nan_mean` down each column: (n, R) -> (R,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any number is NaN, as wanted
        return np.asarray(np.nanmean(rows, axis=0), dtype=np.float64)


def _corpus_of(
    runs: Source,
    adapter: str | Path | Adapter | None,
    labels: str | Path | None,
    strict: bool,
    on_stage: OnStage | None,
) -> tuple[Corpus, tuple[str, ...]]:
    """The featurised runs, and notes on what was left out.

    Raises DataError where a source is given without an adapter, or where there is nothing to learn from.
    """
    notes: list[str] = []
    if isinstance(runs, Corpus):
        corpus = runs
    elif isinstance(runs, (str, Path)):
        if adapter is None:
            raise DataError(f"{runs}: no adapter given. Say through which one the runs are read.")
        if on_stage is not None:
            on_stage("reading", str(runs))
        report = ReadReport()
        companion = None if labels is None else Path(labels)
        opened = adapter_for(adapter, str(runs))
        corpus = featurise(read_runs(str(runs), opened, labels=companion, strict=strict, report=report))
        notes.extend(report.left_out())
    else:
        corpus = featurise(runs)
        notes.extend(runs.report.left_out() if isinstance(runs, SpooledRuns) else ())
    if len(corpus) == 0:
        raise DataError(
            f"there is no run to learn from ({corpus.unknown} without an outcome). Give runs whose outcome is known, "
            "or outcomes beside them."
        )
    if corpus.unknown:
        notes.append(f"{corpus.unknown} runs have no outcome and are left out.")
    if corpus.without_task:
        notes.append(f"{corpus.without_task} runs name no task; each counts as a task of its own.")
    return corpus, tuple(notes)


def _fit_and_score(corpus: Corpus, fold: Fold, config: TrainConfig, listener: LearnListener) -> FoldScores:
    """Fit on the fold's training runs, map logits to risks on its calibration runs, score its test runs.

    The fit never sees a calibration or a test run: vocabulary and context scale are of the training runs.
    """
    listener.on_stage("vocabulary", f"{len(fold.train):,} runs")
    vocabulary = fit_vocabulary(
        corpus.texts(fold.train.tolist()), max_features=config.max_features, min_tasks=config.min_tasks
    )
    listener.on_stage("encoding", f"{len(vocabulary[0]):,} terms")
    rows = corpus.encode(vocabulary[0])
    validation = fold.validation if len(fold.validation) else None
    with warnings.catch_warnings():
        # A text that is the same at every step has no variance to explain; nothing reads what is divided there.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"sklearn\.decomposition")
        fitted = fit_monitor(
            corpus, fold.train, config, validation=validation, listener=listener, rows=rows, vocabulary=vocabulary
        )
    mapped = np.concatenate(fitted.logits(corpus, rows, fold.calibration))
    target = labels(corpus, config.horizon)[steps_of(corpus, fold.calibration)].astype(np.float64)
    maps = [fit_platt(mapped[:, risk], target[:, risk]) for risk in range(2)]
    return FoldScores(
        logits=np.concatenate(fitted.logits(corpus, rows, fold.test)).astype(np.float64),
        maps=np.array([[platt.a, platt.b] for platt in maps]),
        trained_on=len(fold.train),
    )


def _data_hash(corpus: Corpus) -> str:
    """SHA-256 of the runs: their names, tasks, outcomes, and what their records say."""
    digest = hashlib.sha256()
    for run, task, said, failed in zip(
        corpus.run_ids, corpus.task_ids, corpus.digests, corpus.failed.tolist(), strict=True
    ):
        digest.update(json.dumps([run, task, said, failed]).encode())
    return digest.hexdigest()
