"""What healthy runs are like, and how far a step is from that: the channels of a monitor that sees no failed run.

- context: squared Mahalanobis distance of the context from the healthy mean at that step;
- tools: surprise of a tool after the one before, backed off to how common it is;
- action, result: how far the text is from the nearest one of healthy runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from prefixguard.context import FEATURES
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Matrix
from prefixguard.learn.teacher import sparse_matrix, steps_of

#: Fields of a record whose texts are compared with those of healthy runs.
COMPARED: Final = ("action", "result")
CHANNELS: Final = ("context", "tools", *COMPARED)
#: Context features that may be unusual; the position says only what is usual there.
UNUSUAL: Final = np.array([i for i, feature in enumerate(FEATURES) if feature.group != "position"])
IS_MESSAGE: Final = next(i for i, feature in enumerate(FEATURES) if feature.name == "is_message")
#: Deviations from the mean that count at most.
FARTHEST: Final = 30.0
#: Squared length of a text that counts as none.
EMPTY: Final = 1e-3
_COMPONENTS = 48
_PROTOTYPES = 128
_TOOLS = 24
_LONGEST = 60  # step from which the mean stays
_WIDTH = 0.7  # of the kernel over steps, in steps
_PRIOR = 2.0  # healthy steps that a back-off is worth
_SHRINK = 0.1  # of the covariance, towards independent features
_LEAST_DEVIATION = 0.05


@dataclass(frozen=True, slots=True)
class HealthyText:
    """Texts of one field. table: float32 (V, k), to few dimensions. prototypes: float32 (k, M), each of length 1."""

    table: Matrix
    prototypes: Matrix


@dataclass(frozen=True, slots=True)
class HealthyRuns:
    """Fitted on healthy runs alone. All numbers are float32.

    texts : of each of `COMPARED`. tools : int64 (n,), columns of the vocabulary that name a tool, the rarest first.
    transitions : (n + 3, n + 2), -log P(symbol | the one before) in nats. Symbols are the tools, another call, and a
    message; the last row is the start of a run. mean : (steps, features), of the unusual features by step. deviation :
    (features,). whiten : (features, features), after which the mean of squares is the squared distance.
    """

    texts: tuple[HealthyText, ...]
    tools: NDArray[np.int64]
    transitions: Matrix
    mean: Matrix
    deviation: Matrix
    whiten: Matrix

    @property
    def table(self) -> Matrix:
        """float32 (V, text): the fields' projections side by side, then a column for each tool."""
        named = np.zeros((len(self.texts[0].table), len(self.tools)), np.float32)
        named[self.tools, np.arange(len(self.tools))] = 1
        return np.concatenate([*(text.table for text in self.texts), named], axis=1)

    def channels(self, text: Matrix, context: Matrix) -> Matrix:
        """The channels of each step of one run, float32 (T, 4). text: (T, text). context: (T, d)."""
        row = np.clip(context[:, 0].astype(np.int64) - 1, 0, len(self.mean) - 1)
        away = np.clip((context[:, UNUSUAL] - self.mean[row]) / self.deviation, -FARTHEST, FARTHEST)
        whitened = away.astype(np.float32) @ self.whiten
        sizes = [one.table.shape[1] for one in self.texts]
        *fields, named = np.split(text, np.cumsum(sizes), axis=1)
        symbols = self.symbols(named, context)
        found = [
            (whitened * whitened).sum(axis=1),
            self.transitions[np.concatenate(([-1], symbols[:-1])), symbols],
        ]
        for z, one in zip(fields, self.texts, strict=True):
            size, best = (z * z).sum(axis=1), np.maximum((z @ one.prototypes).max(axis=1), 0)
            found.append((size - best * best) / (size + np.float32(EMPTY)))
        return np.stack(found, axis=1).astype(np.float32)

    def symbols(self, named: Matrix, context: Matrix) -> NDArray[np.int64]:
        """Of each step the rarest tool that it names, else another call, or a message."""
        n = len(self.tools)
        known = np.ones((len(named), n + 1), np.bool_)
        known[:, :n] = named > 0
        first = known.argmax(axis=1)  # n where there is none
        return np.where(context[:, IS_MESSAGE] > 0.5, n + 1, first)


