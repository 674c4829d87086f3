"""Controls that need no torch: words in logistic regressions, boosted trees on context and text, and on raw text."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
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

from prefixguard.evaluation.controls.material import Float, Material, Scorer
from prefixguard.evaluation.retraining.views import runs_of
from prefixguard.learn import Corpus, featurise, fit_monitor, sparse_matrix, steps_of
from prefixguard.stepview.record import raw_record

#: Prefixes that a fit reads at most: rows of whole prefixes are long, and more of them teach little.
MOST_PREFIXES = 40_000
_ROUNDS = 200  # of L-BFGS; words of thousands of steps are near enough by then


def last_step_words(material: Material) -> Scorer:
    """TF-IDF of the last step: what a single step gives away."""
    return _fit(material, so_far=False)


def words_so_far(material: Material) -> Scorer:
    """TF-IDF of the whole prefix: its steps' rows added up and scaled to length 1, so order and place are gone."""
    return _fit(material, so_far=True)


@dataclass(frozen=True, slots=True)
class _Line:
    """A fitted regression: log-odds = row @ weights + bias."""

    weights: Float  # (V, 2)
    bias: Float  # (2,)

    def probability(self, matrix: csr_matrix) -> Float:
        return np.asarray(expit(matrix @ self.weights + self.bias), dtype=np.float64)


def _fit(material: Material, *, so_far: bool) -> Scorer:
    keep = _thinned(len(material.targets), material.seed)
    parts, start = [], 0
    for r in material.train.tolist():
        matrix = _of_run(material, r, so_far=so_far)
        stop = start + matrix.shape[0]
        parts.append(matrix[keep[start:stop]])  # thinned run by run: whole prefixes of all runs may not fit in memory
        start = stop
    line = _regression(vstack(parts).tocsr(), material.targets[keep], material.weights[keep])

    def score(runs: NDArray[np.int64]) -> list[Float]:
        return [line.probability(_of_run(material, r, so_far=so_far)) for r in runs.tolist()]

    return score


def _of_run(material: Material, run: int, *, so_far: bool) -> csr_matrix:
    """TF-IDF rows of a run, (T, V), float64: of each step, or of each prefix."""
    matrix = sparse_matrix(material.corpus, material.rows, np.array([run])).astype(np.float64)
    if not so_far:
        return matrix
    n = matrix.shape[0]
    return normalize(csr_matrix(tril(np.ones((n, n)))) @ matrix)


def _thinned(n: int, seed: int) -> NDArray[np.bool_]:
    """Which of n training prefixes are read: all, or a draw by seed."""
    keep = np.ones(n, dtype=np.bool_)
    if n > MOST_PREFIXES:
        keep[:] = False
        keep[np.random.default_rng(seed).choice(n, MOST_PREFIXES, replace=False)] = True
    return keep


def _regression(matrix: csr_matrix, targets: NDArray[np.float32], weight: Float) -> _Line:
    """L2-regularised with C = 1, one fit a risk."""
    weights, bias = np.zeros((matrix.shape[1], 2)), np.zeros(2)
    for risk in range(2):
        y = targets[:, risk].astype(np.int64)
        if y.min() == y.max():
            bias[risk] = 9.0 if y[0] else -9.0  # one class: all but certain
            continue
        with warnings.catch_warnings(), threadpool_limits(1):  # one thread: the same sums, so the same bytes
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=1.0, max_iter=_ROUNDS).fit(matrix, y, sample_weight=weight)
        weights[:, risk], bias[risk] = model.coef_[0], model.intercept_[0]
    return _Line(weights, bias)


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


def context_alone(material: Material) -> Scorer:
    """Counts, rates, repeats and sizes of the steps so far, and not one word of them."""
    corpus = material.corpus
    features = corpus.context[steps_of(corpus, material.train)]
    data = lightgbm.Dataset(features, weight=material.weights, free_raw_data=False)
    settings = {**_SETTINGS, "seed": material.seed, "data_random_seed": material.seed}
    models: list[lightgbm.Booster | float] = []
    for risk in range(2):
        y = material.targets[:, risk]
        data.set_label(np.ascontiguousarray(y))
        models.append(lightgbm.train(settings, data, _TREES) if y.min() < y.max() else float(y[0]))

    def score(runs: NDArray[np.int64]) -> list[Float]:
        columns = corpus.context[steps_of(corpus, runs)]
        risks = [np.full(len(columns), m) if isinstance(m, float) else _predict(m, columns) for m in models]
        return np.split(np.stack(risks, axis=1), np.cumsum(corpus.lengths[runs])[:-1])

    return score


def boosting(material: Material) -> Scorer:
    """The backend `gbdt` as `train` fits it, before calibration."""
    fitted = fit_monitor(
        material.corpus, material.train, material.config, rows=material.rows, vocabulary=material.vocabulary
    )

    def score(runs: NDArray[np.int64]) -> list[Float]:
        return [expit(logits) for logits in fitted.logits(material.corpus, material.rows, runs)]

    return score


def _predict(model: lightgbm.Booster, features: NDArray[np.float32]) -> Float:
    return np.asarray(model.predict(features, num_threads=1), dtype=np.float64)


#: Name and description of the row that reads plain text.
RAW_TEXT = "raw text"
RAW_NOTE = (
    "boosted trees on the text of each step without fields, tools and status (the raw view), and on what can be "
    "counted there"
)


def as_raw(corpus: Corpus) -> Corpus:
    """The same runs through the raw view, from the records that a corpus holds; no file is read again.

    It is what `featurise` makes of runs read through `raw_view(adapter)`, since that view is made from the same
    records.
    """
    return featurise(replace(run, records=tuple(map(raw_record, run.records))) for run in runs_of(corpus))


def raw_text(material: Material) -> Scorer:
    """The control of the step view: boosted trees on the same steps as plain text, without fields, tools or status.

    What a monitor gains over this row it owes to the fields of its records. Source: PrefixGuard 5 (raw-text control).
    """
    return boosting(replace(material, corpus=as_raw(material.corpus)))
