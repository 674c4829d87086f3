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

from prefixguard.evaluation.figures import FIGURES, Measured, RiskFigures, measure
from prefixguard.evaluation.retraining.partition import Runs
from prefixguard.learn import Corpus
from prefixguard.metrics import Prefixes, Resamples, interval

Float = npt.NDArray[np.float64]
RISKS = ("imminent", "outcome")


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
        targets = prefixes.imminent_labels(self.horizon), prefixes.outcome_labels
        return {
            risk: measure(prefixes, scores[:, column], targets[column], drawn, probability=probability, groups=groups)
            for column, risk in enumerate(RISKS)
        }


def average(measured: Sequence[Measured]) -> Measured:
    """The mean of each figure over folds, and of each resample; a fold in which a figure does not exist is left out.

    measured: one or more, all of one score. Their prefixes differ, so `judged` says only that all folds were judged.
    """
    value = {name: nan_mean(np.array([getattr(m.figures, name) for m in measured])) for name in FIGURES}
    samples: dict[str, Float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name in FIGURES:
        each = [m.samples[name] for m in measured if name in m.samples]
        if not each:
            continue
        samples[name] = nan_means(np.stack(each))
        found = interval(samples[name]) if not math.isnan(value[name]) else None
        if found is not None:
            intervals[name] = found
    return Measured(
        RiskFigures(intervals=intervals, differences={}, **value), np.ones(len(measured), dtype=np.bool_), samples
    )


def nan_mean(values: Float) -> float:
    """Mean of the numbers among these; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def nan_means(rows: Float) -> Float:
    """`nan_mean` down each column: (n, R) -> (R,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any number is NaN, as wanted
        return np.asarray(np.nanmean(rows, axis=0), dtype=np.float64)
