"""A head that learns from successful runs alone: how unlike them a run is, by several channels at once.

Each channel gives a number a step (`healthy_runs`). How rare such a number is among healthy runs that the channel was
not fitted on makes channels comparable. Their evidence, in nats, is added up; a running sum (CUSUM) takes off what
healthy steps show as well. No failed run is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import DataError
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Matrix
from prefixguard.learn.head import FitMaterial, held_out
from prefixguard.learn.healthy_part import MOST_EVIDENCE, HealthyPart
from prefixguard.learn.healthy_runs import CHANNELS, HealthyRuns, fit_healthy_runs
from prefixguard.learn.teacher import project
from prefixguard.learn.trees import LevelSymbols

_FOLDS: Final = 4
#: Quantiles of healthy steps between which evidence is interpolated.
_LEVELS: Final = np.array((0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0))
#: Least width of a bin, of the range of its channel.
_LEAST_BIN: Final = 0.03
#: Nats, beyond the rarest healthy step, at which a channel's evidence ends.
_BEYOND: Final = 40.0
#: What a nat of each channel counts. Chosen with the other constants on the corpora ollama7b and real_research7b.
_WEIGHTS: Final = {"context": 1.5, "tools": 0.5, "action": 1.0, "result": 1.0}
#: Of the mean evidence of healthy steps, what is taken off at every step.
_DRIFT: Final = 1.3
#: Share of runs without an outcome that are left out of what is healthy, the most unusual ones.
TRIMMED: Final = 0.1


@dataclass(frozen=True, slots=True)
class ChannelEvidence:
    """How much each value of a channel says, in nats: -log of the share of healthy steps that reach it.

    channel : int64 (bins,), whose the bin is. low, width : float32 (bins,), where it begins and how wide it is.
    height : float32 (bins,), what passing it adds. drift : taken off at every step. half : evidence that becomes 1/2.
    """

    channel: NDArray[np.int64]
    low: Matrix
    width: Matrix
    height: Matrix
    drift: float = 0.0
    half: float = 1.0

    def of(self, channels: Matrix) -> Matrix:
        """Evidence of each step, float32 (T,). channels: (T, channels)."""
        passed = np.clip((channels[:, self.channel] - self.low) / self.width, np.float32(0), np.float32(1))
        return np.asarray(passed @ self.height, np.float32)

    def running(self, evidence: Matrix) -> Matrix:
        """Running sum of a run, float32 (T,), from 0 to `MOST_EVIDENCE`."""
        out, total = np.empty_like(evidence), np.float32(0)
        for t, more in enumerate(evidence):
            total = min(max(total + (more - np.float32(self.drift)), np.float32(0)), np.float32(MOST_EVIDENCE))
            out[t] = total
        return out


@dataclass(frozen=True, slots=True)
class HealthyHead:
    """runs: what healthy runs are like. evidence: what it means to be unlike them. n_runs: runs it was fitted on."""

    runs: HealthyRuns
    evidence: ChannelEvidence
    n_runs: int

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """From 0 to 1: the evidence of each step, and of the run so far. One array (T, 2) a run."""
        found = []
        for channels in channels_of(self.runs, corpus, rows, runs):
            step = self.evidence.of(channels)
            both = np.stack([step, self.evidence.running(step)], axis=1)
            found.append((both / (both + np.float32(self.evidence.half))).astype(np.float64))
        return found

    def facts(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {"channels": list(CHANNELS), "healthy_runs": self.n_runs, "tools": len(self.runs.tools)}

    def part(self, prefix: str = "healthy_") -> HealthyPart:
        """How a compiled graph computes one step. prefix: of the names of its constants."""
        return HealthyPart(self.runs, self.evidence, prefix)

    def symbols(self, m: FitMaterial) -> LevelSymbols:
        """Levels of a step's evidence, each as often as the others in the runs it was fitted on."""
        step = np.concatenate(self.logits(m.corpus, m.rows, healthy_of(m)))[:, 0]
        shares = np.arange(1, m.config.symbols) / m.config.symbols
        return LevelSymbols(np.unique(np.quantile(step, shares).astype(np.float32)), risk=0)


