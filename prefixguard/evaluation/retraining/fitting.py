"""Fit a monitor on one fold and score what was held out of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from prefixguard.encoder import fit_vocabulary
from prefixguard.errors import DataError
from prefixguard.evaluation.retraining.finished import FinishedFolds, FoldScores
from prefixguard.evaluation.retraining.partition import Fold, Runs
from prefixguard.learn import Corpus, LearnListener, TrainConfig, featurise, fit_monitor, fit_platt, labels, steps_of
from prefixguard.stepview import Adapter, ReadReport, StepRecord, adapter_for, read_runs
from prefixguard.trace import Run

#: Where runs come from: a source that an adapter reads, parsed runs, or a corpus that is featurised already.
Source = str | Path | Iterable[Run[StepRecord]] | Corpus
#: Called with what is being done, and a detail.
OnStage = Callable[[str, str], None]
#: Called with the number of fits that are done, and of all.
OnProgress = Callable[[int, int], None]


class StageListener(LearnListener):
    """Passes the stages of a fit on."""

    def __init__(self, on_stage: OnStage, where: str) -> None:
        self._on_stage, self._where = on_stage, where

    def on_stage(self, name: str, detail: str = "") -> None:
        """A stage of the fit begins."""
        self._on_stage(name, f"{self._where}: {detail}" if detail else self._where)


def corpus_of(
    runs: Source,
    *,
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


def score_fold(corpus: Corpus, fold: Fold, config: TrainConfig, listener: LearnListener | None = None) -> FoldScores:
    """Fit on the fold's training runs, map logits to risks on its calibration runs, score its test runs.

    The fit never sees a calibration or a test run: vocabulary and context scale are of the training runs.
    """
    listener = listener or LearnListener()
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


def steps_in(corpus: Corpus, runs: Runs) -> int:
    """Steps of these runs."""
    return int(corpus.lengths[runs].sum())


class Fitting:
    """Scores folds one after another, takes up those that are done, and tells how far it is.

    total: fits that are going to be asked for in all.
    """

    def __init__(self, total: int, on_stage: OnStage | None, on_progress: OnProgress | None) -> None:
        self._done, self._total = 0, total
        self._on_stage, self._on_progress = on_stage, on_progress

    def score(
        self, what: str, corpus: Corpus, fold: Fold, config: TrainConfig, finished: FinishedFolds | None
    ) -> FoldScores:
        """The scores of a fold, from the folder where they are there, else fitted and kept. what: for messages."""
        scores = None if finished is None else finished.load(fold.name, steps_in(corpus, fold.test))
        if scores is None:
            listener = None if self._on_stage is None else StageListener(self._on_stage, f"{what}, {fold.name}")
            scores = score_fold(corpus, fold, config, listener)
            if finished is not None:
                finished.save(fold.name, scores)
        self.skip()
        return scores

    def skip(self, fits: int = 1) -> None:
        """So many fits are done, or are not needed."""
        self._done += fits
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)
