"""Figures averaged over folds, with the resamples behind them.

Each figure is computed on every fold alone, where all scores come from one fit, and averaged; scores of different fits
are never ranked against each other. A resample draws tasks of the whole corpus and weighs every fold's tasks by it, so
that the average is resampled as one. Intervals speak of other tasks, not of other seeds: those have their own column.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.evaluation.figures import FIGURES, Basis, Measured
from prefixguard.evaluation.retraining.partition import Runs
from prefixguard.learn import Corpus
from prefixguard.metrics import Estimates, Prefixes, Resamples

Float = npt.NDArray[np.float64]


class Pool:
    """A corpus as figures need it: which tasks are drawn together, who acted, how far ahead is imminent.

    groups: one name a run, or None. horizon: H. resamples, seed: of the bootstrap over the corpus's tasks.
    """

    def __init__(
        self, corpus: Corpus, *, horizon: int, groups: Sequence[str] | None, resamples: int, seed: int
    ) -> None:
        self.corpus, self.horizon, self.groups = corpus, horizon, groups
        self._code = {task: code for code, task in enumerate(sorted(set(corpus.task_ids)))}
        self._weights = Resamples.draw(len(self._code), n=resamples, seed=seed).weights

    def prefixes(self, runs: Runs) -> Prefixes:
        """The prefixes of these runs."""
        corpus = self.corpus
        return Prefixes.of(
            corpus.lengths[runs].tolist(), corpus.failed[runs].tolist(), [corpus.task_ids[r] for r in runs.tolist()]
        )

    def measure(self, runs: Runs, scores: Float, *, probability: bool) -> dict[str, Measured]:
        """The figures of one fold, by risk.

        runs: int64 (n,), one or more. scores: float64 (steps of the runs, 2), imminent and outcome.
        """
        prefixes = self.prefixes(runs)
        local = [self._code[task] for task in dict.fromkeys(self.corpus.task_ids[r] for r in runs.tolist())]
        drawn = Resamples(self._weights[:, local])
        groups = None if self.groups is None else [self.groups[r] for r in runs.tolist()]
        return Basis(prefixes, self.horizon, drawn, groups).measure([*scores.T], probability=probability)


def average(measured: Sequence[Measured]) -> Measured:
    """The mean of each figure over folds, and of each resample; a fold in which a figure does not exist is left out.

    measured: one or more, all of one score. Their prefixes differ, so `judged` says only that all folds were judged.
    """
    known = [name for name in FIGURES if any(name in one.samples for one in measured)]
    found = Estimates(
        {name: nan_mean(np.array([getattr(one.figures, name) for one in measured])) for name in known},
        {name: nan_means(np.stack([one.samples[name] for one in measured if name in one.samples])) for name in known},
    )
    return Measured.of(found.values, found.intervals, found.samples, np.ones(len(measured), dtype=np.bool_))


def nan_mean(values: Float) -> float:
    """Mean of the numbers among these; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def nan_means(rows: Float) -> Float:
    """`nan_mean` down each column: (n, R) -> (R,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any number is NaN, as wanted
        return np.asarray(np.nanmean(rows, axis=0), dtype=np.float64)