def fit(m: FitMaterial) -> HealthyHead:
    """Fit the head on the successful runs; where nobody says that they are, without the most unusual tenth of them.

    DataError where there is none.
    """
    m.listener.on_stage("healthy runs", ", ".join(CHANNELS))
    healthy = healthy_of(m)
    if len(healthy) == 0:
        raise DataError("no run that it may learn from succeeded: the backend healthy learns from successful runs.")
    head, highest = _fit_on(m, healthy)
    if m.corpus.unlabelled:
        head, _ = _fit_on(m, healthy[highest <= np.quantile(highest, 1 - TRIMMED)])
    return head


def _fit_on(m: FitMaterial, healthy: NDArray[np.int64]) -> tuple[HealthyHead, NDArray[np.float64]]:
    """The head, and the highest running evidence of each of these runs by channels that were fitted without it."""
    seed, apart = m.config.seed, dict[int, Matrix]()
    for fold in range(_FOLDS):  # what a channel says of runs that it was fitted on is too little
        out = held_out(m.corpus, healthy, seed, _FOLDS, fold)
        if out.any() and not out.all():
            without = fit_healthy_runs(m.corpus, m.rows, healthy[~out], m.terms, seed)
            found = channels_of(without, m.corpus, m.rows, healthy[out])
            apart |= dict(zip(healthy[out].tolist(), found, strict=True))
    runs = fit_healthy_runs(m.corpus, m.rows, healthy, m.terms, seed)
    if not apart:  # all runs are of one task
        apart = dict(zip(healthy.tolist(), channels_of(runs, m.corpus, m.rows, healthy), strict=True))
    evidence = fit_evidence(list(apart.values()))
    highest = [float(evidence.running(evidence.of(apart[r])).max()) for r in healthy.tolist()]
    return HealthyHead(runs, evidence, len(healthy)), np.array(highest)


def healthy_of(m: FitMaterial) -> NDArray[np.int64]:
    """The successful runs among those that may be learned from."""
    return m.everything[~m.corpus.failed[m.everything]]


def channels_of(runs: HealthyRuns, corpus: Corpus, rows: Rows, of: NDArray[np.int64]) -> list[Matrix]:
    """Channels of every step, one array (T, channels) a run."""
    table = runs.table
    return [
        runs.channels(project(table, *rows.run(r)), corpus.context[corpus.first[r] : corpus.first[r + 1]])
        for r in of.tolist()
    ]


def fit_evidence(runs: Sequence[Matrix]) -> ChannelEvidence:
    """runs: channels of healthy runs, each (T, channels), by a fit without them."""
    steps, bins = np.concatenate(runs).astype(np.float64), []
    rarest = -np.log1p(-_LEVELS * len(steps) / (len(steps) + 1))
    for channel, (values, name) in enumerate(zip(steps.T, CHANNELS, strict=True)):
        edges, first = np.unique(np.quantile(values, _LEVELS), return_index=True)
        nats = _WEIGHTS[name] * rarest[np.append(first[1:], len(_LEVELS)) - 1]  # of ties, the highest level they reach
        least = _LEAST_BIN * max(float(np.ptp(values)), 1e-3)
        often = np.quantile(values, 0.9)
        excess = max(float((values[values > often] - often).mean()) if values.max() > often else 0.0, least)
        widths, heights = np.maximum(np.diff(edges), least), np.diff(nats)
        bins += [(channel, *one) for one in zip(edges[:-1], widths, heights, strict=True)]
        bins.append((channel, edges[-1], excess * _BEYOND, _WEIGHTS[name] * _BEYOND))
    channels, low, width, height = (np.array(column, np.float32) for column in zip(*bins, strict=True))
    found = ChannelEvidence(channels.astype(np.int64), low, width, height)
    evidence = [found.of(channels) for channels in runs]
    found = replace(found, drift=float(np.float32(_DRIFT * np.concatenate(evidence).mean())))
    highest = float(np.median([found.running(one).max() for one in evidence]))
    return replace(found, half=float(np.float32(1 + highest)))
