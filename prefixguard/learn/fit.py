"""Fit a monitor on training runs: vocabulary, context scale, teacher, heads.

Boosted trees are fitted without torch; files that need it are imported when they are asked for.
"""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from prefixguard.context import N_FEATURES
from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import missing_extra
from prefixguard.learn.config import HEADS, WITHOUT_TORCH, LearnListener, TrainConfig
from prefixguard.learn.corpus import Corpus, Rows, labels
from prefixguard.learn.head import FitMaterial, FittedHead, FittedNetwork, SymbolPart
from prefixguard.learn.scaling import ContextScale, fit_scale
from prefixguard.learn.score_direction import check_options
from prefixguard.learn.teacher import out_of_fold, steps_of
from prefixguard.store import Store


@dataclass(frozen=True, slots=True)
class FittedMonitor:
    """All that was learned, before it is compiled.

    heads: the monitor's logits are the mean of theirs. symbols: what gives a step's symbol.
    symbol: the symbols-only network, where there is one.
    """

    vocabulary: Vocabulary
    vocabulary_report: FitReport
    scale: ContextScale
    heads: tuple[FittedHead, ...]
    symbols: SymbolPart
    symbol: FittedNetwork | None
    config: TrainConfig

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Mean logits of the heads, one array (T, 2) a run."""
        each = [head.logits(corpus, rows, runs) for head in self.heads]
        return [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]


def torch_part(module: str, what: str, *, or_else: str = "") -> ModuleType:
    """Import a file that needs torch.

    module : dotted name of the file.
    what : what was asked for, as the message names it ("backend gru").
    or_else : what does without torch, a clause of the message; "" where nothing does.
    Raises MissingExtraError where torch is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as exc:
        if exc.name != "torch":
            raise
        raise missing_extra(what, "train", exc, or_else=or_else) from exc


def needs_torch(config: TrainConfig) -> bool:
    """Whether a head of this configuration is a network.

    Raises MissingExtraError where it is and torch is not installed.
    """
    if WITHOUT_TORCH.issuperset(config.heads):
        return False
    torch_part("torch", f"backend {config.backend}", or_else="prefixguard train --backend gbdt needs no torch")
    return True


def fit_monitor(
    corpus: Corpus,
    pool: NDArray[np.int64],
    config: TrainConfig,
    *,
    validation: NDArray[np.int64] | None = None,
    listener: LearnListener | None = None,
    checkpoints: Store | None = None,
    rows: Rows | None = None,
    vocabulary: tuple[Vocabulary, FitReport] | None = None,
) -> FittedMonitor:
    """Fit everything that is learned on the runs of `pool` and `validation`; nothing else of the corpus is looked at.

    validation: runs that choose the first member's epoch, outside the pool. Further members swap them for an equal
    share of the pool's tasks each, so that every run teaches some member. None: a slice of the pool for each.
    rows, vocabulary: already made for this pool (both or neither).
    """
    listener = listener or LearnListener()
    check_options(corpus, config)
    networks = importlib.import_module("prefixguard.learn.neural_heads") if needs_torch(config) else None
    if networks is not None:
        networks.prepare(config)
    everything = pool if validation is None else np.concatenate((pool, validation))
    if vocabulary is None or rows is None:
        listener.on_stage("vocabulary", f"{len(pool):,} runs")
        documents = (lambda: ()) if corpus.reads_scores else corpus.texts(pool.tolist())  # scores have no text
        vocabulary = fit_vocabulary(documents, max_features=config.max_features, min_tasks=config.min_tasks)
        listener.on_stage("encoding", f"{len(vocabulary[0]):,} terms")
        rows = corpus.encode(vocabulary[0])
    scale = fit_scale(
        corpus.context[steps_of(corpus, pool)],
        corpus.lengths[pool],
        corpus.failed[pool],
        horizon=config.horizon,
        bins=config.bins,
    )
    targets = labels(corpus, config.horizon)
    if config.teacher > 0 and networks is not None:
        listener.on_stage("teacher", "boosted trees, out of fold")
        taught = out_of_fold(corpus, rows, everything, targets, config.seed)
        soft = (1 - config.teacher) * targets + config.teacher * taught
    else:
        soft = targets
    m = FitMaterial(
        corpus, rows, vocabulary[0].terms, scale, targets, soft, pool, validation, config, listener, checkpoints
    )
    heads: tuple[FittedHead, ...] = tuple(importlib.import_module(HEADS[kind]).fit(m) for kind in config.heads)
    symbols, symbol = heads[0].symbols(m) if len(heads) == 1 else None, None
    if symbols is None:
        symbols, symbol = importlib.import_module(HEADS["gru"]).fit_symbols(m)
    return FittedMonitor(vocabulary[0], vocabulary[1], scale, heads, symbols, symbol, config)


def training_key(corpus: Corpus, pool: NDArray[np.int64], validation: NDArray[np.int64], config: TrainConfig) -> str:
    """Hash of configuration and data: a checkpoint of another training is never taken up.

    The runs of validation count as well: they choose epochs, and further members learn from them.
    """
    h = hashlib.sha256(repr(config).encode())
    for runs in (pool, validation):
        h.update(f"{len(runs)} runs\n".encode())
        for r in runs.tolist():
            said = f"{corpus.run_ids[r]}\0{corpus.task_ids[r]}\0{corpus.digests[r]}\0{corpus.failed[r]}\n"
            h.update(said.encode("utf-8", "surrogatepass"))
            if corpus.has_signals:  # which no digest holds
                h.update(corpus.context[corpus.first[r] : corpus.first[r + 1], N_FEATURES:].tobytes())
    return h.hexdigest()
