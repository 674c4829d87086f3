"""Gradient boosting on context and projected text: a teacher whose out-of-fold risks a network learns from, a row in
every comparison, and what the trees of a bundle are fitted by.

A small network misses sharp conditions on counts that trees find at once; half of its targets are therefore what the
teacher says of runs it was not fitted on. Nothing of this teacher is in the bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

from prefixguard.errors import DataError
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.trace import task_hash

_COMPONENTS = 64
#: Share of the way that the exponential average goes towards each step's text.
DECAY = np.float32(0.5)
#: Trees a fit; and the learning rate of all of them together, so that fewer trees each go further.
ROUNDS, _RATES = 150, 7.5
#: Fits whose log-odds are averaged, one risk's.
BAGS = 3
_FOLDS = 3
_PARAMETERS = {
    "objective": "binary",
    "num_leaves": 15,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.2,  # most features are text: trees that see few of them differ, and their mean gains
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def steps_of(corpus: Corpus, runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of all steps of these runs, run by run."""
    parts = [np.arange(corpus.first[r], corpus.first[r + 1]) for r in runs.tolist()]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def sparse_matrix(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> csr_matrix:
    """TF-IDF rows of all steps of these runs, (steps, V)."""
    parts = [rows.run(r) for r in runs.tolist()]
    indptr = np.concatenate(([0], np.cumsum(np.concatenate([p[2] for p in parts]), dtype=np.int64)))
    indices, values = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, rows.n_columns))


@dataclass(frozen=True, slots=True)
class TextProjection:
    """Text in 64 dimensions, with its memory: the step's own, an exponential average (0.5), the mean so far."""

    components: NDArray[np.float32]  # (components, V)

    @property
    def table(self) -> NDArray[np.float32]:
        """What each vocabulary column adds to the projected text, float32 (V, components)."""
        return np.ascontiguousarray(self.components.T)

    @classmethod
    def fit(cls, corpus: Corpus, rows: Rows, runs: NDArray[np.int64], seed: int) -> TextProjection:
        """Truncated SVD of the TF-IDF rows of these runs; nothing of scores, which have no text. DataError where the
        vocabulary is empty."""
        if corpus.reads_scores:
            return cls(np.empty((0, rows.n_columns), np.float32))
        if rows.n_columns == 0:
            raise DataError(
                "no word is in the runs of enough tasks (`min_tasks`), so the vocabulary is empty and nothing can be "
                "learned from texts. Give runs of more tasks, a lower --min-tasks, or see what the adapter reads with: "
                "prefixguard parse RUNS"
            )
        matrix = sparse_matrix(corpus, rows, runs)
        n = min(_COMPONENTS, matrix.shape[0] - 1, matrix.shape[1] - 1)
        with threadpool_limits(1):  # more threads add in another order: other bits, on which trees grow differently
            svd = TruncatedSVD(max(n, 1), random_state=seed).fit(matrix)
        return cls(svd.components_.astype(np.float32))

    def features(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Context and projected text of all steps of these runs, float32 (steps, d + 3 * components).

        All of it in float32 and in the order in which a compiled step computes it, so that both see the same bits and
        no tree decides otherwise.
        """
        parts, table = [], self.table
        for r in runs.tolist():
            z = project(table, *rows.run(r))
            mean = np.cumsum(z, axis=0) / np.arange(1, len(z) + 1, dtype=np.float32)[:, None]
            average = np.empty_like(z)
            last = np.zeros(z.shape[1], dtype=np.float32)
            for t in range(len(z)):
                last = last + DECAY * (z[t] - last)
                average[t] = last
            parts.append(np.concatenate((corpus.context[corpus.first[r] : corpus.first[r + 1]], z, average, mean), 1))
        return np.concatenate(parts)


def project(
    table: NDArray[np.float32], indices: NDArray[np.int64], values: NDArray[np.float32], counts: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Projected text of each step of a run, float32 (T, components); terms are added one by one, in order."""
    terms = table[indices] * values[:, None]
    out = np.empty((len(counts), table.shape[1]), dtype=np.float32)
    start = 0
    for t, stop in enumerate(np.cumsum(counts).tolist()):
        np.add.reduce(terms[start:stop], axis=0, out=out[t])
        start = stop
    return out


def fit_boosters(
    features: NDArray[np.float32],
    target: NDArray[np.float32],
    weight: NDArray[np.float64],
    seed: int,
    *,
    rounds: int = ROUNDS,
    rises: Sequence[int] | None = None,
) -> list[lightgbm.Booster] | float:
    """Fit boosted trees to one risk, once a seed; their log-odds are to be averaged. One class: its probability.

    rises: of each feature, whether the risk may only rise with it (1), only fall (-1), or do both (0); then every tree
    sees all features. None: it may do both with all of them.
    """
    if target.min() == target.max():
        return float(target[0])
    data = lightgbm.Dataset(features, np.ascontiguousarray(target), weight=weight)
    # Features are cut into bins once.
    settings = {**_PARAMETERS, "learning_rate": _RATES / rounds, "data_random_seed": seed}
    if rises is not None:
        settings |= {"feature_fraction": 1.0, "monotone_constraints": list(rises)}
    return [lightgbm.train({**settings, "seed": seed * BAGS + bag}, data, rounds) for bag in range(BAGS)]


def boost(
    features: NDArray[np.float32], target: NDArray[np.float32], weight: NDArray[np.float64], seed: int
) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
    """Fit boosted trees to one risk; returns features -> probability. One class: the constant."""
    fitted = fit_boosters(features, target, weight, seed)
    if isinstance(fitted, float):
        return lambda x: np.full(len(x), fitted)

    def probability(x: NDArray[np.float32]) -> NDArray[np.float64]:
        each = [booster.predict(x, raw_score=True, num_threads=1) for booster in fitted]
        return np.asarray(1 / (1 + np.exp(-np.mean(each, axis=0))), dtype=np.float64)

    return probability


def run_weights(corpus: Corpus, runs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weight of each step so that every run counts alike; mean 1."""
    lengths = corpus.lengths[runs]
    return np.repeat(lengths.mean() / lengths, lengths)


def out_of_fold(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], labels: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """The teacher's risks of every step of these runs, each from a fit without its task. float32 (all steps, 2).

    labels: float32 (all steps, 2). Steps of other runs are zero.
    """
    tasks = sorted({corpus.task_ids[r] for r in runs.tolist()}, key=lambda t: task_hash(f"{seed}:teacher:{t}"))
    fold_of = {t: i % _FOLDS for i, t in enumerate(tasks)}
    fold = np.array([fold_of[corpus.task_ids[r]] for r in runs.tolist()])
    features = TextProjection.fit(corpus, rows, runs, seed).features(corpus, rows, runs)
    steps, step_fold = steps_of(corpus, runs), np.repeat(fold, corpus.lengths[runs])
    weight = run_weights(corpus, runs)
    out = np.zeros_like(labels)
    for f in range(min(_FOLDS, len(tasks))):
        fit, held = step_fold != f, step_fold == f
        if not fit.any():
            continue
        for risk in range(labels.shape[1]):
            model = boost(features[fit], labels[steps[fit], risk], weight[fit], seed)
            out[steps[held], risk] = model(features[held])
    return out
