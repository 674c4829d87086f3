"""Logistic regression on words: of the last step, and of all steps so far. Neither knows an order of steps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, tril, vstack
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from prefixguard.evaluation.controls.material import Float, Material, Scorer
from prefixguard.learn import sparse_matrix

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
