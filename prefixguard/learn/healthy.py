"""A head that learns from successful runs alone: how far a run is from the nearest step of healthy runs.

A step is its context, in deviations of healthy steps, and the tools that it calls. Its distance is that to the nearest
healthy step, in whatever run and wherever there; what the context counts (errors, repeats, sizes) makes the distance
one of the run so far. A run's reading adds half of the reading before. No failed run is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from prefixguard.context import N_FEATURES
from prefixguard.errors import DataError
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Matrix
from prefixguard.learn.head import FitMaterial, held_out
from prefixguard.learn.healthy_part import HealthyPart
from prefixguard.learn.teacher import project, sparse_matrix, steps_of
from prefixguard.learn.trees import LevelSymbols

#: What a step is made of, as the manifest says it.
CHANNELS: Final = ("context", "tools")
#: Share of runs without an outcome that are left out of what is healthy, the most unusual ones.
TRIMMED: Final = 0.1
_FOLDS: Final = 4
#: Healthy steps that are kept, or centres of as many groups of them.
_PROTOTYPES: Final = 256
_ROUNDS: Final = 20  # of k-means, where there are more steps
_TOOLS: Final = 24
_LEAST_DEVIATION: Final = 0.05
#: What the reading before counts. Chosen with the other constants on the corpora ollama7b and real_research7b.
_MEMORY: Final = 0.5


@dataclass(frozen=True, slots=True)
class HealthySteps:
    """Fitted on healthy runs alone.

    table : float32 (V, n), a column for each known tool: 1 where the vocabulary names it. deviation : float32
    (features,), of the context. prototypes : float32 (M, features + n), steps of healthy runs. half : distance that
    becomes 1/2. memory : what the distance of the run before a step counts at the step.
    """

    table: Matrix
    deviation: Matrix
    prototypes: Matrix
    half: float = 1.0
    memory: float = _MEMORY

    def points(self, named: Matrix, context: Matrix) -> Matrix:
        """Steps as they are compared, float32 (T, features + n). named: (T, n), above 0 where a tool is called.
        context: (T, d), of which signals, behind the features, are not read."""
        return np.concatenate([context[:, :N_FEATURES] / self.deviation, named > 0], axis=1, dtype=np.float32)

    def distances(self, points: Matrix) -> Matrix:
        """How far each step is from the nearest prototype, float32 (T,)."""
        squares = [np.square(point - self.prototypes).sum(axis=1).min() for point in points]
        return np.sqrt(np.array(squares, np.float32))

    def running(self, distances: Matrix) -> Matrix:
        """Of each step of a run the distance of the run so far, float32 (T,)."""
        out, total = np.empty_like(distances), np.float32(0)
        for t, distance in enumerate(distances):
            total = total * np.float32(self.memory) + distance
            out[t] = total
        return out


@dataclass(frozen=True, slots=True)
class HealthyHead:
    """steps: what healthy steps are like. levels: float32, rising, distances of healthy steps that it was not fitted
    on, each level as often as the others. n_runs: runs it was fitted on."""

    steps: HealthySteps
    levels: Matrix
    n_runs: int

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """From 0 to 1: how far each step is, and the run so far. One array (T, 2) a run."""
        found = []
        for step in distances_of(self.steps, corpus, rows, runs):
            found.append(_share(np.stack([step, self.steps.running(step)], axis=1), self.steps.half))
        return found

    def facts(self) -> dict[str, Any]:
        """What the manifest says of it."""
        tools, steps = self.steps.table.shape[1], len(self.steps.prototypes)
        return {"channels": list(CHANNELS), "healthy_runs": self.n_runs, "tools": tools, "healthy_steps": steps}

    def part(self, prefix: str = "healthy_") -> HealthyPart:
        """How a compiled graph computes one step. prefix: of the names of its constants."""
        return HealthyPart(self.steps, prefix)

    def symbols(self, m: FitMaterial) -> LevelSymbols:
        """Levels of a step's distance."""
        return LevelSymbols(np.unique(_share(self.levels, self.steps.half).astype(np.float32)), risk=0)