def fit_healthy_runs(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], terms: Sequence[str], seed: int
) -> HealthyRuns:
    """Fit on these runs. terms: of the vocabulary of `rows`, by column."""
    x, context = sparse_matrix(corpus, rows, runs), corpus.context[steps_of(corpus, runs)]
    fields = np.array([term.partition(":")[0] for term in terms])
    with threadpool_limits(1):  # more threads add in another order: other bits
        texts = tuple(_fit_text(x, np.flatnonzero(fields == field), seed) for field in COMPARED)
        mean, deviation, whiten = _fit_context(context)
    counts = np.bincount(x.indices, minlength=x.shape[1])
    tools = np.flatnonzero((fields == "tool") & (counts > 0))
    tools = tools[np.argsort(-counts[tools], kind="stable")][:_TOOLS][::-1]
    found = HealthyRuns(texts, tools, np.zeros((0, 0), np.float32), mean, deviation, whiten)
    symbols = found.symbols(x[:, tools].toarray(), context)
    starts = np.cumsum(corpus.lengths[runs])[:-1]
    return replace(found, transitions=_fit_transitions(np.split(symbols, starts), len(tools) + 2))


def _fit_text(x: csr_matrix, own: NDArray[np.int64], seed: int) -> HealthyText:
    """x: (steps, V). own: the columns of the field."""
    texts = x[:, own]
    texts = texts[np.flatnonzero(texts.getnnz(axis=1))]
    k = min(_COMPONENTS, *texts.shape)
    table = np.zeros((x.shape[1], max(k, 1)), np.float32)
    if k == 0:
        return HealthyText(table, np.zeros((1, 1), np.float32))
    # The eigenvectors of the terms' products: the right singular vectors, without a random start.
    _, vectors = np.linalg.eigh((texts.T @ texts).toarray().astype(np.float64))
    table[own] = vectors[:, ::-1][:, :k]
    z = _unit(texts @ table[own].astype(np.float64))
    z = np.unique(np.round(z, 5), axis=0)
    if len(z) > _PROTOTYPES:
        z = KMeans(_PROTOTYPES, n_init=1, random_state=seed).fit(z).cluster_centers_
    return HealthyText(table, np.ascontiguousarray(_unit(z).T, dtype=np.float32))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def _fit_context(context: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Mean by step, deviation and whitening. context: float32 (steps, d)."""
    values, steps = context[:, UNUSUAL].astype(np.float64), np.minimum(context[:, 0], _LONGEST)
    kernel = np.exp(-0.5 * ((np.arange(1, _LONGEST + 1)[:, None] - steps[None, :]) / _WIDTH) ** 2)
    overall = values.mean(axis=0)
    mean = (kernel @ values + _PRIOR * overall) / (kernel.sum(axis=1, keepdims=True) + _PRIOR)
    away = values - mean[steps.astype(np.int64) - 1]
    deviation = np.maximum(np.sqrt((away**2).mean(axis=0)), _LEAST_DEVIATION)
    away /= deviation
    d = len(overall)
    covariance = away.T @ away / len(away)
    covariance = (1 - _SHRINK) * covariance + _SHRINK * max(np.trace(covariance) / d, 0.3) * np.eye(d)
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)) / np.sqrt(d)
    return mean.astype(np.float32), deviation.astype(np.float32), whiten.astype(np.float32)


def _fit_transitions(runs: list[NDArray[np.int64]], n: int) -> Matrix:
    """-log P of each of n symbols after each, and after none (the last row): counts backed off to the symbol's own."""
    counts = np.zeros((n + 1, n))
    for symbols in runs:
        np.add.at(counts, (np.concatenate(([n], symbols[:-1])), symbols), 1)
    common = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * n)
    share = (counts + _PRIOR * common) / (counts.sum(axis=1, keepdims=True) + _PRIOR)
    return np.asarray(-np.log(share), np.float32)
