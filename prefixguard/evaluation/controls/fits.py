"""Controls that need no torch, and what all controls learn from: the runs that the monitor was fitted on."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, tril, vstack
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import DataError
from prefixguard.evaluation.retraining.views import runs_of
from prefixguard.learn import Corpus, Rows, TrainConfig, featurise, fit_monitor, labels, sparse_matrix, steps_of
from prefixguard.stepview.record import raw_record

Float = NDArray[np.float64]
Int = NDArray[np.int64]
#: Runs -> one float64 (T, 2) each, in their order: probability of imminent failure, and of failure.
Scorer = Callable[[Int], list[Float]]

#: Prefixes that a regression reads at most: rows of whole prefixes are long, and more of them teach little.
MOST_PREFIXES = 40_000
_ROUNDS = 200  # of L-BFGS; words of thousands of steps are near enough by then


@dataclass(frozen=True)
class ControlRuns:
    """Runs to learn from, and what several controls read of them; their text as sparse rows is made once for all.

    corpus: all runs; nothing is learned from those outside `train`, and of their outcomes nothing is read at all.
    train: int64 (n,). horizon: H. seed: of everything that is drawn.
    """

    corpus: Corpus
    train: Int
    horizon: int
    seed: int

    @property
    def tasks(self) -> list[str]:
        """The task of each training run."""
        return [self.corpus.task_ids[r] for r in self.train.tolist()]

    @cached_property
    def config(self) -> TrainConfig:
        """A training's defaults, with boosted trees for a head; its vocabulary's size is every control's."""
        return TrainConfig(backend="gbdt", seed=self.seed, horizon=self.horizon)

    @cached_property
    def vocabulary(self) -> tuple[Vocabulary, FitReport]:
        """Terms of at least three training tasks. Raises DataError where there is none."""
        texts, fewest = self.corpus.texts(self.train.tolist()), self.config.min_tasks
        found = fit_vocabulary(texts, max_features=self.config.max_features, min_tasks=fewest)
        if len(found[0]) == 0:
            raise DataError(
                f"no word occurs in {fewest} of the tasks that controls learn from ({len(set(self.tasks))}). "
                "Give training runs of more tasks, or ask only for controls that read no text."
            )
        return found

    @cached_property
    def rows(self) -> Rows:
        """Sparse rows of all steps under that vocabulary."""
        return self.corpus.encode(self.vocabulary[0])

    @cached_property
    def targets(self) -> NDArray[np.float32]:
        """Labels of the training steps, float32 (steps of train, 2): imminent, outcome."""
        return labels(self.corpus, self.horizon)[steps_of(self.corpus, self.train)]

    @cached_property
    def weights(self) -> Float:
        """Weight of each training step, float64 (steps of train,): tasks alike, in a task its runs; mean 1.

        A task that was tried more often, or took longer, says no more about the next task.
        """
        lengths, count = self.corpus.lengths[self.train], Counter(self.tasks)
        weight = np.repeat(1.0 / (lengths * np.array([count[task] for task in self.tasks])), lengths)
        return np.asarray(weight / weight.mean(), dtype=np.float64)


def last_step_words(runs: ControlRuns) -> Scorer:
    """TF-IDF of the last step: what a single step gives away."""
    return _regression(runs, lambda run: _words(runs, run))


def words_so_far(runs: ControlRuns) -> Scorer:
    """TF-IDF of the whole prefix: its steps' rows added up and scaled to length 1, so order and place are gone."""

    def prefixes(run: int) -> csr_matrix:
        steps = _words(runs, run)
        return normalize(csr_matrix(tril(np.ones((steps.shape[0], steps.shape[0])))) @ steps)

    return _regression(runs, prefixes)


def _words(runs: ControlRuns, run: int) -> csr_matrix:
    """TF-IDF rows of the steps of a run, float64 (T, V)."""
    return sparse_matrix(runs.corpus, runs.rows, np.array([run])).astype(np.float64)


def _regression(runs: ControlRuns, of_run: Callable[[int], csr_matrix]) -> Scorer:
    """A logistic regression a risk, L2-regularised with C = 1. of_run: the rows of a run, (T, V)."""
    n = len(runs.targets)
    keep = np.ones(n, dtype=np.bool_)
    if n > MOST_PREFIXES:
        keep[:] = False
        keep[np.random.default_rng(runs.seed).choice(n, MOST_PREFIXES, replace=False)] = True
    # thinned run by run: whole prefixes of all runs may not fit in memory
    kept = np.split(keep, np.cumsum(runs.corpus.lengths[runs.train])[:-1])
    parts = [of_run(r)[here] for r, here in zip(runs.train.tolist(), kept, strict=True)]
    matrix, targets, weight = vstack(parts).tocsr(), runs.targets[keep].astype(np.int64), runs.weights[keep]
    weights, bias = np.zeros((matrix.shape[1], 2)), np.zeros(2)
    for risk in range(2):
        y = targets[:, risk]
        if y.min() == y.max():
            bias[risk] = 9.0 if y[0] else -9.0  # one class: all but certain
            continue
        with warnings.catch_warnings(), threadpool_limits(1):  # one thread: the same sums, so the same bytes
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=1.0, max_iter=_ROUNDS).fit(matrix, y, sample_weight=weight)
        weights[:, risk], bias[risk] = model.coef_[0], model.intercept_[0]
    return lambda scored: [np.asarray(expit(of_run(r) @ weights + bias), np.float64) for r in scored.tolist()]


_TREES = 150
#: Those of the backend but for `feature_fraction`, which is low there because most of its columns are text.
_SETTINGS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def context_alone(runs: ControlRuns) -> Scorer:
    """Counts, rates, repeats and sizes of the steps so far, and not one word of them."""
    corpus = runs.corpus
    data = lightgbm.Dataset(corpus.context[steps_of(corpus, runs.train)], weight=runs.weights, free_raw_data=False)
    settings = {**_SETTINGS, "seed": runs.seed, "data_random_seed": runs.seed}
    models: list[lightgbm.Booster | float] = []
    for risk in range(2):
        y = runs.targets[:, risk]
        data.set_label(np.ascontiguousarray(y))
        models.append(lightgbm.train(settings, data, _TREES) if y.min() < y.max() else float(y[0]))

    def score(scored: Int) -> list[Float]:
        columns = corpus.context[steps_of(corpus, scored)]
        risks = [
            np.full(len(columns), m) if isinstance(m, float) else np.asarray(m.predict(columns, num_threads=1))
            for m in models
        ]
        return np.split(np.stack(risks, axis=1), np.cumsum(corpus.lengths[scored])[:-1])

    return score


def boosting(runs: ControlRuns) -> Scorer:
    """The backend `gbdt` as `train` fits it, before calibration."""
    fitted = fit_monitor(runs.corpus, runs.train, runs.config, rows=runs.rows, vocabulary=runs.vocabulary)
    return lambda scored: [expit(logits) for logits in fitted.logits(runs.corpus, runs.rows, scored)]


def raw_text(runs: ControlRuns) -> Scorer:
    """The control of the step view: boosted trees on the same steps as plain text, without fields, tools or status.

    What a monitor gains over this row it owes to the fields of its records. Source: PrefixGuard 5 (raw-text control).
    """
    return boosting(replace(runs, corpus=as_raw(runs.corpus)))


def as_raw(corpus: Corpus) -> Corpus:
    """The same runs through the raw view, from the records that a corpus holds; no file is read again.

    It is what `featurise` makes of runs read through `raw_view(adapter)`, since that view is made from the same
    records.
    """
    return featurise(replace(run, records=tuple(map(raw_record, run.records))) for run in runs_of(corpus))