def fit(m: FitMaterial) -> HealthyHead:
    """Fit the head on the successful runs; where nobody says that they are, without the most unusual tenth of them.

    DataError where there is none.
    """
    m.listener.on_stage("healthy runs", ", ".join(CHANNELS))
    healthy = m.everything[~m.corpus.failed[m.everything]]
    if len(healthy) == 0:
        raise DataError("no run that it may learn from succeeded: the backend healthy learns from successful runs.")
    head, highest = _fit_on(m, healthy)
    if m.corpus.unlabelled:
        head, _ = _fit_on(m, healthy[highest <= np.quantile(highest, 1 - TRIMMED)])
    return head


def _fit_on(m: FitMaterial, healthy: NDArray[np.int64]) -> tuple[HealthyHead, NDArray[np.float64]]:
    """The head, and the greatest distance of each of these runs from steps of others."""
    seed, apart = m.config.seed, dict[int, Matrix]()
    for fold in range(_FOLDS):  # a run is too near to its own steps
        out = held_out(m.corpus, healthy, seed, _FOLDS, fold)
        if out.any() and not out.all():
            without = fit_steps(m.corpus, m.rows, healthy[~out], m.terms, seed)
            found = distances_of(without, m.corpus, m.rows, healthy[out])
            apart |= dict(zip(healthy[out].tolist(), found, strict=True))
    steps = fit_steps(m.corpus, m.rows, healthy, m.terms, seed)
    if not apart:  # all runs are of one task
        apart = dict(zip(healthy.tolist(), distances_of(steps, m.corpus, m.rows, healthy), strict=True))
    highest = np.array([float(steps.running(apart[r]).max()) for r in healthy.tolist()])
    shares = np.arange(1, m.config.symbols) / m.config.symbols
    levels = np.quantile(np.concatenate(list(apart.values())), shares).astype(np.float32)
    steps = HealthySteps(steps.table, steps.deviation, steps.prototypes, half=float(np.float32(1 + np.median(highest))))
    return HealthyHead(steps, levels, len(healthy)), highest


def _share(distance: Matrix, half: float) -> NDArray[np.float64]:
    return np.asarray(distance / (distance + np.float32(half)), np.float64)


def distances_of(steps: HealthySteps, corpus: Corpus, rows: Rows, of: NDArray[np.int64]) -> list[Matrix]:
    """Distances of every step, one array (T,) a run."""
    found = []
    for r in of.tolist():
        context = corpus.context[corpus.first[r] : corpus.first[r + 1]]
        found.append(steps.distances(steps.points(project(steps.table, *rows.run(r)), context)))
    return found


def fit_steps(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], terms: Sequence[str], seed: int
) -> HealthySteps:
    """Fit on these runs. terms: of the vocabulary of `rows`, by column."""
    x, context = sparse_matrix(corpus, rows, runs), corpus.context[steps_of(corpus, runs)]
    counts = np.bincount(x.indices, minlength=x.shape[1])
    tools = np.flatnonzero(np.array([term.startswith("tool:") for term in terms], np.bool_) & (counts > 0))
    tools = tools[np.argsort(-counts[tools], kind="stable")][:_TOOLS]
    table = np.zeros((x.shape[1], len(tools)), np.float32)
    table[tools, np.arange(len(tools))] = 1
    deviation = np.maximum(context[:, :N_FEATURES].astype(np.float64).std(axis=0), _LEAST_DEVIATION).astype(np.float32)
    found = HealthySteps(table, deviation, np.empty((0, 0), np.float32))
    points = np.unique(np.round(found.points(x[:, tools].toarray(), context), 5), axis=0)
    if len(points) > _PROTOTYPES:
        with threadpool_limits(1):  # more threads add in another order: other bits
            groups = KMeans(_PROTOTYPES, n_init=1, max_iter=_ROUNDS, random_state=seed).fit(points.astype(np.float64))
        points = groups.cluster_centers_.astype(np.float32)
    return HealthySteps(table, deviation, points)
